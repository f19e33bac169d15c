"""The result of a case in a form that can be sent and compared: rows, schema, files, sizes, or the error."""

import re
from urllib.parse import urlsplit

import queries
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

# Parts that differ from run to run, with and without Millstream.
VOLATILE = [
    (r"\n\s*at [^\n]*", ""),
    (r"stage \d+\.\d+", "stage N"),
    (r"Task \d+|task \d+\.\d+", "task N"),
    (r"TID \d+\) \([^)]*\)", "TID N)"),
    (r"#\d+L?", "#N"),
    (r"part-\d+-[0-9a-f-]{36}", "part"),
    (r"\n\s*\.\.\. \d+ more", ""),
    (r"Driver stacktrace:.*", ""),
    # Of S3 and of the SDK's retries.
    (r"Request ID: [^,)]*", "Request ID: N"),
]


def run_case(spark, name, data, scratch):
    """Runs a case. The answer's key `index` is the index of a DataFrame's files, `native` whether it was read natively."""
    context = queries.Context(spark, data, scratch)
    answer = replace(answer_of(lambda: queries.CASES[name].run(context)), scratch, "<scratch>")
    # Some messages have the path alone.
    answer = replace(answer, urlsplit(scratch).path, "<scratch>")
    answer.setdefault("native", sorted(context.native))
    return answer


def run_query(spark, query, path):
    """Runs one of a few queries on a random tree."""
    reader = spark.read
    queries = {
        "plain": lambda: reader.text(path),
        "recursive": lambda: (
            reader.option("recursiveFileLookup", True).text(path).selectExpr("value", "_metadata.file_path")
        ),
        "filtered": lambda: reader.options(
            recursiveFileLookup=True, pathGlobFilter="*[a-z]*", modifiedAfter="2020-09-20T00:00:00"
        ).text(path),
        "rdd": lambda: spark.sparkContext.textFile(f"{path}/*"),
    }
    return answer_of(queries[query])


def answer_of(run):
    try:
        return describe(run())
    except PySparkException as error:
        return {"error": type(error).__name__, "condition": error.getCondition(), "message": stable(str(error))}
    except Py4JJavaError as error:
        thrown = error.java_exception
        return {"error": thrown.getClass().getName(), "message": stable(str(thrown.getMessage()))}


def describe(value):
    if isinstance(value, DataFrame):
        return {
            "schema": value.schema.jsonValue(),
            "rows": sorted(map(repr, value.collect())),
            "files": sorted(value.inputFiles()),
            "partitions": value.rdd.getNumPartitions(),
            "bytes": str(value._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()),
            "index": index_of(value),
            "native": [queries.reads_natively(value)],
            "packed": queries.reads_packed(value),
        }
    if isinstance(value, RDD):
        return {
            "items": [repr(item) for item in value.collect()],
            "partitions": value.getNumPartitions(),
            "native": [queries.is_packed(value)],
        }
    return {"value": repr(value)}


def told_apart(expected, actual):
    """Removes the permitted differences from the answers of stock Spark and Millstream; returns Millstream's index, and
    whether it read natively.
    """
    for key in ("index", "native", "packed"):
        expected.pop(key, None)
    index, native = actual.pop("index", None), actual.pop("native", [])
    if actual.pop("packed", False) or True in native:
        # Native scans choose their own number of tasks; RDDs have at most as many as stock.
        assert "items" not in actual or actual["partitions"] <= expected["partitions"]
        expected.pop("partitions", None), actual.pop("partitions", None)
    return index, native


def index_of(frame):
    """The class of the file index of a DataFrame's first file relation, or None."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            return leaf.relation().location().getClass().getSimpleName()
    return None


def stable(message):
    for pattern, substitute in VOLATILE:
        message = re.sub(pattern, substitute, message, flags=re.DOTALL if ".*" in pattern else 0)
    return message


def replace(value, old, new):
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [replace(item, old, new) for item in value]
    if isinstance(value, dict):
        return {key: replace(item, old, new) for key, item in value.items()}
    return value
