"""`millstream.compact` leaves files alone that are not known to be plain, and undoes compactions in place."""

import bz2
import gzip
import os
import random
import shutil
import time
import zlib
from pathlib import Path

import pytest
from sessions import Session
from test_compact import data_files, entries, groups, tree
from test_direct_writes import HIVE

ROOT = Path(__file__).resolve().parents[3]
ICEBERG = ROOT / "testdata/iceberg-sql-catalog"
LINES = {f"part-0000{n}-aa.txt": b"%d\n" % n for n in range(3)}


def state(top) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in Path(top).rglob("*") if path.is_file()}


def refused(ours, source, **arguments) -> str:
    """The message with which a compaction in place is refused, in a dry run, too; nothing has changed."""
    before = state(Path(source).parent)
    arguments = {"in_place": True, "plain_files": True, **arguments}
    dry, said = (
        ours.call("compact_calls:compact", src=str(source), dry_run=dry_run, **arguments) for dry_run in (True, False)
    )
    assert "error" in said and dry["error"] == said["error"], (dry, said)
    assert state(Path(source).parent) == before
    return said["error"]


# Issue 36, C1.
@pytest.mark.parametrize("part", ["", "data", "metadata"])
def test_an_iceberg_table_of_a_sql_catalog_is_refused(ours, tmp_path, part):
    """pyiceberg 0.12.0 made it with three appends; it has no version hint."""
    table = tmp_path / "t"
    shutil.copytree(ICEBERG, table)
    assert f"{table}: is an Iceberg table" in refused(ours, table / part)
    said = ours.call("compact_calls:compact", src=str(table / part), dst=str(tmp_path / "new"))
    assert "is an Iceberg table" in said["error"] and data_files(tmp_path / "new") == []


# Issue 36, C2.
@pytest.mark.parametrize(
    "log, part, kind",
    [
        ("_delta_log/00000000000000000000.json", "k=1", "a Delta Lake table"),
        ("_delta_log/00000000000000000000.json", "k=1/j=2", "a Delta Lake table"),
        ("metadata/00000-1.metadata.json", "data", "an Iceberg table"),
        ("metadata/00000-1.gz.metadata.json", "data/k=1", "an Iceberg table"),
        (".hoodie/hoodie.properties", "data", "a Hudi table"),
        ("_spark_metadata/0", "k=1", "the output of a streaming query"),
        ("snapshot/snapshot-1 manifest/manifest-1", "k=1/bucket-0", "a Paimon table"),
        ("_versions/1.manifest", "data", "a Lance data set"),
        ("_five_years/1", "k=1", "may be the log of a table"),
        (".five_years/1", "k=1", "may be the log of a table"),
        ("manifest.json", "k=1", "names data files"),
        ("manifests/1.json", "data", "names data files"),
        ("catalog.db", "k=1", "names data files"),
    ],
)
def test_a_part_of_a_table_with_a_log_is_refused(ours, tmp_path, log, part, kind):
    table = tmp_path / "t"
    tree(table, {f"{part}/{name}": content for name, content in LINES.items()})
    tree(table, {name: b'{"files": ["part-00000-aa.txt", "x/part-00001-aa.txt"]}' for name in log.split()})
    assert kind in refused(ours, table / part)
    assert kind in refused(ours, table)


# Issue 36, C3.
def test_a_streaming_checkpoint_and_its_sink_are_refused(stock, ours, tmp_path):
    folder = tmp_path / "stream"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    source = tree(folder / "source", {f"{n}.txt": b"%d\n" % n for n in range(4)})
    for _ in range(2):
        stock.call(
            "compact_calls:stream", source=source, sink=str(folder / "sink"), checkpoint=str(folder / "checkpoint")
        )
        tree(folder / "source", {f"more-{n}.txt": b"1%d\n" % n for n in range(3)})
    for part in ("", "offsets", "commits", "sources", "sources/0"):
        assert "the checkpoint of a streaming query" in refused(ours, folder / "checkpoint" / part), part
    assert "the output of a streaming query" in refused(ours, folder / "sink")
    assert "the output of a streaming query" in refused(ours, folder / "sink/k=1")
    stock.call("compact_calls:stream", source=source, sink=str(folder / "sink"), checkpoint=str(folder / "checkpoint"))


def noise(seed: int, length: int) -> bytes:
    return random.Random(seed).randbytes(length)


