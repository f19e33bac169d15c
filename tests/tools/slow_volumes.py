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


class ContractOnSlowMount(unittest.TestCase):
    def test_the_posix_volume_fulfils_its_contract_on_fuse(self):
        with tempfile.TemporaryDirectory() as scratch, LatencyMount(scratch, delay_us=50) as mount:
            subprocess.run(
                ["cargo", "test", "--locked", "-p", "millstream-vfs", "--test", "posix", "keeps_the_contract"],
                cwd=tools.ROOT, env={**os.environ, "MILLSTREAM_CONTRACT_DIR": str(mount.path)}, check=True,
            )


if __name__ == "__main__":
    unittest.main()
