"""`millstream.compact`: stock Spark reads the same lines before and after, in the same directories."""

import bz2
import gzip
import json
import os
import random
from pathlib import Path

import pytest
from datasets import MARK, NASTY_NAMES

ENDINGS = [b"\n", b"\r\n", b"\r", b""]
CONTENTS = [
    b"",
    b"one",
    b"\n",
    b"\r",
    b"\r\nx",
    b"\nx\n",
    MARK,
    MARK + b"marked\n",
    MARK * 2 + b"twice\n",
    b"caf\xe9\n",
    b"a\x01b\n",
    "é\u2028é\n".encode(),
]


def tree(top: Path, files: dict[str, bytes]) -> str:
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(top)


def data_files(top) -> list[str]:
    """Paths of the files below a directory that are data, relative to it."""
    found = []
    for directory, folders, names in os.walk(top):
        folders[:] = [folder for folder in folders if folder[0] not in "._"]
        found += [os.path.relpath(os.path.join(directory, name), top) for name in names if name[0] not in "._"]
    return sorted(found)


def entries(top) -> list[str]:
    return sorted(os.listdir(top))


def random_tree(top: Path, seed: int) -> str:
    chance = random.Random(seed)
    # Stock Spark cannot read files with a colon in their names; what follows a dot must be a known extension.
    names = [
        name
        for name in NASTY_NAMES
        if ":" not in name and len(name.encode()) < 200 and "." not in name and name[0] != "_"
    ]
    directories = ["", *(f"k={name}" for name in chance.sample(names, 3)), "plain/deep", "k=1", "k=1/j=2"]
    files = {}
    for number in range(chance.randrange(60, 120)):
        content = (
            chance.choice(CONTENTS)
            if number % 2
            else b"".join(
                b"line %d.%d%s" % (number, line, chance.choice(ENDINGS)) for line in range(chance.randrange(5))
            )
        )
        files[f"{chance.choice(directories)}/{chance.choice(names)}-{number}".lstrip("/")] = content
    files["k=1/_SUCCESS"] = files["k=1/.hidden"] = files["_metadata_of_somebody"] = b"hidden\n"
    return tree(top, files)


@pytest.mark.parametrize("below, unfinished", [("", "begin"), ("", "commit"), ("k=1", "begin")])
def test_a_direct_write_that_is_not_over_is_refused(ours, tmp_path, below, unfinished):
    table = tmp_path / "table"
    tree(table, {"k=1/a": b"1\n", "k=1/b": b"2\n"})
    job = "01234567-89ab-cdef-0123-456789abcdef"
    tree(table / ".direct-writes", {f"_{job}.{unfinished}": b"a record" if unfinished == "commit" else b""})
    source = str(table / below)
    refused = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    assert f"statement {job} with direct writes has not ended" in str(refused), refused
    assert data_files(table) == ["k=1/a", "k=1/b"]
    tree(table / ".direct-writes", {f"_done-1-into-{job}": b""})
    done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    assert done.get("left") == [] and len(data_files(table)) == 1, done


@pytest.mark.parametrize("mode", ["copy", "in place"])
def test_random_trees_keep_their_lines(stock, ours, tmp_path, seed, mode):
    print("MILLSTREAM_SEED", seed)
    source = random_tree(tmp_path / "source", seed)
    before, files = stock.call("compact_calls:lines", path=source), data_files(source)
    target = source if mode == "in place" else str(tmp_path / "target")
    place = {"in_place": True, "plain_files": True} if mode == "in place" else {"dst": target}
    done = ours.call("compact_calls:compact", src=source, target_size=300, **place)
    assert done.get("left") == [], done
    assert stock.call("compact_calls:lines", path=target) == before
    after = data_files(target)
    assert len(after) < len(files) / 2
    assert {os.path.dirname(name) for name in after} == {os.path.dirname(name) for name in files}
    assert done["files"] == len(files) and done["outputs"] + (done["kept"] if mode == "in place" else 0) == len(after)
    if mode == "in place":
        assert [entries(f"{source}/k=1").count(name) for name in ("_SUCCESS", ".hidden")] == [1, 1]
        assert entries(tmp_path) == [".source.millstream-replaced", "source"]
        undone = ours.call("compact_calls:compact", src=source, undo=True)
        assert (undone.get("restored"), undone.get("removed")) == (done["merged"], done["outputs"]), undone
        assert (stock.call("compact_calls:lines", path=target), data_files(target), entries(tmp_path)) == (
            before,
            files,
            ["source"],
        )
    else:
        assert data_files(source) == files and not any(name.startswith(".mill") for name in entries(target))