# Issue 36, C4.
def test_files_that_are_not_known_to_be_lines_are_left(ours, tmp_path, seed):
    print("MILLSTREAM_SEED", seed)
    left = {
        "csv": {"a.csv": b"id,name\n1,a\n", "b.csv": b"name,id\nb,2\n"},
        "tsv": {"a.tsv.gz": gzip.compress(b"id\n1\n"), "b.tsv.gz": gzip.compress(b"name\nb\n")},
        "xml": {"a.xml": b"<a>\n</a>\n", "b.xml": b"<a/>\n"},
        "xml without ending": {"a": b"<?xml version='1.0'?>\n<a>\n</a>\n", "b": b"<?xml version='1.0'?>\n<b/>\n"},
        "json": {"a.json": b'{\n "a": 1\n}\n', "b.json": b'{\n "a": 2\n}\n'},
        "json.gz": {"a.json.gz": gzip.compress(b'[\n{"a": 1}]\n'), "b.json.gz": gzip.compress(b'{"a": 2}\n')},
        "json without ending": {"a": b'{\n "a": 1\n}\n', "b": b'{\n "a": 2\n}\n'},
        "brotli": {f"{n}.txt.br": noise(seed + n, 300) for n in range(2)},
        "binary": {f"{n}": noise(seed + n, 300) for n in range(2)},
        "binary text": {f"{n}.txt": noise(seed + n, 300) for n in range(2)},
        "packed": {f"{n}.log": zlib.compress(noise(seed + n, 300)) for n in range(2)},
        "packed twice": {f"{n}.bz2": bz2.compress(noise(seed + n, 300)) for n in range(2)},
        "images": {f"{n}.png": b"\x89PNG\r\n\x1a\n%d" % n for n in range(2)},
        "dat": {f"{n}.dat": b"%d\n" % n for n in range(2)},
        "buckets": {
            f"part-0000{n}-0b1c2d3e-0000-4000-8000-00000000000a_0000{n}.c000.txt": b"%d\n" % n for n in range(2)
        },
    }
    merged = {
        "txt": {f"{n}.txt": b"%d\n" % n for n in range(2)},
        "hive": {f"00000{n}_0": b"%d\x01caf\xe9\x02x\n" % n for n in range(2)},
        "lines of json": {"a.json": b'{"a": 1}\n{"a": 2}\n', "b.json": b'\n{"a": [3, {}]}'},
        "ndjson": {f"{n}.ndjson.gz": gzip.compress(b'{"a": %d}\n' % n) for n in range(2)},
    }
    top = tmp_path / "top"
    for directory, files in {**left, **merged}.items():
        tree(top / directory, files)
    dry, done = (
        ours.call("compact_calls:compact", src=str(top), in_place=True, plain_files=True, dry_run=dry_run)
        for dry_run in (True, False)
    )
    assert {os.path.basename(directory): files for directory, files, _ in groups(done)} == {
        directory: 2 for directory in left
    }
    assert groups(dry) == groups(done)
    for directory, files in left.items():
        assert state(top / directory) == files, directory
    assert all(len(entries(top / directory)) == 1 for directory in merged)
    said = {os.path.basename(directory): reason for directory, _, reason in groups(done)}
    assert "--header" in said["csv"] and "--lines=.dat" in said["dat"] and "bucket" in said["buckets"]


