"""`millstream compact --in-place`, killed at any moment: the same command finishes it, and no line is lost or doubled.

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

KILLS = int(os.environ.get("MILLSTREAM_KILLS", "30"))
ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("MILLSTREAM_TOOL", ROOT / "target/release/millstream"))


def environment():
    import millstream

    jar = Path(millstream.__file__).parent / "jars/millstream-spark.jar"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "MILLSTREAM_JAR": str(jar), "PATH": path, "SPARK_HOME": "", "LC_ALL": "C.UTF-8", "PYSPARK_PYTHON": sys.executable}


def command(*arguments) -> list[str]:
    return [str(TOOL), "compact", "--master=local[2]", "--conf=spark.ui.enabled=false", "--conf=spark.ui.showConsoleProgress=false", *map(str, arguments)]


def compact(*arguments, expected=0):
    run = subprocess.run(command(*arguments, "--json"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.returncode == expected, run.stderr[-3000:]
    return json.loads(run.stdout) if run.stdout else run.stderr


def make_tree(top: Path, files: int) -> None:
    """Leaf directories, directories with others in them, and files at the top; every line is there once."""
    directories = ["", "k=1", "k=1/j=1", "k=2/j=1", "k=2/j=2", "plain"]
    for directory in directories:
        (top / directory).mkdir(parents=True, exist_ok=True)
        (top / directory / "_SUCCESS").touch()
    for n in range(files):
        directory = directories[n % len(directories)]
        (top / directory / f"f{n}").write_text(f"{n}.1\n{n}.2" + "\n" * (n % 2))


def lines(top: Path) -> Counter:
    """What Spark sees, without Spark."""
    found = Counter()
    for directory, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in names:
            if name[0] not in "._":
                found.update((os.path.relpath(directory, top), line) for line in Path(directory, name).read_text().splitlines())
    return found


def staging(source: Path) -> Path:
    return source.with_name(f".{source.name}.millstream-compact")


# What to wait for before the wait that ends in a kill.
STATES = {
    "anything": lambda place: True,
    "staging": lambda place: place.exists(),
    "outputs": lambda place: any_in(place / "out"),
    "journal": lambda place: (place / "journal").exists(),
    "swapped": lambda place: any_in(place / "swap"),
    "replaced": lambda place: any_in(place / "old"),
}


def any_in(directory: Path) -> bool:
    try:
        return any(True for _ in os.scandir(directory))
    except OSError:
        return False


def killed_after(source: Path, state: str, delay_s: float) -> bool:
    """Starts a compaction and kills it; whether it had not ended by itself."""
    process = subprocess.Popen(command("--in-place", source, "--target-size=8K"), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not STATES[state](staging(source)):
        time.sleep(0.0005)
    time.sleep(delay_s)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_killed_at_any_moment(tmp_path, seed):
    print("MILLSTREAM_SEED", seed)
    chance = random.Random(seed)
    found = Counter()
    kills = 0
    source = tmp_path / "source"
    make_tree(source, 6000)
    expected = lines(source)
    while kills < KILLS:
        state = list(STATES)[kills % len(STATES)]
        delay_s = chance.uniform(0, 8) if state == "anything" else chance.choice([0, chance.uniform(0, 0.02), chance.uniform(0, 0.3)])
        if not killed_after(source, state, delay_s):
            # It was too fast: there is work again in a new tree.
            assert lines(source) == expected
            source = tmp_path / f"source-{len(os.listdir(tmp_path))}"
            make_tree(source, 6000)
            found["ended"] += 1
            continue
        kills += 1
        committed = (staging(source) / "journal").exists()
        found[state, "committed" if committed else "not committed"] += 1
        print(kills, state, f"{delay_s:.3f}", "committed" if committed else "not committed", flush=True)
        if not committed:
            assert lines(source) == expected, (state, delay_s)
            continue
        if chance.random() < 0.3 and killed_after(source, "journal", chance.uniform(3, 6)):
            found["killed while it recovered"] += 1
        done = compact("--in-place", source, "--target-size=8K")
        assert done["left"] == [] and lines(source) == expected, (state, delay_s, done)
        assert not staging(source).exists()
        source = tmp_path / f"source-{len(os.listdir(tmp_path))}"
        make_tree(source, 6000)
    print(dict(found))
    assert sum(count for kind, count in found.items() if kind[-1] == "committed") >= KILLS // 5


def test_input_that_changes_meanwhile_is_left(tmp_path):
    """A file of one directory grows when the outputs have been made: its directory stays, the others are compacted."""
    source = tmp_path / "source"
    make_tree(source, 3000)
    before = lines(source)
    process = subprocess.Popen(command("--in-place", source, "--json"), env=environment(), stdout=subprocess.PIPE, text=True)
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
        done = compact("--in-place", source, expected=1)
        assert {os.path.basename(group["directory"]) for group in done["left"]} >= {"big"}
        assert "No space left" in done["left"][0]["reason"]
        assert lines(source) == before and os.listdir(small) == ["source"]
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
    told = compact(tmp_path / "nothing", "--in-place", expected=1)
    assert "there is no such directory" in told and not re.search(r"^\s+at ", told, re.MULTILINE)
    nowhere = {**environment(), "PATH": "/nowhere"}
    refused = subprocess.run(command(source, tmp_path / "other"), env=nowhere, stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1 and "SPARK_HOME" in refused.stderr
