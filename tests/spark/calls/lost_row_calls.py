"""Functions for test_lost_rows.py, slow_lost_rows_servers.py and slow_kills_at_commit.py that run in a session's
process.
"""

import dataclasses
import os
import shutil
import time

from swap_calls import settings
from write_calls import hadoop_path

STOCK = {"spark.millstream.write.enabled": "false"}


def run(spark, statements, conf=None):
    """Runs statements one after the other; returns their errors, with all causes."""
    with settings(spark, conf or {}):
        return [error_of(lambda: spark.sql(statement)) for statement in statements]


def run_stock(spark, statements, conf=None):
    """The same, but like a program that does not know direct writes."""
    return run(spark, statements, {**STOCK, **(conf or {})})


def error_of(action):
    try:
        action()
    except Exception as error:
        return str(error)


def rows(spark, table):
    spark.catalog.refreshTable(table)
    return sorted(list(row) for row in spark.table(table).collect())


def location(spark, table):
    (path,) = [row[1] for row in spark.sql(f"describe extended {table}").collect() if row[0] == "Location"]
    return path


def location_of_partition(spark, table, partition):
    """The first of two rows; the other one is the location of the table."""
    return next(
        row[1]
        for row in spark.sql(f"describe extended {table} partition({partition})").collect()
        if row[0] == "Location"
    )


def partition_names(spark, table):
    return [row[0] for row in spark.sql(f"show partitions {table}").collect()]


def recover(spark, target, **choices):
    """The findings, or the error as text."""
    import millstream

    try:
        return [dataclasses.asdict(finding) for finding in millstream.recover(spark, target, **choices)]
    except millstream.RecoverError as error:
        return str(error)


def journal(spark, root):
    """The names of a journal's entries."""
    path, file_system = hadoop_path(spark, f"{root}/.direct-writes")
    return (
        sorted(status.getPath().getName().removeprefix("_") for status in file_system.listStatus(path))
        if file_system.exists(path)
        else []
    )


def write_empty(spark, path, conf=None):
    """Overwrites partitions of a path with no rows; returns the number of rows that a reader finds afterwards, or an
    error.
    """
    frame = spark.range(1).selectExpr("id value", "id k").where("value < 0")
    with settings(spark, conf or {}):
        frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("k").csv(path)
    return spark.read.schema("value bigint, k bigint").csv(path).count()


def partitions(spark, table):
    """Rows by partition, in the form of faults.OLD."""
    spark.catalog.refreshTable(table)
    found = {}
    for a, v, k in sorted(map(tuple, spark.sql(f"select a, v, k from {table}").collect())):
        found.setdefault(k, []).append([a, v])
    return found


def read_until(spark, table, stop):
    """The results of a reader that reads repeatedly until a file appears: each different result in turn, and errors. A
    second file contains the count.
    """
    states, errors, count = [], [], 0
    while not os.path.exists(stop):
        try:
            found = partitions(spark, table)
            if not states or states[-1] != found:
                states.append(found)
        except Exception as error:
            errors.append(str(error)[:500])
        count += 1
        with open(f"{stop}.reads", "w") as file:
            file.write(str(count))
        time.sleep(0.02)
    return {"states": states, "errors": errors, "count": count}


def has_table(spark, table):
    return spark.catalog.tableExists(table)


def exists(spark, path):
    path, file_system = hadoop_path(spark, path)
    return file_system.exists(path)


def copy_of_a_relation_listed_before(spark, path, copy):
    """The numbers of rows that statements copy from a DataFrame that listed its files before more rows were added, and
    from a union of two such DataFrames.
    """
    spark.range(10).write.mode("overwrite").parquet(path)
    frame, another = spark.read.parquet(path), spark.read.parquet(path)
    frame.count()
    spark.range(10, 15).write.mode("append").parquet(path)
    counts = []
    for copied in (frame, frame.union(another)):
        copied.write.mode("overwrite").parquet(copy)
        counts.append(spark.read.parquet(copy).count())
        spark.range(1).write.mode("append").parquet(path)
    return counts


def copies_of_a_relation_of_which_a_directory_is_gone(spark, path, copy):
    """Copies a DataFrame of two directories after one of them was removed. Returns the error, and the number of rows
    copied if missing files are ignored.
    """
    spark.range(20).selectExpr("id", "id % 2 p").write.partitionBy("p").mode("overwrite").parquet(path)
    frame = spark.read.parquet(f"{path}/p=0", f"{path}/p=1")
    assert frame.count() == 20
    shutil.rmtree(f"{path}/p=1")
    error = error_of(lambda: frame.write.parquet(copy))
    with settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        frame.write.mode("overwrite").parquet(copy)
    return error, spark.read.parquet(copy).count()