UUID = "0b1c2d3e-0000-4000-8000-00000000000a"
# Line breaks of several kinds.
BREAKS = ["\n", "\r", "\u0085", "\u2028", "\u2029"]
# Names of files not known to be lines without an extension, and a word of the reason why they are left.
UNKNOWN_NAMES = [
    *(
        (f"{{}}.{end}", "last dot")
        for end in (
            "csv.1",
            "csv.2024-01-01",
            "csv~",
            "csv.",
            "csv (1)",
            "csv ",
            "csv\t",
            "csv\n",
            "csv\u2028",
            "ćsv",
            "csv.1.gz",
            "csv-1",
            "csv#",
            "orc.1",
            "orc~",
            "parquet.2",
            "json.1",
            "json~",
            "c000.1",
            "log.1",
            "log-20240101",
            "txt.",
            "txt,v",
            "2024-01-01",
            "1",
            "..",
            "csv.é",
            "7z",
            "x+y",
        )
    ),
    *((f"{{}}{end}.csv", "--header") for end in BREAKS),
    *((f"{{}}{end}.csv.gz", "--header") for end in BREAKS),
    *((f"{{}}{end}.dat", "--lines=.dat") for end in BREAKS),
    *((f"{{}}{end}.orc", "ORC") for end in BREAKS),
    *((f"{{}}{end}x.json", "JSON") for end in BREAKS),
    *((f"{{}}{end}x.json.gz", "JSON") for end in BREAKS),
    *(
        (name, "--lines=.c000")
        for name in ("{}.c000", f"part-0000{{}}-{UUID[1:]}.c000", f"x-part-0000{{}}-{UUID}.c000")
    ),
    *((f"part-0000{{}}-{UUID}{end}", "last dot") for end in (".c000\n", ".c000.1")),
    *(
        (f"part-0000{{}}-{UUID}_00003{end}", "bucket")
        for end in (*BREAKS, "", " (1)", "~", "-copy", ".c\n000.txt", ".c000\n.txt", ".c000.txt\n", ".txt.1")
    ),
]
# Names of files without an extension, as Hive, Hadoop, Spark and others write them.
KNOWN_NAMES = [
    "00000{}_0",
    "00000{}_0_copy_1",
    "part-0000{}",
    "part-m-0000{}",
    "part-r-0000{}",
    f"part-0000{{}}-{UUID}-c000",
    "part-{}-0",
    "{}",
    "two words {}",
    "a\nb{}",
    "messages-2024010{}",
    "{}~",
    "00000{}_0.gz",
    f"part-0000{{}}-{UUID}.c000",
    f"part-0000{{}}-{UUID}.c1000.gz",
]


def content(name: str) -> bytes:
    """Two lines that look like text, but are not two values of JSON."""
    lines = b'{"id": 1,\n"n": 2}\n'
    return gzip.compress(lines) if name.endswith(".gz") else lines


@pytest.mark.parametrize("format", ["same", "parquet"])
def test_files_are_lines_without_an_ending_only_if_no_dot_is_in_their_names(ours, tmp_path, format):
    top = tmp_path / "top"
    for number, name in enumerate([name for name, _ in UNKNOWN_NAMES] + KNOWN_NAMES):
        tree(top / f"{number:03}", {name.format(n): content(name) for n in range(2)})
    before = state(top)
    arguments = {"src": str(top), "in_place": True, "plain_files": True, "format": format}
    dry, done = (ours.call("compact_calls:compact", dry_run=dry_run, **arguments) for dry_run in (True, False))
    said = {int(os.path.basename(directory)): (files, reason) for directory, files, reason in groups(done)}
    wrong = {
        name: said.get(number)
        for number, (name, word) in enumerate(UNKNOWN_NAMES)
        if number not in said
        or said[number][0] != 2
        or word not in said[number][1]
        or len(entries(top / f"{number:03}")) != 2
    }
    assert wrong == {} and len(said) == len(UNKNOWN_NAMES), (wrong, said)
    after = state(top)
    assert {path: after.get(path) for path in before if int(path[:3]) < len(UNKNOWN_NAMES)} == {
        path: text for path, text in before.items() if int(path[:3]) < len(UNKNOWN_NAMES)
    }
    for number, name in enumerate(KNOWN_NAMES, len(UNKNOWN_NAMES)):
        assert len([entry for entry in entries(top / f"{number:03}") if entry[0] not in "._"]) == 1, name
    assert groups(dry) == groups(done)


def test_the_user_can_name_an_ending_that_is_a_number(ours, tmp_path):
    top = tmp_path / "top"
    tree(top, {"a.csv.1": b"id\n1\n", "b.csv.1": b"id\n2\n", "c.csv.2": b"id\n3\n"})
    done = ours.call("compact_calls:compact", src=str(top), in_place=True, plain_files=True, header=True, lines=[".1"])
    assert [files for _, files, _ in groups(done)] == [1]
    [output] = [path for path in top.iterdir() if path.name != "c.csv.2"]
    assert output.name.endswith(".1") and output.read_bytes() == b"id\n1\n2\n"


def test_the_user_can_say_what_files_are(ours, tmp_path):
    top = tmp_path / "top"
    tree(top, {"a.csv": b"id\n1\n", "b.csv": b"id\n2\n", "a.dat": b"1\n", "b.dat": b"2\n", "c.dat": noise(1, 200)})
    done = ours.call("compact_calls:compact", src=str(top), dst=str(tmp_path / "new"), header=True, lines=[".dat"])
    assert [files for _, files, _ in groups(done)] == [3]
    assert [path.read_bytes() for path in (tmp_path / "new").iterdir()] == [b"id\n1\n2\n"]
    both = ours.call("compact_calls:compact", src=str(top), dst=str(tmp_path / "both"), header=False)
    assert [path.read_bytes() for path in (tmp_path / "both").iterdir()] == [b"id\n1\nid\n2\n"] and len(
        both["left"]
    ) == 1


