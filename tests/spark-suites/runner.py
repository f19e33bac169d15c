"""Runs suites in a separate JVM, with or without Millstream, and reads the results."""

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from shutil import rmtree
from zipfile import ZipFile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests/spark/beds"))
from sessions import without_root_powers  # noqa: E402
from suites import HIVE_SUITES  # noqa: E402

BUILD = ROOT / "build" / "spark-suites"
JAR = ROOT / "jvm/spark/target/checked/millstream-spark.jar"
CONF_BLOCK = ROOT / "jvm/spark/src/main/resources/millstream/spark-defaults.conf"
# The tests' sessions do not search jars for extensions, so ours is configured.
EXTENSION = "org.apache.spark.sql.execution.datasources.millstream.MillstreamExtensions"
TIMEOUT_S = 2 * 60 * 60


@dataclasses.dataclass
class Result:
    """The results of one run: the outcome of every test by suite and name, and how often Millstream was used."""

    passed: dict[tuple[str, str], bool] = dataclasses.field(default_factory=dict)
    failures: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    listed: Counter = dataclasses.field(default_factory=Counter)
    read: Counter = dataclasses.field(default_factory=Counter)
    written: Counter = dataclasses.field(default_factory=Counter)

    def add(self, other: "Result") -> None:
        for field in dataclasses.fields(self):
            getattr(self, field.name).update(getattr(other, field.name))


class Runner:
    def __init__(self):
        BUILD.mkdir(parents=True, exist_ok=True)
        self.jars = class_path()
        self.resources = [str(unpacked(self.jars, module)) for module in ("sql", "hive")]

    def run(self, side: str, suites: list[str]) -> Result:
        """Runs suites on one side, "stock" or "ours". Suites with Hive have a separate session, after which no
        other suite can run in the same JVM.
        """
        result = Result()
        for name, is_of_hive in (("sql", False), ("hive", True)):
            chosen = [suite for suite in suites if (suite in HIVE_SUITES) == is_of_hive]
            if chosen:
                result.add(self.run_in_jvm(side, BUILD / side / name, chosen))
        return result

    def run_in_jvm(self, side: str, home: Path, suites: list[str]) -> Result:
        if home.exists():
            rmtree(home)
        (home / "target/tmp").mkdir(parents=True)
        path, settings = [*self.resources, self.jars], {}
        if side == "ours":
            path = [str(self.compiled()), str(JAR), *path]
            settings = millstream_settings()
        command = [
            *without_root_powers(),
            "java",
            f"@{HERE / 'java.options'}",
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
            *(f"-D{key}={value}" for key, value in settings.items()),
            "-cp",
            ":".join(path),
            "org.scalatest.tools.Runner",
            "-oW",
            "-u",
            "reports",
            *(word for suite in suites for word in ("-s", suite)),
        ]
        environment = {**os.environ, "SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1", "LC_ALL": "C.UTF-8"}
        with (home / "output").open("wb") as output, contextlib.suppress(subprocess.TimeoutExpired):
            # Tests that have not run when the time is up are missing in the reports.
            subprocess.run(
                command,
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=TIMEOUT_S,
            )
        return read_result(home)

    def compiled(self) -> Path:
        """The additional files for our run, apart from the jar."""
        classes = BUILD / "classes"
        classes.mkdir(exist_ok=True)
        sources = [str(source) for source in sorted(HERE.glob("*.scala"))]
        compiler = ["java", "-cp", self.jars, "scala.tools.nsc.Main", "-d", str(classes), "-cp", f"{self.jars}:{JAR}"]
        subprocess.run([*compiler, *sources], check=True)
        return classes


def class_path() -> str:
    """Spark's test jars and their dependencies, downloaded with Maven."""
    file = BUILD / "class-path"
    if not file.exists() or file.stat().st_mtime < (HERE / "pom.xml").stat().st_mtime:
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={file}"]
        subprocess.run(["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), *goal], check=True)
    return file.read_text()


def unpacked(jars: str, module: str) -> Path:
    """A module's suites as files, because they read data next to them."""
    jar = next(Path(jar) for jar in jars.split(":") if re.fullmatch(rf"spark-{module}_.*-tests\.jar", Path(jar).name))
    folder = BUILD / jar.stem
    if not folder.exists():
        unfinished = folder.with_suffix(".new")
        with ZipFile(jar) as archive:
            archive.extractall(unfinished)
        unfinished.rename(folder)
    return folder


def millstream_settings() -> dict[str, str]:
    """The conf block, without the class path, which is Java's own here."""
    lines = [
        line.split(maxsplit=1) for line in CONF_BLOCK.read_text().splitlines() if line and not line.startswith("#")
    ]
    block = {key: value.strip() for key, value in lines if "@JAR" not in value}
    ours = {
        "spark.sql.extensions": EXTENSION,
        "spark.extraListeners": "org.apache.spark.millstream.suites.PlanLog",
        "spark.millstream.write.enabled": "true",
    }
    return {**block, **ours}


def read_result(home: Path) -> Result:
    result = Result()
    for report in sorted((home / "reports").glob("TEST-*.xml")):
        # The reporter does not escape characters that XML does not allow.
        text = re.sub("[\0-\b\v\f\x0e-\x1f]", "?", report.read_text(errors="replace"))
        for case in ElementTree.fromstring(text).iter("testcase"):
            if case.find("skipped") is None:
                test = (case.get("classname"), case.get("name"))
                failure = next((child for child in case if child.tag in ("failure", "error")), None)
                result.passed[test] = failure is None
                if failure is not None:
                    result.failures[test] = (failure.get("message") or "").strip()
    if (log := home / "log").exists():
        count_native(log, result)
    return result


def count_native(log: Path, result: Result) -> None:
    """From the log: how many listings, queries and writes of each suite were Millstream's."""
    suite, queries = "", set()
    with log.open(errors="replace") as lines:
        for line in lines:
            if match := re.search(r"===== TEST OUTPUT FOR o\.a\.s\.([\w.]+): '", line):
                if suite != match[1]:
                    suite, queries = match[1], set()
            elif " CompactFileIndex: Millstream listed " in line:
                result.listed[suite] += 1
            elif " DirectWrite: Direct write of " in line:
                result.written[suite] += 1
            elif match := re.search(r" PlanLog: native scan in query (\d+)", line):
                queries.add(match[1])
                result.read[suite] = len(queries)
