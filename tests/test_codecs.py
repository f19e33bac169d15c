"""The Python API and the tests in Spark name the codecs of testdata/codecs.tsv."""

import ast
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD, *ROWS = (line.split("\t") for line in (ROOT / "testdata/codecs.tsv").read_text().splitlines())


def column(title):
    return [row[HEAD.index(title)] for row in ROWS if row[HEAD.index(title)] != "-"]


class Codecs(unittest.TestCase):
    def documented(self, module, argument):
        text = (ROOT / "python/millstream" / module).read_text()
        described = re.search(rf'^ +{argument}: ([^;]*`"none"`[^;]+);', text, re.MULTILINE)
        return re.findall(r'`"(\w+)"`', re.split(rf"\b{argument}: ", described[1])[-1])

    def test_documented_codecs_of_compact_are_those_of_the_table(self):
        self.assertEqual(self.documented("compaction.py", "codec"), ["none", *column("in compact")])

    def test_documented_codecs_of_formats_are_those_of_the_table(self):
        self.assertEqual(self.documented("measurement.py", "codecs"), ["none", *column("in formats")])

    def test_every_codec_is_read_in_spark(self):
        module = ast.parse((ROOT / "tests/spark/inputs/compressed_files.py").read_text())
        variants = next(
            node.value
            for node in module.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and "VARIANTS" in ast.unparse(node).split("=")[0]
        )
        extensions = {f".{key.value}" for key in variants.keys}
        self.assertEqual(extensions - {".hadoop-lz4"}, set(column("extension")))


if __name__ == "__main__":
    unittest.main()
