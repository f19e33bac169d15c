"""`millstream formats` and `millstream.formats`: measurements, recommendations, and no leftovers."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import millstream
import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = Path(os.environ.get("MILLSTREAM_TOOL", ROOT / "target/checked/millstream"))
LINES = 5000
TEXT = "".join(f"{n} a line of some words, 127.0.0.1, GET /index.html\n" for n in range(LINES)).encode()
BUSY = "millstream-formats-"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT)
    return path


def command(temporary, *arguments):
    """Spark has enough memory for the size that Hadoop's codec reads from the header of an LZ4 frame."""
    conf = {
        "spark.driver.memory": "6g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.defaultJavaOptions": f"-Djava.io.tmpdir={temporary}",
    }
    return [
        str(TOOL),
        "formats",
        "--master=local[2]",
        *(f"--conf={key}={value}" for key, value in conf.items()),
        *map(str, arguments),
    ]


def environment():
    jar = Path(millstream.__file__).parent / "jars/millstream-spark.jar"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home = Path(sys.modules["pyspark"].__file__).parent if "pyspark" in sys.modules else ""
    return {
        **os.environ,
        "MILLSTREAM_JAR": str(jar),
        "PATH": path,
        "SPARK_HOME": str(home),
        "LC_ALL": "C",
        "PYSPARK_PYTHON": sys.executable,
    }


def left_in(directory):
    return [path.name for path in directory.iterdir() if path.name.startswith(BUSY)]


def by_run(rows):
    return {(row["job"], row["engine"]): row for row in rows}


