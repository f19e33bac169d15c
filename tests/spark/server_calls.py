"""Functions for slow_direct_writes_servers.py that run in a session's process."""

import os
import time
from pathlib import Path

from write_calls import error_of, hadoop_path


def log_at_info(spark, logger):
    """The root's level does not count in Python's sessions if it is INFO already."""
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.INFO)


def left_over(spark, path):
    """What unfinished jobs have left of a directory: hidden files, entries of the journal, uploads that nobody has completed."""
    root, file_system = hadoop_path(spark, path)
    found = []
    files = file_system.listFiles(root, True)
    while files.hasNext():
        name = files.next().getPath().getName()
        # The journal remembers for a day that a job was undone, and the lock of one that died until the next.
        if name.endswith(".begin") or name.startswith((".direct-", "__magic")):
            found.append(name)
    return found + uploads(spark, root, file_system)


def permissions(spark, path):
    """Of the directories that readers see."""
    root, file_system = hadoop_path(spark, path)
    found, open_ends = {}, [root]
    while open_ends:
        for status in file_system.listStatus(open_ends.pop()):
            if status.isDirectory() and status.getPath().getName()[0] not in "._":
                open_ends.append(status.getPath())
                found[status.getPath().toUri().getPath().removeprefix(root.toUri().getPath()).strip("/")] = status.getPermission().toString()
    return found


def uploads(spark, root, file_system):
    if file_system.getScheme() != "s3a":
        return []
    found = file_system.listUploads(root.toUri().getPath().strip("/") + "/")
    names = []
    while found.hasNext():
        names.append(found.next().key())
    return names


def overwrite(spark, path, tasks, marks=None, trouble=None):
    """Overwrites six partitions by `tasks` tasks, of which the first attempts of some have `trouble`; answers the error, and how many twins ran."""
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(range(tasks), tasks).mapPartitionsWithIndex(lambda task, _: rows(task, marks, trouble)), "value string, k int")
    error = error_of(lambda: frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("k").csv(path))
    return {"error": error, "twins": twins(spark)}


def rows(task, marks, trouble):
    from pyspark import TaskContext

    for k in range(6):
        yield f"new{task}", k
        if k == 3 and task == 1 and TaskContext.get().attemptNumber() == 0:
            have(trouble, marks)


def have(trouble, marks):
    """What comes over an attempt that has files in several partitions already."""
    if trouble == "fails":
        raise ValueError("this attempt fails")
    if trouble == "dies":
        os.kill(executor(), 9)
    if trouble == "is slow":
        while not Path(marks, "go").exists():
            time.sleep(0.1)


def executor():
    """The JVM that this Python worker is of."""
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def twins(spark):
    """How many attempts of the last stage were speculative."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    java = spark._jvm.java
    quantiles = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    stages = context.statusStore().stageList(None, False, False, quantiles, java.util.List.of())
    last = max((stages.apply(i) for i in range(stages.size())), key=lambda stage: stage.stageId())
    tasks = context.statusStore().taskList(last.stageId(), last.attemptId(), 1000)
    return sum(tasks.apply(i).speculative() for i in range(tasks.size()))
