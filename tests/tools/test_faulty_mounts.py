"""Mounts that stop answering, directories that vanish, readers that close their pipe."""

import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import tools
from latency_mount import LatencyMount


class HangingMount(unittest.TestCase):
    def test_a_signal_ends_a_tool_whose_mount_does_not_answer(self):
        with tempfile.TemporaryDirectory() as scratch:
            tree = Path(scratch, "tree")
            subprocess.run([tools.ROOT / "testbed/mktree", "nested", tree, "200", "2000"], check=True)
            for tool in tools.TOOLS:
                with self.subTest(tool), LatencyMount(tree, delay_us=0, hang_after=100) as mount:
                    running = subprocess.Popen(
                        tools.command(tool, *(["-lR"] if tool == "pls" else []), mount.path),
                        stdout=subprocess.DEVNULL,
                        # A shell's background jobs ignore this signal.
                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                    )
                    time.sleep(0.5)
                    self.assertIsNone(running.poll(), "the tool waits for the mount")
                    running.send_signal(signal.SIGINT)
                    self.assertEqual(running.wait(timeout=5), -signal.SIGINT)


class UsedUpQuota(unittest.TestCase):
    def test_a_copy_whose_closing_fails_is_reported_and_replaces_nothing(self):
        for options in [], ["-a"], ["--atomic"], ["--verify"]:
            with self.subTest(options), tempfile.TemporaryDirectory() as scratch:
                source, target = Path(scratch, "source"), Path(scratch, "target")
                source.mkdir(), target.mkdir()
                (source / "new").write_bytes(b"x" * 10_000)
                (source / "old").write_bytes(b"y" * 10_000)
                (source / "large").write_bytes(b"z" * 20_000_000)
                (target / "old").write_bytes(b"old")
                names = ["new", "old", "large"]
                with LatencyMount(target, delay_us=0, quota=False) as mount:
                    result = tools.run("pcopy", *options, *(source / name for name in names), mount.path)
                failed = {
                    Path(line.split(b"'")[1].decode()).name
                    for line in result.stderr.splitlines()
                    if b"failed to close" in line
                }
                self.assertEqual((result.returncode, failed), (1, set(names)), result.stderr)
                self.assertIn(b"Disk quota exceeded", result.stderr)
                left = {path.name for path in target.iterdir()}
                self.assertEqual(left, {"old"}, "what was made is removed")
                if options == ["--atomic"]:
                    self.assertEqual((target / "old").read_bytes(), b"old")

    def test_output_whose_closing_fails_is_reported(self):
        with tempfile.TemporaryDirectory() as scratch, LatencyMount(scratch, delay_us=0, quota=False) as mount:
            for tool, arguments in (
                ("pfind", ["/etc/hostname"]),
                ("pls", ["/etc/hostname"]),
                ("pdu", ["/etc/hostname"]),
                ("pchmod", ["-v", "--dry-run", "700", "/etc/hostname"]),
                ("prm", ["-v", "--dry-run", "/etc/hostname"]),
                ("pfind", ["--help"]),
                ("pls", ["--version"]),
                ("pfind", ["-D", "help"]),
                ("millstream", ["--help"]),
            ):
                with self.subTest(tool, arguments=arguments):
                    output = os.open(Path(mount.path, "output"), os.O_WRONLY | os.O_CREAT)
                    result = subprocess.run(
                        tools.command(tool, *arguments), stdout=output, stderr=subprocess.PIPE, timeout=60
                    )
                    with self.assertRaises(OSError):
                        os.close(output)
                    self.assertEqual(result.stderr, f"{tool}: write error: Disk quota exceeded\n".encode())
                    self.assertEqual(result.returncode, 2 if tool == "pls" else 1)
            file = Path(mount.path, "file")
            result = tools.run("pfind", "/etc/hostname", "-fprint", file, env={**os.environ, "LC_ALL": "C"})
            self.assertEqual(
                (result.returncode, result.stderr), (1, f"pfind: '{file}': Disk quota exceeded\n".encode())
            )