def test_lost_rows_of_stock_spark_are_shown_and_compared_with_nothing(text, tmp_path):
    temporary, picture = tmp_path / "tmp", tmp_path / "picture.svg"
    temporary.mkdir()
    run = command(temporary, "--json", "--codecs=lz4", "--rounds=1", f"--picture={picture}", text)
    done = subprocess.run(run, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["sample"] == {"bytes": len(TEXT), "lines": LINES, "files": 1}
    rows = by_run(found["rows"])
    assert set(rows) == {(job, engine) for job in ("read", "repartition") for engine in ("stock", "millstream")}
    for job in ("read", "repartition"):
        stock, ours = rows[job, "stock"], rows[job, "millstream"]
        assert (stock["rows"], stock["problem"]) == (0, f"0 of {LINES} rows, without an error")
        assert (ours["rows"], ours["problem"], ours["speedup"]) == (LINES, None, None)
        assert (
            ours["wall_s"] > 0
            and ours["cpu_s"] > 0
            and ours["peak_memory_bytes"] > 50e6
            and ours["partitions"] == 1
            and ours["skew"] == 1
        )
        assert 0 < ours["bytes"] < len(TEXT) and ours["recommended"]
    (recommendation,) = found["recommendation"]
    assert recommendation["format"] == "lz4"
    assert f"Stock Spark returns 0 of the {LINES} rows of lz4, without an error" in recommendation["text"]
    root = ElementTree.parse(picture).getroot()
    labels = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "lz4 Millstream" in labels and f"0 of {LINES} rows, without an error" in labels
    assert left_in(temporary) == []


def test_rows_of_an_indexed_format_in_a_data_frame(ours, tmp_path):
    """Of files of which one is compressed and has line ends of all kinds. The other is random, or its gz would be too
    small for an index.
    """
    source, picture, work = tmp_path / "source", tmp_path / "picture.png", tmp_path / "work"
    (source / "a=1").mkdir(parents=True)
    work.mkdir()
    (source / "a=1" / "a.gz").write_bytes(gzip.compress(b"1\r\n2\r3\n4"))
    (source / "b.txt").write_bytes(b"".join(os.urandom(100).hex().encode() + b"\n" for _ in range(50_000)))
    (source / "_hidden").write_bytes(b"no line\n" * 100)
    done = ours.call(
        "formats_calls:formats",
        path=str(source),
        codecs=["gz"],
        rounds=1,
        picture=str(picture),
        work_dir=str(work),
        sample=9_999_000,
    )
    assert done["schema"].startswith(
        "struct<source:string,format:string,job:string,engine:string,bytes:bigint,lines:bigint,rows:bigint,partitions:int,"
    )
    assert {(row["rows"], row["problem"]) for row in done["rows"]} == {(row["lines"], None) for row in done["rows"]}
    # Of the first file four lines, of nine bytes once the last one has an end; then whole lines of the other up to the
    # size of the sample.
    assert {row["lines"] for row in done["rows"]} == {4 + -(-(9_999_000 - 9) // 201)}
    rows = by_run(done["rows"])
    assert set(rows) == {(job, engine) for job in ("read", "repartition") for engine in ("stock", "millstream")} | {
        ("first-read", "millstream")
    }
    assert (
        rows["first-read", "millstream"]["partitions"]
        == rows["read", "stock"]["partitions"]
        == 1
        < rows["read", "millstream"]["partitions"]
    )
    assert all(row["speedup"] > 0 for (_, engine), row in rows.items() if engine == "millstream")
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(header[16:20], "big"), picture.stat().st_size > 2000) == (1000, True)
    assert left_in(work) == left_in(ours.home / "tmp") == []


def test_a_run_that_takes_too_long_is_a_row_that_says_so(ours, text):
    also = text.parent / "also"
    also.mkdir()
    done = ours.call("formats_calls:formats", path=str(text), codecs=["none"], limit=1, also=f"file://{also}")
    assert {(row["problem"], row["rows"]) for row in done["rows"]} == {("not finished after 1 s (--limit)", None)}
    assert [row["source"] for row in done["rows"]] == ["local"] * 4 + [f"file://{also}"] * 4
    assert not any(row["recommended"] for row in done["rows"])
    assert left_in(ours.home / "tmp") == list(also.iterdir()) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_leaves_nothing(text, tmp_path, sent):
    run = subprocess.Popen(
        command(tmp_path, "--codecs=none", text), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list(tmp_path.glob(f"{BUSY}*/log")) and run.poll() is None:
        time.sleep(0.1)
    run.send_signal(sent)
    _, errors = run.communicate(timeout=60)
    assert run.returncode != 0, errors
    assert left_in(tmp_path) == []


def test_errors_name_path_operation_and_way_out(ours, text, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary.txt").write_bytes(b"PAR1\0\0" * 100)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    for arguments, message in [
        (
            {"path": f"{tmp_path}/none"},
            f"{tmp_path}/none: cannot take a sample: there is no such file or directory; correct the path",
        ),
        (
            {"path": f"{tmp_path}/empty"},
            f"{tmp_path}/empty: cannot take a sample: no file in it has data; name a text file, or a directory of text files",
        ),
        (
            {"path": f"{tmp_path}/binary.txt"},
            "/binary.txt: cannot take a sample: the file is not text, because it contains NUL bytes; name text files",
        ),
        (
            {"path": str(text), "work_dir": str(locked)},
            f"{locked}: cannot write the sample: permission denied; choose a directory with --work-dir",
        ),
        (
            {"path": str(text), "work_dir": f"{tmp_path}/none"},
            f"{tmp_path}/none: cannot write the sample: there is no such directory; choose",
        ),
        ({"path": str(text), "also": "nosuch://host/dir"}, "nosuch://host/dir: cannot write the sample: "),
        ({"path": str(text), "codecs": ["rar"]}, "rar: not a codec; choose from none, gz, bz2, zst, lz4, snappy"),
        ({"path": str(text), "rounds": 0}, "--rounds=0: not a number from 1 to 100"),
        ({"path": str(text), "limit": "soon"}, "--limit=soon: not a time; write it like 10m or 90s"),
        (
            {"path": str(text), "picture": "a.gif"},
            "a.gif: pictures are written as .svg or .png; choose one of these extensions",
        ),
        (
            {"path": str(text), "picture": f"{tmp_path}/none/a.svg"},
            f"{tmp_path}/none/a.svg: cannot write the picture: {tmp_path}/none is not",
        ),
    ]:
        error = ours.call("formats_calls:formats", **arguments)["error"]
        assert message in error
    assert left_in(ours.home / "tmp") == left_in(locked) == []


def test_a_dry_run_lists_the_runs_and_writes_nothing(ours, text):
    found = ours.call("formats_calls:plan", path=str(text), codecs="gz,none", also="s3a://bucket/dir")
    runs = [(row["source"], row["format"], row["job"], row["engine"]) for row in found["rows"]]
    one = [("read", "stock"), ("read", "millstream"), ("repartition", "stock"), ("repartition", "millstream")]
    gz = [one[0], ("first-read", "millstream"), *one[1:]]
    assert runs == [
        (source, *run)
        for source in ("local", "s3a://bucket/dir")
        for run in [*(("none", *run) for run in one), *(("gz", *run) for run in gz)]
    ]
    assert left_in(ours.home / "tmp") == []


def advice(ours, rows, cores=2):
    """Rows of format, engine, bytes, lines and seconds; a number is followed by partitions and, if wrong, by rows."""
    return ours.call("formats_calls:advice", rows=rows, cores=cores)


def test_the_recommended_format_has_the_least_product_of_size_and_time(ours):
    rows = [
        ["none", "millstream", 1000 << 20, 9, 2.0, 8],
        ["gz", "millstream", 100 << 20, 9, 4.0, 8],
        ["bz2", "millstream", 80 << 20, 9, 40.0, 8],
        ["zst", "millstream", 110 << 20, 9, 6.0],
        ["gz", "stock", 100 << 20, 9, 24.0],
        ["none", "stock", 1000 << 20, 9, 2.1],
    ]
    format, sentences = advice(ours, rows)
    assert format == "gz"
    assert sentences[0].startswith(
        "Store this data as gz (100.0 MiB, read in 4.00 s with Millstream), 10 times smaller than plain text. It has"
    )
    assert "If only read time counts, store none (1000.0 MiB, 2.00 s)." in sentences
    assert "If only size counts, store bz2 (80.0 MiB, 40.0 s)." in sentences
    assert "Stock Spark takes 24.0 s for gz, Millstream 4.00 s: Millstream is 6.0 times as fast." in sentences
    assert "For stock Spark, the same rule would choose none (1000.0 MiB, 2.10 s)." in sentences
    assert "More cores speed up none, gz, bz2; one task reads all of a file in zst." in sentences
    assert (
        "Slower storage favors small formats: where it delivers less than 2.5 MiB per second, bz2 is read faster than gz."
        in sentences
    )
    slower = [["gz", "millstream", 100 << 20, 9, 30.0, 8], *rows[:1]]
    assert advice(ours, slower)[0] == "none"


def test_wrong_rows_are_warned_of_and_recommend_nothing(ours):
    rows = [
        ["lz4", "millstream", 10, 9, 2.0, 1, 8],
        ["none", "millstream", 100, 9, 2.0, 1],
        ["lz4", "stock", 10, 9, 0.1, 1, 0],
        ["none", "stock", 100, 9, "not finished"],
    ]
    format, sentences = advice(ours, rows)
    assert format == "none"
    assert "Millstream returns 8 of the 9 rows of lz4, without an error: do not use it where lz4 is read." in sentences
    assert "Stock Spark returns 0 of the 9 rows of lz4, without an error: do not use it where lz4 is read." in sentences
    assert not any("as fast" in sentence or "stock Spark, the same rule" in sentence for sentence in sentences)
    format, sentences = advice(ours, rows[:1])
    assert format is None and sentences[0].startswith("Nothing to recommend")


def test_a_repartition_is_weighed_by_its_cost_and_the_tasks_that_read(ours):
    read = ["none", "millstream", 10, 9, 2.0, 8]
    after = ["none", "millstream", 10, 9, 5.0, 8, None, "repartition"]
    takes = "With a repartition the read takes 5.00 s instead of 2.00 s. 8 tasks read the file"
    assert f"{takes}, enough for 4 cores, so a repartition is not needed." in advice(ours, [read, after], 4)[1]
    assert (
        f"{takes}, of 16 that could run, so a repartition pays if the work on the rows takes longer than that."
        in advice(ours, [read, after], 16)[1]
    )
    slower = advice(ours, [["none", "millstream", 10, 9, 2.0], ["none", "stock", 10, 9, 1.0]])[1]
    assert "Stock Spark takes 1.00 s for none, Millstream 2.00 s: Millstream is slower." in slower


def test_bars_are_blocks_or_ascii(ours):
    bars = [["none stock", 8.0, False], ["none Millstream", 2.0, True], ["tiny", 0.001, True]]
    assert ours.call("formats_calls:chart", bars=bars, ascii=True).splitlines() == [
        "title",
        f"  none stock       {'#' * 40} 8.0 s",
        f"  none Millstream  {'#' * 10} 2.0 s",
        "  tiny             # 0.001 s",
    ]
    assert ours.call("formats_calls:chart", bars=bars, ascii=False).splitlines()[1:] == [
        f"  none stock       {'█' * 40} 8.0 s",
        f"  none Millstream  {'█' * 10} 2.0 s",
        "  tiny             ▏ 0.001 s",
    ]


def test_stock_runs_have_nothing_of_millstream(ours):
    block = millstream.spark_conf("/m.jar")
    mine = {
        "spark.master": "local[2]",
        "spark.jars": "/a.jar,/m.jar",
        "spark.driver.extraClassPath": "/s3a.jar:/m.jar",
        "spark.app.id": "x",
    }
    given = {
        **block,
        **mine,
        "spark.hadoop.fs.s3a.impl": "io.millstream.hadoop.s3a.MillstreamS3AFileSystem",
        "spark.millstream.list.enabled": "false",
    }
    stock = ours.call("formats_calls:settings", engine="stock", given=given, jar="/m.jar")
    assert stock == {"spark.master": "local[2]", "spark.jars": "/a.jar", "spark.driver.extraClassPath": "/s3a.jar"}
    both = ours.call("formats_calls:settings", engine="millstream", given=mine, jar="/m.jar")
    assert both == {
        **block,
        "spark.master": "local[2]",
        "spark.jars": "/a.jar,/m.jar",
        "spark.driver.extraClassPath": "/s3a.jar:/m.jar",
    }
