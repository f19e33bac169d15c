"""Every key of the configuration is one that Millstream knows, and has a line in the docs."""

import re
import unittest

from source_messages import ROOT

SETTINGS = ROOT / "jvm/spark/src/main/scala/org/apache/spark/sql/execution/datasources/millstream/settings"
OPTIONS = (
    ROOT / "jvm/hadoop/src/main/java/io/millstream/hadoop/listing/ListingOptions.java",
    ROOT / "jvm/write/src/main/java/io/millstream/write/store/WriteOptions.java",
)


class Keys(unittest.TestCase):
    def setUp(self):
        self.documented = "\n".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))

    def test_entries_of_sparks_configuration_are_listed_and_documented(self):
        listed = re.search(r"OfSpark: Seq\[.*?= Seq\((.*?)\)", (SETTINGS / "Keys.scala").read_text(), re.DOTALL)[1]
        entries = {}
        for source in SETTINGS.glob("*.scala"):
            for name, key in re.findall(
                r"val (\w+): ConfigEntry\S+ = SQLConf\.buildConf\((\S+?)\)", source.read_text()
            ):
                entries[f"{source.stem}.{name}"] = key
        self.assertGreater(len(entries), 10)
        self.assertEqual(set(re.findall(r"\w+\.\w+", listed)), set(entries))
        for key in entries.values():
            if key.startswith('"'):
                self.assertIn(key.strip('"'), self.documented)

    def test_keys_of_hadoops_configuration_are_listed_and_documented(self):
        for source in OPTIONS:
            text = source.read_text()
            keys = dict(re.findall(r'String (\w+) =\s+"(fs\.millstream\.\S+)";', text))
            listed = re.search(r"KEYS =\s+List\.of\((.*?)\)", text, re.DOTALL)[1]
            self.assertGreater(len(keys), 3, source)
            self.assertEqual(set(re.findall(r"\w+", listed)), set(keys), source)
            for key in keys.values():
                self.assertIn(key, self.documented)


if __name__ == "__main__":
    unittest.main()
