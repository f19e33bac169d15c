"""HDFS on this machine, a name node and a data node in one JVM (Hadoop's MiniDFSCluster), as a context manager.

`client_jars()` has all that a program needs to reach it; Spark has that already.
"""

import json
import shutil
import tempfile
from pathlib import Path

from bed_jars import jars_by_pom
from service import Server, free_port

HADOOP_VERSION = "3.5.0"
READY_WITHIN_S = 180
HEAP = "512m"


def client_jars() -> list[Path]:
    return jars_by_pom("hdfs", f"hadoop-{HADOOP_VERSION}")


class HdfsBed:
    """`bed.url` is hdfs://HOST:PORT; the files are gone with the bed. Who starts it is the superuser."""

    def __enter__(self):
        jars = client_jars()
        self._scratch = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self._server: Server | None = None
        try:
            self._start(jars)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, jars: list[Path]) -> None:
        details = self._scratch / "details"
        java = ["java", f"-Xmx{HEAP}", f"-Dtest.build.data={self._scratch}", "-cp", ":".join(map(str, jars))]
        ports = ["-nnport", free_port(), "-httpport", free_port()]
        cluster = ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", *ports, "-writeDetails", details]
        self._server = Server([*java, *cluster], self._scratch / "log", cwd=self._scratch)
        # Written when the data node is there.
        self._server.wait_until(lambda: details.exists() and details.read_text().endswith("}"), READY_WITHIN_S)
        self.url = f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"

    def __exit__(self, *_):
        if self._server:
            self._server.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def settings(self) -> dict[str, str]:
        return {"HDFS_URL": self.url}
