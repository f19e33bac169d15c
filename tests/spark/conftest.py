import os
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python" / "millstream" / "src"

sys.path.insert(0, str(PACKAGE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def jar() -> Path:
    """The jar under test; building it is the caller's."""
    override = os.environ.get("MILLSTREAM_JAR")
    path = Path(override) if override else REPOSITORY / "jvm" / "spark" / "target" / "millstream-spark-0.1.0.jar"
    assert path.is_file(), f"build the jar first: {path}"
    return path
