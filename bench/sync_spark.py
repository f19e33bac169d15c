"""The cases of bench/sync from and to S3, with psync and `psync --spark`, and those of the latter on a slow tree, from
HDFS, and with a driver of 1 GB.

Every contender is a separate process, so its time includes the start of a JVM and of Spark. S3 is testbed/s3
on this machine with a delay, HDFS is Hadoop's MiniDFSCluster. Rivals:

    rclone, s5cmd           with one of the best numbers of transfers; no HEAD requests where an option avoids them
    distcp                  Hadoop 3.5's, as Maven Central has it, with its local job runner
    distcp with libhadoop   Hadoop 3.4's with its native library, as on a cluster: without it, local files cost
                            processes
    PTSpark                 the published way with plain PySpark, bench/ptspark.py

distcp does not preserve file times here, and leaves sidecars with checksums: where it takes part, names, sizes and
contents are compared.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from harness import (
    NOISE,
    REPOSITORY,
    RIVALS,
    TESTBED,
    Check,
    Contender,
    Contest,
    Result,
    Run,
    make_once,
    memory_check,
    progress,
    requests_check,
    results_of,
    tree,
    wall_check,
)
from remote_bed import DELAY_MS, Hdfs, set_etag
from scratch import DELAY_US
from sync_sides import Sides, SlowSides, copy_all, different_entries, leave_empty, untimed_differences

sys.path.insert(0, str(TESTBED))
from bed_jars import HADOOP_WITH_LIBHADOOP, distcp_jars, hadoop_native_directory, s3a_jars
from hdfs_bed import HADOOP_VERSION
from s3_bed import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Bed, s3a_conf
from spark_versions import NEWEST

ENVIRONMENT = REPOSITORY / "build" / f"venv-{NEWEST}"
MEMORY = "2g"  # of each JVM that does all the work itself
FILE_BYTES = 1 << 20
LINKED_BYTES = 1_000
DISTINCT_FILES = 100  # the others are links to them, so that the data set needs no room, and is in the page cache
DRIVER_MB = 1024
LIMIT_S = 2_400  # for longer runs, this bound already meets the targets
# Of 32, 64, 128 and 256, which differed by little on 500 objects; of 2, 8 and 32 maps on 4,000 local files.
RCLONE_TRANSFERS = "64"
S5CMD_WORKERS = "64"
DISTCP_MAPS = "32"


class Sizes:
    """How much data a case has. Full sizes are those that claims are made for."""

    def __init__(self, quick: bool):
        self.objects = (500, 10) if quick else (10_000, 100)  # files and directories
        self.nested = (2_000, 200) if quick else (93_000, 9_000)
        self.hdfs = (2_000, 200) if quick else (20_000, 2_000)
        self.driver = (50_000, 500) if quick else (1_000_000, 10_000)


# ---- test environments ----


def linked_files(path: Path, files: int, directories: int, size: int, suffix: str = "") -> list[Path]:
    """Makes a tree of that many files, spread evenly, of which DISTINCT_FILES are not links; returns those."""
    bytes_of = random.Random(size).randbytes
    distinct = []
    for directory in range(directories):
        place = path / f"d{directory // 100:03d}" / f"d{directory % 100:02d}"
        place.mkdir(parents=True)
        for number in range(directory, files, directories):
            name = place / f"f{number:07d}{suffix}"
            if len(distinct) < DISTINCT_FILES:
                name.write_bytes(bytes_of(size))
                distinct.append(name)
            else:
                os.link(distinct[number % DISTINCT_FILES], name)
    return distinct


AWS_VARIABLES = (f"AWS_ACCESS_KEY_ID={ACCESS_KEY}", f"AWS_SECRET_ACCESS_KEY={SECRET_KEY}", f"AWS_REGION={REGION}")


def objects(files: int, directories: int) -> Path:
    """Below a bed's directory, which is the source of either direction: objects below `from`."""

    def make(path: Path) -> None:
        for file in linked_files(path / BUCKET / "from", files, directories, FILE_BYTES, ".bin"):
            set_etag(file)

    return make_once(f"s3-sync-{files}-{directories}", make)


