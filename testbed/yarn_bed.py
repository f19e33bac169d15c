"""A YARN cluster on this machine, with a resource manager and a node manager in one JVM (Hadoop's MiniYARNCluster), as
a context manager. Its default file system is the local one.

    with YarnBed() as bed:       # clients need bed.client(), their environment
"""

import os
import shutil
import tempfile
from pathlib import Path

from bed_jars import jars_by_pom
from hdfs_bed import HADOOP_VERSION, READY_WITHIN_S
from service import Server

PROGRAM = Path(__file__).resolve().parent / "YarnCluster.java"
HEAP = "512m"


class YarnBed:
    """`directory` has the configuration for clients, and the logs of containers below `logs`; both are removed with
    the cluster.
    """

    def __enter__(self):
        jars = jars_by_pom("yarn", f"hadoop-{HADOOP_VERSION}")
        self.directory = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self.logs = self.directory / "target"
        self._server: Server | None = None
        try:
            java = Path(shutil.which("java")).resolve()
            command = [java, f"-Xmx{HEAP}", "-cp", ":".join(map(str, jars)), PROGRAM, self.directory]
            # Containers start their JVMs by it.
            environment = {**os.environ, "JAVA_HOME": str(java.parent.parent)}
            self._server = Server(command, self.directory / "log", cwd=self.directory, env=environment)
            self._server.wait_until((self.directory / "ready").exists, READY_WITHIN_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def client(self) -> dict[str, str]:
        return {"HADOOP_CONF_DIR": str(self.directory)}

    def __exit__(self, *_):
        if self._server:
            self._server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
