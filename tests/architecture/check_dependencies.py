#!/usr/bin/env python3
"""Checks the direction of dependencies that ARCHITECTURE.md states.

Reads the workspace's real dependency graph (`cargo metadata`), the modules of jvm/ and the crates that use `unsafe`, and
fails on every arrow that does not lead to a lower floor, on modules of a crate that import each other, and on files of
a Java module that name each other's classes. `--self-test` proves that a forbidden arrow is found.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from import_circles import import_circles
from java_circles import java_circles

ROOT = Path(__file__).resolve().parents[2]

# crates/FLOOR/NAME: the floors whose crates one may know. Engine and operations know no volume, and no volume knows them.
FLOORS = {
    "base": set(),
    "volumes": {"base"},
    "engine": {"base"},
    "ops": {"base", "engine"},
    "front": {"base", "volumes", "engine", "ops"},
}
# What a crate may know of its own floor; cargo refuses circles.
SAME_FLOOR = {
    "millstream-text": {"millstream-system", "millstream-vfs"},
    "millstream-version": {"millstream-vfs", "millstream-wire"},
    "millstream-bucket": {"millstream-s3"},
    "millstream-storage": {"millstream-bucket", "millstream-posix"},
    "millstream-scan": {"millstream-codec"},
    "millstream-remote": {"millstream-scan"},
    "millstream-inspect": {"millstream-operation"},
    "millstream-change": {"millstream-operation"},
    "millstream-transfer": {"millstream-operation", "millstream-change", "millstream-rsync-rules"},
    "millstream-compact": {"millstream-operation"},
    "millstream-compressed": {"millstream-operation", "millstream-compact"},
}
# The only files in which `unsafe` may occur: system calls on files, the C library's other services, the JNI boundary,
# inflate.
UNSAFE_PLACES = (
    "crates/volumes/posix/src/syscalls.rs",
    "crates/base/system/src/",
    "crates/front/jni/src/",
    "crates/engine/codec/src/inflate.rs",
)
# Names that a crate must not use although it could: the traversal and the operations know no volume.
FORBIDDEN_WORDS = {
    "crates/engine/walk/src": r"\bPosix(Volume|Dir)\b|\b(libc|nfs3?|s3|hdfs)\b",
    "crates/engine/scan/src": r"\bPosix(Volume|Dir)\b|\b(jni|spark)::",
    "crates/engine/remote/src": r"\bPosix(Volume|Dir)\b|\b(jni|spark|s3)::",
    "crates/ops": r"\bPosix(Volume|Dir)\b|\b(jni|spark)::|\b(access|open|stat|unlink)at\(|\bDir(:| \+) AsFd\b",
}
# Java below, Scala above: the modules of Java know neither Spark nor Scala.
JAVA_FORBIDDEN = r"^import (org\.apache\.spark|scala)\b"
# Where the packages of a Java module begin.
JAVA_ROOT = ("jvm", "MODULE", "src", "main", "java", "io", "millstream", "MODULE")
# Packages of io.millstream.hadoop, the lowest first: each knows only those before it. The root ("") has the classes that
# Hadoop's configuration names; it, S3A's and HDFS's know all others, and none of them another one.
HADOOP = "io.millstream.hadoop"
HADOOP_ORDER = ("natives", "tree", "codec", "listing", "reading", "compact", "fs")
HADOOP_TOP = ("", "s3a", "hdfs")
# Packages of jvm/spark, floor by floor, the lowest first: each knows only those of lower floors, and the root ("") knows
# all. What the session extension consists of knows no command (io.millstream.spark).
SPARK = "jvm/spark/src/main/scala"
EXTENSION = "org.apache.spark.sql.execution.datasources.millstream"
COMMANDS = "io.millstream.spark"
SPARK_FLOORS = {
    EXTENSION: (
        {"settings", "internals", "tasks"},
        {"hadoop"},
        {"listing", "compressed"},
        {"reading.scan"},
        {"reading.text", "reading.packed"},
        {"reading"},
        {"rdd", "write"},
        {""},
    ),
    COMMANDS: ({"console"}, {"compact", "formats", "sync"}, {""}),
}
# Packages of direct writes -> the others of them that they may know. One kind of store knows no other.
WRITE = "io.millstream.write"
WRITE_ALLOWED = {
    "metastore": set(),
    "store": {"store"},
    "protocol": {"store", "metastore"},
    "recovery": {"store", "metastore", "protocol"},
}
STORES = ("local", "hdfs", "s3a")
# Circles of Java files that no cut would make clearer: the classes, with their packages, in order -> why.
JAVA_CIRCLES = {}


def graph():
    """The workspace's crates: the floor of each, and which of each other they depend on, tests aside."""
    out = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    packages = json.loads(out)["packages"]
    names = {p["name"] for p in packages}
    floors = {p["name"]: Path(p["manifest_path"]).parts[-3] for p in packages}
    known = {
        p["name"]: {d["name"] for d in p["dependencies"] if d["name"] in names and d["kind"] is None} for p in packages
    }
    return floors, known