class BucketSides(Sides):
    """`from` and `to` on a disk made for the run, of which one is used, and the other one is in the bucket of the S3
    server in `url`.
    """

    def __init__(self, data: Path, upload: bool):
        self._data, self._upload = data, upload
        super().__init__(data / BUCKET / "from", leave_empty, untimed_differences)

    def __enter__(self):
        super().__enter__()
        self._stack = ExitStack()
        with self._stack:
            self._s3 = self._stack.enter_context(S3Bed(data=self.path / "objects" if self._upload else self._data))
            (self.path / "url").write_text(self._s3.endpoint)
            self._s3.set_delay(DELAY_MS)
            self._s3.reset_statistics()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *details):
        self.statistics = self._s3.statistics()
        print(f"    requests: {self.statistics.by_kind}", file=sys.stderr)
        self._stack.close()
        super().__exit__(*details)

    @property
    def destination(self) -> Path:
        """The directory on this machine: the server stores an object as a file."""
        return self.path / "objects" / BUCKET / "to" if self._upload else super().destination


@dataclass(frozen=True)
class Calls:
    """The calls that a name node has answered."""

    total: int
    max_in_flight = None


class HdfsSides(Sides):
    """`to` on a disk made for the run; the source is /data of the cluster in `url`."""

    def __init__(self, source: Path, hdfs: Hdfs):
        self._hdfs = hdfs
        super().__init__(source, leave_empty, untimed_differences)

    def __enter__(self):
        self._cluster = self._hdfs.cluster()
        super().__enter__()
        (self.path / "url").write_text(self._cluster.direct_url)
        self._before = self._cluster.calls()
        return self

    def __exit__(self, *details):
        self.statistics = Calls(self._cluster.calls() - self._before)
        super().__exit__(*details)


# ---- contenders ----


@dataclass(frozen=True)
class OfServer(Contender):
    """A contender that talks to a server: {url} in its words is where that is, by the bed's file `url`."""

    def on(self, path: Path) -> list[str]:
        url = (path / "url").read_text()
        return [word.replace("{url}", url) for word in super().on(path)]


def python() -> Path:
    return ENVIRONMENT / "bin" / "python"


def jar() -> Path:
    """Our jar: $MILLSTREAM_BENCH_JAR, or the one in the wheel."""
    if given := os.environ.get("MILLSTREAM_BENCH_JAR"):
        return Path(given).resolve()
    return next(
        ENVIRONMENT.glob("lib/python3*/site-packages/millstream/jars/millstream-spark.jar"),
        ENVIRONMENT / "millstream-spark.jar",
    )


def with_spark(*command: str) -> list[str]:
    """The command, which finds the Spark of the environment, and our jar."""
    variables = {"PATH": f"{python().parent}:{os.environ['PATH']}", "PYSPARK_PYTHON": python(), "MILLSTREAM_JAR": jar()}
    return ["env", "--unset=SPARK_HOME", *(f"{name}={value}" for name, value in variables.items()), *command]


def distcp(label: str, source: str, destination: str, *, libhadoop: bool, kind: type[Contender]) -> Contender:
    """In its fastest form: all maps at once, no temporary names, and no checksums, which local files do not have."""
    jars = distcp_jars(HADOOP_WITH_LIBHADOOP if libhadoop else HADOOP_VERSION)
    java = [
        "java",
        f"-Xmx{MEMORY}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        ":".join(map(str, jars)),
        *([f"-Djava.library.path={hadoop_native_directory()}"] if libhadoop else []),
    ]
    settings = {
        "mapreduce.framework.name": "local",
        "mapreduce.local.map.tasks.maximum": DISTCP_MAPS,
        "hadoop.tmp.dir": "{}/hadoop",
        # By default it checks every 5 s whether the job has ended.
        "mapreduce.client.completion.pollinterval": "100",
        "mapreduce.client.progressmonitor.pollinterval": "100",
    }
    options = ["-m", DISTCP_MAPS, "-numListstatusThreads", "40", "-update", "-skipcrccheck", "-direct"]
    definitions = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    return kind(label, [*java, "org.apache.hadoop.tools.DistCp", *definitions, *options, source, destination])


