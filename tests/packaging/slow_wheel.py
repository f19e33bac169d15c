"""The wheel of the release: in a clean root directory with an old glibc, and with PySpark on this machine.

Debian 11 has glibc 2.31, the oldest that Debian still serves; packaging/check shows by the symbol versions that nothing
needs more than 2.28. Its Python, 3.9, is older than the wheel's functions ask for, so Spark's own SQL shell
reads there.
"""

import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import clean_root
from clean_root import CARGO, EXERCISES, ROOT, released, run

OLD, PACKAGES = "bullseye", ("python3-venv", "openjdk-17-jre-headless")
SETUP = "export SPARK_HOME=/spark SPARK_CONF_DIR=/conf SPARK_LOCAL_IP=127.0.0.1 PATH=/venv/bin:$PATH; cd /tmp"
READ = """\
create temporary view files using text options (path '/volume', recursiveFileLookup true);
explain select value from files;
select concat('read ', value) from files;
"""
ENABLED = """\
import sys, millstream
from pyspark.sql import SparkSession
spark = millstream.enable(SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)).getOrCreate()
lines = millstream.read_text(spark, sys.argv[1])
lines.explain()
print(millstream.__file__, sorted(row.value for row in lines.collect()))
"""


def pyspark():
    """The directory of the packages pyspark and py4j in the environment of the newest Spark, which `make package` has
    made.
    """
    environments = sorted((ROOT / "build/checked").glob("venv-4.*/lib/python*/site-packages/pyspark"))
    return environments[-1].parent


class OldGlibc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.scratch = Path(directory.name)
        cls.root = cls.scratch / "root"
        clean_root.make_root(cls.root, OLD, *PACKAGES)
        wheel = released("*.whl")
        shutil.copy(wheel, cls.root)
        # pip asks the C library for its version, and refuses wheels that need a newer one.
        install = f"python3 -m venv /venv && /venv/bin/pip install --no-index --no-deps --ignore-requires-python /{wheel.name}"
        cls.in_root(f"{install} && mkdir /conf && /venv/bin/millstream spark-conf > /conf/spark-defaults.conf")

    @classmethod
    def in_root(cls, script):
        volume = clean_root.new_volume(cls.scratch)
        return clean_root.in_root(cls.root, script, volume, [(pyspark() / "pyspark", "spark")])

    def test_the_c_library_is_old(self):
        major, minor = self.in_root("getconf GNU_LIBC_VERSION").split()[1].split(".")
        self.assertLess(
            (int(major), int(minor)), (2, 34), "since when programs that are linked here do not start on older ones"
        )

    def test_the_tools_work(self):
        for tool in CARGO.tools:
            with self.subTest(tool):
                self.in_root(f"PATH=/venv/bin:$PATH; {EXERCISES[tool]}")

    def test_spark_loads_the_native_library(self):
        told = self.in_root(f"{SETUP}; millstream doctor --conf=spark.ui.enabled=false")
        self.assertRegex(told, r"(?m)^ok +native library +loads$")
        self.assertNotIn("FIX", told)

    def test_spark_reads_natively(self):
        (self.root / "read.sql").write_text(READ)
        told = self.in_root(f"{SETUP}; /spark/bin/spark-sql -S --conf spark.ui.enabled=false -f /read.sql")
        self.assertIn("NativeTextScan", told)
        self.assertEqual({line for line in told.splitlines() if line.startswith("read ")}, {"read ä", "read sub/file"})


class ThisMachine(unittest.TestCase):
    def test_pyspark_reads_natively(self):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = Path(scratch)
            run(sys.executable, "-m", "venv", scratch / "venv")
            run(scratch / "venv/bin/pip", "install", "--no-index", "--no-deps", released("*.whl"))
            # The directory of the other environment comes last, so that its Millstream is not found.
            (site,) = (scratch / "venv/lib").glob("python*/site-packages")
            (site / "pyspark.pth").write_text(f"{pyspark()}\n")
            (scratch / "read.py").write_text(ENABLED)
            environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
            volume = clean_root.new_volume(scratch)
            told = run(scratch / "venv/bin/python", scratch / "read.py", volume, env=environment)
        self.assertIn("NativeTextScan", told)
        self.assertIn(f"{site}/millstream/__init__.py ['sub/file', 'ä']", told)


if __name__ == "__main__":
    unittest.main()
