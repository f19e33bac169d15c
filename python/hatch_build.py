"""Puts what cargo and Maven built into the wheel: the jar, its conf block and the tools. `make wheel` builds them first."""

import platform
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE_DATA = {
    "jvm/spark/target/millstream-spark.jar": "millstream/jars/millstream-spark.jar",
    "jvm/spark/src/main/resources/millstream/spark-defaults.conf": "millstream/spark-defaults.conf",
}
TOOLS = sorted(source.stem for source in (REPOSITORY / "crates/millstream-cli/src/bin").glob("*.rs"))


class CarryBuiltFiles(BuildHookInterface):
    """Runs for the wheel alone; an editable install (version "editable") gets the Python files only."""

    def initialize(self, version: str, build_data: dict) -> None:
        if version == "editable":
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sys.platform}_{platform.machine()}"
        for source, target in PACKAGE_DATA.items():
            build_data["force_include"][str(built(source))] = target
        for tool in TOOLS:
            build_data["shared_scripts"][str(built(f"target/release/{tool}"))] = tool


def built(name: str) -> Path:
    path = REPOSITORY / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: build the wheel with `make wheel`, which builds it first")
    return path
