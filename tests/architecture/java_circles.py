"""Finds files of a Java module that name each other's classes.

A file names a class if it imports it or shares its package, and its code has that word; what comments say does not
count. A class is taken for the file of the same name, a nested one for the file of its outer class.
"""

import re
from pathlib import Path

from import_circles import circles

IGNORED = re.compile(r'/\*.*?\*/|//[^\n]*|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
IMPORT = re.compile(r"^import (?:static )?([\w.]+?)(\.\*)?;", re.M)


def named(text):
    """The words of a source file's code, what it imports and has such a word for, and what it imports all of."""
    code = IGNORED.sub(" ", text)
    imports = IMPORT.findall(code)
    words = set(re.findall(r"\w+", re.sub(r"^(?:import|package) [^;]*;", "", code, flags=re.M)))
    singles = {name for name, star in imports if not star and name.rpartition(".")[2] in words}
    return words, singles, {name for name, star in imports if star}


def arrows(source):
    """Class -> the classes in the same directory of sources that its file names; all with their packages."""
    files = {".".join(path.relative_to(source).with_suffix("").parts): path for path in sorted(source.rglob("*.java"))}
    known = {name: set() for name in files}
    for name, path in files.items():
        words, singles, wholes = named(path.read_text(encoding="utf-8"))
        for other in files.keys() - {name}:
            package, _, its_class = other.rpartition(".")
            is_near = package == name.rpartition(".")[0] or package in wholes
            is_imported = any(f"{found}.".startswith(f"{other}.") for found in singles | wholes)
            if is_imported or (is_near and its_class in words):
                known[name].add(other)
    return known


def java_circles(jvm):
    """Every circle as (directory of sources inside `jvm`, names of the classes)."""
    for source in sorted(Path(jvm).glob("*/src/*/java")):
        for circle in circles(arrows(source)):
            yield source.relative_to(jvm).as_posix(), circle
