"""Comments of Rust are at most 120 characters wide: rustfmt leaves them alone. Tables and drawings may be wider."""

import re
import subprocess
import unittest

from source_messages import ROOT

WIDTH = 120
PROSE = re.compile(r"\s*//[/!]?+ ?+(?![| ])(?!.*\S  ).*")


def too_wide(line: str) -> bool:
    return len(line) > WIDTH and PROSE.fullmatch(line) is not None


class Comments(unittest.TestCase):
    def test_no_comment_is_too_wide(self):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "*.rs"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
        files = [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
        self.assertGreater(len(files), 300)
        lines = ((file, number, line) for file in files for number, line in enumerate(file.read_text().splitlines(), 1))
        self.assertEqual([f"{file.relative_to(ROOT)}:{number}" for file, number, line in lines if too_wide(line)], [])

    def test_only_prose_is_held(self):
        wide = "word " * 30
        self.assertTrue(too_wide(f"    /// {wide}"))
        self.assertFalse(too_wide(f"//! | {wide}|"))
        self.assertFalse(too_wide(f"//!  drawn ─►  {wide}"))
        self.assertFalse(too_wide(f"let code = {wide}"))


if __name__ == "__main__":
    unittest.main()
