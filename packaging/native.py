"""The native code of releases: the tools and the library for the JVM, compiled for systems older than this one.

cargo-zigbuild compiles them; its zig carries the symbol lists of every glibc. `make` builds for this machine instead,
which is faster and enough for tests.
"""

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent
ROOT = PACKAGING.parent
# RHEL 8 has 2.28, Debian 10 and Ubuntu 20.04 as well or newer.
GLIBC = "2.28"
MACHINE = platform.machine()
TARGET = f"{MACHINE}-unknown-linux-gnu"
LIBRARY = "libmillstream_jni.so"
TOOLS_CRATE, LIBRARY_CRATE = "millstream-cli", "millstream-jni"


@dataclass(frozen=True)
class Workspace:
    """Facts from cargo.

    Attributes:
        version: the version of the release.
        tools: their names.
        binaries: where `compile_native` leaves the tools and the library.
    """

    version: str
    tools: tuple[str, ...]
    binaries: Path


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, cwd=ROOT, **options)


def workspace():
    output = run("cargo", "metadata", "--locked", "--no-deps", "--format-version=1", stdout=subprocess.PIPE).stdout
    metadata = json.loads(output)
    crate = next(package for package in metadata["packages"] if package["name"] == TOOLS_CRATE)
    tools = sorted(target["name"] for target in crate["targets"] if target["kind"] == ["bin"])
    return Workspace(crate["version"], tuple(tools), Path(metadata["target_directory"]) / TARGET / "release")


def compile_native():
    # cargo finds cargo-zigbuild, and that the python with zig, next to the one that runs this.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    cargo_home = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    # Panic messages name source files: keep this machine's paths out of those of crates.
    flags = f"{os.environ.get('RUSTFLAGS', '')} --remap-path-prefix={cargo_home}=/cargo".strip()
    environment = {**os.environ, "PATH": path, "RUSTFLAGS": flags, "CARGO_PROFILE_RELEASE_STRIP": "symbols"}
    crates = ("--package", TOOLS_CRATE, "--package", LIBRARY_CRATE, "--bins", "--lib")
    run("cargo", "zigbuild", "--release", "--locked", *crates, "--target", f"{TARGET}.{GLIBC}", env=environment)


def source_date():
    """The time of the commit in seconds, which files in packages and archives get, so that a second build makes
    the same bytes.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or run("git", "log", "-1", "--format=%ct", stdout=subprocess.PIPE, text=True).stdout.strip()
