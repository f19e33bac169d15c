"""`millstream compact`, killed at any moment: the same command finishes it, and no line is lost or doubled.

Run with `make test-group GROUP=reads`: every kill starts two JVMs.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

KILLS = int(os.environ.get("MILLSTREAM_KILLS", "30"))
ROOT = Path(__file__).resolve().parents[3]
TOOL = Path(os.environ.get("MILLSTREAM_TOOL", ROOT / "target/checked/millstream"))


def environment():
    import millstream

    jar = Path(millstream.__file__).parent / "jars/millstream-spark.jar"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "MILLSTREAM_JAR": str(jar),
        "PATH": path,
        "SPARK_HOME": "",
        "LC_ALL": "C.UTF-8",
        "PYSPARK_PYTHON": sys.executable,
    }


def command(*arguments) -> list[str]:
    return [
        str(TOOL),
        "compact",
        "--master=local[2]",
        "--conf=spark.ui.enabled=false",
        "--conf=spark.ui.showConsoleProgress=false",
        *map(str, arguments),
    ]


def compact(*arguments, expected=0):
    run = subprocess.run(
        command(*arguments, "--json"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.returncode == expected, run.stderr[-3000:]
    return json.loads(run.stdout) if run.stdout else run.stderr


def run(*arguments):
    return subprocess.run(
        command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def make_tree(top: Path, files: int, ending: str = "") -> None:
    """Leaf directories, directories with others in them, and files at the top; every line is there once."""
    directories = ["", "k=1", "k=1/j=1", "k=2/j=1", "k=2/j=2", "plain"]
    for directory in directories:
        (top / directory).mkdir(parents=True, exist_ok=True)
        (top / directory / "_SUCCESS").touch()
    for n in range(files):
        directory = directories[n % len(directories)]
        first, second = (f'{{"id": {n}, "line": {line}}}' if ending == ".json" else f"{n}.{line}" for line in (1, 2))
        (top / directory / f"f{n}{ending}").write_text(f"{first}\n{second}" + "\n" * (n % 2))


def lines(top: Path) -> Counter:
    """The lines that Spark sees, read without Spark."""
    found = Counter()
    for directory, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in names:
            if name[0] not in "._":
                found.update(
                    (os.path.relpath(directory, top), line) for line in Path(directory, name).read_text().splitlines()
                )
    return found


def staging(source: Path) -> Path:
    return source.with_name(f".{source.name}.millstream-compact")


def replaced(source: Path) -> Path:
    return source.with_name(f".{source.name}.millstream-replaced")


def staging_of_new(target: Path) -> Path:
    return target / ".millstream-compact"


# What to wait for before the wait that ends in a kill.
STATES = {
    "anything": lambda place: True,
    "staging": lambda place: place.exists(),
    "outputs": lambda place: any_in(place / "out"),
    "journal": lambda place: (place / ".journal").exists(),
    "swapped": lambda place: any_in(place / "swap"),
    "replaced": lambda place: any_in(place / "old"),
}
STATES_OF_UNDO = {
    "anything": lambda kept: True,
    "undoing": lambda kept: (kept / "1/.undoing").exists(),
    "undone": lambda kept: any_in(kept / "1/undone"),
}
STATES_OF_NEW = {
    **{state: STATES[state] for state in ("anything", "staging", "outputs", "journal")},
    "revealed": lambda place: place.exists() and len(os.listdir(place.parent)) > 1,
}


def any_in(directory: Path) -> bool:
    try:
        return any(True for _ in os.scandir(directory))
    except OSError:
        return False


def killed_after(arguments, reached, delay_s: float) -> bool:
    """Starts a compaction and kills it some time after it has reached a state; returns whether it was still running."""
    process = subprocess.Popen(
        command(*arguments),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and not reached():
        time.sleep(0.0005)
    time.sleep(delay_s)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def delay_s(chance: random.Random, state: str) -> float:
    return (
        chance.uniform(0, 8)
        if state == "anything"
        else chance.choice([0, chance.uniform(0, 0.02), chance.uniform(0, 0.3)])
    )


def is_undone_though_killed(
    source: Path, names: set[Path], expected: Counter, chance: random.Random, state: str
) -> bool:
    """Undoes a compaction, is killed meanwhile, and undoes the rest. Returns whether the first run had begun and not
    ended.
    """
    kept = replaced(source)
    killed = killed_after(
        ("--undo", source),
        lambda: STATES_OF_UNDO[state](kept),
        delay_s(chance, state) / (4 if state == "anything" else 10),
    )
    has_begun = (kept / "1/.undoing").exists()
    assert killed or not kept.exists()
    if kept.exists():
        done = compact("--undo", source)
        assert done["left"] == [], done
    assert (set(source.rglob("*")), lines(source), kept.exists()) == (names, expected, False)
    return killed and has_begun


@pytest.mark.parametrize("ending, kills_wanted", [("", KILLS), (".json", KILLS // 3)])
def test_killed_at_any_moment(tmp_path, seed, ending, kills_wanted):
    print("MILLSTREAM_SEED", seed)
    chance = random.Random(seed)
    found = Counter()
    kills = 0
    source = tmp_path / "source"
    make_tree(source, 6000, ending)
    expected, names = lines(source), {path.relative_to(source) for path in source.rglob("*")}
    while kills < kills_wanted:
        arguments, place = ("--in-place", "--plain-files", source, "--target-size=8K"), staging(source)
        state = list(STATES)[kills % len(STATES)]
        delay = delay_s(chance, state)
        if not killed_after(arguments, lambda: STATES[state](place), delay):
            # It was too fast: there is work again in a new tree.
            assert lines(source) == expected
            source = tmp_path / f"source-{len(os.listdir(tmp_path))}"
            make_tree(source, 6000, ending)
            found["ended"] += 1
            continue
        kills += 1
        committed = (place / ".journal").exists()
        found[state, "committed" if committed else "not committed"] += 1
        print(kills, state, f"{delay:.3f}", "committed" if committed else "not committed", flush=True)
        if not committed:
            assert lines(source) == expected, (state, delay)
            continue
        if chance.random() < 0.3 and killed_after(arguments, lambda: STATES["journal"](place), chance.uniform(3, 6)):
            found["killed while it recovered"] += 1
        done = compact(*arguments)
        assert done["left"] == [] and lines(source) == expected, (state, delay, done)
        assert not place.exists()
        if kills % 2:
            state = chance.choice(list(STATES_OF_UNDO))
            whole = {source / name for name in names}
            found[
                "undo",
                state,
                "begun" if is_undone_though_killed(source, whole, expected, chance, state) else "not begun, or ended",
            ] += 1
        source = tmp_path / f"source-{len(os.listdir(tmp_path))}"
        make_tree(source, 6000, ending)
    print(dict(found))
    assert sum(count for kind, count in found.items() if kind[-1] == "committed") >= kills_wanted // 5


def text_tree(stock, top: Path) -> None:
    """Lines, and files that are copied because they cannot be merged."""
    make_tree(top, 6000)
    (top / "k=1" / "left").mkdir()
    for n in range(50):
        (top / "k=1" / "left" / f"{n}.orc").write_text(f"ORC {n}\n")


def text_content(stock, top: Path):
    return lines(top)


def parquet_tree(stock, top: Path) -> None:
    for k in range(6):
        stock.call(
            "compact_calls:write",
            path=f"{top}/k={k}",
            format="parquet",
            expressions=["id", f"cast(id * {k} as string) s"],
            files=12,
        )
    for kind in ("int", "string"):
        stock.call(
            "compact_calls:write",
            path=f"{top}/k=7",
            format="parquet",
            expressions=["id", f"cast(id as {kind}) other"],
            files=1,
        )


def parquet_content(stock, top: Path):
    """Different schemas do not matter for copied files, which are read one by one."""
    merged = [stock.call("compact_calls:rows", path=f"{top}/k={k}", format="parquet") for k in range(6)]
    return merged, sorted(file.read_bytes() for file in (top / "k=7").glob("*.parquet"))


@pytest.mark.parametrize(
    "make, content", [(text_tree, text_content), (parquet_tree, parquet_content)], ids=["text", "parquet"]
)
def test_killed_on_the_way_to_a_new_tree(stock, top, seed, make, content):
    """The source stays as it is. The destination is empty until the commit, and the same command completes it then."""
    print("MILLSTREAM_SEED", seed)
    chance = random.Random(seed)
    found = Counter()
    folder = top / f"new-{make.__name__}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    source = folder / "source"
    make(stock, source)
    sources = {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    expected = content(stock, source)
    kills = 0
    while kills < KILLS // 3:
        target = folder / f"target-{sum(found.values())}"
        arguments, place = (source, target, "--copy-left", "--target-size=8K"), staging_of_new(target)
        state = list(STATES_OF_NEW)[kills % len(STATES_OF_NEW)]
        if not killed_after(arguments, lambda: STATES_OF_NEW[state](place), delay_s(chance, state)):
            assert content(stock, target) == expected
            found["ended"] += 1
            continue
        kills += 1
        committed = (place / ".journal").exists()
        visible = target.exists() and any(name != place.name for name in os.listdir(target))
        found[state, "committed" if committed else "not committed"] += 1
        print(kills, state, "committed" if committed else "not committed", "visible" if visible else "", flush=True)
        if visible and not committed:
            # It had ended but for its staging directory.
            assert "not empty" in compact(*arguments, expected=1)
        else:
            done = compact(*arguments)
            # A run that finishes another one lists nothing, and there may be nothing left to reveal.
            assert done["left"] == [] and (done["files"] == 0) == committed, done
        assert content(stock, target) == expected and not place.exists()
        assert {path: path.stat().st_mtime_ns for path in source.rglob("*")} == sources
    print(dict(found))
    assert any(kind[-1] == "committed" for kind in found)


def test_input_that_changes_meanwhile_is_left(tmp_path):
    """A file of one directory grows when the outputs have been made: its directory stays, the others are compacted."""
    source = tmp_path / "source"
    make_tree(source, 3000)
    before = lines(source)
    process = subprocess.Popen(
        command("--in-place", "--plain-files", source, "--json"), env=environment(), stdout=subprocess.PIPE, text=True
    )
    while process.poll() is None and not STATES["outputs"](staging(source)):
        time.sleep(0.001)
    with open(source / "plain/f5", "a") as file:
        file.write("more\n")
    out, _ = process.communicate()
    before["plain", "more"] += 1
    assert lines(source) == before
    done = json.loads(out)
    assert process.returncode == (1 if done["left"] else 0)
    if done["left"]:
        assert [os.path.basename(group["directory"]) for group in done["left"]] == ["plain"]


def test_no_space_leaves_everything_as_it_was(tmp_path):
    assert os.geteuid() == 0, "run as root: a small file system is mounted"
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small], check=True)
    try:
        source = small / "source"
        for directory in ("big", "little"):
            (source / directory).mkdir(parents=True)
        for n in range(100):
            (source / "big" / str(n)).write_text("x" * 24_000)
            (source / "little" / str(n)).write_text(f"{n}\n")
        before = lines(source)
        (source / "_filler").write_bytes(b"x" * 400_000)
        done = compact("--in-place", "--plain-files", source, expected=1)
        assert {os.path.basename(group["directory"]) for group in done["left"]} >= {"big"}
        assert "No space left" in done["left"][0]["reason"]
        assert lines(source) == before and set(os.listdir(small)) <= {"source", ".source.millstream-replaced"}
        failed = compact(source, small / "target", expected=1)
        assert "No space left" in failed["left"][0]["reason"]
    finally:
        subprocess.run(["umount", small], check=True)


def test_command_line(tmp_path):
    source = tmp_path / "source"
    make_tree(source, 600)
    before = lines(source)
    done = compact(source, tmp_path / "target", "--target-size=1K")
    assert lines(tmp_path / "target") == before and done["left"] == [] and done["outputs"] < 60
    told = compact(tmp_path / "nothing", "--in-place", "--plain-files", expected=1)
    assert "there is no such directory" in told and not re.search(r"^\s+at ", told, re.MULTILINE)
    nowhere = {**environment(), "PATH": "/nowhere"}
    refused = subprocess.run(command(source, tmp_path / "other"), env=nowhere, stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1 and "SPARK_HOME" in refused.stderr


def test_the_command_says_how_replaced_files_come_back(tmp_path):
    source = tmp_path / "it's a source"
    make_tree(source, 60)
    size = sum(path.stat().st_size for path in source.rglob("f*"))
    (source / "left.orc").write_text("ORC")
    back = f"kept for 12h (--keep-for): millstream compact --undo '{tmp_path}/it'\\''s a source' puts them back, --purge removes them"
    for dry_run in (["--dry-run"], []):
        done = run(source, "--in-place", "--plain-files", "--keep-for=12h", *dry_run)
        assert f"60 of 61 files ({size} bytes)" in done.stdout and back in done.stdout, done.stdout
    again = run(source, "--in-place", "--plain-files")
    assert "kept for" not in again.stdout and "0 of 7 files (0 bytes)" in again.stdout, again.stdout


def test_destination_without_what_was_left_is_told_before_and_after(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    make_tree(source, 60)
    for directory, text in (("orc", "ORC"), ("nul", "\0")):
        (source / directory).mkdir()
        for n in range(5):
            (source / directory / f"{n}{'.orc' if directory == 'orc' else ''}").write_text(text)
    dry = run(source, target, "--dry-run")
    assert (
        dry.returncode == 1
        and "60 of 70 files" in dry.stdout
        and "10 left" in dry.stdout
        and "not checked: " in dry.stdout
    )
    assert dry.stderr.count(f"to be missing from {target}: 5 files") == 2 and not target.exists()
    done = run(source, target)
    before, *_ = [line for line in done.stderr.splitlines() if line.startswith("millstream: ")]
    assert before.startswith(f"millstream: will be missing from {target}, unless") and "ORC" in before
    assert done.returncode == 1 and done.stderr.count(f"missing from {target}: 5 files") == 2
    assert f"remove {target} and run the command again with --copy-left" in done.stderr.splitlines()[-1]
    copied = run(source, tmp_path / "copy", "--copy-left")
    assert copied.returncode == 0 and "10 copied as they are, 0 left" in copied.stdout
    assert lines(tmp_path / "copy") == lines(source)


def test_an_error_is_one_line_without_a_stack_trace(tmp_path, stock, top):
    folder = top / "conflict"
    for kind in ("int", "string"):
        stock.call(
            "compact_calls:write", path=str(folder), format="parquet", expressions=[f"cast(id as {kind}) x"], files=2
        )
    for arguments in (
        (folder, tmp_path / "a"),
        (folder, tmp_path / "b", "--dry-run"),
        ("--in-place", "--plain-files", folder),
    ):
        done = run(*arguments)
        told = [line for line in done.stderr.splitlines() if "CANNOT_MERGE_SCHEMAS" in line]
        assert done.returncode == 1 and len(told) == 1 and told[0].startswith("millstream: "), done.stderr
        assert not re.search(r"^\s+at |Exception in task|Lost task", done.stderr, re.MULTILINE), done.stderr
    assert re.search(r"^\s+at ", run(folder, tmp_path / "c", "-v").stderr, re.MULTILINE)
    no_master = run(folder, tmp_path / "d", "--master=spark://")
    assert no_master.returncode == 1 and no_master.stderr.splitlines()[-1].startswith("millstream: ")
    assert not re.search(r"^\s+at ", no_master.stderr, re.MULTILINE), no_master.stderr


def test_the_command_says_which_headers_would_become_lines(tmp_path):
    for name, first in (
        ("same/a.csv", "id,name"),
        ("same/b.csv", "id,name"),
        ("other/a.csv", "1,x"),
        ("other/b.csv", "2,y"),
        ("text/a.txt", "same"),
        ("text/b.txt", "same"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{first}\n3,z\n")
    for name, options, told in (
        ("same", ("--no-header",), True),
        ("same", ("--no-header", "--dry-run"), True),
        ("same", ("--header",), False),
        ("other", ("--no-header",), False),
        ("text", (), False),
    ):
        done = run(tmp_path / name, tmp_path / f"out-{name}{''.join(options)}", *options)
        assert done.returncode == 0, done.stderr
        assert ("begin with the same line" in done.stderr) == told, (name, options, done.stderr)
        begins = f"millstream: {tmp_path}/{name}/a.csv and {tmp_path}/{name}/b.csv begin with the same line (id,name). If it is a header, use --header"
        assert begins in done.stderr or not told, done.stderr
