"""The metastore's databases with Spark: tables outlive the driver; PostgreSQL serves two drivers, and can be stopped
and started again.

Needs the environment with Spark that `make test-spark` creates.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from metastore_bed import DerbyMetastore, PostgresMetastore  # noqa: E402
from spark_versions import NEWEST  # noqa: E402

PYTHON = TESTBED.parent / "build" / "checked" / f"venv-{NEWEST}" / "bin" / "python"
# A driver that reads statements as lines, and replies with their rows.
DRIVER = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]")
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for line in sys.stdin:
    try:
        print(json.dumps([list(row) for row in spark.sql(line).collect()]), flush=True)
    except Exception as error:
        print(json.dumps(type(error).__name__), flush=True)
"""


class Metastore(unittest.TestCase):
    def setUp(self):
        self.warehouse = self.enterContext(tempfile.TemporaryDirectory())

    def driver(self, bed, **conf):
        settings = {
            **bed.spark_conf(),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": self.warehouse,
            **conf,
        }
        log = self.enterContext(tempfile.TemporaryFile("w+"))
        driver = self.enterContext(
            subprocess.Popen(
                [PYTHON, "-c", DRIVER, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.warehouse,
            )
        )
        self.addCleanup(driver.kill)

        def sql(statement):
            print(statement, file=driver.stdin, flush=True)
            if answer := driver.stdout.readline():
                return json.loads(answer)
            log.seek(0)
            self.fail(f"the driver has ended: {log.read()[-3000:]}")

        return sql, driver

    def test_derby_keeps_tables_for_the_next_driver(self):
        with tempfile.TemporaryDirectory() as directory, DerbyMetastore(Path(directory)) as bed:
            sql, driver = self.driver(bed)
            sql("CREATE TABLE t (id INT) PARTITIONED BY (p INT) STORED AS TEXTFILE")
            sql("INSERT INTO t PARTITION (p = 1) VALUES (7)")
            driver.communicate()
            sql, driver = self.driver(bed)
            self.assertEqual(sql("SELECT * FROM t"), [[7, 1]])
            driver.communicate()

    def test_postgresql_serves_two_drivers_and_can_be_restarted(self):
        with PostgresMetastore() as bed:
            jar = {"spark.driver.extraClassPath": str(bed.driver_jar())}
            first, _ = self.driver(bed, **jar)
            first("CREATE TABLE t (id INT) PARTITIONED BY (p INT) STORED AS TEXTFILE")
            first("INSERT INTO t PARTITION (p = 1) VALUES (7)")
            second, _ = self.driver(bed, **jar)
            self.assertEqual(second("SHOW PARTITIONS t"), [["p=1"]])
            second("INSERT INTO t PARTITION (p = 2) VALUES (8)")
            bed.stop()
            bed.start()
            third, _ = self.driver(bed, **jar)
            self.assertEqual(third("SELECT * FROM t ORDER BY id"), [[7, 1], [8, 2]])


if __name__ == "__main__":
    unittest.main()
