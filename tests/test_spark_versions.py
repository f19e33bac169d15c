"""testbed/spark-versions.tsv says which Spark versions are tested; files that cannot read it agree with it."""

import re
import subprocess
import sys
import unittest

from source_messages import ROOT

sys.path.insert(0, str(ROOT / "testbed"))
from spark_versions import COMPILED, NEWEST, OLDEST, SPARK_LINES

# Files that state a range of lines, such as `Spark 4.0 to 4.3`.
RANGES = [
    "README.md",
    "docs/spark.md",
    "docs/direct-writes.md",
    "docs/troubleshooting.md",
    "crates/front/cli/src/doctor.rs",
]
# They describe the behaviour of a release, or are records of measurements or changes.
NAMING = re.compile(
    r"^(CHANGELOG\.md|docs/|testbed/spark-versions\.tsv|crates/.*\.rs|packaging/advisories\.txt"
    r"|tests/spark/.*column_calls\.py|.*pom\.xml|testbed/jars/.*|.*Cargo\.lock)"
)


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


class SparkVersions(unittest.TestCase):
    def test_the_jar_is_compiled_against_the_version_of_the_table(self):
        for pom in ("jvm/pom.xml", "tests/spark-suites/pom.xml"):
            text = (ROOT / pom).read_text()
            self.assertEqual(re.findall(r"<spark\.version>(.*)</spark\.version>", text), [COMPILED], pom)

    def test_millstream_starts_the_lines_of_the_table(self):
        text = (ROOT / "crates/front/cli/src/submit.rs").read_text()
        lines = re.search(r"const LINES: .* = \[(.*)\];", text)[1]
        self.assertEqual(re.findall(r'"(.*?)"', lines), [known.line for known in SPARK_LINES])

    def test_docs_and_messages_give_the_range_of_the_table(self):
        stated = f"{SPARK_LINES[0].line} to {SPARK_LINES[-1].line}"
        diagnosis = [name for name in tracked() if name.endswith("/Diagnosis.scala")]
        self.assertEqual(len(diagnosis), 1)
        for name in [*RANGES, *diagnosis]:
            ranges = set(re.findall(r"\b\d\.\d to \d\.\d\b", " ".join((ROOT / name).read_text().split())))
            self.assertEqual(ranges, {stated}, name)

    def test_no_other_file_names_a_release(self):
        releases = re.compile("|".join(rf"(?<![\d.]){re.escape(release)}\b" for release in (OLDEST, NEWEST)))
        naming = [
            name
            for name in tracked()
            if not NAMING.match(name) and releases.search((ROOT / name).read_text(errors="replace"))
        ]
        self.assertEqual(naming, [], "read testbed/spark_versions.py there")


if __name__ == "__main__":
    unittest.main()
