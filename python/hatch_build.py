"""Adds the files built by cargo and Maven to the wheel: the jar, its conf block and the tools.

`make wheel` builds them first, for this machine and its glibc. packaging/release builds them for older systems, and
passes their paths and the platform tag in environment variables: MILLSTREAM_BUILT_TOOLS, MILLSTREAM_BUILT_JAR,
MILLSTREAM_PLATFORM.
"""

import os
import platform
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REPOSITORY = Path(__file__).resolve().parent.parent
BUILT_TOOLS = os.environ.get("MILLSTREAM_BUILT_TOOLS", "target/release")
BUILT_JAR = os.environ.get("MILLSTREAM_BUILT_JAR", "jvm/spark/target/millstream-spark.jar")
PLATFORM = os.environ.get("MILLSTREAM_PLATFORM", f"{sys.platform}_{platform.machine()}")
PACKAGE_DATA = {
    BUILT_JAR: "millstream/jars/millstream-spark.jar",
    "jvm/spark/src/main/resources/millstream/spark-defaults.conf": "millstream/spark-defaults.conf",
}
TOOLS = sorted(source.stem for source in (REPOSITORY / "crates/front/cli/src/bin").glob("*.rs"))


class CarryBuiltFiles(BuildHookInterface):
    """Adds them to the wheel only; an editable install (version "editable") has just the Python files."""

    def initialize(self, version: str, build_data: dict) -> None:
        if version == "editable":
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{PLATFORM}"
        for source, target in PACKAGE_DATA.items():
            build_data["force_include"][str(built(source))] = target
        for tool in TOOLS:
            build_data["shared_scripts"][str(built(f"{BUILT_TOOLS}/{tool}"))] = tool


def built(name: str) -> Path:
    path = REPOSITORY / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: build the wheel with `make wheel`, which builds it first")
    return path