def test_files_are_joined_byte_for_byte_in_the_order_of_their_names(ours, tmp_path):
    contents = {f"part-{n:04}.csv": b"%d,%s\n" % (n, b"x" * (n % 7)) for n in range(500)}
    source = tree(tmp_path / "source", contents)
    done = ours.call("compact_calls:compact", src=source, dst=str(tmp_path / "target"), header=False)
    (output,) = entries(tmp_path / "target")
    assert output.endswith(".csv")
    expected = b"".join(contents[name] for name in sorted(contents))
    assert (tmp_path / "target" / output).read_bytes() == expected
    assert (done["outputs"], done["output_bytes"], done["merged"], done["merged_bytes"]) == (
        1,
        len(expected),
        500,
        len(expected),
    )


def test_many_files_make_few_tasks_that_are_described(ours, tmp_path):
    source = tree(tmp_path / "source", {f"{n % 40}/{n}": b"%d\n" % n for n in range(2000)})
    done = ours.call(
        "compact_calls:tasks_of",
        description="2000 files become 40",
        action="compact",
        src=source,
        in_place=True,
        plain_files=True,
    )
    assert (done["answer"]["outputs"], done["answer"]["left"]) == (40, [])
    assert len(done["tasks"]) == 1 and 2 <= done["tasks"][0] <= 16


def test_large_files_stay_and_directories_are_cut(ours, tmp_path):
    files = {f"f{n:02}": b"x" * 999 + b"\n" for n in range(20)} | {"large": b"y" * 9000, "e/alone": b"1\n"}
    source = tree(tmp_path / "source", files)
    large = os.stat(f"{source}/large").st_ino
    done = ours.call("compact_calls:compact", src=source, target_size=5000, in_place=True, plain_files=True)
    assert (done["outputs"], done["kept"], done["merged"], os.stat(f"{source}/large").st_ino) == (4, 2, 20, large)
    again = ours.call("compact_calls:compact", src=source, target_size=5000, in_place=True, plain_files=True)
    assert (again["outputs"], again["kept"]) == (0, 6), "what is compact stays as it is"


def test_headers_are_kept_once_and_must_agree(stock, ours, tmp_path):
    files = {f"good/{n}.csv": b"id,name\n%d,n%d" % (n, n) for n in range(9)}
    files |= {"good/none.csv": b"", "bad/a.csv": b"id,name\n1,a\n", "bad/b.csv": b"name,id\nb,2\n"}
    source = tree(tmp_path / "source", files)
    options = {"header": "true", "recursiveFileLookup": "true"}
    before = stock.call("compact_calls:rows", path=f"{source}/good", format="csv", options=options)
    done = ours.call("compact_calls:compact", src=source, header=True, in_place=True, plain_files=True)
    assert [group["files"] for group in done["left"]] == [2] and "header" in done["left"][0]["reason"]
    assert stock.call("compact_calls:rows", path=f"{source}/good", format="csv", options=options) == before
    assert len(entries(f"{source}/good")) == 1 and entries(f"{source}/bad") == ["a.csv", "b.csv"]


@pytest.mark.parametrize("codec, ending", [(None, ".gz"), ("bzip2", ".bz2"), ("none", ".txt")])
def test_compressed_files_are_written_by_a_codec(stock, ours, tmp_path, codec, ending):
    files = {f"k=1/{n}.txt.gz": gzip.compress(b"zip %d\nmore" % n) for n in range(8)}
    files |= {
        "k=2/a.txt.gz": gzip.compress(b"first\r") + gzip.compress(b"\nmember"),
        "k=2/b.txt.gz": gzip.compress(MARK + b"b"),
    }
    if codec:
        files |= {"k=1/plain.txt": b"plain", "k=2/c.txt.bz2": bz2.compress(b"c\n")}
    source = tree(tmp_path / "source", files)
    before = stock.call("compact_calls:lines", path=source)
    done = ours.call("compact_calls:compact", src=source, codec=codec, in_place=True, plain_files=True)
    assert done.get("left") == [], done
    assert stock.call("compact_calls:lines", path=source) == before
    assert [name.endswith(ending) for name in data_files(source)] == [True, True]


