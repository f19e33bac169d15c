"""Puts the jar and the tools into the wheel, and gives it the platform that they are for."""

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = ("pls", "pfind", "pdu", "millstream")


class CarryBuiltFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Looks for the jar where Maven leaves it, and for the tools where Cargo does."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        jar = REPOSITORY / "jvm" / "spark" / "target" / f"millstream-spark-{self.metadata.version}.jar"
        target = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target") / "release"
        missing = [str(path) for path in (jar, *(target / tool for tool in TOOLS)) if not path.is_file()]
        if missing:
            raise FileNotFoundError(f"build these first: {', '.join(missing)}")
        build_data["force_include"][str(jar)] = "millstream/jars/millstream-spark.jar"
        build_data["shared_scripts"].update({str(target / tool): tool for tool in TOOLS})
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
