"""Functions for slow_killed_tasks.py that run in a session's process: tasks killed during reads, and leftovers."""

import itertools
import os
import threading
import time
from pathlib import Path

NEVER = "contains(value, 'in no line')"
PATIENCE_S = 60
GROUPS = itertools.count()


def scan(spark, how, paths):
    if how == "RDD":
        return spark.sparkContext._jsc.textFile(",".join(paths)).count()
    return spark.read.text(paths).filter(NEVER).count()


def killed(spark, how, paths, by):
    """Kills tasks while they are in native code.

    `by` is `group`: the job's group is cancelled and its threads are interrupted, or `attempt`: each task is killed as
    Spark kills those whose work another attempt has done. Returns how the job ended, how soon the tasks ended, and how
    much of the scan is left.
    """
    sc = spark.sparkContext
    jvm = sc._jvm
    pid, group = jvm.java.lang.ProcessHandle.current().pid(), f"killed {next(GROUPS)}"
    before = private_kb(jvm, pid)
    job, ends = started(spark, how, paths, group)
    readers = 0
    if by == "group":
        readers = most_readers(pid, within_s=2)
        begin = time.monotonic()
        sc.cancelJobGroup(group)
        job.join(PATIENCE_S)
        wait_until(lambda: not in_native_code(jvm))
        seconds, kills = time.monotonic() - begin, 0
    else:
        seconds, kills = 0, kill_attempts(sc, group)
        job.join(PATIENCE_S)
    wait_until(lambda: not scan_threads(pid))
    return {
        "end": ends,
        "seconds": seconds,
        "kills": kills,
        "readers": readers,
        "readers left": len(scan_threads(pid)),
        "open files left": open_below(pid, os.path.commonpath(paths)),
        "grown kb": private_kb(jvm, pid) - before,
    }


def started(spark, how, paths, group):
    """A scan whose tasks are in native code, and the list that gets its end."""
    sc = spark.sparkContext
    ends = []

    def run():
        sc.setJobGroup(group, group, interruptOnCancel=True)
        try:
            ends.append(scan(spark, how, paths))
        except Exception as error:
            ends.append("cancelled" if "cancelled" in str(error) else repr(error))

    job = threading.Thread(target=run, daemon=True)
    job.start()
    wait_until(lambda: in_native_code(sc._jvm) and running_tasks(sc, group))
    return job, ends


def memory_of_cancelled(spark, how, paths, rounds, times):
    """How the jobs of each round ended, and the memory outside the heap after it."""
    sc = spark.sparkContext
    pid = sc._jvm.java.lang.ProcessHandle.current().pid()
    found = []
    for _ in range(rounds):
        ends = []
        for _ in range(times):
            group = f"cancelled {next(GROUPS)}"
            job, end = started(spark, how, paths, group)
            sc.cancelJobGroup(group)
            job.join(PATIENCE_S)
            ends += end
        wait_until(lambda: not scan_threads(pid))
        found.append({"ends": sorted(set(ends)), "jobs": len(ends), "kb": private_kb(sc._jvm, pid)})
    return found


def wait_until(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not (result := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
    return result


def in_native_code(jvm):
    """Whether a task is in a scan's native call."""
    stacks = jvm.java.lang.Thread.getAllStackTraces().entrySet().iterator()
    while stacks.hasNext():
        entry = stacks.next()
        if entry.getKey().getName().startswith("Executor task"):
            frames = entry.getValue()
            if (
                len(frames)
                and frames[0].isNativeMethod()
                and frames[0].getClassName() == "io.millstream.hadoop.reading.NativeScan"
            ):
                return True
    return False


def stages(sc, group):
    tracker = sc.statusTracker()
    return [stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds]


def running_tasks(sc, group):
    sc._jsc.sc().listenerBus().waitUntilEmpty()
    store = sc._jsc.sc().statusStore()
    found = []
    for stage in stages(sc, group):
        tasks = store.taskList(stage, 0, 10_000)
        found += [task.taskId() for task in map(tasks.apply, range(tasks.size())) if task.status() == "RUNNING"]
    return found


def kill_attempts(sc, group):
    tasks = running_tasks(sc, group)
    return sum(
        sc._jsc.sc().killTaskAttempt(task, i % 2 == 0, "another attempt succeeded") for i, task in enumerate(tasks)
    )


def scan_threads(pid):
    found = []
    for comm in Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            if comm.read_text().startswith("millstream-scan"):
                found.append(comm.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return found


def most_readers(pid, within_s):
    deadline, most = time.monotonic() + within_s, 0
    while time.monotonic() < deadline:
        most = max(most, len(scan_threads(pid)))
        time.sleep(0.02)
    return most


def open_below(pid, top):
    links = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(fd))
        except FileNotFoundError:
            pass
    return sum(link.startswith(top) for link in links)


def private_kb(jvm, pid):
    """Memory outside the heap, after unreachable memory has been freed."""
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
        time.sleep(0.2)
    status = Path(f"/proc/{pid}/status").read_text()
    (anonymous,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")]
    return anonymous - runtime.totalMemory() // 1024
