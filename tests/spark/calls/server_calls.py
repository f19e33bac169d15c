"""Functions for slow_direct_writes_servers.py that run in a session's process."""

import os
import time
from pathlib import Path

from swap_calls import places
from write_calls import error_of, hadoop_path


def log_at_info(spark, logger):
    """Sets the loggers' level; in Python sessions, the root's level has no effect if it is INFO already."""
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.INFO)


def left_over(spark, path):
    """Leftovers of unfinished jobs in a directory: hidden files, journal entries, incomplete uploads."""
    root, file_system = hadoop_path(spark, path)
    found = []
    files = file_system.listFiles(root, True)
    while files.hasNext():
        name = files.next().getPath().getName()
        # The journal keeps entries of aborted jobs for a day, and the lock of a dead job until the next
        # commit.
        if name.endswith(".begin") or name.startswith((".direct-", "__magic")):
            found.append(name)
    return found + uploads(spark, root, file_system)


def permissions(spark, path):
    """Permissions of the directories that readers see."""
    root, file_system = hadoop_path(spark, path)
    found, open_ends = {}, [root]
    while open_ends:
        for status in file_system.listStatus(open_ends.pop()):
            if status.isDirectory() and status.getPath().getName()[0] not in "._":
                open_ends.append(status.getPath())
                found[status.getPath().toUri().getPath().removeprefix(root.toUri().getPath()).strip("/")] = (
                    status.getPermission().toString()
                )
    return found


def run_with_access(spark, steps, home, table):
    """Runs SQL, and sets access control lists (a list of a path and its entries); `{home}` stands for a directory that
    is new. Returns the access to the directories of a table's partitions, wherever they are, and to the files in
    them.
    """
    path, file_system = hadoop_path(spark, home)
    file_system.mkdirs(path)
    for step in steps:
        if isinstance(step, str):
            spark.sql(step.replace("{home}", home))
        else:
            set_access(spark, step[0].replace("{home}", home), step[1])
    found = {}
    for name, place in places(spark, table).items():
        directory, file_system = hadoop_path(
            spark, home.partition("//")[0] + "//" + home.split("/")[2] + place["location"]
        )
        files = [
            status.getPath()
            for status in file_system.listStatus(directory)
            if status.isFile() and status.getPath().getName()[0] not in "._"
        ]
        found[name] = shown(file_system, directory)
        found[f"{name}/file"] = sorted({shown(file_system, file) for file in files})
    return found


def set_access(spark, path, entries):
    """Sets the access control list of a directory, which is created if it is missing."""
    directory, file_system = hadoop_path(spark, path)
    file_system.mkdirs(directory)
    file_system.setAcl(directory, spark._jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(entries, True))


def shown(file_system, path):
    """Permissions and access control list, as getfacl shows them."""
    entries = sorted(map(str, file_system.getAclStatus(path).getEntries()))
    return " ".join([file_system.getFileStatus(path).getPermission().toString(), *entries])


def uploads(spark, root, file_system):
    if file_system.getScheme() != "s3a":
        return []
    found = file_system.listUploads(root.toUri().getPath().strip("/") + "/")
    names = []
    while found.hasNext():
        names.append(found.next().key())
    return names


def overwrite(spark, path, tasks, marks=None, trouble=None):
    """Overwrites six partitions with `tasks` tasks, some of whose first attempts have `trouble`; returns the error and
    the number of speculative attempts.
    """
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(range(tasks), tasks).mapPartitionsWithIndex(
            lambda task, _: rows(task, marks, trouble)
        ),
        "value string, k int",
    )
    error = error_of(
        lambda: frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("k").csv(path)
    )
    return {"error": error, "twins": twins(spark)}


def rows(task, marks, trouble):
    from pyspark import TaskContext

    for k in range(6):
        yield f"new{task}", k
        if k == 3 and task == 1 and TaskContext.get().attemptNumber() == 0:
            have(trouble, marks)


def have(trouble, marks):
    """A problem of an attempt that already has files in several partitions."""
    if trouble == "fails":
        raise ValueError("this attempt fails")
    if trouble == "dies":
        os.kill(executor(), 9)
    if trouble == "is slow":
        while not Path(marks, "go").exists():
            time.sleep(0.1)


def executor():
    """The PID of this Python worker's JVM."""
    pid = os.getpid()
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def twins(spark):
    """The number of speculative attempts in the last stage."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    java = spark._jvm.java
    quantiles = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    stages = context.statusStore().stageList(None, False, False, quantiles, java.util.List.of())
    last = max((stages.apply(i) for i in range(stages.size())), key=lambda stage: stage.stageId())
    tasks = context.statusStore().taskList(last.stageId(), last.attemptId(), 1000)
    return sum(tasks.apply(i).speculative() for i in range(tasks.size()))