def test_parquet_is_merged_where_schemas_agree(stock, ours, tmp_path):
    source = str(tmp_path / "source")
    for directory, columns in (("k=1", ["id", "cast(id as string) s"]), ("k=2", ["id"])):
        stock.call("compact_calls:write", path=f"{source}/{directory}", format="parquet", expressions=columns, files=3)
    stock.call(
        "compact_calls:write", path=f"{source}/k=2", format="parquet", expressions=["id", "id * 2 as twice"], files=2
    )
    for kind in ("cast(id as int) x", "cast(id as string) x"):
        stock.call("compact_calls:write", path=f"{source}/k=3", format="parquet", expressions=[kind], files=1)
    options = {"mergeSchema": "true"}
    before = {
        k: stock.call("compact_calls:rows", path=f"{source}/k={k}", format="parquet", options=options) for k in (1, 2)
    }
    conflict = entries(f"{source}/k=3")
    done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    assert [group["directory"] for group in done["left"]] == [f"{source}/k=3"]
    assert {
        k: stock.call("compact_calls:rows", path=f"{source}/k={k}", format="parquet", options=options) for k in (1, 2)
    } == before
    assert [len([name for name in entries(f"{source}/k={k}") if name[0] not in "._"]) for k in (1, 2)] == [1, 1]
    assert [name for name in conflict if name[0] not in "._"] == [
        name for name in entries(f"{source}/k=3") if name[0] not in "._"
    ]


def test_lines_become_parquet(stock, ours, tmp_path):
    source = tree(tmp_path / "source", {f"k={n % 2}/{n}[x]": b"line %d\n\nlast" % n for n in range(6)})
    before = sorted(line for _, line in stock.call("compact_calls:lines", path=source))
    done = ours.call("compact_calls:compact", src=source, dst=str(tmp_path / "target"), format="parquet")
    assert done.get("left") == [], done
    rows = stock.call("compact_calls:rows", path=str(tmp_path / "target"), format="parquet")
    assert sorted(row[-1] for row in rows) == before and len(data_files(tmp_path / "target")) == 2


@pytest.mark.parametrize("codec, ending", [(None, ".txt"), ("gzip", ".txt.gz"), ("bzip2", ".txt.bz2")])
def test_parquet_becomes_lines(stock, ours, tmp_path, codec, ending):
    source = str(tmp_path / "source")
    stock.call("compact_calls:write", path=source, format="parquet", expressions=["concat('line ', id) value"], files=3)
    done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True, format="text", codec=codec)
    assert done.get("left") == [], done
    [file] = [name for name in entries(source) if name[0] not in "._"]
    assert file.endswith(ending)
    rows = stock.call("compact_calls:rows", path=source, format="text")
    assert sorted(row[-1] for row in rows) == sorted(f"line {n}" for n in range(1000))


def test_files_with_colons_in_their_names_are_merged_unless_spark_has_to_open_them(stock, ours, tmp_path):
    """Hadoop mistakes the colon in the name of a checksum file for the end of a scheme."""
    source = tmp_path / "source"
    lines = {
        f"lines/{name}": gzip.compress(name.encode() + b"\n") for name in ("a:1.txt.gz", "b.txt.gz", "c:d:2.txt.gz")
    }
    lines |= {
        "sums/a:1.txt.gz": gzip.compress(b"1\n"),
        "sums/b.txt.gz": gzip.compress(b"2\n"),
        "sums/.a:1.txt.gz.crc": b"crc\0wrong",
    }
    stock.call("compact_calls:write", path=f"{source}/rows", format="parquet", expressions=["id"], files=3)
    tree(source, lines)
    first, *_ = [name for name in entries(source / "rows") if name[0] not in "._"]
    os.chmod(source / "rows", 0o777)
    (source / "rows" / first).rename(source / "rows/a:b.parquet")
    before = data_files(source / "sums")
    arguments = {"src": str(source), "in_place": True, "plain_files": True}
    dry, done = (ours.call("compact_calls:compact", dry_run=dry_run, **arguments) for dry_run in (True, False))
    assert groups(dry) == groups(done)
    assert [
        (os.path.basename(directory), files, "rename" in reason and "colon" in reason)
        for directory, files, reason in groups(done)
    ] == [("rows", 1, True), ("sums", 2, True)], done
    [output] = data_files(source / "lines")
    assert gzip.decompress((source / "lines" / output).read_bytes()) == b"a:1.txt.gz\nb.txt.gz\nc:d:2.txt.gz\n"
    assert (
        len(data_files(source / "rows")) == 2
        and "a:b.parquet" in entries(source / "rows")
        and data_files(source / "sums") == before
    )


