"""A standalone Spark cluster on this machine."""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark
from service import Server, accepts, free_port
from sessions import MODULES

START_S = 120
PATIENCE_S = 120
# Starts speculative attempts early, once there are two executors.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.executor.memory": "700m",
    "spark.cores.max": "2",
}


@contextlib.contextmanager
def two_hosts(top: Path, within: Sequence[str] = ()):
    """
    A master and two workers with one core each; yields the master's URL. The workers have different
    host names, because Spark does not start a speculative attempt on the host of the first. `top`
    gets their logs and the executors' files. `within` is a command that runs the processes of the cluster.
    """
    home, port = Path(pyspark.__file__).parent, free_port()
    url = f"spark://127.0.0.1:{port}"
    small = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with contextlib.ExitStack() as stack:

        def start(name, *arguments):
            command = [
                *within,
                home / "bin" / "spark-class",
                f"org.apache.spark.deploy.{name}",
                "--webui-port",
                "0",
                *map(str, arguments),
            ]
            server = Server(
                command,
                top / f"{name}-{arguments[1]}",
                env={**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": MODULES, **small},
            )
            stack.callback(server.stop)
            return server

        start("master.Master", "--host", "127.0.0.1", "--port", port).wait_until(lambda: accepts(port), START_S)
        for host in ("127.0.0.2", "127.0.0.3"):
            start("worker.Worker", "--host", host, "--cores", 1, "--memory", "1g", "--work-dir", top / host, url)
        yield url


def executors_of(application: str) -> list[int]:
    """The PIDs of an application's executors."""
    commands = {
        int(process.name): command_line(process) for process in Path("/proc").iterdir() if process.name.isdigit()
    }
    return [
        pid
        for pid, words in commands.items()
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and application in words
    ]


def command_line(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_text().split("\0")
    except OSError:  # it has ended meanwhile
        return []


def wait_for(holds, otherwise: str) -> None:
    """Waits until `holds()`; fails after some time with the message `otherwise`."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)
