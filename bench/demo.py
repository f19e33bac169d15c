"""demo.py - the main job on real text, side by side with what it replaces. Run by `make demo`.

    python bench/demo.py [--files N]

Cuts the documentation and the Python sources of this machine into 100,000 small files, then lists, searches and
measures that tree on a slow mount (latfs: every request takes 0.5 ms, as on a filer) and on the local disk, has Spark
count its lines and those of small objects on a local S3 server that takes 20 ms a request, and has Spark overwrite the
partitions of a Hive table; each time stock first, then Millstream. Prints the speedups; asserts nothing about time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import REPOSITORY, TESTBED, LocalDirectory, print_table, run_command, scratch_directory, tree

sys.path.insert(0, str(TESTBED))
from latency_mount import LatencyMount
from remote_bed import DELAY_MS, PROBE, Data, bed

TOOLS = REPOSITORY / "target" / "release"
# The usual command, and ours; {} is the tree.
COMMANDS = [
    (["find", "{}"], ["pfind", "{}"]),
    (["ls", "-lR", "{}"], ["pls", "-lR", "{}"]),
    (["du", "-s", "{}"], ["pdu", "-s", "{}"]),
]
LINES_JOB, INSERT_JOB = (Path(__file__).with_name(name) for name in ("spark_lines.py", "spark_insert.py"))
PARTITIONS = 100
OBJECTS = 1_000


def timed(command, bed):
    """Wall time of a command in a test environment, in seconds."""
    with bed as mounted:
        words = [str(mounted.path) if word == "{}" else word for word in command]
        run = run_command(words)
    if run.status:
        sys.exit(f"demo: {' '.join(words)} ended with status {run.status}")
    return run.wall_s


def compare_tools(title, make_bed):
    rows = []
    for rival, ours in COMMANDS:
        theirs_s = timed(rival, make_bed())
        ours_s = timed([str(TOOLS / ours[0]), *ours[1:]], make_bed())
        name = " ".join(rival[:-1])
        rows.append([name, f"{theirs_s:.2f}", " ".join(ours[:-1]), f"{ours_s:.2f}", f"{theirs_s / ours_s:.1f}x"])
        print(f"  {name}: {theirs_s:.2f} s, ours {ours_s:.2f} s", file=sys.stderr, flush=True)
    print(f"\n{title}")
    print_table(["stock", "s", "Millstream", "s", "gain"], rows)


def spark_job(script, *arguments):
    """Runs one Spark application; returns its figures."""
    result = subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{result.stderr}\ndemo: the Spark job {' '.join(map(str, (script.name, *arguments)))} failed")
    return json.loads(result.stdout.splitlines()[-1])


def count_lines(way, directory):
    figures = spark_job(LINES_JOB, way, directory)
    print(f"  Spark, {way}: {figures['lines']} lines, {figures['total_s']:.1f} s", file=sys.stderr, flush=True)
    return figures


def compare_spark(directory, files):
    stock = count_lines("stock", directory)
    rows = [
        [
            "spark.read.text(dir).count()",
            f"{stock['create_s']:.2f}",
            f"{stock['count_s']:.1f}",
            f"{stock['total_s']:.1f}",
            "",
        ]
    ]
    for way, label in (
        ("millstream", "the same, Millstream on"),
        ("read_text", "millstream.read_text(spark, dir).count()"),
    ):
        ours = count_lines(way, directory)
        if ours["lines"] != stock["lines"]:
            sys.exit(f"demo: stock Spark counts {stock['lines']} lines, {way} {ours['lines']}")
        rows.append(
            [
                label,
                f"{ours['create_s']:.2f}",
                f"{ours['count_s']:.1f}",
                f"{ours['total_s']:.1f}",
                f"{stock['total_s'] / ours['total_s']:.1f}x",
            ]
        )
    print(
        f"\nSpark counts the {stock['lines']:,} lines of {files:,} files on the local disk, local[2]; the same count each time"
    )
    print_table(["", "DataFrame s", "count s", "total s", "gain"], rows)


def count_objects(way):
    """Counts the lines of small objects on S3 in a separate application."""
    with bed(Data(f"files:{OBJECTS},bytes:20"), pyspark.__version__) as s3:
        figures = spark_job(PROBE, "count", way, s3.path)
    if figures["rows"] != OBJECTS:
        sys.exit(f"demo: {way} counts {figures['rows']} lines on S3, not {OBJECTS}")
    print(f"  Spark on S3, {way}: {figures['wall_s']:.1f} s", file=sys.stderr, flush=True)
    return figures


def compare_s3():
    stock, ours = count_objects("stock"), count_objects("millstream")
    print(
        f"\nSpark counts the lines of {OBJECTS:,} small objects on S3 (a local server, {DELAY_MS} ms a request), local[2]; most at once: requests in"
        " flight"
    )
    print_table(
        ["", "s", "requests", "at once", "gain"],
        [
            [
                name,
                f"{figures['wall_s']:.1f}",
                str(figures["requests"]),
                str(figures["max_in_flight"]),
                f"{stock['wall_s'] / figures['wall_s']:.1f}x",
            ]
            for name, figures in (("stock", stock), ("Millstream on", ours))
        ],
    )


def overwrite(way, make_bed):
    """Seconds that one application takes to overwrite a table's partitions in a separate test environment."""
    with tempfile.TemporaryDirectory(dir=scratch_directory()) as directory, make_bed(Path(directory)) as bed:
        figures = spark_job(INSERT_JOB, way, bed.path, PARTITIONS)
    if figures["kept"] or figures["files"] != PARTITIONS or figures["is_direct"] != (way == "millstream"):
        sys.exit(f"demo: after the INSERT OVERWRITE ({way}) the table is not as it should be: {figures}")
    print(f"  INSERT OVERWRITE, {way}: {figures['total_s']:.1f} s", file=sys.stderr, flush=True)
    return figures["total_s"]


def compare_inserts():
    beds = {"the local disk": LocalDirectory, "latfs, 0.5 ms": lambda path: LatencyMount(path, delay_us=500, ttl_s=60)}
    rows = []
    for name, make_bed in beds.items():
        stock_s, ours_s = (overwrite(way, make_bed) for way in ("stock", "millstream"))
        rows.append([name, f"{stock_s:.1f}", f"{ours_s:.1f}", f"{stock_s / ours_s:.1f}x"])
    print(
        f"\nSpark overwrites {PARTITIONS} partitions of a Hive table: INSERT OVERWRITE … PARTITION (part), text, local[2]; direct writes are also"
        "\nsafe when the driver is killed. On S3, where more is gained: bench/direct-writes"
    )
    print_table(["on", "stock s", "direct s", "gain"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=100_000, help="size of the tree (default 100,000)")
    files = parser.parse_args().files
    source = tree("text", files)
    print(f"{files:,} files of real text in {source}")
    compare_tools(
        "A mount that answers in 0.5 ms (latfs, fresh for each run)",
        lambda: LatencyMount(source, delay_us=500, ttl_s=60, prepared=True),
    )
    for rival, _ in COMMANDS:
        timed(rival, LocalDirectory(source))  # warms the cache
    compare_tools("The local disk, warm cache", lambda: LocalDirectory(source))
    compare_spark(source, files)
    compare_s3()
    compare_inserts()
    return 0


if __name__ == "__main__":
    sys.exit(main())
