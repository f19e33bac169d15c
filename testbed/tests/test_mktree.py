"""mktree: the same arguments make the same tree, which has the requested shape."""

import hashlib
import json
import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

MKTREE = Path(__file__).resolve().parent.parent / "mktree"


def fingerprint(root, fields):
    listing = subprocess.run(["find", root, "-mindepth", "1", "-printf", fields], capture_output=True, check=True)
    digest = hashlib.sha256(b"\0".join(sorted(listing.stdout.split(b"\0"))))
    for folder, subfolders, names in os.walk(os.fsencode(root)):
        subfolders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode) and os.lstat(path).st_size < 1 << 20:
                digest.update(Path(os.fsdecode(path)).read_bytes())
    return digest.hexdigest()


class MakeTree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def make(self, name, kind, *arguments):
        """`arguments` contain DIR as a placeholder for the directory."""
        path = self.scratch / name
        words = [str(path) if word == "DIR" else str(word) for word in arguments]
        subprocess.run([MKTREE, kind, *words], check=True)
        return path

    def test_it_is_deterministic(self):
        names_and_sizes, everything = r"%P %y %s %l\0", r"%P %y %m %U %G %s %n %l %T@\0"
        for fields, arguments in (
            (names_and_sizes, ["nested", "DIR", 50, 500]),
            (names_and_sizes, ["flat", "DIR", 100]),
            (names_and_sizes, ["text", "DIR", 300, 40]),
            (names_and_sizes, ["csv", "DIR", 30, 4]),
            (names_and_sizes, ["csv-header", "DIR", 30, 4, 5_000]),
            (everything, ["random", 1, "DIR"]),
            (everything, ["random", 2, "DIR", 100]),
        ):
            with self.subTest(arguments):
                name = "-".join(map(str, arguments))
                first, second = (self.make(f"{name}.{i}", *arguments) for i in (1, 2))
                self.assertEqual(fingerprint(first, fields), fingerprint(second, fields))

    def test_seeds_differ(self):
        trees = [self.make(str(seed), "random", seed, "DIR") for seed in (1, 2)]
        self.assertNotEqual(*(fingerprint(tree, r"%P\0") for tree in trees))

    def test_counts(self):
        for kind, numbers, directories, files in (
            ("nested", [9, 100], 9, 100),
            ("nested", [100, 30], 100, 30),
            ("flat", [25], 1, 25),
            ("text", [200, 30], 30, 200),
            ("json", [40, 7], 7, 40),
            ("bulk", [1, 3], 1, 3),
        ):
            with self.subTest(kind=kind, numbers=numbers):
                path = self.make(f"{kind}{directories}", kind, "DIR", *numbers)
                walked = list(os.walk(path))
                self.assertEqual((len(walked), sum(len(names) for *_, names in walked)), (directories, files))

    def test_text_is_small_files_of_whole_lines(self):
        files = [path for path in self.make("text", "text", "DIR", 300).rglob("*") if path.is_file()]
        self.assertGreater(len({path.read_bytes() for path in files}), 200)
        for path in files:
            contents = path.read_bytes()
            self.assertTrue(1_000 <= len(contents) <= 16_000 and contents.endswith(b"\n"), path)
            contents.decode()

    def test_csv_and_json_hold_the_same_records(self):
        files = {kind: sorted(self.make(kind, kind, "DIR", 60).iterdir()) for kind in ("csv", "json")}
        records = {kind: [path.read_text().splitlines() for path in paths] for kind, paths in files.items()}
        from_json = [[list(json.loads(line).values()) for line in lines] for lines in records["json"]]
        self.assertEqual(
            [[line.split(",") for line in lines] for lines in records["csv"]],
            [[list(map(str, record)) for record in file] for file in from_json],
        )
        self.assertEqual([len(lines) for lines in records["csv"]], [1, 2, 3] * 20)

    def test_every_file_can_have_a_header(self):
        plain, headed = (sorted(self.make(kind, kind, "DIR", 6).iterdir()) for kind in ("csv", "csv-header"))
        header = "id,date,address,city,state,zip,service,amount\n"
        self.assertEqual([path.read_text() for path in headed], [header + path.read_text() for path in plain])

    def test_record_files_can_have_a_size(self):
        for kind, size in (("csv", 20_000), ("json", 9_000), ("csv-header", 3_000), ("csv", 8_000_000)):
            with self.subTest(kind=kind, size=size):
                files = [path.read_bytes() for path in self.make(f"{kind}{size}", kind, "DIR", 3, 1, size).iterdir()]
                for contents in files:
                    self.assertTrue(0.9 * size <= len(contents) <= 1.1 * size and contents.endswith(b"\n"))
                self.assertEqual(
                    len(set(files)), 3 if size < 5_000_000 else 1, "files share no record while there are others"
                )

    def test_bulk_has_the_requested_size_and_a_rare_word(self):
        for path in self.make("bulk", "bulk", "DIR", 16, 2).iterdir():
            lines = path.read_bytes().splitlines(keepends=True)
            self.assertTrue(7_990_000 <= sum(map(len, lines)) <= 8_000_000 and lines[-1].endswith(b"\n"))
            rare = sum(b"BALTIMORE" in line for line in lines)
            self.assertAlmostEqual(rare / len(lines), 0.01, places=3)

    def test_random_trees_have_every_kind_of_entry(self):
        kinds, linked, sparse = set(), False, False
        for seed in range(1, 6):
            # By descriptor, because the deepest paths are too long for a system call.
            for _, subfolders, names, fd in os.fwalk(self.make(str(seed), "random", seed, "DIR")):
                for name in subfolders + names:
                    entry = os.lstat(name, dir_fd=fd)
                    kinds.add(stat.S_IFMT(entry.st_mode))
                    linked |= stat.S_ISREG(entry.st_mode) and entry.st_nlink > 1
                    sparse |= entry.st_blocks * 512 < entry.st_size - 4096
        expected = {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK}
        self.assertEqual((kinds, linked, sparse), (expected, True, True))

    def test_a_directory_in_use_is_refused(self):
        (self.scratch / "file").touch()
        result = subprocess.run([MKTREE, "flat", self.scratch, "1"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (1, f"mktree: {self.scratch}: not empty\n"))


if __name__ == "__main__":
    unittest.main()
