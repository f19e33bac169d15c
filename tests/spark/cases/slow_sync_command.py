"""`psync --spark` as a command: its options, and the lines that it prints, with rsync as the oracle.

Run with `make test-group GROUP=sync-spark`.
"""

import json
import subprocess
from collections import Counter

import pytest
import sync_trees
from slow_compact import environment
from sync_trees import PSYNC


def run(*arguments, expected: int = 0):
    conf = ["--conf=spark.ui.enabled=false", "--conf=spark.ui.showConsoleProgress=false"]
    done = subprocess.run(
        [PSYNC, "--spark=local[2]", *conf, *map(str, arguments)], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == expected, done.stderr[-3000:]
    return done


def test_command_line(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    sync_trees.many_files(source, 50, 5)
    done = run("-av", source, target)
    assert sync_trees.contents(target / "source") == sync_trees.contents(source)
    names = {
        f"source/{name}/" if content == "directory" else f"source/{name}"
        for name, content in sync_trees.contents(source).items()
    }
    assert set(done.stdout.splitlines()[:-1]) == {"source/", *names}
    (target / "extra").mkdir()
    dry = run("-rltn", "--delete", "-v", f"{source}/", target)
    assert "deleting extra/" in dry.stdout.splitlines() and (target / "extra").exists()
    assert json.loads(run("-a", "--delete", "--json", f"{source}/", target).stdout)["deleted"] == 57
    assert sync_trees.snapshot(target) == sync_trees.snapshot(source)
    (source / "d0/f0").chmod(0)
    (source / "d0/f5").unlink()
    (source / "d0/f5").symlink_to("loop")
    missing = run("-a", f"{tmp_path}/nothing/", target, expected=23)
    assert (
        missing.stderr.splitlines()[-1]
        == f"psync: file:{tmp_path}/nothing: there is no such directory, so nothing was done"
    )
    (tmp_path / "list").write_text("absent\n")
    listed = run("-a", f"--files-from={tmp_path / 'list'}", f"{source}/", target, expected=23)
    assert "absent" in listed.stderr and "does not exist" in listed.stderr, listed.stderr
    assert "needs -r or -a" in run(f"{source}/", target, expected=1).stderr


def test_urls_need_no_option(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    sync_trees.many_files(source, 50, 5)
    command = [PSYNC, "-a", "--conf=spark.ui.enabled=false", f"file://{source}/", target]
    done = subprocess.run(list(map(str, command)), env=environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "50 files" in done.stdout, done.stderr[-3000:]
    assert sync_trees.snapshot(target) == sync_trees.snapshot(source)


@pytest.mark.parametrize(
    "options",
    ["-aHXii", "-aii -c", "-rltii -u", "-aii --existing", "-aHii --ignore-existing", "-aHi", "-aiiI --size-only"],
)
def test_items_are_those_of_rsync(tmp_path, options):
    seed = len(options)
    source, target, expected = tmp_path / "source", tmp_path / "target", tmp_path / "expected"
    sync_trees.make(source, seed)
    sync_trees.enrich(source, seed + 1)
    subprocess.run(["rsync", "-aHAX", f"{source}/", f"{target}/"], check=True)
    sync_trees.mutate(target, seed, changes=15)
    sync_trees.enrich(target, seed + 2, changes=10)
    subprocess.run(["rsync", "-aHAX", f"{target}/", f"{expected}/"], check=True)
    by_rsync = subprocess.run(
        ["rsync", "--delete", "--modify-window=0", *options.split(), f"{source}/", f"{expected}/"],
        capture_output=True,
        text=True,
    )
    done = run("--delete", "--modify-window=0", *options.split(), f"{source}/", target, expected=by_rsync.returncode)
    # Skipped entries are reported on standard error, like everything that is not a change.
    ours, theirs = (
        Counter(line for line in text.splitlines() if not line.startswith("skipping"))
        for text in (done.stdout.rsplit("\n", 2)[0], by_rsync.stdout)
    )
    assert (ours - theirs, theirs - ours) == (Counter(), Counter())
    assert len(by_rsync.stdout.splitlines()) > 20
