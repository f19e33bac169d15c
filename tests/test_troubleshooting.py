"""docs/troubleshooting.md has only messages that the sources have, and all those that this file names."""

import re
import tempfile
import unittest
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import source_messages as sources
from source_messages import GAP, ROOT, SPACE

PAGE = ROOT / "docs/troubleshooting.md"
# A shorter piece of text does not identify its source.
LEAST = 12
# Shorter pieces of a fragment made of several literals do not count, such as "cannot ".
LEAST_PIECE = 6
# How much of a message's beginning must end a fragment, if the message follows another literal.
LEAST_OVERLAP = 20
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")

MESSAGE_SOURCES = (
    "jvm/*/src/main/**/*.java",
    "jvm/*/src/main/**/*.scala",
    "crates/*/*/src/**/*.rs",
    "python/millstream/*.py",
)
NOT_SOURCES = ("tests.rs", "contract.rs", "fuzz.rs", "random.rs", "vectors.rs")

# The calls that show messages to the user, by sources. The page has all these messages, except for EXCEPTIONS.
THROWN = (
    r"(IO|FileNotFound|IllegalArgument|IllegalState|UnsupportedOperation|Spark|UnfitFile)Exception"
    r"|(Unsuited|Conflict|Committed|Superseded|JournalGone)Exception|\w+Failure"
)
# Every literal, in sources that have messages and hardly anything else.
EVERY = None
SAID = {
    "jvm/*/src/main/**/*.java": rf"{THROWN}|warn|error|info|Ending|Left",
    "jvm/*/src/main/**/*.scala": rf"{THROWN}|logWarning|logError|logInfo|warn|error|leave|notice|Left",
    "jvm/write/src/main/java/io/millstream/write/store/**/*.java": r"of",
    "jvm/spark/src/main/scala/org/apache/spark/sql/**/write/*.scala": r"Some|when",
    "jvm/spark/src/main/scala/org/apache/spark/sql/hive/**/*.scala": r"Some|when",
    "jvm/spark/src/main/scala/io/millstream/spark/compact/CompactPlan.scala": r"Unknown",
    "jvm/spark/src/main/scala/io/millstream/spark/sync/Counting.scala": EVERY,
    "jvm/spark/src/main/scala/io/millstream/spark/sync/HadoopTree.scala": EVERY,
    "python/millstream/*.py": r"\w+(Error|Warning)|warn",
    "crates/*/*/src/**/*.rs": r"error",
    "crates/volumes/s3/src/*.rs": r"Malformed",
    "crates/volumes/bucket/src/**/*.rs": r"reported|fail",
    "crates/front/cli/src/psync/[!tm]*.rs": EVERY,
    "crates/front/cli/src/psync/m*.rs": r"text",
    "crates/front/cli/src/submit.rs": EVERY,
    "crates/front/cli/src/millstream/*.rs": r"text|argument",
    **{
        f"crates/front/cli/src/{name}.rs": r"text|argument|wrong"
        for name in ("compact", "formats", "index", "recompress")
    },
}
# Messages that users never see, or that the page covers otherwise: text of the message, and why.
EXCEPTIONS = {
    "is closed": "an object is used after its end, which only our own code could do",
    "are closed": "the same",
    "Millstream listed in ": "INFO that all is well",
    "Listed ": "the same",
    "Direct write of ": "the same",
    "The same applies to ": "follows another message",
    "left by an earlier run": "a reason in the manifest",
    "import os, pyspark": "a program",
    "-XX:": "flags of the JVM",
    "the scan ended before its last file": "the engine ended a scan without an error",
    "every Java platform has SHA-256": "never happens",
    "the id of a job must be a UUID": "the caller makes the id",
    "not the id of a task attempt": "the caller makes the id",
    "not the name of a file": "a commit record has names that its own job made",
    "not a directory of the table": "the same",
    "not a name for a file of": "the same",
    "usage: Sync": "the command writes the arguments",
    "no special file: ": "the listing has no other kinds",
    "a columnar node cannot return rows": "Spark does not ask for them",
    "a column of ": "Spark asks for no other types",
    "no name for an output": "names of outputs are short",
    "file system loop: ": "worded by each tool",
    "already exists": "caught: the statement writes nothing, as in Spark",
    "such writes are left to Spark": "they have been before",
    "Failed inserting overwrite directory": "Spark's own message",
    "not an index, or a damaged one": "caught: the index is made again",
    "the enumeration failed": "the cause of 'Native listing failed'",
    "help was asked for": "not an error",
    "the version was asked for": "not an error",
    "help on debugging was asked for": "not an error",
    "bad character": "nobody but tests parses JSON",
    "unrecognized prefix: ": "GNU's",
    "unparsable value": "GNU's",
    "unknown unit": "worded by each tool, as GNU's",
    "what was read could not be stored": "the error of the writer is reported",
    "malformed bytes": "JVM and native code are of one version",
}
# Messages of other programs that Millstream can cause.
FOREIGN = {
    "ClassNotFoundException: ": "the JVM's",
    "Location: InMemoryFileIndex": "Spark's plan",
    "No such device or address": "the system's text of ENXIO",
    "AccessDeniedException": "S3A's, for 401 and 403",
    "PKIX path building failed": "the JVM's",
    "UnknownHostException": "the JVM's",
    "Unable to execute HTTP request": "the SDK's of Amazon",
    "Connection refused": "the system's text of ECONNREFUSED",
    ": Operation not supported": "the system's text of EOPNOTSUPP",
    "failed to lookup address information": "Rust's",
    **dict.fromkeys(
        ("connection failed", "host not found", "invalid peer certificate: "), "of the crates for HTTP and TLS"
    ),
}


