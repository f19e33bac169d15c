"""Finds modules of a Rust crate that import each other.

Modules are compared with their siblings, at every level: `find` with `list`, and inside `find` the `parser` with the
`grammar`, each with everything below it. References between a parent and its children are not circles. A name that
a parent re-exports (`pub use file::File`) counts as its child's.
"""

import re
from pathlib import Path

PATH = re.compile(r"\b(?:crate|self|super)(?:::(?:\w+|\{))+")


def code(path):
    """A source file without comments, the texts of literals, and what follows `mod tests`."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'//[^\n]*|b?"(?:\\.|[^"\\])*"', "", text)
    return re.split(r"^\s*mod tests\b", text, maxsplit=1, flags=re.M)[0]


def branches(text, at=0):
    """The paths of a use tree and the names they get (`a::{b, c::d as e}` is a::b, b and a::c::d, e), and where it
    ends.
    """
    word = re.compile(r"\s*(\w+|\*)?\s*(?:as\s+(\w+)\s*)?(::)?").match(text, at)
    name, alias, more = word.groups()
    head, at = [name] if name else [], word.end()
    if not more:
        return [(head, alias or name)], at
    if text[at] != "{":
        tails, at = branches(text, at)
        return [(head + tail, as_name) for tail, as_name in tails], at
    paths = []
    while text[at] != "}":
        tails, at = branches(text, at + 1)
        paths += [(head + tail, as_name) for tail, as_name in tails if tail]
        at = re.compile(r"\s*").match(text, at).end()
    return paths, at + 1


def module_name(path, source):
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


class Crate:
    """The modules of one crate: file by name, and what each re-exports."""

    def __init__(self, source):
        files = (path for path in sorted(source.rglob("*.rs")) if path.name != "tests.rs")
        self.code = {
            module_name(path, source): code(path) for path in files if "bin" not in path.relative_to(source).parts
        }
        self.exports = {module: dict(self.re_exports(module)) for module in self.code}

    def re_exports(self, module):
        for use in re.finditer(r"^pub(?:\([^)]*\))? use ([^;]+);", self.code[module], re.M):
            for path, name in branches(use.group(1))[0]:
                yield name, path

    def owner(self, path):
        """The module that contains the item at an absolute path, as far as module names and re-exports show."""
        module = ()
        for index, name in enumerate(path):
            if (*module, name) in self.code:
                module = (*module, name)
            elif name in self.exports.get(module, {}) and self.exports[module][name][0] != name:
                return self.owner((*self.absolute(module, self.exports[module][name]), *path[index + 1 :]))
            else:
                break
        return module

    def absolute(self, module, path):
        """`path` as written in `module`, from the crate's root."""
        head, rest = path[0], path[1:]
        if head == "crate":
            return tuple(rest)
        if head == "self":
            return (*module, *rest)
        if head == "super":
            while rest and rest[0] == "super":
                module, rest = module[:-1], rest[1:]
            return (*module[:-1], *rest)
        return (*module, *path)

    def imports(self, module):
        text = self.code[module]
        for found in PATH.finditer(text):
            for path, _ in branches(text, found.start())[0]:
                yield self.owner(self.absolute(module, path))

    def arrows(self):
        """Parent -> child -> the siblings that it knows, for every module with children."""
        arrows = {}
        for module in self.code:
            for other in self.imports(module):
                shared = next((i for i, (a, b) in enumerate(zip(module, other)) if a != b), None)
                if shared is not None:
                    arrows.setdefault(module[:shared], {}).setdefault(module[shared], set()).add(other[shared])
        return arrows


def circles(arrows):
    """Groups of modules each of which reaches the others."""

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for other in arrows.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    reach = {module: reached(module) for module in arrows}
    return sorted({tuple(sorted(m for m in reach[module] if module in reach.get(m, ()))) for module in arrows} - {()})


def import_circles(crates):
    """Every circle as (path of the parent inside `crates`, names of the modules)."""
    for source in sorted(Path(crates).glob("*/*/src")):
        for parent, arrows in sorted(Crate(source).arrows().items()):
            for circle in circles(arrows):
                yield "/".join((source.parent.name, *parent)), circle
