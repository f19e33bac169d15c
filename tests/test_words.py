"""Messages, help and docs say things in plain English: the wordings of docs/glossary.md's second table do not come back."""

import re
import unittest

from source_messages import ROOT
from test_troubleshooting import told

GOLDEN = ROOT / "crates/front/cli/tests/integration/golden"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# The pages that quote them on purpose, and the figures, which name old cases.
QUOTING = {"glossary.md", "benchmarks.md"}
# Wordings as a message would have them, and what says the same. The table of docs/glossary.md explains them.
BANNED = {
    r"(?<!\bthere )\b(is|are) no (?!longer|more|less|different|better|worse|higher|lower|newer|older)[a-z]+": "is not a",
    r"\bhas ended\b.*credentials|credentials have ended": "the credentials have expired",
    r"\bof (Spark|Hadoop|S3|rsync)'s(?= *[.,;:)])": "Spark's X, or a Spark X",
    r"\bat work in\b": "is running in",
    r"\bhas been told\b|\bis told of\b": "has been reported",
    r"\bgoes without\b": "does not preserve",
    r"\bgoes on\b": "continues",
    r"\bthe first that there is\b": "the first one found",
    r"\bsuch a one\b": "the noun",
    r"\bof now\b": "current",
    r"\blitter\b": "leftovers",
    r"\bmend(ed|s|ing)?\b": "fix",
    r"\b(a|the|an) (server|bucket|object) of S3\b": "an S3 server",
    r"\bpending file": "staged file",
    r"\bsettle(d|ment|s)?\b": "resolve",
    r"\b(one|those|all|what|first) that there (is|are)\b": "existing",
    r"\banew\b": "again",
    r"\bnevertheless\b": "anyway",
    r"\bis of (a|an|the) [a-z]+ (that|whose)\b": "belongs to",
    r"\bremoves by hand\b|\bby whoever\b": "say who",
    r"\bturned away\b": "throttled, or rejected",
}


def hits(text):
    """The banned wordings in a text, each with what to say instead."""
    return [
        f"{found.group(0)!r} -> {instead!r}"
        for pattern, instead in BANNED.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


class Words(unittest.TestCase):
    def test_messages(self):
        wrong = [f"{message.place}: {hit}: {message.text}" for message in told() for hit in hits(message.text)]
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_help(self):
        pages = sorted(GOLDEN.glob("*-help.txt"))
        self.assertGreater(len(pages), 8)
        wrong = [f"{page.name}: {hit}" for page in pages for hit in hits(" ".join(page.read_text().split()))]
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_pages(self):
        wrong = [
            f"{page.name}:{number}: {hit}"
            for page in PAGES
            if page.name not in QUOTING
            for number, line in enumerate(page.read_text().splitlines(), 1)
            for hit in hits(line)
        ]
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_a_banned_wording_is_noticed(self):
        self.assertEqual(len(hits("the credentials have ended, as if x is no directory")), 2)
        self.assertEqual(hits("the credentials have expired; x is no longer a directory"), [])


if __name__ == "__main__":
    unittest.main()