def test_in_place_needs_the_users_word(ours, tmp_path):
    """A directory of Iceberg data whose metadata are elsewhere looks like any other."""
    shutil.copytree(ICEBERG / "data", tmp_path / "t")
    assert "--plain-files" in refused(ours, tmp_path / "t", plain_files=False)
    for arguments, words in (
        ({"plain_files": True, "table": "t"}, "mutually exclusive"),
        ({"keep_for": "x"}, "not a duration"),
        ({"keep_for": "7"}, "not a duration"),
        ({"keep_for": 7}, "not a duration"),
        ({"lines": ["x/"]}, "not a file name extension"),
    ):
        assert words in refused(ours, tmp_path / "t", **arguments)


def table_of(ours, name: str, ddl: str, location) -> None:
    made = ours.call(
        "compact_calls:sql", statements=[f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} {ddl.format(location)}"]
    )
    assert made == [], made


def test_tables_that_the_catalog_knows_as_plain_files_are_compacted(stock, ours, tmp_path):
    tmp_path.chmod(0o777)
    for name, ddl, insert in (
        ("plain_text", "(line STRING) USING text LOCATION '{}'", "SELECT cast(id as string) FROM range(0, 40, 1, 8)"),
        (
            "plain_csv",
            "(id LONG, s STRING) USING csv OPTIONS (header true) LOCATION '{}'",
            "SELECT id, 'x' FROM range(0, 40, 1, 8)",
        ),
        (
            "plain_parquet",
            "(id LONG, k INT) USING parquet PARTITIONED BY (k) LOCATION '{}'",
            "SELECT id, id % 2 FROM range(0, 40, 1, 8)",
        ),
    ):
        location = tmp_path / name
        table_of(ours, name, ddl, location)
        ours.call("compact_calls:sql", statements=[f"INSERT INTO {name} {insert}"])
        rows = ours.call("compact_calls:sql", statements=[f"SELECT * FROM {name} ORDER BY ALL"])
        before = state(location)
        part = {"src": str(location / "k=1")} if "parquet" in name else {}
        done = ours.call("compact_calls:compact", in_place=True, table=name, **part)
        assert done.get("left") == [] and done["outputs"] == 1, done
        assert ours.call("compact_calls:sql", statements=[f"SELECT * FROM {name} ORDER BY ALL"]) == rows
        undone = ours.call("compact_calls:compact", src=done["source"], undo=True)
        assert undone.get("restored") == done["merged"] and state(location) == before, undone
        assert ours.call("compact_calls:sql", statements=[f"SELECT * FROM {name} ORDER BY ALL"]) == rows


def test_tables_of_hive_are_compacted_whoever_wrote_them(tmp_path):
    """Spark calls the files of a dynamic partition part-00000-UUID.c000."""
    session = Session(tmp_path / "home", millstream=True, conf=HIVE)

    def sql(*statements):
        return session.call("compact_calls:sql", statements=statements)

    try:
        for enabled in ("true", "false"):
            name = f"written_{enabled}"
            inserts = [
                f"INSERT INTO {name} PARTITION (k) SELECT id, id % 2 FROM range({n}, {n + 9}, 1, 2)"
                for n in (0, 10, 20)
            ]
            sql(
                f"SET spark.millstream.write.enabled={enabled}",
                f"CREATE TABLE {name} (id BIGINT) PARTITIONED BY (k INT) STORED AS TEXTFILE",
                *inserts,
            )
            rows = sql(f"SELECT * FROM {name} ORDER BY id")
            done = session.call("compact_calls:compact", in_place=True, table=f"default.{name}")
            assert (done.get("left"), done.get("outputs"), done.get("merged")) == ([], 2, 12), done
            assert len(rows) == 27 and sql(f"REFRESH TABLE {name}", f"SELECT * FROM {name} ORDER BY id") == rows
    finally:
        session.close()