@dataclass(frozen=True)
class Row:
    line: int
    cells: tuple[str, ...]

    def spans(self):
        """The messages in the first cell."""
        return [SPACE.sub(" ", match[2]).replace("\\|", "|") for match in CODE.finditer(self.cells[0])]


def tables():
    """The rows of each table of the page."""
    found, lines = [], PAGE.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("|---"):
            found.append([])
        elif line.startswith("|") and not lines[number].startswith("|---"):
            found[-1].append(Row(number, tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])))
    return found


def files(pattern):
    return [path for path in sorted(ROOT.glob(pattern)) if path.name not in NOT_SOURCES and "/build/" not in str(path)]


@cache
def fragments(message):
    return [fragment for fragment in message.split(GAP) if fragment.strip()]


class Texts:
    """All literals of the sources, separated by NULs."""

    def __init__(self):
        runs = {
            run
            for pattern in MESSAGE_SOURCES
            for path in files(pattern)
            for message in sources.literals(path)
            for run in message.runs()
        }
        self.all = "\0" + "\0".join(sorted(runs)) + "\0"

    def has(self, fragment):
        """Whether a literal contains it, or several joined literals do."""
        return fragment in self.all or any(
            fragment[:cut] + "\0" in self.all and self.continues(fragment[cut:])
            for cut in range(LEAST_PIECE, len(fragment))
        )

    def continues(self, rest):
        return "\0" + rest in self.all or any(
            "\0" + rest[:cut] + "\0" in self.all and self.continues(rest[cut:]) for cut in range(1, len(rest))
        )


def matches(documented, said):
    """Whether the page has a message of the sources, from any place in it on, or with what other literals put before
    it.
    """
    at = 0
    for fragment in (fragment.strip() for fragment in fragments(documented)):
        at = said.find(fragment, at)
        if at < 0:
            return is_end_of(documented, said)
        at += len(fragment)
    return True


def is_end_of(documented, said):
    """Whether a fragment of the page ends with the beginning of what is said, or has all of it."""
    said = said.strip(GAP + " ")
    of_page = [fragment.strip() for fragment in fragments(documented)]
    return any(said in fragment for fragment in of_page) or any(
        of_page[-1].endswith(said[:n]) for n in range(LEAST_OVERLAP, len(said))
    )


def is_told(said):
    """Whether it is a message, and not a part of one, a name or a number."""
    longest = max(said.split(GAP), key=len)
    return len(longest) >= LEAST and " " in longest.strip() and said[0] not in ";,"


@cache
def told_by(pattern):
    """All messages for the user in the sources of one pattern, from the calls that SAID has for them."""
    messages = [message for path in files(pattern) for message in sources.said(path, SAID[pattern])]
    return [message for message in messages if is_told(message.text)]


@cache
def told():
    """All messages for the user in all sources."""
    return [message for pattern in SAID for message in told_by(pattern)]


@cache
def texts():
    return Texts()


