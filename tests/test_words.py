"""Messages, help and docs keep to plain English: wordings that docs/glossary.md lists under *Not this, but this* do not
come back.
"""

import re
import unittest

from source_messages import ROOT
from test_troubleshooting import told

GOLDEN = ROOT / "crates/front/cli/tests/integration/golden"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "python/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
# The glossary quotes them; the figures name old cases.
QUOTING = {"glossary.md", "benchmarks.md"}
# A pattern, an example of a match, and what to say instead.
BANNED = [
    (
        r"(?<!\bthere )\b(is|are) no (?!longer|more|less|different|better|worse|higher|lower|newer|older)[a-z]+",
        "x is no directory",
        "is not a directory",
    ),
    (r"\bcredentials have ended", "the credentials have ended", "have expired"),
    (r"\bof (Spark|Hadoop|S3|rsync)'s(?= *[.,;:)])", "a codec of Hadoop's.", "a Hadoop codec"),
    (r"\bat work in\b", "a job is at work in x", "is running in"),
    (r"\bhas been told\b|\bis told of\b", "that has been told", "has been reported"),
    (r"\bgoes without\b", "a copy goes without times", "does not preserve"),
    (r"\bgoes on\b", "the run goes on", "continues"),
    (r"\bthe first that there is\b", "the first that there is counts", "the first one found wins"),
    (r"\bsuch a one\b", "such a one is left", "the noun"),
    (r"\bof now\b", "the value of now", "current"),
    (r"\blitter\b", "litter of a run", "leftovers"),
    (r"\bmend(ed|s|ing)?\b", "it was mended", "fix"),
    (r"\bcure\b", "the cure is", "fix"),
    (r"\b(a|the|an) (server|bucket|object) of S3\b", "a server of S3", "an S3 server"),
    (r"\bpending file", "a pending file", "staged file"),
    (r"\bsettle(d|ment|s)?\b", "the job is settled", "resolve"),
    (r"\b(one|those|all|what|first) that there (is|are)\b", "all that there are", "the existing ones"),
    (r"\banew\b", "list it anew", "again"),
    (r"\bnevertheless\b", "deletes nevertheless", "anyway"),
    (r"\bis of (a|an|the) [a-z]+ (that|whose)\b", "is of a job that died", "belongs to"),
    (r"\bturned away\b", "requests turned away", "throttled or rejected"),
    (r"\bunfinished upload", "an unfinished upload", "incomplete upload"),
    (r"\bundivided\b", "an undivided file", "not splittable"),
]
FEWEST_MESSAGES = 400


def hits(text):
    """The banned wordings in a text, each with what to say instead."""
    words = " ".join(text.split())
    return [
        f"{found.group(0)!r}: say {instead!r}"
        for pattern, _, instead in BANNED
        for found in re.finditer(pattern, words, re.IGNORECASE)
    ]


class Words(unittest.TestCase):
    def test_messages(self):
        self.assertGreater(len(told()), FEWEST_MESSAGES)
        wrong = [f"{message.place}: {hit}: {message.text}" for message in told() for hit in hits(message.text)]
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_help(self):
        pages = sorted(GOLDEN.glob("*-help.txt"))
        self.assertGreater(len(pages), 8)
        wrong = [f"{page.name}: {hit}" for page in pages for hit in hits(page.read_text())]
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_pages(self):
        wrong = [
            f"{page.name}: {hit}: {paragraph[:80]}"
            for page in PAGES
            if page.name not in QUOTING
            for paragraph in page.read_text().split("\n\n")
            for hit in hits(paragraph)
        ]
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))

    def test_each_banned_wording_is_noticed(self):
        for pattern, example, _ in BANNED:
            self.assertRegex(example, re.compile(pattern, re.IGNORECASE))
        self.assertEqual(hits("the credentials have expired; x is no longer a directory"), [])


if __name__ == "__main__":
    unittest.main()
