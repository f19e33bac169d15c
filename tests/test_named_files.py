"""Files that the pages about the sources name exist."""

import re
import subprocess
import unittest

from source_messages import ROOT

PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/tour.md")
NAMED = re.compile(r"`[^`\s]*?([\w-]+\.(?:rs|java|scala|py|tsv))`")


def names(page: str) -> set[str]:
    return set(NAMED.findall((ROOT / page).read_text()))


class NamedFiles(unittest.TestCase):
    def test_they_exist(self):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        existing = {name.rpartition("/")[2] for name in listed.stdout.split("\0")}
        for page in PAGES:
            self.assertGreater(len(names(page)), 5, page)
            self.assertEqual(names(page) - existing, set(), page)

    def test_names_are_found_with_their_directories(self):
        self.assertEqual(NAMED.findall("`a/…/b.rs` and `c.scala`, `d.md`, e.rs"), ["b.rs", "c.scala"])


if __name__ == "__main__":
    unittest.main()
