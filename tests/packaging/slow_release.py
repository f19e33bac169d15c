"""The contents of dist after `make release`."""

import io
import re
import subprocess
import tarfile
import unittest
import zipfile

from clean_root import CARGO, DIST, ROOT, native, released, run
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

JAR = f"millstream-spark-{CARGO.version}.jar"
LIBRARY = f"millstream/linux-{native.MACHINE}/{native.LIBRARY}"


def unzip(archive, name):
    with zipfile.ZipFile(archive) as entries:
        return entries.read(name)


def names(archive):
    with zipfile.ZipFile(archive) as entries:
        return set(entries.namelist())


class Release(unittest.TestCase):
    def test_names(self):
        version, machine = CARGO.version, native.MACHINE
        architecture = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
        jar = f"millstream-spark-{version}"
        self.assertEqual(
            {path.name for path in DIST.iterdir()},
            {
                "SHA256SUMS",
                f"{jar}.jar",
                f"{jar}-sources.jar",
                f"{jar}-javadoc.jar",
                f"millstream-{version}.cdx.json",
                f"millstream_{version}_{architecture}.deb",
                f"millstream-{version}-1.{machine}.rpm",
                f"millstream-{version}-py3-none-manylinux_2_28_{machine}.whl",
            },
        )

    def test_checksums(self):
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
        listed = (DIST / "SHA256SUMS").read_text().split()[1::2]
        self.assertEqual(set(listed), {path.name for path in DIST.iterdir()} - {"SHA256SUMS"})

    def test_nothing_needs_more_than_it_promises(self):
        run(ROOT / "packaging/check", DIST / JAR, *(released(kind) for kind in ("*.deb", "*.rpm", "*.whl")))

    def test_wheel_and_jar_carry_the_code_for_old_systems(self):
        jar = DIST / JAR
        self.assertEqual(unzip(jar, LIBRARY), (CARGO.binaries / native.LIBRARY).read_bytes())
        self.assertEqual(unzip(released("*.whl"), "millstream/jars/millstream-spark.jar"), jar.read_bytes())
        package = subprocess.check_output(["dpkg-deb", "--fsys-tarfile", released("*.deb")])
        with tarfile.open(fileobj=io.BytesIO(package)) as files:
            for tool in CARGO.tools:
                in_package = files.extractfile(f"./usr/bin/{tool}").read()
                self.assertEqual(
                    unzip(released("*.whl"), f"millstream-{CARGO.version}.data/scripts/{tool}"), in_package, tool
                )

    def test_sources_are_those_of_the_classes(self):
        sources = names(released("*-sources.jar"))
        compiled_from = {
            name.partition("$")[0].removesuffix(".class") for name in names(DIST / JAR) if name.endswith(".class")
        }
        java = {name for name in compiled_from if name.startswith(("io/millstream/hadoop/", "io/millstream/write/"))}
        self.assertLessEqual({f"{name}.java" for name in java if "/package-info" not in name}, sources)
        self.assertIn("io/millstream/spark/Compact.scala", sources)
        self.assertIn("millstream/spark-defaults.conf", sources)

    def test_all_modules_are_documented(self):
        pages = names(released("*-javadoc.jar"))
        self.assertLessEqual(
            {
                "index.html",
                "hadoop/index.html",
                "write/index.html",
                "spark/index.html",
                "hadoop/io/millstream/hadoop/MillstreamLocalFileSystem.html",
                "write/io/millstream/write/protocol/DirectJob.html",
                "spark/io/millstream/spark/Compact$.html",
            },
            pages,
        )

    def test_the_bill_of_materials_lists_what_is_linked(self):
        bill = released("*.cdx.json").read_text()
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill))
        licences = unzip(DIST / JAR, "META-INF/THIRD-PARTY-LICENSES").decode()
        listed = {
            f"pkg:cargo/{name}@{version}" for name, version in re.findall(r"^  (\S+) (\S+): ", licences, re.MULTILINE)
        }
        self.assertIn("rustix", " ".join(listed))
        self.assertEqual(set(re.findall(r'"purl": "(pkg:cargo/.*)"', bill)), listed)


if __name__ == "__main__":
    unittest.main()