def test_what_cannot_be_written_is_left_by_a_dry_run_too(ours, tmp_path):
    """Hadoop's zstd needs its native library, which Spark from pip lacks."""
    source = tree(tmp_path / "source", {f"{directory}/{n}.txt": b"%d\n" % n for directory in "ab" for n in range(3)})
    arguments = {"src": source, "in_place": True, "plain_files": True, "codec": "zstd"}
    dry, done = (ours.call("compact_calls:compact", dry_run=dry_run, **arguments) for dry_run in (True, False))
    assert groups(dry) == groups(done) and [files for _, files, _ in groups(done)] == [3, 3], dry
    assert all(
        "Hadoop cannot write .zst files here" in reason and "--codec=gzip" in reason for _, _, reason in groups(done)
    ), done
    parquet = str(tmp_path / "parquet")
    ours.call("compact_calls:write", path=parquet, format="parquet", expressions=["cast(id as string) value"], files=2)
    arguments |= {"src": parquet, "format": "text"}
    dry, done = (ours.call("compact_calls:compact", dry_run=dry_run, **arguments) for dry_run in (True, False))
    assert groups(dry) == groups(done) and [files for _, files, _ in groups(done)] == [2], dry
    assert "Hadoop cannot write .zst files here" in done["left"][0]["reason"]


def test_what_holds_no_lines_is_left(ours, tmp_path):
    files = {"a/1": b"PAR1\x15\x00", "a/2": b"PAR1\x15\x00", "b/x.orc": b"ORC\0", "c/1": b"1\n", "c/2": b"2\n"}
    source = tree(tmp_path / "source", files)
    done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    assert sorted(group["directory"][-1] for group in done["left"]) == ["a", "b"]
    assert (done["merged"], done["merged_bytes"], done["bytes"]) == (2, 4, sum(map(len, files.values())))
    assert (
        entries(f"{source}/a") == ["1", "2"]
        and entries(f"{source}/b") == ["x.orc"]
        and len(entries(f"{source}/c")) == 1
    )


def groups(summary, field="left"):
    return sorted((group["directory"], group["files"], group["reason"]) for group in summary[field])


def unmergeable_tree(stock, top: Path) -> str:
    """Directories that can be merged, and directories that cannot, each for another reason that is seen before all is
    read.
    """
    files = {f"good/{n}.csv": b"id\n%d\n" % n for n in range(9)} | {
        f"good/{n}.gz": gzip.compress(b"id\n%d\n" % n) for n in range(3)
    }
    files |= {
        "header/a.csv": b"id\n1\n",
        "header/b.csv": b"name\nb\n",
        "nul/1": b"id\n1\n",
        "nul/2": b"id\n\0\n",
        "x/1.orc": b"ORC\0",
        "x/2.orc": b"ORC\0",
    }
    files |= {f"zipped/{n}.gz": gzip.compress(b"PAR1\x15\0") for n in range(2)} | {
        "torn/a.parquet": b"torn",
        "torn/b.parquet": b"torn",
    }
    for kind in ("cast(id as int) x", "cast(id as string) x"):
        stock.call("compact_calls:write", path=f"{top}/schemas", format="parquet", expressions=[kind], files=1)
    stock.call("compact_calls:write", path=f"{top}/rows", format="parquet", expressions=["id"], files=3)
    return tree(top, files)


