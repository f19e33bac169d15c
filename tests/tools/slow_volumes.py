"""Long tests of volumes: a kernel NFS mount, ten million entries, the contract of the POSIX volume on a slow mount."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import tools
from latency_mount import LatencyMount, SyntheticMount

MEMORY_LIMIT_MB = 1024
ENTRIES = 10_000_000


def peak_memory_mb(command):
    """Peak resident memory of a command, and the number of lines of its output, which is read."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE)
    lines = sum(block.count(b"\n") for block in iter(lambda: running.stdout.read(1 << 20), b""))
    running.stdout.close()
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0, command
    return usage.ru_maxrss / 1024, lines


class TenMillionEntries(unittest.TestCase):
    def test_streaming_tools_need_little_memory(self):
        for tool, arguments, lines in (("pfind", ["-print"], ENTRIES + 1), ("pls", ["-U"], ENTRIES)):
            with self.subTest(tool), SyntheticMount(ENTRIES) as mount:
                options = [mount.path, *arguments] if tool == "pfind" else [*arguments, mount.path]
                peak_mb, counted = peak_memory_mb(tools.command(tool, *options))
            self.assertEqual(counted, lines)
            self.assertLess(peak_mb, MEMORY_LIMIT_MB)


class KernelNfs(unittest.TestCase):
    def test_same_output_as_the_originals_on_a_kernel_nfs_mount(self):
        with tempfile.TemporaryDirectory() as scratch:
            tree, image = Path(scratch, "tree"), Path(scratch, "image")
            subprocess.run([tools.ROOT / "testbed/mktree", "nested", tree, "60", "600"], check=True)
            subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, image, "64M"], check=True)
            pfind, pls, pdu = (tools.BINARIES / tool for tool in tools.TOOLS)
            # The guest's console is a terminal, on which the tools would show their progress.
            script = f"""{{ cd $MNT
cmp <(find . | sort) <({pfind} . | sort) && echo same find
cmp <(ls -lR .) <({pls} -lR .) && echo same ls
cmp <(du . | sort) <({pdu} . | sort) && echo same du
cd /; remount; {pfind} --verbose $MNT -size +0 2>&1 >/dev/null
}} 2>&1 | cat"""
            bed = [tools.ROOT / "testbed/kernel-nfs", "-r", "5", "-i", image, "--", "bash", "-c", script]
            result = subprocess.run(bed, capture_output=True, text=True, timeout=180)
        for tool in ("find", "ls", "du"):
            self.assertIn(f"same {tool}", result.stdout.splitlines(), result.stdout + result.stderr)
        threads = re.search(r"(\d+) threads?", result.stdout)
        self.assertGreaterEqual(int(threads[1]), 8, result.stdout)

    def test_one_file_system_ends_at_a_submount_that_appears_when_it_is_entered(self):
        """An NFSv4 client mounts file systems below an export (crossmnt) when it enters them."""
        with tempfile.TemporaryDirectory() as scratch:
            tree, image = Path(scratch, "tree"), Path(scratch, "image")
            for name in "within", "mounted":
                Path(tree, "top", name).mkdir(parents=True)
                Path(tree, "top", name, "file").touch()
            subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, image, "64M"], check=True)
            pfind, prm, pcopy = (tools.BINARIES / tool for tool in ("pfind", "prm", "pcopy"))
            script = f"""{{ set -e
served=$KN_WORK/srv/top mounted=$KN_WORK/srv/top/mounted options=rw,no_root_squash,insecure,no_subtree_check,async
mount -t tmpfs other $mounted
touch $mounted/precious
exportfs -u 127.0.0.1:$KN_WORK/srv
exportfs -o $options,fsid=0,crossmnt 127.0.0.1:$KN_WORK/srv
exportfs -o $options,fsid=2 127.0.0.1:$mounted
umount $MNT
mkdir /run/nfs
again() {{ umount -R /run/nfs 2>/dev/null || :; mount -t nfs -o vers=4.2 127.0.0.1:/ /run/nfs; cd /run/nfs; }}
again; echo found $({pfind} top -xdev | sort)
cd /; again; echo left out $({pfind} top -mount | sort)
cd /; again; {pcopy} -ax top /run/copy; cd /run; echo copied $(find copy | sort)
cd /; again; {prm} -r --one-file-system top || echo status $?
cd /; again; echo remains $(find top | sort)
cd /; again; {prm} -r --one-file-system top/mounted || echo status $?; echo operand $(ls top/mounted)
touch $mounted/precious; cd /; again; {prm} -r --preserve-root=all top/mounted || echo protected $(ls top/mounted)
}} 2>&1 | cat"""
            bed = [tools.ROOT / "testbed/kernel-nfs", "-i", image, "--", "bash", "-c", script]
            result = subprocess.run(bed, capture_output=True, text=True, timeout=180)
        lines = result.stdout.splitlines()
        for line in (
            "found top top/mounted top/within top/within/file",
            "left out top top/within top/within/file",
            "copied copy copy/mounted copy/within copy/within/file",
            "prm: skipping 'top/mounted', since it's on a different device",
            "remains top top/mounted top/mounted/precious",
            "operand",
            "protected precious",
        ):
            self.assertIn(line, lines, result.stdout + result.stderr)


class ContractOnSlowMount(unittest.TestCase):
    def test_the_posix_volume_fulfils_its_contract_on_fuse(self):
        with tempfile.TemporaryDirectory() as scratch, LatencyMount(scratch, delay_us=50) as mount:
            subprocess.run(
                ["cargo", "test", "--locked", "-p", "millstream-posix", "--test", "contract", "keeps_the_contract"],
                cwd=tools.ROOT,
                env={**os.environ, "MILLSTREAM_CONTRACT_DIR": str(mount.path)},
                check=True,
            )


if __name__ == "__main__":
    unittest.main()