@pytest.mark.parametrize(
    "ddl, reason",
    [
        ("(id LONG, s STRING) USING parquet CLUSTERED BY (id) INTO 4 BUCKETS LOCATION '{}'", "is bucketed"),
        ("(id LONG) USING json OPTIONS (multiLine true) LOCATION '{}'", "multi-line"),
        ("(id LONG) USING csv OPTIONS (lineSep '|') LOCATION '{}'", "line separator"),
        ("(id LONG) USING csv OPTIONS (encoding 'UTF-16LE') LOCATION '{}'", "UTF-16LE"),
        ("(id LONG) USING orc LOCATION '{}'", "orc"),
        ("(id LONG) USING parquet LOCATION '{}' TBLPROPERTIES (transactional = 'true')", "transactional"),
        ("(id LONG) USING parquet LOCATION '{}' TBLPROPERTIES (metadata_location = 's3://x')", "metadata"),
    ],
)
def test_tables_of_other_kinds_are_refused(ours, tmp_path, ddl, reason):
    top = tree(tmp_path / "t", LINES)
    table_of(ours, "other_kind", ddl, top)
    said = ours.call("compact_calls:compact", in_place=True, table="other_kind")
    assert reason in said.get("error", ""), said
    assert state(top) == LINES


def test_tables_that_are_not_there_and_directories_of_others_are_refused(ours, tmp_path):
    top = tree(tmp_path / "t", LINES)
    table_of(ours, "somewhere", "(line STRING) USING text LOCATION '{}'", tree(tmp_path / "elsewhere", LINES))
    for arguments, words in (
        ({"table": "nowhere"}, "nowhere"),
        ({"table": "a.b.c"}, "session's catalog"),
        ({"table": "somewhere", "src": top}, "not in the location"),
    ):
        assert words in ours.call("compact_calls:compact", in_place=True, **arguments)["error"]
    assert state(top) == LINES


def test_a_tree_that_becomes_a_table_meanwhile_is_left(ours, tmp_path):
    """The log appears when the outputs are made."""
    top = tmp_path / "t"
    tree(top, {f"k={n % 40}/{n}.txt": b"%d\n" % n for n in range(4000)})
    before = state(top)
    ours.ask("compact_calls:compact", src=str(top), in_place=True, plain_files=True, target_size=100)
    staging = tmp_path / ".t.millstream-compact/out"
    deadline = time.monotonic() + 60
    while not (staging.exists() and any(staging.iterdir())):
        assert time.monotonic() < deadline, "no output is made"
        time.sleep(0.001)
    tree(top, {"_delta_log/0.json": b"{}"})
    said = ours.answer()
    assert "a Delta Lake table" in said.get("error", ""), said
    assert state(top) == {**before, "_delta_log/0.json": b"{}"} and entries(tmp_path) == ["t"]


def test_replaced_files_are_kept_for_a_time_and_undone_in_turn(ours, tmp_path):
    top = tmp_path / "t"
    tree(top, {f"k=1/{name}": content for name, content in LINES.items()})
    first = state(top)

    def run(**arguments):
        return ours.call("compact_calls:compact", src=str(top), **arguments)

    assert run(in_place=True, plain_files=True)["outputs"] == 1
    tree(top, {"k=1/more.txt": b"more\n"})
    second = state(top)
    assert run(in_place=True, plain_files=True)["outputs"] == 1
    assert run(undo=True, dry_run=True)["restored"] == 2 and state(top) != second
    assert run(undo=True)["restored"] == 2 and state(top) == second
    (top / "k=1/more.txt").unlink()
    assert run(undo=True)["restored"] == 3 and state(top) == first
    assert "no files replaced by an earlier compaction" in run(undo=True)["error"] and entries(tmp_path) == ["t"]
    assert [run(in_place=True, plain_files=True)["outputs"] for _ in range(2)] == [1, 0]
    [output] = data_files(top)
    (top / output).write_bytes(b"written since\n")
    changed = run(undo=True)["error"]
    assert output in changed and "has changed" in changed and data_files(top) == [output]
    assert run(purge=True)["purged"] == 1 and entries(tmp_path) == ["t"]
    tree(top, {"k=1/again.txt": b"1\n"})
    assert run(in_place=True, plain_files=True, purge=True)["outputs"] == 1 and entries(tmp_path) == ["t"]
    tree(top, {"k=1/once-more.txt": b"1\n"})
    assert run(in_place=True, plain_files=True, keep_for="1s")["outputs"] == 1 and len(entries(tmp_path)) == 2
    time.sleep(1.5)
    assert run(in_place=True, plain_files=True)["kept"] == 1 and entries(tmp_path) == ["t"]


