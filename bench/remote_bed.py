"""Data sets on a local S3 server with a delay, and on HDFS, for the programs that run bench/spark_remote_probe.py."""

import atexit
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import REPOSITORY, TESTBED, Word, make_once, tree

sys.path.insert(0, str(TESTBED))
from bed_jars import s3a_jars
from hdfs_bed import LESS_DELAY, HdfsBed, client_jars
from s3_bed import BUCKET, S3Bed

PROBE = REPOSITORY / "bench" / "spark_remote_probe.py"
DELAY_MS = 20
MB = 1_000_000
TOTAL_BYTES_PER_S, CONNECTION_BYTES_PER_S = 240 * MB, 40 * MB  # where the bandwidth is limited
CSV_BYTES = 23_000  # the records of a Parquet file of about 10 KB


@dataclass(frozen=True)
class Bed:
    path: Path
    statistics = None  # the probe counts, and only the job


@dataclass(frozen=True)
class Data:
    """A data set, and a small similar one for warming up: rules of synthetic buckets, or real objects."""

    rule: str = ""
    warm: str = "files:40,bytes:20"
    objects: Callable[[], Path] | None = None
    is_written: bool = False  # whether a job also writes


@contextmanager
def bed(data: Data, spark: str, capped: bool = False):
    """A bucket with the data set, for a version of Spark; `capped` limits the bandwidth."""
    synthetic = {"data": data.rule, "warm": data.warm} if data.rule else None
    urls = {name: f"s3a://{name}/set" if data.rule else f"s3a://{BUCKET}/{name}" for name in ("data", "warm")}
    objects = data.objects() if data.objects else None
    with S3Bed(data=objects, synthetic=synthetic, stores=data.is_written or not data.rule) as s3:
        if capped:
            s3.set_bandwidth(total_bytes_per_s=TOTAL_BYTES_PER_S, connection_bytes_per_s=CONNECTION_BYTES_PER_S)
        jars = ":".join(map(str, s3a_jars(spark)))
        with written(
            {"conf": s3.spark_conf(), "jars": jars, "endpoint": s3.endpoint, "delay_us": DELAY_MS * 1000, **urls}
        ) as facts:
            yield Bed(facts)


def listed_objects(prefixes: int, files: int) -> Path:
    """Objects of 20 bytes below a bed's directory, for listings of versitygw; those of a prefix are links to the same
    bytes.
    """

    def make(path: Path) -> None:
        for name, count, each in (("data", prefixes, files), ("warm", 4, 10)):
            for prefix in range(count):
                directory = path / BUCKET / name / f"d{prefix:05d}"
                directory.mkdir(parents=True)
                first = directory / "f00000.txt"
                first.write_bytes(b"a line of 20 bytes.\n")
                set_etag(first)
                for number in range(1, each):
                    os.link(first, directory / f"f{number:05d}.txt")

    return make_once(f"s3-listed-{prefixes}-{files}", make)


def set_etag(file: Path) -> None:
    """Stores an object's ETag as versitygw does."""
    os.setxattr(file, "user.etag", hashlib.md5(file.read_bytes()).hexdigest().encode())


def parquet_objects(python: Path, files: int) -> Path:
    """Files of about 10 KB, written below a bed's directory."""

    def make(path: Path) -> None:
        templates = tree("csv", 30, 1, CSV_BYTES)
        (path / BUCKET).mkdir(parents=True)
        for name, count in (("data", files), ("warm", 40)):
            write = [
                python,
                REPOSITORY / "bench" / "spark_record_files.py",
                "parquet",
                templates,
                path / BUCKET / name,
                count,
                0,
            ]
            subprocess.run([*map(str, write)], check=True)
        for file in path.rglob("*.parquet"):
            set_etag(file)

    return make_once(f"s3-parquet-{files}", make)


def compressed_objects(name: str, source: Path, warm: Path) -> Path:
    """The directories `plain` and `gz` of two data sets, below a bed's directory."""

    def make(path: Path) -> None:
        for data, directory in (("data", source), ("warm", warm)):
            for kind in ("plain", "gz"):
                (path / BUCKET / data / kind).mkdir(parents=True)
                for file in (directory / kind).iterdir():
                    if file.is_file():
                        shutil.copy(file, path / BUCKET / data / kind / file.name)
                        set_etag(path / BUCKET / data / kind / file.name)

    return make_once(f"s3-{name}", make)


def hdfs_floor() -> list[Word]:
    """A command that reads the data sets of the given JSON file with the HDFS client alone."""
    return ["java", "-cp", lambda: ":".join(map(str, client_jars())), str(REPOSITORY / "bench" / "hdfs_floor.java")]


class Hdfs:
    """A cluster that is started and filled when it is first used, since filling takes minutes, and ends with the
    program.
    """

    def __init__(self, python: Path, data: Callable[[], Path]):
        self._python, self._data = python, data
        self._running = ExitStack()
        self._cluster: HdfsBed | None = None

    @contextmanager
    def bed(self, delay_ms: float):
        """The filled cluster, with this delay of the name node's answers."""
        cluster = self.cluster()
        cluster.set_delay(delay_ms)
        url = cluster.url if delay_ms else cluster.direct_url
        with written(
            {"conf": {}, "jars": "", "endpoint": None, "delay_us": 0, "data": f"{url}/data", "warm": f"{url}/warm"}
        ) as facts:
            yield Bed(facts)

    def cluster(self) -> HdfsBed:
        """The cluster, which has the data set in /data, and a small one for warming up in /warm."""
        return self._cluster or self._start()

    def _start(self) -> HdfsBed:
        self._cluster = self._running.enter_context(HdfsBed())
        atexit.register(self._running.close)
        trees = {f"{self._cluster.url}/data": str(self._data()), f"{self._cluster.url}/warm": str(tree("csv", 40, 4))}
        with written({"conf": LESS_DELAY, "trees": trees}) as facts:
            subprocess.run([str(self._python), str(PROBE), "fill", "stock", str(facts)], check=True)
        return self._cluster


@contextmanager
def written(facts: dict):
    """A file with the facts for the probe."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(facts, file)
        file.flush()
        yield Path(file.name)
