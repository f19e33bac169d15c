"""spark_lines.py WAY DIRECTORY - one Spark application that counts lines; prints its figures as a JSON object.

WAY: `stock`; `millstream` (the same code, Millstream switched on); `read_text` (millstream.read_text).
"""

import json
import sys
import time

from pyspark.sql import SparkSession

way, directory = sys.argv[1:]
builder = (
    SparkSession.builder.master("local[2]")
    .appName(f"lines {way}")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.memory", "4g")
)
if way != "stock":
    import millstream

    builder = millstream.enable(builder)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.range(1000).count()  # warms the JVM and the scheduler

start = time.perf_counter()
if way == "read_text":
    lines = millstream.read_text(spark, directory)
else:
    lines = spark.read.option("recursiveFileLookup", True).text(directory)
created = time.perf_counter()
count = lines.count()
end = time.perf_counter()
print(json.dumps({"lines": count, "create_s": created - start, "count_s": end - created, "total_s": end - start}))
spark.stop()
