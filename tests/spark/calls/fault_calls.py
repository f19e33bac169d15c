"""Functions that run in a session's process: tables for failing INSERTs, and their contents afterwards (faults.py)."""

import os
import threading

CREATIONS = {"text": "stored as textfile", "parquet": "stored as parquet", "datasource": "using parquet"}
FORMER = "from range(0, 8, 1, 2)"


def make(spark, database, location=None):
    """Creates a table of each kind with partitions 1 to 4 in one database; returns the driver's PID."""
    where = f"location '{location}'" if location else ""
    spark.sql(f"create database {database} {where}")
    for kind, creation in CREATIONS.items():
        columns = (
            "(a bigint, v string, k string) using parquet partitioned by (k)"
            if kind == "datasource"
            else f"(a bigint, v string) partitioned by (k string) {creation}"
        )
        spark.sql(f"create table {database}.{kind} {columns}")
        spark.sql(f"insert into {database}.{kind} partition(k) select id, 'old', cast(id % 4 + 1 as string) {FORMER}")
    return spark._jvm.java.lang.ProcessHandle.current().pid()


def insert(spark, statements):
    """Runs statements concurrently; returns their errors, with all causes."""
    errors = [None] * len(statements)

    def run(number, statement):
        try:
            spark.sql(statement)
        except Exception as error:
            errors[number] = str(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(statements)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def state(spark, table):
    """Rows by partition, and for each partition the numbers in the metastore and in its directory."""
    spark.catalog.refreshTable(table)
    rows = {}
    for a, v, k in sorted(map(tuple, spark.sql(f"select a, v, k from {table}").collect())):
        rows.setdefault(k, []).append([a, v])
    database, name = table.split(".")
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    found = catalog.listPartitions(database, name, spark._jvm.scala.Option.empty())
    partitions = {}
    for partition in map(found.apply, range(found.size())):
        told = [
            option.get() if option.isDefined() else None
            for option in map(partition.parameters().get, ("numFiles", "totalSize"))
        ]
        partitions[partition.spec().apply("k")] = {"told": told, "files": data_files(partition.location().getPath())}
    return {"rows": rows, "partitions": partitions}


def data_files(directory):
    """Numbers of files and bytes, as in the metastore."""
    names = [name for name in os.listdir(directory) if name[0] not in "._"]
    return [str(len(names)), str(sum(os.path.getsize(os.path.join(directory, name)) for name in names))]


def drop(spark, database):
    spark.sql(f"drop database {database} cascade")


def attempts(spark, table, marks):
    """Overwrites partitions with one task that fails at first, and one whose first attempt waits for the file `go`
    among the marks.

    That attempt writes its executor's PID to the file `slow`.
    """
    from pyspark import TaskContext

    def write(split, _):
        import time
        from pathlib import Path

        first = TaskContext.get().attemptNumber() == 0
        rows = [(a, "new", str(a % 4 + 3)) for a in range(split * 4, split * 4 + 4)]
        yield from rows[:2]
        if first and split == 0:
            raise ValueError("this attempt fails")
        if first and split == 1:
            # This process is forked from one that the executor has started.
            parent = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            Path(marks, "slow.new").write_text(parent[1])
            Path(marks, "slow.new").rename(Path(marks, "slow"))
            while not Path(marks, "go").exists():
                time.sleep(0.05)
        yield from rows[2:]

    data = spark.sparkContext.parallelize(range(2), 2).mapPartitionsWithIndex(write)
    frame = spark.createDataFrame(data, "a bigint, v string, k string")
    frame.write.insertInto(table, overwrite=True)


def application(spark):
    """The ID of the application."""
    return spark.sparkContext.applicationId


def running_tasks(spark):
    """Including failed ones."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    return sum(executors.apply(i).activeTasks() for i in range(executors.size()))


def configure(spark, settings):
    for key, value in settings.items():
        spark.conf.set(key, value)
