"""`millstream.sync` with rules for filters and deletions, compared with rsync, and the output of `psync --spark`."""

import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import sync_filters
import sync_trees
from slow_compact import environment
from sync_trees import PSYNC, files, rsync, sync

CASES = int(os.environ.get("SYNC_FILTER_CASES", "8"))


def paths(top: Path) -> dict[str, str]:
    return {name: content for name, (_, _, _, _, _, content) in sync_trees.snapshot(top, times=False).items()}


def test_filters_decide_as_those_of_rsync(ours, pair, seed):
    source, destination = pair
    chance = random.Random(seed)
    kept = deleted = cases = 0
    # Some cases decide little.
    while cases < CASES or (min(kept, deleted) <= CASES and cases < 4 * CASES):
        cases += 1
        for side in pair:
            shutil.rmtree(side, ignore_errors=True)
        nodes = sync_filters.tree(chance)
        rules = sync_filters.rules(chance, nodes, source.parent)
        delete_excluded = chance.random() < 0.25
        sync_filters.make(source, nodes, "source")
        sync_filters.make(destination, nodes, "destination")
        before = paths(destination)
        rsync(
            "-a",
            "--delete",
            *(["--delete-excluded"] if delete_excluded else []),
            *sync_filters.options(rules),
            f"{source}/",
            f"{destination}/",
        )
        expected = paths(destination)
        shutil.rmtree(destination)
        sync_filters.make(destination, nodes, "destination")
        dry = sync(ours, source, destination, delete=True, delete_excluded=delete_excluded, dry_run=True, **rules)
        done = sync(ours, source, destination, delete=True, delete_excluded=delete_excluded, **rules)
        about = f"seed {seed}: {sync_filters.options(rules)}, delete_excluded={delete_excluded}, {nodes}"
        assert "error" not in done and done["exit_code"] == 0, f"{done}\n{about}"
        assert paths(destination) == expected, about
        assert done["deleted"] == len(before.keys() - expected.keys()) == dry["deleted"], f"{done} {dry}\n{about}"
        kept += len(expected.keys() - paths(source).keys())
        deleted += done["deleted"]
    assert kept > CASES and deleted > CASES, "the rules decide nothing"


def test_names_of_the_transfer_begin_with_that_of_the_source(ours, pair):
    source, destination = pair
    files(source, a="1", b="2", d__a="3")
    settings = {"source": str(source), "destination": f"{destination}/source", "prefix": "source"}

    def run(*rules):
        shutil.rmtree(destination, ignore_errors=True)
        json.loads(
            ours.call("sync_calls:settings", **settings, **{f"filter_{at}": rule for at, rule in enumerate(rules)})
        )
        found = sorted(sync_trees.contents(destination)) if destination.exists() else []
        shutil.rmtree(destination, ignore_errors=True)
        rsync("-a", *(f"--filter={rule[1:]}" for rule in rules), source, f"{destination}/")
        assert found == (sorted(sync_trees.contents(destination)) if destination.exists() else []), rules
        return found

    assert run("f- /source/a") == ["source", "source/b", "source/d", "source/d/a"]
    assert run("f- /a") == ["source", "source/a", "source/b", "source/d", "source/d/a"]
    assert run("f- d/a", f"f-/ {source}/b") == ["source", "source/a", "source/d"]
    assert run("f- source") == []


def test_directories_stay_that_hold_what_is_protected(ours, pair):
    source, destination = pair
    files(source, a="1")
    files(destination, a="1", old__deep__kept="x", old__deep__gone="x", other__gone="x", safe__inside__x="x")
    dry = sync(ours, source, destination, delete=True, filters=["P kept", "P /safe/"], dry_run=True)
    done = sync(ours, source, destination, delete=True, filters=["P kept", "P /safe/"])
    assert (done["deleted"], done["exit_code"], done["notices"]) == (
        3,
        0,
        ["cannot delete non-empty directory: old"],
    ), done
    assert (dry["deleted"], dry["notices"]) == (3, [])
    assert sorted(paths(destination)) == [
        ".",
        "a",
        "old",
        "old/deep",
        "old/deep/kept",
        "safe",
        "safe/inside",
        "safe/inside/x",
    ]


def test_an_excluded_directory_is_not_listed(ours, pair):
    source, destination = pair
    files(source, locked__a="1", open__b="2")
    files(destination, locked__a="1", open__x="gone")
    for side in pair:
        (side / "locked").chmod(0)
    try:
        done = sync(ours, source, destination, delete=True, exclude=["locked/"])
        assert (done["errors"], done["deleted"], done["files"]) == (0, 1, 1), done
    finally:
        for side in pair:
            (side / "locked").chmod(0o755)


def test_a_source_of_which_all_is_excluded_is_not_empty(ours, pair):
    source, destination = pair
    files(source, a="1")
    files(destination, a="1", b__c="2")
    assert sync(ours, source, destination, delete=True, exclude=["*"])["deleted"] == 0
    assert sync(ours, source, destination, delete_excluded=True, exclude=["*"])["deleted"] == 3
    assert os.listdir(destination) == []


