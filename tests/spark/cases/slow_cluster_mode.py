"""Applications in cluster mode, whose driver does not run where spark-submit does, with the conf block: on YARN, on a
standalone cluster, and on Kubernetes as far as that goes without a cluster. The jar is at the same path on all
machines. Run with `make test-group GROUP=cluster-mode`.
"""

import os
import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest
from clusters import two_hosts
from yarn_bed import YarnBed

APPLICATION = Path(__file__).resolve().parents[1] / "beds/ClusterApplication.java"
HOME = Path(pyspark.__file__).parent
LINES = 200
SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "700m",
    "spark.executor.memory": "700m",
    "spark.executor.instances": "1",
    "spark.cores.max": "1",
    "spark.sql.shuffle.partitions": "2",
}
WITHIN_S = 400


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """The jar of the application, and a directory of small files for it."""
    top = tmp_path_factory.mktemp("application")
    subprocess.run(["javac", "-nowarn", "-cp", f"{HOME}/jars/*", "-d", top, APPLICATION], check=True)
    with zipfile.ZipFile(top / "application.jar", "w") as jar:
        jar.write(top / "ClusterApplication.class", "ClusterApplication.class")
    (top / "lines").mkdir()
    for n in range(LINES):
        (top / "lines" / str(n)).write_text(f"line {n}\n")
    return top / "application.jar", top / "lines"


def block(jar=None):
    import millstream

    return millstream.spark_conf(jar or millstream.spark_conf()["spark.jars"])


def submit(home, application, master, conf, environment=None, mode="cluster"):
    """Runs the application with these settings, and returns its report."""
    jar, lines = application
    (home / "block.conf").write_text("".join(f"{key} {value}\n" for key, value in {**SMALL, **conf}.items()))
    report = home / "report"
    others = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "SPARK_CONF_DIR")}
    command = [
        HOME / "bin" / "spark-submit",
        "--master",
        master,
        "--deploy-mode",
        mode,
        "--properties-file",
        home / "block.conf",
        "--class",
        "ClusterApplication",
        jar,
        lines,
        home / "table",
        report,
    ]
    done = subprocess.run(
        list(map(str, command)),
        env={**others, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        cwd=home,
    )
    assert report.exists(), f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return dict(line.split("=") for line in report.read_text().splitlines())


EXPECTED = {
    "rdd": str(LINES),
    "fileSystem": "MillstreamLocalFileSystem",
    "rows": str(sum("7" in str(n) for n in range(LINES))),
    "index": "true",
    "scan": "true",
    "direct": "true",
    "inserted": str(LINES),
}


@pytest.mark.parametrize("is_everywhere", [False, True], ids=["plain path", "local: URI"])
def test_yarn(application, tmp_path, is_everywhere):
    conf = block(f"local://{block()['spark.jars']}" if is_everywhere else None)
    with YarnBed() as bed:
        # Spark's own jars are on all machines, too.
        conf = {
            **conf,
            "spark.yarn.jars": f"local:{HOME}/jars/*",
            "spark.yarn.am.waitTime": "300s",
            "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        }
        try:
            found = submit(tmp_path, application, "yarn", conf, bed.client())
        except AssertionError as error:
            logs = [log.read_text(errors="replace")[-4000:] for log in bed.logs.rglob("stderr")]
            raise AssertionError("\n".join([str(error), *logs])) from None
    assert found == EXPECTED


def test_a_standalone_cluster(application, tmp_path):
    conf = {
        **block(),
        "spark.standalone.submit.waitAppCompletion": "true",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    with two_hosts(tmp_path) as url:
        found = submit(tmp_path, application, url, conf)
    assert found == EXPECTED


def test_kubernetes_builders(stock, application, tmp_path):
    """Spark makes the driver's pod from the block, and spark-submit works with the settings in the pod."""
    jar, _ = application
    conf = {**block(f"local://{block()['spark.jars']}"), "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    given = stock.call(
        "submit_calls:driver_of_pod",
        settings={**SMALL, **conf, "spark.kubernetes.container.image": "any"},
        jar=f"local://{jar}",
    )
    assert (
        given["spark.driver.extraClassPath"] == block()["spark.jars"]
        and f"local://{block()['spark.jars']}" in given["spark.jars"]
    )
    in_pod = {
        key: value
        for key, value in given.items()
        if not key.startswith(("spark.kubernetes.", "spark.app.", "spark.driver.host", "spark.driver.port"))
        and key
        not in ("spark.master", "spark.submit.deployMode", "spark.driver.blockManager.port", "spark.driver.bindAddress")
    }
    found = submit(tmp_path, application, "local-cluster[1,1,1024]", in_pod, mode="client")
    assert found == EXPECTED
