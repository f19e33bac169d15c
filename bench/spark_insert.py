"""spark_insert.py WAY DIRECTORY PARTITIONS - one Spark application with a Hive table that it overwrites; prints its
figures as a JSON object.

WAY: `stock` or `millstream`, the same code with Millstream and its direct writes switched on. DIRECTORY is for the
table, whose old rows are written before the clock starts.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from spark_probe import session

ROWS = 100  # a file

way, directory, partitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
scratch = tempfile.TemporaryDirectory()
conf = {
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.warehouse.dir": scratch.name,
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={scratch.name}/metastore;create=true",
    "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={scratch.name}/derby.log",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.millstream.write.enabled": "true",
}
spark = session(way, "1g", conf)
spark.sparkContext.setLogLevel("ERROR")


def rows(value, parts):
    frame = spark.range(0, parts * ROWS, 1, 2)
    return frame.selectExpr(f"concat('{value} ', id) v", f"int(id div {ROWS}) part")


def create(name, parts):
    """A table whose old rows are in files written without Millstream."""
    location = f"{directory}/{name}"
    rows("old", parts).write.partitionBy("part").text(location)
    spark.sql(
        f"create external table {name} (v string) partitioned by (part int) stored as textfile location '{location}'"
    )
    spark.sql(f"msck repair table {name}")


def overwrite(name, parts):
    """Whether the write was direct."""
    rows("new", parts).createOrReplaceTempView("rows")
    done = spark.sql(f"insert overwrite table {name} partition (part) select v, part from rows")
    return "DirectInsertInto" in done._jdf.queryExecution().commandExecuted().toString()


create("warm", 3)
create("sales", partitions)
overwrite("warm", 3)  # warms the JVM and the metastore
start = time.perf_counter()
is_direct = overwrite("sales", partitions)
end = time.perf_counter()
(kept,) = spark.sql("select count_if(v not like 'new %') from sales").first()
files = sum(1 for file in Path(directory, "sales").glob("part=*/*") if file.name[0] not in "._")
print(json.dumps({"kept": kept, "is_direct": is_direct, "files": files, "total_s": end - start}))
spark.stop()
scratch.cleanup()
