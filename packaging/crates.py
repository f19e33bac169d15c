"""The crates that are linked into the tools and the native library, and whether their licences allow it."""

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = "Apache-2.0"
# Licences that may be linked into a program distributed under Apache-2.0. Anything else fails the build.
ALLOWED = {
    OWN,
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "ISC",
    "Zlib",
    "0BSD",
    "bzip2-1.0.6",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "Unicode-3.0",
    "Unlicense",
}

# Linked in addition to the crates: from the Rust toolchain, and for releases from that of zig (native.py).
STANDARD_LIBRARY, UNWINDER = "MIT OR Apache-2.0", "Apache-2.0 WITH LLVM-exception"


def cargo_metadata():
    """The packages by id, the dependencies of each, and the ids of the workspace's own."""
    host = re.search(r"^host: (.*)", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)[1]
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", host]
    metadata = json.loads(subprocess.check_output(command, cwd=ROOT))
    packages = {package["id"]: package for package in metadata["packages"]}
    linked = {
        node["id"]: [
            dependency["pkg"]
            for dependency in node["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
            and not is_macro(packages[dependency["pkg"]])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    return packages, linked, metadata["workspace_members"]


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def linked_crates():
    """The packages that end up in the binaries: no macros, and nothing that only builds or tests."""
    packages, linked, own = cargo_metadata()
    found, pending = set(), list(own)
    while pending:
        crate = pending.pop()
        if crate not in found:
            found.add(crate)
            pending += linked[crate]
    return sorted((packages[crate] for crate in found - set(own)), key=lambda crate: (crate["name"], crate["version"]))


def expression(crate):
    """The crate's licence in SPDX notation; cargo still accepts an older notation."""
    return (crate["license"] or "").replace("/", " OR ").replace("  ", " ")


def alternatives(expression):
    """The sets of licences; a user of the work must comply with all of one set."""
    words = re.findall(r"[()]|[^\s()]+", expression)[::-1]

    def either():
        found = both()
        while words and words[-1] == "OR":
            words.pop()
            found += both()
        return found

    def both():
        found = single()
        while words and words[-1] == "AND":
            words.pop()
            found = [left | right for right in single() for left in found]
        return found

    def single():
        word = words.pop()
        if word == "(":
            found = either()
            words.pop()
            return found
        if words and words[-1] == "WITH":
            word = f"{word} {words.pop()} {words.pop()}"
        return [frozenset([word])]

    return either() if words else []


def is_allowed(expression):
    return any(licences <= ALLOWED for licences in alternatives(expression))


def refused(crates):
    """A message for each crate that may not be linked."""
    return [
        f"{crate['name']} {crate['version']}: its licence, {crate['license'] or 'not stated'}, is not one of those in packaging/crates.py"
        for crate in crates
        if not is_allowed(expression(crate))
    ]
