"""Functions for test_direct_swap.py and slow_direct_swap.py that run in a session's process."""

import contextlib
import os
import re
import threading
import time

from write_calls import error_of, recover, specification


def places(spark, name):
    """The locations of a table's partitions (an empty name is a table without partitions), and their numbers of files
    in the catalog.
    """
    columns = spark.sql(f"describe {name}").collect()
    if not any(row[0] == "# Partition Information" for row in columns):
        return {"": place(spark, name, "")}
    return {
        partition: place(spark, name, specification(partition))
        for (partition,) in spark.sql(f"show partitions {name}").collect()
    }


def place(spark, name, partition):
    rows = spark.sql(f"describe extended {name} {partition}").collect()
    location = next(row[1] for row in rows if row[0] == "Location")
    files = next((re.search(r"numFiles=(\d+)", row[1]) for row in rows if row[0] == "Partition Parameters"), None)
    path = spark._jvm.org.apache.hadoop.fs.Path(location).toUri().getPath()
    return {"location": path, "files": int(files[1]) if files else None}


def replaced_directories(spark, name, statement, conf):
    """The partitions that a statement has moved to other directories, by name."""

    def directories():
        return {partition: os.stat(place["location"]).st_ino for partition, place in places(spark, name).items()}

    before = directories()
    with settings(spark, conf):
        spark.sql(statement)
    return sorted(partition for partition, number in directories().items() if number != before[partition])


@contextlib.contextmanager
def settings(spark, conf):
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def statement_during_another(
    spark, home, slow, fast, conf=None, creation="(a string) partitioned by (k string) stored as textfile"
):
    """Runs a statement that calls `wait`: it begins before another one commits, and commits after it, both with `conf`.
    Returns its error, and the rows.

    Partition 1 contains a row `old` before.
    """
    from pyspark.sql.functions import udf

    os.makedirs(home)
    go = os.path.join(home, "go")

    def wait(value):
        while not os.path.exists(go):
            time.sleep(0.05)
        return value

    spark.udf.register("wait", udf(wait))
    spark.sql("drop database if exists d cascade")
    spark.sql("create database d")
    spark.sql(f"create table d.t {creation}")
    spark.sql("insert into d.t partition(k='1') select 'old'")
    journal = os.path.join(places(spark, "d.t")["k=1"]["location"], "..", ".direct-writes")
    errors = []
    statement = threading.Thread(target=lambda: errors.append(error_of(lambda: spark.sql(slow))))
    with settings(spark, conf or {}):
        statement.start()
        while not os.path.isdir(journal) or not any(name.endswith(".begin") for name in os.listdir(journal)):
            time.sleep(0.05)
        spark.sql(fast)
        open(go, "w").close()
        statement.join()
    return {"error": errors[0], "rows": sorted(row[0] for row in spark.table("d.t").collect())}


def files(spark, name):
    """The number of data files below a table's directory, whether readers find them or not."""
    location = next(row[1] for row in spark.sql(f"describe extended {name}").collect() if row[0] == "Location")
    top = spark._jvm.org.apache.hadoop.fs.Path(location).toUri().getPath()
    found = ((folder, names) for folder, _, names in os.walk(top) if not folder.endswith("/.direct-writes"))
    return sum(file[0] not in "._" for _, names in found for file in names)


def recover_with(spark, target, keep_millis):
    with settings(spark, {"fs.millstream.write.replaced.keep.ms": keep_millis}):
        return recover(spark, target)


def make(spark, table, kind, location, partitions):
    """An external table with one old row in each partition."""
    spark.sql("create database if not exists s")
    spark.sql(f"drop table if exists {table}")
    columns = (
        "value string, k int) using parquet partitioned by (k)"
        if "using" in kind
        else f"value string) partitioned by (k int) {kind}"
    )
    external = "" if "using" in kind else "external"
    spark.sql(f"create {external} table {table} ({columns} location '{location}'")
    spark.sql(f"insert into {table} partition(k) select 'old', id from range({partitions})")


def fill(spark, table, value, partitions):
    """Overwrites all partitions, and adds one."""
    spark.sql(
        f"insert overwrite {table} partition(k) select /*+ repartition(2) */ '{value}', id from range({partitions + 1})"
    )


def values(spark, table):
    return [
        list(row) for row in spark.sql(f"select value, count(*) from {table} group by value order by value").collect()
    ]


def read_until(spark, table, stop):
    """The results of queries that run one after the other until a file appears: each different result in turn."""
    rows, errors, count = [], [], 0
    while not os.path.exists(stop):
        try:
            found = values(spark, table)
        except Exception as error:
            errors.append(str(error)[:300])
            continue
        count += 1
        if not rows or rows[-1] != found:
            rows.append(found)
        time.sleep(0.1)
    return {"rows": rows, "errors": errors, "count": count}