def test_a_protected_entry_in_the_way_stays(ours, pair):
    source, destination = pair
    files(source, x="file", y="file")
    files(destination, x__kept="x", x__gone="x", y__gone="x")
    done = sync(ours, source, destination, delete=True, filters=["P kept"])
    assert done["exit_code"] == 23 and [problem["path"] for problem in done["problems"]] == ["x"], done
    assert paths(destination).keys() == {".", "x", "x/kept", "y"}


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"filters": ["x y"]}, "filter rule 'x y': a rule begins with"),
        ({"filters": ["dir-merge .rules"]}, "rule files in the source tree (dir-merge) are not supported"),
        ({"filters": [": .rules"]}, "rule files in the source tree (dir-merge) are not supported"),
        ({"filters": [". /nonexistent"]}, "filter rule '. /nonexistent'"),
    ],
)
def test_rules_that_are_wrong_are_refused(ours, pair, arguments, word):
    source, destination = pair
    files(source, a="1")
    assert word in sync(ours, source, destination, **arguments)["error"]
    assert not destination.exists()


def test_errors_of_copies_prevent_deletions(ours, pair):
    source, destination = pair
    files(source, a="1", b="2")
    files(destination, old="kept")
    (source / "b").chmod(0)
    done = sync(ours, source, destination, delete=True)
    assert (done["errors"], done["deleted"], done["exit_code"]) == (1, 0, 23), done
    assert done["notices"] == [
        "nothing is deleted, because something failed before; --ignore-errors (ignore_errors=True) deletes anyway"
    ]
    assert sync(ours, source, destination, delete=True, ignore_errors=True)["deleted"] == 1
    assert sorted(os.listdir(destination)) == ["a"]


def test_errors_can_be_ignored_but_not_what_is_not_known(ours, pair):
    source, destination = pair
    files(source, locked__a="1", open__b="2")
    files(destination, locked__a="1", locked__x="kept", locked__d__y="kept", open__x="gone")
    (source / "locked").chmod(0)
    try:
        done = sync(ours, source, destination, delete=True, ignore_errors=True, perms=False, times=False)
        assert (done["deleted"], done["exit_code"]) == (1, 23), done
    finally:
        (source / "locked").chmod(0o755)
    assert paths(destination).keys() == {
        ".",
        "locked",
        "locked/a",
        "locked/x",
        "locked/d",
        "locked/d/y",
        "open",
        "open/b",
    }


def test_force_empties_what_is_in_the_way(ours, pair):
    source, destination = pair
    files(source, x="file")
    files(destination, x__y="x", other="kept")
    assert sync(ours, source, destination)["exit_code"] == 23
    assert sync(ours, source, destination, force=True)["exit_code"] == 0
    assert paths(destination).keys() == {".", "x", "other"} and (destination / "x").is_file()


def test_deletions_come_first_if_asked(ours, pair):
    source, destination = pair
    files(source, a="1", b="2")
    files(destination, old__x="gone")
    (source / "b").chmod(0)
    # The error of reading b comes when the deletions are done.
    done = sync(ours, source, destination, delete_before=True)
    assert (done["errors"], done["deleted"], done["exit_code"]) == (1, 2, 23), done
    assert os.listdir(destination) == ["a"]


def test_copies_keep_to_a_rate(ours, pair):
    source, destination = pair
    source.mkdir()
    (source / "large").write_bytes(os.urandom(6 << 20))
    for number in range(4):
        (source / f"small{number}").write_bytes(os.urandom(1 << 18))
    start = time.monotonic()
    done = sync(ours, source, destination, bytes_per_second=4 << 20)
    # One task copies them, which has half of the rate.
    assert done["exit_code"] == 0 and time.monotonic() - start > 3, done
    assert sync_trees.contents(destination) == sync_trees.contents(source)


def lines(*arguments) -> list[str]:
    done = subprocess.run([PSYNC, *map(str, arguments)], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize(
    "options, operand",
    [
        (["-ai", "--delete"], "source/"),
        (["-avn", "--delete"], "source"),
        (["-rlpci", "--delete"], "source/"),
        (["-aHXi", "--delete"], "source/"),
    ],
)
def test_lines_are_those_of_psync_without_spark(pair, options, operand):
    source, destination = pair
    copy = destination if operand.endswith("/") else destination / "source"
    sync_trees.make(source, 5, files=40, directories=10)
    rsync("-a", f"{source}/", f"{copy}/") if operand.endswith("/") else rsync("-a", source, f"{destination}/")
    sync_trees.mutate(copy, 5, changes=20)
    files(source, new__below__file="1")
    (source / "new/\\#123\n").symlink_to("t\n")
    os.mkfifo(source / "new/pipe")
    if os.geteuid() == 0:
        os.mknod(source / "new/device", 0o20600, os.makedev(1, 3))
    if "-aHXi" in options:
        os.link(source / "new/below/file", source / "new/other")
        os.link(source / "new/below/file", source / "first")
        os.setxattr(source / "new", "user.n", b"1")
        os.setxattr(copy, "user.n", b"1")
    before = destination.with_name("before")
    shutil.copytree(destination, before, symlinks=True)
    expected = lines(*options, f"{source.parent}/{operand}", destination)
    shutil.rmtree(destination)
    # The same path, with the same times.
    rsync("-aX", f"{before}/", f"{destination}/")
    conf = ["--conf=spark.ui.enabled=false", "--conf=spark.ui.showConsoleProgress=false"]
    found = lines("--spark=local[2]", *conf, *options, f"{source.parent}/{operand}", destination)
    # The names of skipped entries are notices there.
    assert [line for line in found if " entries (" not in line] == [
        line for line in expected if not line.startswith("skipping")
    ]