class VanishingTree(unittest.TestCase):
    def test_a_tree_removed_meanwhile_causes_errors_only_for_its_entries(self):
        for tool in tools.TOOLS:
            with self.subTest(tool), tempfile.TemporaryDirectory() as scratch:
                tree = Path(scratch, "tree")
                subprocess.run([tools.ROOT / "testbed/mktree", "nested", tree, "200", "2000"], check=True)
                # One worker needs over a second; the removal takes a small part of it near the beginning.
                with LatencyMount(tree, delay_us=1000) as mount:
                    remover = threading.Timer(0.1, subprocess.run, [["rm", "-rf", tree / "dir_0", tree / "dir_3"]])
                    remover.start()
                    recursive = ["-R"] if tool == "pls" else []
                    result = tools.run(tool, "--threads", "1", *recursive, mount.path)
                    remover.join()
                self.assertEqual(result.returncode, 1)
                self.assertTrue(result.stderr, "what has vanished is reported")
                for line in result.stderr.splitlines():
                    self.assertRegex(line, rb"^(pfind|pls|pdu): .*(No such file or directory|Stale file handle)$")
                self.assertIn(b"dir_7", result.stdout, "the rest goes on")


class ClosedPipe(unittest.TestCase):
    def test_a_closed_pipe_ends_the_tool_silently(self):
        for tool in tools.TOOLS:
            writer = subprocess.Popen(
                tools.command(tool, *{"pls": ["-R"], "pdu": ["-a"], "pfind": []}[tool], "/usr"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            writer.stdout.read(10)
            writer.stdout.close()
            self.assertEqual(writer.wait(timeout=60), -signal.SIGPIPE, tool)
            self.assertEqual(writer.stderr.read(), b"", tool)
            writer.stderr.close()

    def test_where_that_signal_is_ignored_a_write_error_is_reported(self):
        def stderr_and_status(program, *arguments):
            writer = subprocess.Popen(
                [program, *arguments, "/usr"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                restore_signals=False,
                env={**os.environ, "LC_ALL": "C"},
            )
            writer.stdout.read(10)
            writer.stdout.close()
            status = writer.wait(timeout=60)
            with writer.stderr:
                return writer.stderr.read().replace(os.fsencode(Path(program).name), b"PROGRAM"), status

        self.assertEqual(signal.getsignal(signal.SIGPIPE), signal.SIG_IGN, "as Python sets it")
        for tool, gnu, *arguments in (("pls", "ls", "-R"), ("pdu", "du", "-a"), ("pfind", "find")):
            with self.subTest(tool):
                ours = stderr_and_status(*tools.command(tool, *arguments))
                self.assertEqual(ours, stderr_and_status(gnu, *arguments))
                self.assertIn(b"write error", ours[0])

    def test_commands_inherit_whether_it_is_ignored(self):
        for restored, ignored in (False, True), (True, False):
            result = tools.run(
                "pfind", "/etc/hostname", "-exec", "grep", "SigIgn", "/proc/self/status", ";", restore_signals=restored
            )
            mask = int(result.stdout.split()[1], 16)
            self.assertEqual(bool(mask & 1 << signal.SIGPIPE - 1), ignored)


class PermissionDenied(unittest.TestCase):
    def test_one_error_for_the_directory_and_the_rest_continues(self):
        with tempfile.TemporaryDirectory() as scratch:
            os.chmod(scratch, 0o755)
            for name in ("open", "closed"):
                Path(scratch, name).mkdir()
                Path(scratch, name, "file").write_text("x")
            os.chmod(Path(scratch, "closed"), 0)
            for tool, status in (("pfind", 1), ("pls", 1), ("pdu", 1)):
                line = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
                line += tools.command(tool, *(["-R"] if tool == "pls" else []), scratch)
                result = subprocess.run(line, capture_output=True, timeout=60)
                self.assertEqual(result.returncode, status, tool)
                self.assertIn(b"Permission denied", result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(b"open", result.stdout)


if __name__ == "__main__":
    unittest.main()