def forbidden_arrows(floors, dependencies):
    """Arrows of `dependencies` that do not lead down, as messages."""
    for crate, known in sorted(dependencies.items()):
        if floors[crate] not in FLOORS:
            yield f"{crate}: {floors[crate]} is not a floor of tests/architecture/check_dependencies.py"
            continue
        below = {other for other, floor in floors.items() if floor in FLOORS[floors[crate]]}
        for other in sorted(known - below - SAME_FLOOR.get(crate, set())):
            yield f"{crate} ({floors[crate]}) must not know {other} ({floors[other]})"


def code_lines(path):
    """Numbered lines of a source file, without comments and without what follows `mod tests`."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"\s*mod tests\s*\{", line):
            return
        yield number, re.sub(r"//.*", "", line)


def forbidden_words(root=ROOT):
    for folder, pattern in FORBIDDEN_WORDS.items():
        for path in sorted((root / folder).rglob("*.rs")):
            # Tests have files and directories of their own, too.
            is_of_tests = path.name == "tests.rs" or "tests" in path.relative_to(root).parts
            for number, line in [] if is_of_tests else code_lines(path):
                if re.search(pattern, line):
                    yield f"{path.relative_to(root)}:{number}: {line.strip()}"


def unsafe_elsewhere():
    for path in sorted((ROOT / "crates").rglob("src/**/*.rs")):
        relative = path.relative_to(ROOT).as_posix()
        if relative.startswith(UNSAFE_PLACES):
            continue
        for number, line in code_lines(path):
            if re.search(r"\bunsafe\b(?!_)", line):
                yield f"{relative}:{number}: unsafe is not allowed here"


def module_circles(crates=ROOT / "crates"):
    for parent, modules in import_circles(crates):
        yield f"{parent}: {', '.join(modules)} import each other"


def file_circles(jvm=ROOT / "jvm", allowed=JAVA_CIRCLES):
    """Circles that are not allowed, and allowed ones that are gone."""
    found = list(java_circles(jvm))
    for source, classes in found:
        if classes not in allowed:
            yield f"jvm/{source}: {', '.join(classes)} name each other"
    for classes in allowed.keys() - {classes for _, classes in found}:
        yield f"{', '.join(classes)} no longer name each other; JAVA_CIRCLES has them"


def java_knows_spark():
    for module in ("hadoop", "write"):
        for path in sorted((ROOT / "jvm" / module / "src/main").rglob("*.java")):
            for number, line in code_lines(path):
                if re.search(JAVA_FORBIDDEN, line):
                    yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def hadoop_packages(root=ROOT):
    for path in sorted((root / "jvm/hadoop/src/main").rglob("io/millstream/hadoop/**/*.java")):
        inside = path.relative_to(root).parts[len(JAVA_ROOT) : -1]
        package = inside[0] if inside else ""
        below = HADOOP_ORDER[: HADOOP_ORDER.index(package)] if package in HADOOP_ORDER else HADOOP_ORDER
        if package not in HADOOP_ORDER + HADOOP_TOP:
            yield f"{path.relative_to(root)}: {package} is not in HADOOP_ORDER of tests/architecture/check_dependencies.py"
            continue
        for number, line in code_lines(path):
            known = re.match(rf"import (?:static )?{re.escape(HADOOP)}\.(?:([a-z]\w*)\.)?[A-Z]", line)
            if known and (known.group(1) or "") not in (*below, package):
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


def write_packages(root=ROOT):
    for path in sorted((root / "jvm/write/src/main").rglob("io/millstream/write/*/**/*.java")):
        inside = path.relative_to(root).parts[len(JAVA_ROOT) : -1]
        for number, line in code_lines(path):
            known = re.match(rf"import (?:static )?{re.escape(WRITE)}\.(\w+)(?:\.(\w+))?", line)
            if not known:
                continue
            package, kind = known.groups()
            is_other_kind = len(inside) > 1 and kind in STORES and kind != inside[1]
            if (package != inside[0] and package not in WRITE_ALLOWED.get(inside[0], set())) or is_other_kind:
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


def scala_names(path, root):
    """The names below a package that code uses, in imports or elsewhere, with the numbers of their lines."""
    code = re.sub(
        r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), path.read_text(encoding="utf-8"), flags=re.S
    )
    # Strings have the names of loggers.
    code = re.sub(r'"[^"\n]*"|//.*', "", code)
    for found in re.finditer(rf"\b{re.escape(root)}\.(\w+(?:\.\w+)*)?(?:\.?\{{([^}}]*)\}})?", code):
        if code[: found.start()].rpartition("\n")[2].strip() == "package":
            continue
        beginning, names = found.groups()
        for name in names.split(",") if names else [""]:
            full = ".".join(filter(None, (beginning, name.split("=>")[0].strip())))
            yield code.count("\n", 0, found.start()) + 1, full


def package_of(name):
    """The package of a qualified name: its beginning, up to the first class, type or object."""
    parts = name.split(".")
    return ".".join(parts[: next((i for i, part in enumerate(parts) if not part[:1].islower()), len(parts))])


def spark_packages(root=ROOT):
    for base, floors in SPARK_FLOORS.items():
        top = root / SPARK / base.replace(".", "/")
        for path in sorted(top.rglob("*.scala")):
            place = path.relative_to(root)
            package = ".".join(path.relative_to(top).parts[:-1])
            if package not in set().union(*floors):
                yield f"{place}: {package} is not in SPARK_FLOORS of tests/architecture/check_dependencies.py"
                continue
            floor = next(number for number, packages in enumerate(floors) if package in packages)
            allowed = set().union(*floors[:floor], {package})
            for line, name in scala_names(path, base):
                if package_of(name) not in allowed:
                    yield f"{place}:{line}: {base}.{name}"
    for path in sorted((root / SPARK / "org").rglob("*.scala")):
        for line, name in scala_names(path, COMMANDS):
            yield f"{path.relative_to(root)}:{line}: {COMMANDS}.{name}"


def self_test_of_spark():
    with tempfile.TemporaryDirectory() as root:
        sources = {
            f"{EXTENSION}.listing.Lists": f"""package {EXTENSION}.listing
                // {EXTENSION}.write.Comment
                import {EXTENSION}.hadoop.Codecs
                import {EXTENSION}.settings.{{
                  Keys,
                  Switches
                }}
                import {EXTENSION}.compressed.Indexes
                import {EXTENSION}.{{reading, Extension}}
                val hook = log("file:///{COMMANDS}.Compact", classOf[{EXTENSION}.rdd.Hook])
                import {COMMANDS}.Compact""",
            f"{EXTENSION}.Extension": f"package {EXTENSION}\nimport {EXTENSION}.write.Inserts\n",
            f"{EXTENSION}.attic.Old": f"package {EXTENSION}.attic\n",
            f"{COMMANDS}.Sync": f"package {COMMANDS}\nimport {COMMANDS}.sync.Tree\nimport {EXTENSION}.tasks.Packing\n",
            f"{COMMANDS}.compact.Plan": f"package {COMMANDS}.compact\nimport {COMMANDS}.{{console, sync}}\n",
        }
        for name, text in sources.items():
            path = Path(root) / SPARK / f"{name.replace('.', '/')}.scala"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = [fault.partition("/millstream/")[2] for fault in spark_packages(Path(root))]
        assert found == [
            "attic/Old.scala: attic is not in SPARK_FLOORS of tests/architecture/check_dependencies.py",
            f"listing/Lists.scala:8: {EXTENSION}.compressed.Indexes",
            f"listing/Lists.scala:9: {EXTENSION}.reading",
            f"listing/Lists.scala:9: {EXTENSION}.Extension",
            f"listing/Lists.scala:10: {EXTENSION}.rdd.Hook",
            f"spark/compact/Plan.scala:2: {COMMANDS}.sync",
            f"listing/Lists.scala:11: {COMMANDS}.Compact",
        ], found


def self_test():
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "jvm/hadoop/src/main/java/io/millstream/hadoop/listing"
        folder.mkdir(parents=True)
        names = ("natives.FileNames", "reading.FileRanges", "s3a.Keys", "MillstreamLocalFileSystem", "listing.Other")
        (folder / "Versions.java").write_text("\n".join(f"import {HADOOP}.{name};" for name in names))
        assert [fault.rpartition(" ")[2] for fault in hadoop_packages(Path(root))] == [
            f"{HADOOP}.{name};" for name in names[1:4]
        ]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "jvm/write/src/main/java/io/millstream/write/store/hdfs"
        folder.mkdir(parents=True)
        lines = [
            f"import {WRITE}.{name};"
            for name in ("store.Names", "protocol.Journal", "store.s3a.S3aStore", "store.hdfs.Other")
        ]
        (folder / "HdfsStore.java").write_text("\n".join(lines))
        assert [fault.rpartition(" ")[2] for fault in write_packages(Path(root))] == [
            f"{WRITE}.protocol.Journal;",
            f"{WRITE}.store.s3a.S3aStore;",
        ]
    floors = {"low": "base", "s3": "volumes", "walk": "engine", "scan": "engine", "find": "ops", "new": "attic"}
    known = {"walk": {"low", "find", "scan", "s3"}, "find": {"walk"}, "new": set()}
    found = list(forbidden_arrows(floors, known))
    assert found == [
        "new: attic is not a floor of tests/architecture/check_dependencies.py",
        "walk (engine) must not know find (ops)",
        "walk (engine) must not know s3 (volumes)",
        "walk (engine) must not know scan (engine)",
    ], found
    source = "// PosixVolume\nuse vfs::PosixVolume;\nfn f(d: &PosixDir) {}\nmod tests {\n    use vfs::PosixVolume;\n}\n"
    with tempfile.TemporaryDirectory() as root:
        for folder in FORBIDDEN_WORDS:
            (Path(root) / folder).mkdir(parents=True)
            for name in ("lib.rs", "tests.rs"):
                (Path(root) / folder / name).write_text(source)
        found = list(forbidden_words(Path(root)))
    assert found == [
        f"{folder}/lib.rs:{line}"
        for folder in FORBIDDEN_WORDS
        for line in ("2: use vfs::PosixVolume;", "3: fn f(d: &PosixDir) {}")
    ], found


def self_test_of_circles():
    sources = {
        # `one` and `two` know each other, by way of a re-export and of a tree of names; `three` is known and knows
        # nobody.
        "lib.rs": "mod one;\nmod two;\nmod three;\npub use one::{One as First, part};\n",
        "one/mod.rs": "pub mod part;\nuse crate::two::Two;\n",
        "one/part.rs": "use super::super::{three::Three};\n// use crate::three::part\n",
        "two.rs": 'fn f() -> crate::First { "super::three::x" }\n',
        "three.rs": "#[cfg(test)]\nmod tests {\n    use crate::one::One;\n}\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for name, text in sources.items():
            path = Path(root) / "floor/some-crate/src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert list(module_circles(root)) == ["some-crate: one, two import each other"]
        (Path(root) / "floor/some-crate/src/two.rs").write_text("fn f() {}\n")
        assert list(module_circles(root)) == []


def self_test_of_file_circles():
    sources = {
        # In one package, by way of a third class and of a nested one of another package.
        "low/One.java": "package p.low;\nimport p.high.Two.Part;\nclass One { Part part; }\n",
        "high/Two.java": "package p.high;\nclass Two { interface Part {} Three three; }\n",
        "high/Three.java": "package p.high;\nimport static p.low.One.LIMIT;\nclass Three { int limit = LIMIT; }\n",
        # Named only in comments and texts, and imported for them.
        "low/Four.java": "package p.low;\nimport p.high.Two;\n"
        '/** See {@link Two}, One. */\nclass Four { String s = "One\\""; } // One\n',
        # Of the same name as one that is in a circle.
        "other/Three.java": "package p.other;\nimport p.low.Four;\nclass Three { Four four; }\n",
    }
    circle = ("p.high.Three", "p.high.Two", "p.low.One")
    with tempfile.TemporaryDirectory() as root:
        for name, text in sources.items():
            path = Path(root) / "module/src/main/java/p" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert list(file_circles(root, {})) == [f"jvm/module/src/main/java: {', '.join(circle)} name each other"]
        assert list(file_circles(root, {circle: "a reason"})) == []
        (Path(root) / "module/src/main/java/p/high/Three.java").write_text("package p.high;\nclass Three {}\n")
        assert list(file_circles(root, {})) == []
        assert list(file_circles(root, {circle: "a reason"})) == [
            f"{', '.join(circle)} no longer name each other; JAVA_CIRCLES has them"
        ]


def main():
    self_test()
    self_test_of_circles()
    self_test_of_spark()
    self_test_of_file_circles()
    if "--self-test" in sys.argv:
        return 0
    floors, dependencies = graph()
    faults = [
        *forbidden_arrows(floors, dependencies),
        *forbidden_words(),
        *module_circles(),
        *file_circles(),
        *unsafe_elsewhere(),
        *java_knows_spark(),
        *hadoop_packages(),
        *write_packages(),
        *spark_packages(),
    ]
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"dependencies: {len(dependencies)} crates checked, {len(faults)} forbidden arrows")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
