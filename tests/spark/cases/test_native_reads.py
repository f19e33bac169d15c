"""Text is read natively where expected, with correct metrics and plans; random conditions are compared with stock
Spark.
"""

import random

import pytest

LITERALS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "BALT",
    "é",
    "e\u0301",
    "漢",
    "🙂",
    "%",
    "_",
    "\\\\",
    "1",
    " ",
    "\ufffd",
    "x",
    "MD",
]
LEAVES = [
    "contains(value, {l})",
    "startswith(value, {l})",
    "endswith(value, {l})",
    "value = {l}",
    "{l} = value",
    "value <=> {l}",
    "value in ({l}, {m})",
    "value like concat({l}, '%', {m}, '%')",
    "value like '%{p}%{q}%'",
    "value like '{p}_{q}'",
    "value rlike '{r}'",
    "length(value) > {n}",
    "k = {n}",
    "value in ({l}, null)",
    "value is not null",
    "contains(value, null)",
    "lower(value) = {l}",
]
SWITCH = "spark.millstream.read.enabled"


def random_condition(rng, depth=0):
    match rng.choice(["leaf", "not", "and", "or"]) if depth < 3 else "leaf":
        case "not":
            return f"not ({random_condition(rng, depth + 1)})"
        case ("and" | "or") as operator:
            return (
                "(" + f" {operator} ".join(random_condition(rng, depth + 1) for _ in range(rng.randrange(2, 4))) + ")"
            )
    one, other = (f"'{rng.choice(LITERALS)}'" for _ in range(2))
    p, q, r = (rng.choice(["a", "b", "é", "BALT", "", "x"]) for _ in range(3))
    return rng.choice(LEAVES).format(l=one, m=other, p=p, q=q, r=r, n=rng.randrange(4))


def test_random_conditions(stock, ours, data, seed):
    rng = random.Random(seed)
    conditions = [random_condition(rng) for _ in range(40)]
    for session in (stock, ours):
        session.ask("read_calls:rows_where", path=str(data / "rows"), conditions=conditions)
    expected, actual = stock.answer(), ours.answer()
    assert "crash" not in expected
    for condition, rows, ours_rows in zip(conditions, expected, actual, strict=True):
        assert ours_rows == rows, f"MILLSTREAM_SEED={seed}: {condition}"


def test_metrics_are_in_the_sql_tab(ours, data):
    got = ours.call("read_calls:sql_metrics", path=str(data / "batches"), condition="contains(value, '99')")
    files = list((data / "batches").iterdir())
    size = sum(file.stat().st_size for file in files)
    assert got["metrics"]["number of files to read"] == got["metrics"]["number of files opened"] == str(len(files))
    assert int(got["metrics"]["number of output rows"].replace(",", "")) == got["rows"] > 0
    assert got["metrics"]["number of missing files skipped"] == "0"
    assert got["bytes"] == size
    assert got["metrics"]["size of files to read"].endswith("MiB")
    assert {"size of data read", "time waiting for readers"} <= got["metrics"].keys()
    assert got["records"] == got["rows"], "a task's input records are the rows that the scan hands over"


@pytest.mark.parametrize("partitions", [1, 2, 9])
@pytest.mark.parametrize("left", [0, 0.5, 1])
def test_a_text_file_that_became_shorter_is_an_error(ours, tmp_path, left, partitions):
    """Whatever is left of it, and however many tasks share it."""
    path = tmp_path / "file.txt"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(400_000)))
    length = int(path.stat().st_size * left) - (left == 1)
    got = ours.call("read_calls:shortened", path=str(path), length=max(length, 0), partitions=partitions)
    assert "crash" not in got, got["crash"]
    for form, message in got.items():
        assert message and "file.txt" in message, (form, message)