def exceptions_of(message):
    return {text for text in EXCEPTIONS if text in message.text}


def undocumented(spans, messages):
    """The messages that are not among these messages of the page."""
    spans = [span for span in spans if sum(map(len, fragments(span))) >= LEAST]
    return [
        f"{message.place}: {message.text!r}"
        for message in messages
        if not exceptions_of(message) and not any(matches(span, message.text) for span in spans)
    ]


def invented(spans):
    """The parts of these messages that are in no source."""
    return [
        f"{fragment!r}, of {span!r}"
        for span in spans
        for fragment in fragments(span)
        if len(fragment.strip()) >= LEAST
        and fragment not in FOREIGN
        and not texts().has(fragment)
        and not texts().has(fragment.strip())
    ]


class Troubleshooting(unittest.TestCase):
    def assert_none(self, wrong, what):
        if wrong:
            self.fail(f"{what}:\n" + "\n".join(wrong))

    def test_the_page_names_only_messages_that_there_are(self):
        wrong = [f"line {row.line}: {part}" for table in tables() for row in table for part in invented(row.spans())]
        self.assert_none(wrong, f"{PAGE.name} has what no source has; correct it, or add it to FOREIGN here")

    def test_the_page_has_what_the_sources_say(self):
        missing = undocumented([span for table in tables() for row in table for span in row.spans()], told())
        self.assert_none(missing, f"{PAGE.name} lacks these messages; add rows, or exceptions with their reasons here")
        said = {text for message in told() for text in exceptions_of(message)}
        self.assert_none(sorted(set(EXCEPTIONS) - said), "no source says these exceptions")

    def test_every_source_that_is_searched_has_messages(self):
        self.assert_none([pattern for pattern in SAID if not told_by(pattern)], "no messages are found there")

    def test_tables_are_sorted_and_have_three_filled_cells(self):
        wrong = []
        for table in tables():
            keys = [re.sub(r"[^a-z0-9 ]", "", row.cells[0].lower()).strip() for row in table]
            wrong += [
                f"line {row.line}: not three filled cells: {row.cells}"
                for row in table
                if len(list(filter(None, row.cells))) != 3
            ]
            wrong += [
                f"line {row.line}: comes after {before!r}"
                for row, key, before in zip(table[1:], keys[1:], keys)
                if key < before
            ]
        self.assert_none(wrong, PAGE.name)

    def test_a_missing_row_is_noticed(self):
        spans = [span for table in tables() for row in table for span in row.spans()]
        for text, place in [
            ("no hard link could be created", "LocalStore.java:"),
            ("not a codec", "CompactOptions.scala:"),
            ("enable() takes", "session.py:"),
            ("another process is compressing it", "recompress/mod.rs:"),
            ("skipping an entry that was replaced", "psync/messages.rs:"),
        ]:
            found = undocumented(
                [span for span in spans if text not in span], [message for message in told() if text in message.text]
            )
            self.assertTrue(found, text)
            self.assertIn(place, found[0])

    def test_a_message_that_is_not_there_is_noticed(self):
        self.assertEqual(invented(["Spark could not run the job, and … is unchanged: …"]), [])
        self.assertEqual(
            invented(["Millstream stays off: this driver's JVM is already running without Millstream: …"]), []
        )  # of two literals
        self.assertEqual(len(invented(["Spark could not run the jobs, and … is unchanged: …"])), 1)

    def test_a_message_is_read_from_its_source(self):
        for name, source, expected in [
            ("A.scala", 'fail(s"$a: is not ${b.map("x")} of " + // why\n "it")', ["…: is not … of it"]),
            ("A.java", 'fail("job " + id + " is " + "over", e); /* fail("no") */ other("not");', ["job … is over"]),
            (
                "a.rs",
                '#[error("{}: {error:?} {{}}\\\n   it\'s")] struct A<\'a>; fn f() { error(\'"\', b"x") }',
                ["…: … {}it's", "x"],
            ),
            ("a.py", 'raise fail(f"{a!r} is" " no" + b)', ["… is no…"]),
        ]:
            with tempfile.TemporaryDirectory() as scratch:
                path = Path(scratch, name)
                path.write_text(source, encoding="utf-8")
                self.assertEqual([message.text for message in sources.calls(path, "fail|error")], expected)


if __name__ == "__main__":
    unittest.main()
