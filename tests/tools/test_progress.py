"""The progress line on a terminal: percent and time left once the total is known, and nothing without a terminal."""

import os
import pty
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import tools
from latency_mount import LatencyMount

LEFT = re.compile(r"(\d+)%, (?:(?:\d+ h )?\d+ min |\d+ s )")
ENTRIES = re.compile(r"([\d,]+) of ([\d,]+) entries")


def shown(command):
    """The output of a run to the terminal that is its standard error."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(slave)
    text = b""
    while True:
        try:
            read = os.read(master, 65536)
        except OSError:
            # The other end is closed.
            break
        if not read:
            break
        text += read
    os.close(master)
    return process.wait(timeout=60), text.decode()


class Progress(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def flat(self, name, files):
        directory = self.scratch / name
        directory.mkdir()
        for i in range(files):
            (directory / f"file{i}").touch()
        return directory

    def check_line(self, text, total):
        """The line shows percent and time left, of the right total, and percent never falls."""
        percents = [int(found[1]) for found in LEFT.finditer(text)]
        self.assertTrue(percents, text)
        self.assertEqual(percents, sorted(percents))
        totals = {found[2].replace(",", "") for found in ENTRIES.finditer(text)}
        self.assertEqual(totals, {str(total)}, text)

    def test_a_directory_is_counted_before_the_work_is_done(self):
        for tool, *arguments in (["prm", "-r"], ["pchmod", "-R", "700"], ["pchown", "-R", "12345"]):
            with self.subTest(tool):
                # As many as one reading of the directory returns.
                directory = self.flat(tool, 900)
                with LatencyMount(self.scratch, delay_us=3_000, ttl_s=60) as mount:
                    command = tools.command(tool, "--threads=2", *arguments, Path(mount.path, directory.name))
                    status, text = shown(command)
                self.assertEqual(status, 0, text)
                self.check_line(text, 901)

    def test_a_copy_counts_bytes(self):
        data = self.scratch / "data"
        data.mkdir()
        for i in range(3):
            with open(data / f"file{i}", "wb") as file:
                # One has a hole, which takes no time but counts as done.
                file.seek(10_000_000 if i == 1 else 0)
                file.write(os.urandom(10_000_000))
        command = tools.command("pcopy", "-r", "--bwlimit=10M", data, self.scratch / "copy")
        status, text = shown(command)
        self.assertEqual(status, 0, text)
        percents = [int(found[1]) for found in LEFT.finditer(text)]
        self.assertTrue(percents and percents == sorted(percents) and percents[-1] >= 70, text)
        self.assertRegex(text, r"4 entries \(")

    def test_a_copy_of_small_files_counts_each_when_it_is_done(self):
        directory = self.scratch / "small"
        directory.mkdir()
        for i in range(40):
            (directory / f"file{i}").write_bytes(os.urandom(400_000))
        for tool, *arguments in (["pcopy", "-r"], ["psync", "-a"]):
            with self.subTest(tool):
                command = tools.command(tool, *arguments, "--bwlimit=4M", directory, self.scratch / tool)
                status, text = shown(command)
                self.assertEqual(status, 0, text)
                lines = re.findall(r"(\d+)%, [^%]*? (\d+) MB \(", text)
                self.assertTrue(lines, text)
                for percent, copied in lines:
                    # Of 16 MB; the number is rounded down, and the file at hand does not count as an entry.
                    self.assertAlmostEqual(int(percent), int(copied) / 16 * 100, delta=15, msg=text)

    def test_before_all_is_found_the_line_tells_how_much_is(self):
        deep = self.scratch / "deep"
        for _ in range(60):
            deep = deep / "d"
        deep.mkdir(parents=True)
        with LatencyMount(self.scratch, delay_us=20_000, ttl_s=60) as mount:
            status, text = shown(tools.command("pchmod", "-R", "700", Path(mount.path, "deep")))
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"entr(y|ies)( of \d+ found)? \(")
        self.assertNotRegex(text, r"%, \d+ s left", "nobody knows what a directory holds that has not been read")

    def test_a_search_that_asks_has_no_line(self):
        directory = self.flat("many", 50)
        with LatencyMount(self.scratch, delay_us=20_000, ttl_s=0) as mount:
            search = ["--threads=2", Path(mount.path, directory.name), "-size", "+1", "-type", "f"]
            status, text = shown(tools.command("pfind", *search, "-ok", "true", "{}", ";"))
            self.assertEqual((status, text), (0, ""), "the line would overwrite a question")
        with LatencyMount(self.scratch, delay_us=20_000, ttl_s=0) as mount:
            status, text = shown(tools.command("pfind", "--threads=2", Path(mount.path, directory.name), "-size", "+1"))
            self.assertIn("2 threads", text)

    def test_without_a_terminal_there_is_no_line(self):
        directory = self.flat("many", 150)
        with LatencyMount(self.scratch, delay_us=20_000, ttl_s=60) as mount:
            result = tools.run("pchmod", "--threads=2", "-R", "700", Path(mount.path, directory.name))
        self.assertEqual((result.returncode, result.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
