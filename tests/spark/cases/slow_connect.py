"""`millstream.read_text` over Spark Connect: the server decides who reads. Run with `make test-group GROUP=connect`:
clients need pandas and gRPC.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
import warnings

import pytest
from sessions import BASE_CONF

PATIENCE_S = 90


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ConnectServer:
    def __init__(self, home, conf):
        home.mkdir()
        self.port = free_port()
        self.log = home / "log"
        settings = {
            **BASE_CONF,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            **conf,
        }
        options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        others = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
        environment = {**others, "LC_ALL": "C.UTF-8", "PYSPARK_PYTHON": sys.executable}
        submit = os.path.join(os.path.dirname(sys.executable), "spark-submit")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [submit, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", *options],
                cwd=home,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.wait()

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        self.close()
        raise RuntimeError(f"no Spark Connect server; its log says:\n{self.log.read_text(errors='replace')[-4000:]}")

    def session(self):
        from pyspark.sql.connect.session import SparkSession

        return SparkSession.builder.remote(f"sc://127.0.0.1:{self.port}").create()

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def conf_block() -> dict[str, str]:
    import millstream

    return millstream.spark_conf()


def block_without_own_keys() -> dict[str, str]:
    """The same without Millstream's own keys, so that a client can detect Millstream only by a plan."""
    return {key: value for key, value in conf_block().items() if not key.startswith("spark.millstream.")}


@pytest.fixture
def connect(tmp_path):
    with contextlib.ExitStack() as opened:

        def start(conf):
            server = ConnectServer(tmp_path / "server", conf)
            opened.callback(server.close)
            session = server.session()
            # A client whose server has gone waits for it when it ends.
            opened.callback(session.stop)
            return session

        yield start


def read(spark, path, **arguments):
    """The lines, the warnings and the plan."""
    import millstream

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = millstream.read_text(spark, path, **arguments)
    told = [str(warning.message) for warning in caught if issubclass(warning.category, RuntimeWarning)]
    return sorted(row.value for row in frame.collect()), told, frame._explain_string()


@pytest.fixture
def tree(tmp_path):
    for n in range(40):
        folder = tmp_path / "tree" / f"k={n % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(n)).write_text(f"line {n}\n")
    return tmp_path / "tree", sorted(f"line {n}" for n in range(40))


@pytest.mark.parametrize("where", ["settings", "plan"])
def test_a_server_with_millstream_reads_natively_and_nobody_warns(connect, tree, where):
    path, expected = tree
    spark = connect(conf_block() if where == "settings" else block_without_own_keys())
    for arguments in ({}, {"partitions": 3}):
        lines, told, plan = read(spark, path, **arguments)
        assert (lines, told) == (expected, []) and "NativeTextScan" in plan


def test_a_server_without_millstream_reads_by_itself_and_the_client_warns(connect, tree):
    path, expected = tree
    lines, told, plan = read(connect({}), path)
    assert lines == expected and "NativeTextScan" not in plan
    assert len(told) == 1 and "the Spark Connect server does not have Millstream" in told[0]
