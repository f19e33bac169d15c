"""Millstream, the storage fast path for Apache Spark.

>>> import millstream
>>> from pyspark.sql import SparkSession
>>> spark = millstream.enable(SparkSession.builder).getOrCreate()

After that `spark.read`, SQL and `sc.textFile` list local and NFS directories in parallel; no other code changes.
"""

from .conf import enable, jar_path, spark_conf
from .text import pure_read_text, read_text

__all__ = ["enable", "jar_path", "pure_read_text", "read_text", "spark_conf"]