@pytest.mark.parametrize("mode", ["copy", "copy left", "in place", "links"])
def test_a_dry_run_says_what_the_run_does(stock, ours, tmp_path, mode):
    source = unmergeable_tree(stock, tmp_path / "source")
    arguments = {"src": source, "header": True}
    if mode in ("in place", "links"):
        arguments |= {"in_place": True, "plain_files": True}
    else:
        arguments |= {"dst": str(tmp_path / "target"), "copy_left": mode == "copy left"}
    if mode == "links":
        tree(tmp_path / "source", {f"linked/{n}.txt": b"id\n1\n" for n in range(3)})
        os.symlink("0.txt", f"{source}/linked/9.txt")
    before = data_files(source)
    dry = ours.call("compact_calls:compact", dry_run=True, **arguments)
    assert data_files(source) == before and not (tmp_path / "target").exists()
    done = ours.call("compact_calls:compact", **arguments)
    for field in ("files", "directories", "outputs", "merged", "kept"):
        assert dry[field] == done[field], field
    assert (groups(dry), groups(dry, "copied")) == (groups(done), groups(done, "copied"))
    unmerged = {os.path.basename(directory) for directory, _, _ in groups(done) + groups(done, "copied")}
    assert unmerged == {"header", "nul", "x", "zipped", "torn", "schemas"} | ({"linked"} if mode == "links" else set())


def test_what_cannot_be_merged_is_copied_if_asked_for(stock, ours, tmp_path):
    source, target = Path(unmergeable_tree(stock, tmp_path / "source")), tmp_path / "target"
    done = ours.call("compact_calls:compact", src=str(source), dst=str(target), header=True, copy_left=True)
    assert done["left"] == [] and sum(group["files"] for group in done["copied"]) == 12
    there = data_files(target)
    assert done["outputs"] == len(there) == 12 + 3
    for directory in ("header", "nul", "x", "zipped", "torn", "schemas"):
        for name in data_files(source / directory):
            assert (target / directory / name).read_bytes() == (source / directory / name).read_bytes()
    assert [len(data_files(target / directory)) for directory in ("good", "rows")] == [2, 1]
    assert [name for name in entries(target) if name[0] == "."] == []


def test_without_being_asked_for_it_is_missing_and_told(stock, ours, tmp_path):
    source, target = unmergeable_tree(stock, tmp_path / "source"), tmp_path / "target"
    done = ours.call("compact_calls:compact", src=source, dst=str(target), header=True)
    assert done["copied"] == [] and sum(group["files"] for group in done["left"]) == 12
    assert sorted({os.path.dirname(name) for name in data_files(target)}) == ["good", "rows"]
    assert (
        "copies nothing"
        in ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True, copy_left=True)["error"]
    )


def test_a_file_that_cannot_be_read_is_not_copied(ours, tmp_path):
    source = Path(
        tree(tmp_path / "source", {f"{directory}/{n}.txt": b"PAR1\0" for directory in "ab" for n in range(3)})
    )
    (source / "a" / "1.txt").chmod(0)
    for dry_run in (True, False):
        done = ours.call(
            "compact_calls:compact", src=str(source), dst=str(tmp_path / "target"), copy_left=True, dry_run=dry_run
        )
        assert sorted((os.path.basename(group["directory"]), group["files"]) for group in done["copied"]) == [
            ("a", 2),
            ("b", 3),
        ]
        [left] = done["left"]
        assert left["files"] == 1 and "a/1.txt" in left["reason"] and "Permission denied" in left["reason"]
    assert len(data_files(tmp_path / "target")) == 5


def test_links_and_forbidden_directories_are_left_and_the_rest_goes_on(ours, tmp_path):
    names = [f"{directory}/{n}" for directory in ("linked", "locked", "good") for n in range(3)]
    source = tree(tmp_path / "source", {name: b"1\n" for name in names})
    os.symlink("0", f"{source}/linked/9")
    os.chmod(f"{source}/locked", 0o555)
    os.chmod(source, 0o777)
    dry = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True, dry_run=True)
    done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    assert {(directory, files) for directory, files, _ in groups(dry)} == {
        (directory, files) for directory, files, _ in groups(done)
    }
    assert "Permission denied" in " ".join(group["reason"] for group in dry["left"])
    left_reasons = {os.path.basename(group["directory"]): group["reason"] for group in done["left"]}
    os.chmod(f"{source}/locked", 0o755)
    assert "symbolic link" in left_reasons["linked"] and entries(f"{source}/linked") == ["0", "1", "2", "9"]
    assert "Permission denied" in left_reasons["locked"] and entries(f"{source}/locked") == ["0", "1", "2"]
    assert len(entries(f"{source}/good")) == 1 and entries(tmp_path) == [".source.millstream-replaced", "source"]