class SparkSyncs:
    def __init__(self, options):
        self.options = options
        self.sizes = Sizes(options.quick)

    def psync(
        self,
        source: str,
        destination: str,
        *settings: str,
        options: str = "-a",
        master: str = "local[2]",
        memory: str = MEMORY,
        kind: type[Contender] = Contender,
    ) -> Contender:
        conf = [
            f"spark.driver.memory={memory}",
            "spark.ui.enabled=false",
            "spark.ui.showConsoleProgress=false",
            *settings,
        ]
        program = [
            str(self.options.bin_dir.resolve() / "psync"),
            f"--spark={master}",
            *(f"--conf={setting}" for setting in conf),
            options,
        ]
        return kind(f"psync --spark {options}", with_spark(*program, source, destination))

    def contest(self, name: str, title: str, contenders: list[Contender], checks: list[Check], bed, **more) -> Contest:
        return Contest(name, title, contenders, checks, self.options.rounds, bed, limit_s=LIMIT_S, **more)

    # ---- S3 ----

    def s3(self, name: str, upload: bool) -> Contest:
        files, directories = self.sizes.objects
        s3a = {**s3a_conf("{url}"), "fs.s3a.connection.ssl.enabled": "false"}
        conf = [f"spark.hadoop.{key}={value}" for key, value in s3a.items()]
        conf.append(f"spark.driver.extraClassPath={':'.join(map(str, s3a_jars(NEWEST)))}")
        here, there = ("{}/from/", "to/") if upload else ("{}/to/", "from/")

        def sides(remote: str) -> list[str]:
            return [here, remote] if upload else [remote, here]

        ours = self.native(sides(f"s3://{BUCKET}/{there}"))
        by_spark = self.psync(*sides(f"s3a://{BUCKET}/{there}"), *conf, kind=OfServer)
        rivals = [
            self.rclone(sides(f"s3:{BUCKET}/{there}")),
            self.s5cmd(sides(f"s3://{BUCKET}/{there}{'' if upload else '*'}")),
        ]
        checks = [
            *(wall_check(f"wall-{rival.label.split()[0]}", rival.label, ours.label, 1.0) for rival in rivals),
            *(requests_check(f"requests-{rival.label.split()[0]}", rival.label, ours.label, NOISE) for rival in rivals),
        ]
        way = "a local disk to S3" if upload else "S3 to a local disk"
        return self.contest(
            name,
            f"{files} files of 1 MB in {directories} directories, {way}, {DELAY_MS} ms a request; the destination is empty",
            [*rivals, by_spark, ours],
            checks,
            lambda: BucketSides(objects(files, directories), upload),
        )

    def native(self, sides: list[str]) -> Contender:
        return OfServer(
            "psync -a",
            [
                "env",
                *AWS_VARIABLES,
                "AWS_ENDPOINT_URL={url}",
                str(self.options.bin_dir.resolve() / "psync"),
                "-a",
                *sides,
            ],
        )

    def rclone(self, sides: list[str]) -> Contender:
        remote = {
            "TYPE": "s3",
            "PROVIDER": "Other",
            "ENDPOINT": "{url}",
            "ACCESS_KEY_ID": ACCESS_KEY,
            "SECRET_ACCESS_KEY": SECRET_KEY,
            "REGION": REGION,
        }
        variables = [f"RCLONE_CONFIG_S3_{name}={value}" for name, value in remote.items()]
        options = ["--transfers", RCLONE_TRANSFERS, "--checkers", RCLONE_TRANSFERS]
        fewest = ["--ignore-checksum", "--s3-no-check-bucket", "--s3-no-head", "--s3-no-head-object"]
        return OfServer(
            " ".join(["rclone copy", *options]),
            ["env", *variables, str(RIVALS / "rclone"), "--config=", "copy", *fewest, *options, *sides],
        )

    def s5cmd(self, sides: list[str]) -> Contender:
        options = ["--numworkers", S5CMD_WORKERS]
        program = [str(RIVALS / "s5cmd"), "--log", "error", "--endpoint-url", "{url}", *options, "sync", *sides]
        return OfServer(" ".join(["s5cmd sync", *options]), ["env", *AWS_VARIABLES, *program])

    # ---- trees ----

    def ptspark(self) -> Contender:
        return Contender(
            "PTSpark", with_spark(str(python()), str(REPOSITORY / "bench" / "ptspark.py"), "{}/from", "{}/to")
        )

    def distcps(self, source: str, destination: str, kind: type[Contender] = Contender) -> list[Contender]:
        return [
            distcp("distcp", source, destination, libhadoop=False, kind=kind),
            distcp("distcp with libhadoop", source, destination, libhadoop=True, kind=kind),
        ]

    def nested(self, name: str, fill: Callable[[Path, Path], None], job: str) -> Contest:
        files, directories = self.sizes.nested
        # Without libhadoop it would take most of an hour.
        rival, ptspark, ours = (
            self.distcps("file://{}/from", "file://{}/to")[1],
            self.ptspark(),
            self.psync("{}/from/", "{}/to/"),
        )
        checks = [
            *distcp_checks([rival], ours),
            wall_check("wall-ptspark", ptspark.label, ours.label, 10),
            *(
                requests_check(f"requests-{what}", other.label, ours.label)
                for what, other in (("distcp", rival), ("ptspark", ptspark))
            ),
        ]
        return self.contest(
            name,
            f"{files} files of 1 to 8 KB in {directories} directories, latfs {DELAY_US / 1000:g} ms on both sides, cold, local[2]; {job}",
            [rival, ptspark, ours],
            checks,
            lambda: SlowSides(tree("text", files, directories), fill, untimed_differences),
        )

    def hdfs_down(self, name: str) -> Contest:
        files, directories = self.sizes.hdfs

        def source() -> Path:
            return tree("text", files, directories)

        hdfs = Hdfs(python(), source)
        rivals = self.distcps("{url}/data", "file://{}/to", OfServer)
        # HDFS's group, supergroup, does not exist on this machine.
        ours = self.psync("{url}/data/", "{}/to/", options="-rlpt", kind=OfServer)
        checks = [*distcp_checks(rivals, ours), requests_check("requests-distcp", rivals[1].label, ours.label)]
        return self.contest(
            name,
            f"{files} files of 1 to 8 KB in {directories} directories, HDFS to a local disk, local[2]; the destination is empty",
            [*rivals, ours],
            checks,
            lambda: HdfsSides(source(), hdfs),
            requests_column="calls of the name node",
        )

    # ---- the driver ----

    def driver(self, name: str) -> Contest:
        files, directories = self.sizes.driver
        ours = self.psync("{}/from/", "{}/to/", master="local-cluster[1,2,2048]", memory="1g")

        def source() -> Path:
            return make_once(
                f"linked-{files}-{directories}", lambda path: linked_files(path, files, directories, LINKED_BYTES)
            )

        return self.contest(
            name,
            f"{files} files of 1 KB in {directories} directories, local disk, one executor in a process of its own; a driver of 1 GB",
            [ours],
            [memory_check("memory", DRIVER_MB, ours.label)],
            lambda: Sides(source(), leave_empty, different_entries),
            measure=measure_driver,
            memory_column="driver's peak MB",
        )

    def contests(self) -> list[Contest]:
        """The selected cases: jars are looked up only for these."""
        return [make(name) for name, make in self._chosen().items()]

    def missing(self) -> list[str]:
        """The requirements of the selected cases."""
        wanted = {
            python(): f"make build/venv-{NEWEST}/ready",
            jar(): f"make build/venv-{NEWEST}/ready",
            RIVALS / "rclone": "testbed/setup bench",
            RIVALS / "s5cmd": "testbed/setup bench",
        }
        return [f"{path}: run {command}" for path, command in wanted.items() if self._chosen() and not path.exists()]

    def _chosen(self) -> dict[str, Callable[[str], Contest]]:
        cases = {
            "s3-up": lambda name: self.s3(name, upload=True),
            "s3-down": lambda name: self.s3(name, upload=False),
            "spark-nested-first": lambda name: self.nested(name, leave_empty, "the destination is empty"),
            "spark-nested-noop": lambda name: self.nested(name, copy_all, "the destination is up to date"),
            "hdfs-down": self.hdfs_down,
            "spark-driver": self.driver,
        }
        return {name: make for name, make in cases.items() if self.options.case in name}


def distcp_checks(rivals: list[Contender], ours: Contender) -> list[Check]:
    return [wall_check(f"wall-{rival.label.replace(' ', '-')}", rival.label, ours.label, 40) for rival in rivals]


def measure_driver(contest: Contest) -> list[Result]:
    """As `measure_cold`, with the peak memory of the process that the command becomes, without its children."""
    results = results_of(contest)
    for _ in range(contest.rounds):
        for contender, result in zip(contest.contenders, results, strict=True):
            if result.is_long:
                continue
            with contest.bed() as bed:
                run = run_watched(contender.on(bed.path))
            result.runs.append(replace(run, lines=bed.answer))
            result.lines = bed.answer
            progress(contest, result.label, result.runs[-1])
    return results


def run_watched(command: list[str]) -> Run:
    start, peak_kb, ended = time.perf_counter(), 0, 0
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    while not ended:
        peak_kb = max(peak_kb, own_peak_kb(child.pid))
        time.sleep(0.05)
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, peak_kb / 1024, child.returncode)


def own_peak_kb(pid: int) -> int:
    """The peak memory of a process since it began its program; 0 if it has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0
