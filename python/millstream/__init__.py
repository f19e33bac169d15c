"""Millstream for PySpark: the storage fast path for Apache Spark.

    spark = millstream.enable(SparkSession.builder).getOrCreate()

From then on `spark.read.…(path)`, SQL tables and `sc.textFile` list local and mounted files through Millstream's
parallel engine, and INSERT writes directly to the destination directories, with one commit. Rows, schemas and errors
stay those of stock Spark.
"""

from importlib import metadata

from millstream.compaction import CompactError, CompactSummary, compact
from millstream.diagnosis import Diagnosis, doctor
from millstream.measurement import FormatsError, formats
from millstream.recovery import Finding, RecoverError, recover
from millstream.session import enable, spark_conf
from millstream.synchronization import SyncError, SyncProblem, SyncSummary, sync
from millstream.text import pure_read_text, read_text

__all__ = [
    "CompactError",
    "CompactSummary",
    "Diagnosis",
    "Finding",
    "FormatsError",
    "RecoverError",
    "SyncError",
    "SyncProblem",
    "SyncSummary",
    "compact",
    "doctor",
    "enable",
    "formats",
    "pure_read_text",
    "read_text",
    "recover",
    "spark_conf",
    "sync",
]
__version__ = metadata.version("millstream")