def compacted(ours, top) -> dict[str, bytes]:
    """A tree that was compacted in place; returns the state of the directory around it."""
    tree(top, {f"k=1/{name}": content for name, content in LINES.items()})
    assert ours.call("compact_calls:compact", src=str(top), in_place=True, plain_files=True)["outputs"] == 1
    return state(top.parent)


# Issue 36.
@pytest.mark.parametrize(
    "log, kind", [("_delta_log/0.json", "a Delta Lake table"), ("metadata/00000-1.metadata.json", "an Iceberg table")]
)
def test_a_compaction_of_what_has_become_a_table_is_not_undone(ours, tmp_path, log, kind):
    """CONVERT TO DELTA, or Iceberg's add_files, has registered the outputs."""
    top = tmp_path / "t"
    before = compacted(ours, top)
    tree(top, {log: b"{}"})
    for dry_run in (True, False):
        said = ours.call("compact_calls:compact", src=str(top), undo=True, dry_run=dry_run).get("error", "")
        assert f"is {kind}" in said and f"{tmp_path}/.t.millstream-compact is not undone" in said, said
    assert state(tmp_path) == {**before, f"t/{log}": b"{}"}
    job = "01234567-89ab-cdef-0123-456789abcdef"
    shutil.rmtree(top / log.split("/")[0])
    tree(top, {f"k=1/.direct-writes/_{job}.begin": b""})
    assert (
        f"statement {job} with direct writes has not ended"
        in ours.call("compact_calls:compact", src=str(top), undo=True)["error"]
    )
    shutil.rmtree(top / "k=1/.direct-writes")
    assert ours.call("compact_calls:compact", src=str(top), undo=True)["restored"] == 3


def killed_after_its_commit(top) -> tuple[str, Path]:
    """A tree and the staging directory of a compaction in place that was killed before it replaced anything."""
    source, staging = tree(top, {"k=1/a": b"1\n", "k=1/b": b"2\n"}), top.parent / f".{top.name}.millstream-compact"
    inputs = b""
    for name in ("a", "b"):
        found = (top / "k=1" / name).stat()
        seconds, nanoseconds = divmod(found.st_mtime_ns, 10**9)
        inputs += os.fsencode(name) + b"\0%d %d %d %d\0" % (found.st_ino, found.st_size, seconds, nanoseconds)
    fields = [b"millstream compact 1", b"in place", os.fsencode(top), b".0.0", b"k=1", b"part-0", b"end", b""]
    tree(staging, {"out/.0.0": b"1\n2\n", "out/.0.0.inputs": inputs + b"\0", ".journal": b"\0".join(fields)})
    return source, staging


# Issue 36.
def test_a_killed_compaction_of_what_has_become_a_table_is_not_finished(ours, tmp_path):
    source, staging = killed_after_its_commit(tmp_path / "t")
    tree(tmp_path / "t", {"_delta_log/0.json": b"{}"})
    before = state(tmp_path)
    for arguments in ({"undo": True}, {"purge": True}, {"in_place": True, "plain_files": True}):
        said = ours.call("compact_calls:compact", src=source, **arguments).get("error", "")
        assert "a Delta Lake table" in said and f"{staging} is not finished" in said, said
        assert {**state(tmp_path), f"{staging.name}/.lock": b""} == {**before, f"{staging.name}/.lock": b""}
    shutil.rmtree(tmp_path / "t/_delta_log")
    assert ours.call("compact_calls:compact", src=source, in_place=True, plain_files=True)["recovered"] == 1
    assert data_files(source) == ["k=1/part-0"]


# Issue 36.
def test_a_dry_run_of_undo_and_purge_changes_nothing(ours, tmp_path):
    source, staging = killed_after_its_commit(tmp_path / "t")
    before = state(tmp_path)
    for action in ("undo", "purge"):
        said = ours.call("compact_calls:compact", src=source, dry_run=True, **{action: True}).get("error", "")
        assert f"{staging} was stopped while it replaced files" in said, said
        assert state(tmp_path) == before
    other = tmp_path / "other/t"
    compacted(ours, other)
    # A compaction was killed before its commit.
    tree(other.parent / ".t.millstream-compact", {".lock": b"", "out/.0.7": b"torn"})
    before = state(other.parent)
    for action, field, count in (("purge", "purged", 1), ("undo", "restored", 3)):
        assert ours.call("compact_calls:compact", src=str(other), dry_run=True, **{action: True})[field] == count
        assert state(other.parent) == before
