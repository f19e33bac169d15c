"""Starts session_worker.py and calls functions in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where sessions and their Python workers import modules from.
MODULES = os.pathsep.join(str(HERE.parent / name) for name in ("", "beds", "calls", "inputs"))
BASE_CONF = {
    # On a cluster (`local-cluster[1,2,1024]`), executors are other processes.
    "spark.master": os.environ.get("MILLSTREAM_TEST_MASTER", "local[2]"),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # As in Millstream's conf block, so that both sessions have the same number of partitions.
    "spark.sql.files.openCostInBytes": "131072",
}


class Session:
    """A Spark session in another process. Its log, warehouse and temporary files are in `home`."""

    def __init__(
        self,
        home: Path,
        *,
        millstream: bool,
        jar: Path | None = None,
        conf: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        within: tuple[str, ...] = (),
    ):
        """`within` is a command prefix under which the worker runs."""
        for name in ("warehouse", "tmp"):
            (home / name).mkdir(parents=True)
        self.home = home
        self.log = home / "log"
        settings = {
            "millstream": millstream,
            "jar": str(jar) if jar else None,
            "conf": {
                **BASE_CONF,
                "spark.sql.warehouse.dir": str(home / "warehouse"),
                "spark.driver.defaultJavaOptions": f"-Djava.io.tmpdir={home / 'tmp'}",
                **(conf or {}),
            },
        }
        environment = {
            **os.environ,
            **(environment or {}),
            "PYTHONPATH": MODULES,
            "LC_ALL": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYSPARK_PYTHON": sys.executable,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *within,
                    *without_root_powers(),
                    sys.executable,
                    str(HERE / "session_worker.py"),
                    json.dumps(settings),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=home,
                env=environment,
                text=True,
            )

    def ask(self, call: str, **arguments) -> None:
        """Sends a request; `answer` waits for the result."""
        self.process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the session ended; its log says:\n{self.log.read_text(errors='replace')[-4000:]}")
        reply = json.loads(line)
        return reply["answer"] if "answer" in reply else reply

    def call(self, call: str, **arguments):
        self.ask(call, **arguments)
        return self.answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)


def without_root_powers() -> list[str]:
    """Drops the two capabilities with which root may read everything, so that files can be made unreadable."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
