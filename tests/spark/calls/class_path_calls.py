"""Functions for slow_class_path.py that run in a session's process: Spark's formats and other programs'."""

import re

from answers import stable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

# Numbers that differ from run to run, also without Millstream.
SNAPSHOT = re.compile(r"\b\d{15,}\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def run(spark, statements):
    """The sorted rows of each statement, or its error. A statement is SQL, or Python after `>`."""
    return [answer(spark, statement) for statement in statements]


def answer(spark, statement):
    try:
        if statement.startswith(">"):
            found = eval(statement[1:], {"spark": spark})
            return None if found is None else rows(found)
        return rows(spark.sql(statement))
    except PySparkException as error:
        return {"error": type(error).__name__, "condition": error.getCondition(), "message": volatile(error)}
    except Py4JJavaError as error:
        return {
            "error": error.java_exception.getClass().getName(),
            "message": volatile(error.java_exception.getMessage()),
        }


def rows(frame):
    return sorted(SNAPSHOT.sub("N", str(row)) for row in frame.collect())


def volatile(message):
    return SNAPSHOT.sub("N", stable(str(message)))


def plan(spark, code):
    """The nodes of an executed plan."""
    frame = eval(code, {"spark": spark})
    frame.collect()
    return frame._jdf.queryExecution().executedPlan().toString()
