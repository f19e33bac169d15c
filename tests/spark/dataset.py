"""The files that the scenarios read."""

import json
import os
import random
import shutil
from pathlib import Path

NASTY = ["plain", "with space", "per%cent", "per%20cent", "hash#", "quest?ion", "plus+", "amp&", "semi;", "at@", "quote'",
         'double"', "back\\slash", "tab\t", "line\nbreak", "ünï", "日本", "\u00a0nbsp", "emoji😀", "{brace}", "a,b", "~tilde",
         "eq=uals", "comb\u0301", "$dollar", "[x]", "*star", "^hat", "|pipe", "<lt>"]

WRITTEN_AT = 1_500_000_000  # so that a file written by either side has the same time


def write(path: Path, text: str = "one\ntwo\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, newline="")
    os.utime(path, (WRITTEN_AT, WRITTEN_AT))


def make(root: Path, seed: int) -> None:
    """Everything that needs no Spark to write."""
    for i, name in enumerate(NASTY):
        write(root / "nasty" / f"{name}.txt", f"{i}\n")
        write(root / "nasty-deep" / name / "f.txt", f"{i}\n")
    for path in ("a", "d/b", "d/e/c", "z/y"):
        write(root / "nested" / path, f"{path}\n")
    for k in ("1", "2", "30"):
        for j in ("x", "y%20z", "__HIVE_DEFAULT_PARTITION__"):
            write(root / "parts" / f"k={k}" / f"j={j}" / "f", f"{k}{j}\n")
    for day in ("2024-01-01", "2024-02-29"):
        write(root / "dates" / f"day={day}" / "f.csv", "1,2\n")
    write(root / "mixed-types" / "k=1" / "f")
    write(root / "mixed-types" / "k=one" / "f")
    write(root / "conflict-names" / "k=1" / "f")
    write(root / "conflict-names" / "j=2" / "f")
    write(root / "conflict-depth" / "k=1" / "f")
    write(root / "conflict-depth" / "f")
    write(root / "case" / "K=1" / "f")
    write(root / "case" / "k=2" / "f")
    write(root / "no-value" / "k=" / "f")
    hidden = ("_x", ".y", "_SUCCESS", "_metadata", "_common_metadata", "_metadata_extra", "_k=v/in", "z._COPYING_", "_tmp/in",
              ".git/in", "ok", ".a.crc", "sub/_hidden/deep", "sub/ok")
    for path in hidden:
        write(root / "hidden" / path, f"{path}\n")
    write(root / "zero" / "empty", "")
    write(root / "zero" / "full")
    (root / "nothing").mkdir()
    (root / "only-directories" / "below").mkdir(parents=True)
    write(root / "links" / "real" / "f")
    os.symlink("real/f", root / "links" / "to-file")
    os.symlink("real", root / "links" / "to-directory")
    os.symlink("nowhere", root / "links" / "dangling")
    os.symlink("self", root / "links" / "self")
    write(root / "loop" / "f")
    (root / "loop" / "in").mkdir()
    os.symlink("..", root / "loop" / "in" / "up")
    write(root / "undecodable" / "ok")
    with open(os.fsencode(root / "undecodable") + b"/bad\xff\xfe", "w") as file:
        file.write("bad\n")
    write(root / "colon" / "a:b.txt")
    for i, mtime in enumerate((1_000_000_000, 1_600_000_000, 1_700_000_000)):
        write(root / "times" / f"f{i}.txt", f"{i}\n")
        os.utime(root / "times" / f"f{i}.txt", (mtime, mtime))
    write(root / "csv" / "p=1" / "f.csv", "a,b\n1,x\n2,y\n")
    write(root / "csv" / "p=2" / "f.csv", "a,b\n3,z\n")
    for p in (1, 2):
        write(root / "json" / f"p={p}" / "f.json", "".join(json.dumps({"a": i, "s": {"t": "u"}}) + "\n" for i in range(p * 3)))
    write(root / "lines" / "f", "\ufefffirst\r\nsecond\rthird\n\nlast without end")
    random_tree(root / "random", random.Random(seed))


def random_tree(root: Path, rng: random.Random) -> None:
    directories = [root]
    root.mkdir()
    for _ in range(60):
        parent = rng.choice(directories)
        name = rng.choice(["", "_", "."][:1] * 8 + ["_", "."]) + rng.choice(NASTY) + str(rng.randrange(30))
        path = parent / name
        if path.exists():
            continue
        if rng.random() < 0.4:
            path.mkdir()
            directories.append(path)
        else:
            write(path, "r\n" * rng.randrange(4))


def fresh(root: Path, name: str) -> Path:
    """An empty directory for a scenario that writes."""
    path = root / "scratch" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
