"""Direct writes on a kernel NFS export mounted by two clients, in User-Mode Linux (testbed/kernel-nfs). Run with `make
test-group GROUP=nfs`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from bed_jars import jar_of
from latency_mount import build
from metastore_bed import DRIVER
from sessions import MODULES

ROOT = Path(__file__).resolve().parents[3]
BUILT = ROOT / "build/testbed"
KILLS = 8
# The guest's root is read-only.
SCRATCH = """
mkdir -m 1777 /run/scratch
export TMPDIR=/run/scratch JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=/run/scratch PYTHONDONTWRITEBYTECODE=1
cd /run/scratch
"""


@pytest.fixture
def image(tmp_path):
    """An empty file system."""
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-N", "500000", path], check=True)
    return path


def in_guest(image, commands, memory):
    """The output of the commands, which is also shown as it arrives."""
    command = [ROOT / "testbed/kernel-nfs", "-m", memory, "-i", image, "--", "bash", "-ec", SCRATCH + commands]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as guest:
        for line in guest.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    assert guest.returncode == 0
    return "".join(lines)


def test_drivers_that_die_at_each_step_are_recovered_by_another_client(image, tmp_path):
    """DeathContract of the JVM's tests, with stores on two mounts that act as two machines."""
    class_path = tmp_path / "class-path"
    subprocess.run(
        [
            "mvn",
            "-B",
            "-q",
            "-f",
            ROOT / "jvm/pom.xml",
            "-pl",
            "write",
            "-am",
            "test-compile",
            "dependency:build-classpath",
            f"-Dmdep.outputFile={class_path}",
        ],
        check=True,
    )
    classes = [str(ROOT / "jvm/write/target" / name) for name in ("classes", "test-classes")]
    told = in_guest(
        image,
        f"""
        mkdir second
        mount -t nfs -o "$KN_MOUNT_OPTIONS,nosharecache" "$KN_SOURCE" second
        java -cp '{":".join([*classes, class_path.read_text().strip()])}' io.millstream.write.protocol.TwoClients "$MNT" "$PWD/second"
    """,
        "2G",
    )
    tables = [int(number) for number in re.findall(r": (\d+) tables$", told, re.MULTILINE)]
    assert len(tables) == 4 and min(tables) > 10


def test_spark_drivers_are_killed_while_another_client_reads(image, seed):
    build()
    jar_of(DRIVER)
    told = in_guest(
        image,
        f"""
        # The test environments create a lock file there, and the guest's root is read-only.
        cp -a {BUILT} built
        mount --bind built {BUILT}
        export PYTHONPATH={MODULES}:{ROOT}/testbed MILLSTREAM_KILLS={KILLS} MILLSTREAM_PATIENCE_S=900
        {sys.executable} {ROOT}/tests/spark/cases/nfs_kills.py {seed}
    """,
        "7G",
    )
    assert f"{KILLS} kills: " in told
