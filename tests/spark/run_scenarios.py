"""Runs every scenario in one JVM and writes the outcomes as JSON.

    run_scenarios.py ROOT OUTCOMES [JAR]      with Millstream if a jar is given
"""

import json
import os
import sys
import traceback
from pathlib import Path

import scenarios
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

INDEX = "CompactFileIndex"


def session(jar: str | None, log: Path) -> SparkSession:
    log_conf = log.with_suffix(".log4j2.properties")
    log_conf.write_text(f"""rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c{{1}}: %m%n
logger.millstream.name = org.apache.spark.sql.execution.datasources.millstream
logger.millstream.level = info
""")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.catalogImplementation", "in-memory")
    builder = builder.config("spark.sql.warehouse.dir", str(log.parent / "warehouse"))
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log_conf}")
    if jar:
        os.environ["MILLSTREAM_JAR"] = jar
        import millstream

        builder = millstream.enable(builder)
    return builder.getOrCreate()


def outcome(name: str, spark: SparkSession, root: Path, log: Path) -> dict:
    logged = log.stat().st_size
    try:
        result = {"value": scenarios.SCENARIOS[name](spark, root)}
    except PySparkException as e:
        result = {"error": type(e).__name__, "condition": e.getCondition(), "message": message(e)}
    except Exception as e:
        result = {"error": type(e).__name__, "message": message(e), "trace": traceback.format_exc()[-2000:]}
    with open(log) as file:
        file.seek(logged)
        result["indexed"] = INDEX in file.read()
    return result


def message(e: Exception) -> str:
    """Without the stack of the JVM, job numbers and addresses."""
    first = [line for line in str(e).splitlines() if line.strip()]
    text = next((line for line in first if "Exception:" in line), first[0] if first else "")
    return text.partition("Job aborted")[0]


def main(root: str, outcomes: str, jar: str | None = None) -> None:
    log = Path(outcomes).with_suffix(".log")
    spark = session(jar, log)
    if jar is None:
        scenarios.prepare(spark, Path(root))
    done = {name: outcome(name, spark, Path(root), log) for name in scenarios.SCENARIOS}
    Path(outcomes).write_text(json.dumps(done, indent=1))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