@pytest.mark.parametrize("format_name", ["csv", "json", "parquet", "orc", "binaryFile"])
def test_other_formats_are_packed_and_read_ahead(ours, data, format_name):
    got = ours.call(
        "read_calls:packed_scan", format_name=format_name, path=str(data / "layouts" / format_name / "flat")
    )
    assert "crash" not in got, got["crash"]
    assert got["node"] == f"Scan {format_name} (PackedFileScan)"
    assert got["tasks"] == 2
    assert got["metrics"]["numFiles"] == got["metrics"]["filesReadAhead"] == 5
    assert got["metrics"]["numOutputRows"] == got["rows"] > 0


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("directory", "files", "readers"),
    [
        ("same", 8, 2),
        ("codecs", 15, 2),
        ("nested", 3, 2),
        ("partitions", 6, 2),
        ("large", 4, 2),
    ],
)
def test_files_of_a_schema_share_a_reader(ours, data, format_name, directory, files, readers):
    got = ours.call(
        "read_calls:continued_files", format_name=format_name, path=str(data / "columnar" / format_name / directory)
    )
    assert "crash" not in got, got["crash"]
    assert got["files"] == files
    assert got["continued"] == files - readers


def test_files_of_another_writer_have_another_reader(ours, data):
    got = ours.call("read_calls:continued_files", format_name="parquet", path=str(data / "columnar/parquet/dates"))
    # A task has six files, of any of the four writers in any order: each writer needs a reader.
    assert got["files"] == 12 and 0 < got["continued"] <= 8, got


