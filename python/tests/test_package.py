"""What the wheel holds, and that what is said in two places is the same."""

import re
import tomllib
import zipfile
from importlib.metadata import files, version
from importlib.resources import files as resources
from pathlib import Path

import millstream

REPOSITORY = Path(__file__).resolve().parents[2]
CONF = "millstream/spark-defaults.conf"


def test_versions_agree():
    cargo = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    maven = re.search(r"<version>(.*?)</version>", (REPOSITORY / "jvm" / "pom.xml").read_text())[1]
    assert millstream.__version__ == version("millstream") == cargo == maven


def test_the_jar_has_the_same_conf_block():
    with zipfile.ZipFile(millstream.spark_conf()["spark.jars"]) as jar:
        assert jar.read(CONF) == resources("millstream").joinpath("spark-defaults.conf").read_bytes()


def test_the_wheel_is_typed_and_licensed():
    names = {str(file) for file in files("millstream")}
    assert "millstream/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_documentation_has_every_key_and_no_other():
    """docs/spark.md against the keys that the sources read and the conf block sets."""
    sources = "".join(path.read_text() for path in (REPOSITORY / "jvm").glob("*/src/main/*/**/*.*") if path.suffix in (".java", ".scala"))
    read = set(re.findall(r'"((?:spark|fs)\.millstream\.[a-z.]+)"', sources))
    known = {f"spark.hadoop.{key}" if key.startswith("fs.") else key for key in read} | set(millstream.spark_conf())
    documented = set(re.findall(r"^\| `(spark\.[A-Za-z.]+)`", (REPOSITORY / "docs" / "spark.md").read_text(), re.MULTILINE))
    assert documented == known


def test_the_documentation_names_what_the_package_exports():
    text = (REPOSITORY / "docs" / "spark.md").read_text()
    assert all(f"millstream.{name}" in text for name in millstream.__all__)