def test_patterns_find_no_replaced_file(stock, ours, tmp_path):
    """Issue 36: patterns match the hidden directory that keeps them, and Spark reads the visible files in it."""
    files = {f"{directory}{n}.txt": b"line %d\n" % n for directory in ("", "a/", "a/b/") for n in range(4)}
    source = tree(tmp_path / "source", files)
    tree(tmp_path / "other", {"1/2/3/4/5/x.txt": b"line\n"})
    patterns = [str(tmp_path) + "/*" * depth for depth in range(1, 7)]
    before = [stock.call("compressed_calls:counted", path=pattern) for pattern in patterns]
    for target_size in (12, "1m"):
        done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True, target_size=target_size)
        assert done.get("left") == [] and done["outputs"] > 0, done
    assert entries(tmp_path / ".source.millstream-replaced") == ["1", "2"]
    for session in (stock, ours):
        assert [session.call("compressed_calls:counted", path=pattern) for pattern in patterns] == before


def test_mistakes_are_told_and_change_nothing(ours, tmp_path):
    source = tree(tmp_path / "source", {"a": b"1\n", "b": b"2\n"})
    full = tree(tmp_path / "full", {"x": b""})
    for arguments, message in [
        ({"src": f"{tmp_path}/missing", "in_place": True, "plain_files": True}, "no such directory"),
        ({"src": f"{source}/a", "in_place": True, "plain_files": True}, "not a directory"),
        ({"src": source, "dst": f"{source}/inside"}, "inside the source"),
        ({"src": source, "dst": source}, "--in-place"),
        ({"src": source, "dst": full}, "not empty"),
        ({"src": source}, "destination"),
        ({"src": source, "dst": full, "in_place": True}, "destination"),
        ({"src": "s3a://bucket/x", "in_place": True, "plain_files": True}, "local"),
        ({"src": source, "dst": "/proc/x/y"}, "cannot be created"),
        ({"src": source, "in_place": True, "plain_files": True, "target_size": "12q"}, "not a size"),
        ({"src": source, "in_place": True, "plain_files": True, "target_size": 0}, "positive"),
        ({"src": source, "in_place": True, "plain_files": True, "codec": "rar"}, "not a codec"),
        ({"src": source, "in_place": True, "plain_files": True, "format": "orc"}, "not a format"),
        ({"src": source, "dst": "/proc/x/y", "dry_run": True}, "cannot be created"),
    ]:
        assert message in ours.call("compact_calls:compact", **arguments).get("error", "no error"), arguments
    assert entries(source) == ["a", "b"] and entries(full) == ["x"] and entries(tmp_path) == ["full", "source"]


def test_a_dry_run_changes_nothing(ours, tmp_path):
    source = tree(tmp_path / "source", {"a": b"1\n", "b": b"2\n"})
    done = ours.call("compact_calls:compact", src=source, dst=str(tmp_path / "target"), dry_run=True)
    assert (done["outputs"], done["merged"], done["dry_run"], entries(tmp_path)) == (1, 2, True, ["source"])