def test_missing_files_are_counted(ours, data, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("line\n")
    assert ours.call("read_calls:missing_files", path=str(tmp_path), removed=str(tmp_path / "a")) == {
        "rows": 1,
        "missing": 1,
    }


def test_the_plan_shows_native_filters(ours, data):
    plan = ours.call(
        "read_calls:formatted_plan",
        path=str(data / "rows"),
        condition="value like '%a%b%' and lower(value) like '%b' and initcap(value) = 'A' and k = 1",
    )
    assert "NativeTextScan" in plan
    (filters,) = [line for line in plan.splitlines() if line.startswith("NativeFilters:")]
    assert "LIKE %a%b%" in filters and "initcap" not in filters and "lower" not in filters and "k#" not in filters
    (prefilters,) = [line for line in plan.splitlines() if line.startswith("NativePrefilters:")]
    assert "lower" in prefilters and "initcap" not in prefilters
    (pruned,) = [line for line in plan.splitlines() if line.startswith("PartitionFilters:")]
    assert "k#" in pruned
    (location,) = [line for line in plan.splitlines() if line.startswith("Location:")]
    assert "CompactFileIndex" in location and f"{data}/rows" in location


@pytest.mark.parametrize(
    ("condition", "by", "exact"),
    [
        ("contains(value, 'a')", [], True),
        ("value like '%a%b%' or not value rlike 'b'", ["k"], True),
        ("value in ('a', 'abc') and k > 0", ["k"], True),
        ("contains(value, 'a') and length(value) > 3", [], True),
        ("contains(value, 'a')", ["value"], False),
        ("value rlike 'a.c'", [], True),
        ("value rlike 'a.c\\\\b'", [], False),
        ("trim(value) <> '' and value like 'a%c'", [], True),
        ("value ilike '%a%'", [], False),
        ("value like 'a_c'", ["k"], True),
        ("value not in ('a', 'abc')", [], True),
        ("value not in ('a', null)", [], True),
        ("value in ('a', null)", [], False),
        ("value <=> 'a'", [], True),
        ("not value <=> 'a'", ["k"], True),
        ("value <=> null", [], False),
        ("not value <=> null", [], True),
        ("not (value like 'a%' and value not in ('abc', 'ab')) or value <=> 'a' and k < 3", [], False),
        ("not (contains(value, 'a') or value in ('b', null))", [], True),
        ("contains(value, 'a') and value not in ('a', null)", ["k"], True),
    ],
)
def test_a_count_of_natively_filtered_rows_makes_no_rows(ours, stock, data, condition, by, exact):
    # Spark does not run scans for conditions that are never true.
    got = ours.call("read_calls:counted_where", path=str(data / "rows"), condition=condition, by=by)
    assert ("Filter" not in got["plan"]) == exact, got["plan"]
    assert (
        got["rows"]
        == stock.call("read_calls:counted_where", path=str(data / "rows"), condition=condition, by=by)["rows"]
    )


@pytest.mark.parametrize(("value", "natively"), [("true", True), ("false", False)])
def test_it_can_be_disabled_in_a_running_session(ours, data, value, natively):
    got = ours.call("read_calls:with_setting", key=SWITCH, value=value, path=str(data / "contents"))
    assert got["natively"] == natively
    assert (
        got["rows"]
        == ours.call("read_calls:with_setting", key=SWITCH, value="true", path=str(data / "contents"))["rows"]
    )


@pytest.mark.parametrize(
    ("conf", "path", "tasks"),
    [
        ({}, "batches", 2),
        ({"spark.sql.files.minPartitionNum": "5"}, "batches", 5),
        ({"spark.sql.leafNodeDefaultParallelism": "3"}, "batches", 3),
        ({"spark.sql.files.maxPartitionBytes": "500000"}, "long-lines", 107),
        ({"spark.sql.files.maxPartitionBytes": "500000", "spark.sql.files.maxPartitionNum": "4"}, "long-lines", 4),
        ({}, "layouts/text/flat/part-1", 1),
        ({}, "layouts/text/flat", 2),
    ],
)
def test_tasks_are_sized_by_bytes_and_files(ours, data, conf, path, tasks):
    got = ours.call("read_calls:task_count", path=str(data / path), conf=conf)
    assert abs(got - tasks) <= tasks // 10


@pytest.mark.parametrize(("cost", "tasks"), [("32768", 8), ("256m", 48)])
def test_rdds_follow_the_settings_of_the_session(ours, data, cost, tasks):
    conf = {"spark.millstream.read.openCostInBytes": cost}
    assert ours.call("read_calls:rdd_task_count", path=str(data / "siblings" / "*" / "*"), conf=conf) == tasks


def test_a_file_with_a_colon_in_its_name_is_read(ours, stock, data, tmp_path):
    """Stock Spark fails to read it."""
    (tmp_path / "12:30.log").write_text("line\n")
    assert "error" in stock.call("read_calls:rows_where", path=str(tmp_path), conditions=["true"])[0]
    (rows,) = ours.call("read_calls:rows_where", path=str(tmp_path), conditions=["true"])
    assert rows == {"value": "['6C696E65']"}


def test_binary_files_make_a_task_for_each_core(ours, stock, data):
    counts = [
        session.call("read_calls:binary_file_tasks", path=str(data / "siblings" / "*" / "*"))
        for session in (stock, ours)
    ]
    assert counts == [1, 2]


@pytest.mark.parametrize("how", ["DataFrame", "RDD"])
def test_lines_are_whole_in_a_file_that_grows(stock, ours, tmp_path, how):
    for session, name in ((stock, "stock"), (ours, "ours")):
        rounds = session.call("read_calls:read_while_growing", path=str(tmp_path / name), how=how)
        assert rounds == [{"count": True, "lines": True}] * 5, name


def test_readers_get_the_sessions_keys(ours):
    keys = ["spark.acme.token", "spark.app.name", "hadoop.tmp.dir"]
    session = {"spark.acme.token": "secret"}
    assert ours.call("read_calls:keys_for_readers", session=session, keys=keys) == ["secret", None, None]
    for own in {"parquet.crypto.factory.class": "acme.Keys"}, {"io.compression.codecs": "acme.Codec"}:
        token, name, default = ours.call("read_calls:keys_for_readers", session=session, keys=keys, own=own)
        assert token == "secret" and name and default, "classes of others may ask for anything"
