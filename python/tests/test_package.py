"""The contents of the wheel, and that information in two places agrees."""

import re
import zipfile
from importlib.metadata import files, metadata, version
from importlib.resources import files as resources
from pathlib import Path

import millstream
import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pytest brings the same parser there
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
CONF = "millstream/spark-defaults.conf"


def test_versions_agree():
    cargo = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    maven = re.search(r"<version>(.*?)</version>", (REPOSITORY / "jvm" / "pom.xml").read_text())[1]
    assert millstream.__version__ == version("millstream") == cargo == maven


def test_the_jar_has_the_same_conf_block():
    with zipfile.ZipFile(millstream.spark_conf()["spark.jars"]) as jar:
        assert jar.read(CONF) == resources("millstream").joinpath("spark-defaults.conf").read_bytes()


def test_the_wheel_is_typed():
    assert "millstream/py.typed" in {str(file) for file in files("millstream")}


@pytest.mark.parametrize(
    ("name", "text"), [("LICENSE", "Apache License"), ("THIRD-PARTY-LICENSES", "and these crates:")]
)
def test_wheel_and_jar_carry_the_licences(name, text):
    (in_wheel,) = (file.read_text() for file in files("millstream") if str(file).endswith(f"licenses/{name}"))
    with zipfile.ZipFile(millstream.spark_conf()["spark.jars"]) as jar:
        assert jar.read(f"META-INF/{name}").decode() == in_wheel
    assert text in in_wheel
    assert name in metadata("millstream").get_all("License-File")


def test_the_licences_are_those_of_the_locked_crates():
    """Crates used only for building or testing are not linked."""
    (listed,) = (file.read_text() for file in files("millstream") if str(file).endswith("THIRD-PARTY-LICENSES"))
    found = set(re.findall(r"^  (\S+) (\S+): ", listed, re.MULTILINE))
    locked = {
        (p["name"], p["version"])
        for p in tomllib.loads((REPOSITORY / "Cargo.lock").read_text())["package"]
        if "source" in p
    }
    assert found <= locked
    direct = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["dependencies"]
    assert {name for name, _ in found} >= {name for name in direct if not name.startswith("millstream-")} - {"tempfile"}
    mit_only = re.findall(r"^  (\S+ \S+): MIT,", listed, re.MULTILINE)
    assert mit_only and all(f"\n{crate}\n\n" in listed for crate in mit_only)


def test_the_documentation_has_every_key_and_no_other():
    """Compares the documentation for Spark with the keys that the sources read and the conf block sets."""
    sources = "".join(
        path.read_text()
        for path in (REPOSITORY / "jvm").glob("*/src/main/*/**/*.*")
        if path.suffix in (".java", ".scala")
    )
    read = set(re.findall(r'"((?:spark|fs)\.millstream\.[a-z][A-Za-z0-9.]+)"', sources))
    pages = "".join(
        (REPOSITORY / "docs" / page).read_text()
        for page in ("spark.md", "read.md", "compressed-text.md", "direct-writes.md", "sync-spark.md")
    )
    documented = set(re.findall(r"^\| `((?:spark|fs)\.[A-Za-z0-9.]+)`", pages, re.MULTILINE))
    assert spark_keys(documented) == spark_keys(read) | set(millstream.spark_conf())


def spark_keys(keys: set[str]) -> set[str]:
    """Hadoop's keys with their prefix in Spark's configuration."""
    return {f"spark.hadoop.{key}" if key.startswith("fs.") else key for key in keys}


def test_the_documentation_names_what_the_package_exports():
    text = "".join(
        (REPOSITORY / "docs" / page).read_text() for page in ("spark.md", "direct-writes.md", "sync-spark.md")
    )
    assert all(f"millstream.{name}" in text for name in millstream.__all__)
