"""Functions for slow_changed_files.py that run in a session's process: files that change while a task reads them."""

from py4j.protocol import Py4JJavaError
from read_calls import IN_ONE_TASK, with_settings

METADATA = (
    "_metadata.file_name",
    "_metadata.file_size",
    "_metadata.file_block_start",
    "unix_millis(_metadata.file_modification_time)",
)
PATIENCE_S = 120


def write_files(spark, path, format_name, version, files, rows, width):
    """Writes files of equal size, with the rows `f<file> <version> <row> xxx…`."""
    row = f"concat('f', lpad(spark_partition_id(), 3, '0'), ' {version} ', lpad(id % {rows}, 6, '0'), ' ', repeat('x', {width}))"
    frame = spark.range(0, files * rows, 1, files).selectExpr(f"{row} v")
    frame.write.option("compression", "none").format(format_name).save(path)


def read_in_steps(spark, path, format_name, marks, options=None, metadata=False, conf=None):
    """
    Reads in one task, unless `conf` says otherwise. Its first row creates the file `begun` among the marks, and waits
    for `go`.

    Returns the number of rows of each version of each file, and their metadata; or the error.
    """

    def stepped(rows):
        import time
        from collections import Counter
        from pathlib import Path

        begun, found = Path(marks, "begun"), Counter()
        for row in rows:
            if not begun.exists():
                begun.touch()
                deadline = time.monotonic() + PATIENCE_S
                while not Path(marks, "go").exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
            file, version, *_ = row[0].split(" ", 3)
            found[(file, version, *map(str, row[1:]))] += 1
        yield from found.items()

    columns = ["v", *METADATA] if metadata else ["v"]
    frame = spark.read.format(format_name).options(**(options or {})).schema("v string").load(path).selectExpr(*columns)

    try:
        return {
            "rows": with_settings(
                spark, conf or IN_ONE_TASK, lambda: merged(frame.rdd.mapPartitions(stepped).collect())
            )
        }
    except Py4JJavaError as error:
        return {"error": error_chain(error)}


def merged(counts):
    """Sums the counts of several tasks."""
    total = {}
    for key, count in counts:
        total[key] = total.get(key, 0) + count
    return sorted([*key, count] for key, count in total.items())


def error_chain(error):
    """The messages of an exception and its causes."""
    messages, cause = [], error.java_exception
    while cause is not None:
        messages.append(f"{cause.getClass().getName()}: {cause.getMessage()}")
        cause = cause.getCause()
    return "\n".join(messages)