def test_what_a_killed_compaction_left_is_removed(ours, tmp_path):
    source = tree(tmp_path / "source", {"a": b"1\n", "b": b"2\n"})
    for staging in (tmp_path / ".source.millstream-compact", tmp_path / "target" / ".millstream-compact"):
        tree(staging, {"lock": b"", "out/0.7": b"torn", "out/3.d/_temporary/0/x": b"torn", "journal.new": b"half"})
    done = ours.call("compact_calls:compact", src=source, dst=str(tmp_path / "target"))
    assert (done["outputs"], len(entries(tmp_path / "target"))) == (1, 1)
    done = ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    assert (done["outputs"], entries(tmp_path)) == (1, [".source.millstream-replaced", "source", "target"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"src": "top/source", "dst": "target"},
        {"src": "top/source/k=1", "dst": "target"},
        {"src": "top", "dst": "target"},
        {"src": "top", "in_place": True, "plain_files": True},
        {"src": "top/source/k=1", "in_place": True, "plain_files": True},
    ],
)
def test_a_tree_that_a_killed_compaction_in_place_has_left_half_done_is_refused(ours, tmp_path, arguments):
    tree(tmp_path / "top" / "source" / "k=1", {"a": b"1\n", "b": b"2\n"})
    tree(tmp_path / "top" / ".source.millstream-compact", {".journal": b"", "old/c": b"3\n"})
    places = {name: str(tmp_path / place) for name, place in arguments.items() if isinstance(place, str)}
    refused = ours.call("compact_calls:compact", **{**arguments, **places})
    assert ".source.millstream-compact belongs to an in-place compaction that is running or was killed" in refused.get(
        "error", "no error"
    ), refused
    assert not (tmp_path / "target").exists() or entries(tmp_path / "target") == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"src": "top/the source", "dst": "target"},
        {"src": "top", "dst": "target"},
        {"src": "link", "dst": "target"},
        {"src": "links", "dst": "target"},
        {"src": "top/the source", "in_place": True, "plain_files": True},
        {"src": "top/the source/k=1", "in_place": True, "plain_files": True, "dry_run": True},
    ],
)
def test_a_tree_that_a_killed_undo_has_left_half_done_is_refused(ours, tmp_path, arguments):
    source = tree(tmp_path / "top" / "the source", {"k=1/a": b"1\n", "k=1/b": b"2\n"})
    tree(tmp_path / "top" / ".the source.millstream-replaced", {"1/.undoing": b"", "1/files/.0.0.hidden/..c": b"3\n"})
    (tmp_path / "links").mkdir()
    for link in (tmp_path / "link", tmp_path / "links" / "to"):
        link.symlink_to(source)
    places = {name: str(tmp_path / place) for name, place in arguments.items() if isinstance(place, str)}
    refused = ours.call("compact_calls:compact", **{**arguments, **places})
    assert f"complete it with millstream compact --undo '{source}'" in refused.get("error", "no error"), refused
    assert not (tmp_path / "target").exists() or entries(tmp_path / "target") == []


@pytest.mark.parametrize("action", ["undo", "purge"])
def test_a_dry_run_of_undo_and_purge_changes_nothing(ours, tmp_path, action):
    source = tree(tmp_path / "source", {"k=1/a": b"1\n", "k=1/b": b"2\n"})
    ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)
    kept = tmp_path / ".source.millstream-replaced" / "1"
    # Its name in an earlier version.
    (kept / ".record").rename(kept / "record")

    def state():
        return {path: path.lstat().st_ctime_ns for path in [tmp_path, *tmp_path.rglob("*")]}

    before = state()
    foretold = ours.call("compact_calls:compact", src=source, dry_run=True, **{action: True})
    assert state() == before
    done = ours.call("compact_calls:compact", src=source, **{action: True})
    numbers = ("restored", "removed", "purged")
    assert (
        [foretold.get(name) for name in numbers]
        == [done.get(name) for name in numbers]
        == ([2, 1, 0] if action == "undo" else [0, 0, 1])
    ), foretold


def test_what_was_committed_is_finished_by_the_same_command(ours, tmp_path):
    source, target = tree(tmp_path / "source", {"a": b"1\n", "b": b"2\n"}), tmp_path / "target"
    fields = [
        b"millstream compact 1",
        b"new",
        os.fsencode(target),
        b"0.0",
        b"k=1",
        b"part-0",
        b"1.0",
        b"k=1",
        b"part-1",
        b"end",
        b"",
    ]
    staged = {f"out/{n}.0": b"%d\n" % n for n in range(2)} | {
        f"out/{n}.0.inputs": b"a\0" + b"1 2 3 4\0\0" for n in range(2)
    }
    tree(
        target,
        {"k=1/part-1": b"of somebody\n"} | {f".millstream-compact/{name}": text for name, text in staged.items()},
    )
    left = {"directory": f"{source}/k=2", "files": 3, "reason": "ORC files are not merged"}
    tree(target / ".millstream-compact", {"journal": b"\0".join(fields), "out/left.json": json.dumps([left]).encode()})
    done = ours.call("compact_calls:compact", src=source, dst=str(target))
    assert (done["recovered"], [group["reason"] for group in done["left"]]) == (
        1,
        ["ORC files are not merged", "part-1 already exists"],
    )
    assert data_files(target) == ["k=1/part-0", "k=1/part-1"] and entries(target) == ["k=1"]
