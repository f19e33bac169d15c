"""`millstream.sync` of listed paths only, with rsync as the oracle."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
import sync_trees
from latency_mount import LatencyMount
from sync_trees import sync


def write_list(file: Path, *paths: str) -> Path:
    file.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
    return file


def state(top: Path, with_root: bool = False) -> dict:
    """What is in a tree. The time at which something was done in a directory is that of the run; the root has it unless
    it takes part.
    """
    of_run = (sync_trees.LAST_S + 1) * 1_000_000
    found = {name: about for name, about in sync_trees.snapshot(top).items() if name != "." or with_root}
    return {name: (*about[:4], min(about[4], of_run), about[5]) for name, about in found.items()}


def written(path: str, chance: random.Random) -> str:
    """A path in one of the notations that a list allows."""
    return chance.choice(["{}", "{}", "./{}", "/{}", "none/../{}"]).format(path) + chance.choice(["", "", "/", "/."])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"recursive": True},
        {"delete": True},
        {"recursive": True, "delete": True},
        {"recursive": True, "delete": True, "filters": ["- *1*", "+ *2*", "P *3*", "- /*4*"]},
        {"recursive": True, "delete_excluded": True, "filters": ["- *1*", "P *3*"]},
        {"delete": True, "filters": ["H *1*", "H *2*", "R *3*"]},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_the_same_as_with_rsync(ours, tmp_path, seed, options):
    chance = random.Random(seed)
    source, destination, expected, paths = (tmp_path / name for name in ("source", "destination", "expected", "list"))
    sync_trees.make(source, seed)
    shutil.copytree(source, destination, symlinks=True, copy_function=shutil.copy2)
    sync_trees.mutate(destination, seed)
    subprocess.run(["cp", "-a", f"{destination}/", expected], check=True)
    found = sorted(str(path.relative_to(source)) for path in source.rglob("*"))
    write_list(paths, *(written(path, chance) for path in chance.choices(found, k=chance.choice([1, 5, 40]))))
    names = {"recursive": "-r", "delete": "--delete", "delete_excluded": "--delete-excluded"}
    flags = [flag for name, flag in names.items() if options.get(name)]
    filters = [f"--filter={rule}" for rule in options.get("filters", [])]
    subprocess.run(
        ["rsync", "-a", "--force", *flags, *filters, "--from0", f"--files-from={paths}", f"{source}/", f"{expected}/"],
        check=True,
    )
    done = sync(ours, source, destination, files_from=str(paths), from0=True, force=True, **options)
    assert done["exit_code"] == 0, done["problems"]
    with_root = any(path.startswith(b"./") for path in paths.read_bytes().split(b"\0"))
    assert state(destination, with_root) == state(expected, with_root), paths.read_bytes()


def test_paths_that_do_not_exist_are_errors_and_nothing_is_deleted(ours, tmp_path):
    source, destination = tmp_path / "source", tmp_path / "destination"
    for path in source / "d/a", destination / "d/surplus", destination / "gone/b":
        path.parent.mkdir(parents=True)
        path.write_text("1")
    paths = write_list(tmp_path / "list", "d/", "gone/b", "gone")
    done = sync(ours, source, destination, files_from=str(paths), from0=True, recursive=True, delete=True)
    assert done["exit_code"] == 23 and {problem["path"] for problem in done["problems"]} == {"gone/b", "gone"}, done
    assert sorted(path.name for path in destination.rglob("*")) == ["a", "b", "d", "gone", "surplus"]
    paths = write_list(tmp_path / "list", "d/")
    assert (
        sync(ours, source, destination, files_from=str(paths), from0=True, recursive=True, delete=True)["deleted"] == 1
    )
    assert sorted(path.name for path in destination.rglob("*")) == ["a", "b", "d", "gone"], (
        "what no list names is not deleted"
    )


def test_what_is_beside_listed_paths_is_not_looked_at(ours, tmp_path):
    source, destination = tmp_path / "source", tmp_path / "destination"
    for number in range(1000):
        (source / f"d{number}").mkdir(parents=True)
        (source / f"d{number}/f").write_text(f"{number}")
    (tmp_path / "list").write_text("d7/f\n# a comment\n\nd8\nd9/.psync-0badcafe-4711-1.tmp\n")
    (source / "d9/.psync-0badcafe-4711-1.tmp").write_text("of a run")
    dry = sync(ours, source, destination, files_from=str(tmp_path / "list"), dry_run=True)
    assert (dry["copied_files"], dry["created"], dry["exit_code"]) == (1, 3, 0) and not destination.exists(), dry
    with LatencyMount(source, delay_us=0) as mount:
        done = sync(ours, mount.path, destination, files_from=str(tmp_path / "list"))
    assert (done["files"], done["directories"], done["copied_files"]) == (1, 2, 1), done
    assert mount.statistics.total < 150, vars(mount.statistics)
    assert sorted(str(path.relative_to(destination)) for path in destination.rglob("*")) == ["d7", "d7/f", "d8"]
    before = destination.stat().st_mtime_ns
    again = sync(ours, source, destination, files_from=str(tmp_path / "list"))
    assert (again["copied_files"], again["created"], again["amended"]) == (0, 0, 0), again
    assert destination.stat().st_mtime_ns == before


def test_an_empty_directory_that_is_listed_empties_its_copy(ours, tmp_path):
    source, destination = tmp_path / "source", tmp_path / "destination"
    for path in source / "other/file", destination / "d/surplus", destination / "e":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    (source / "d").mkdir()
    paths = write_list(tmp_path / "list", "d/")
    done = sync(ours, source, destination, files_from=str(paths), from0=True, delete=True)
    assert (done["exit_code"], done["deleted"], done["notices"]) == (0, 1, []), done
    assert sorted(path.name for path in destination.rglob("*")) == ["d", "e"]


def test_a_directory_takes_part_although_what_it_leads_to_is_excluded(ours, tmp_path):
    """It is inside a listed one. Seed 306816167 found that its contents were missing."""
    source, destination = tmp_path / "source", tmp_path / "destination"
    for name in ("d/in/a", "d/in/out"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("1")
    destination.mkdir()
    paths = write_list(tmp_path / "list", "d/", "d/in/out")
    done = sync(ours, source, destination, files_from=str(paths), from0=True, recursive=True, filters=["- out"])
    assert (done["exit_code"], done["copied_files"]) == (0, 1), done
    assert sorted(str(path.relative_to(destination)) for path in destination.rglob("*")) == ["d", "d/in", "d/in/a"]


def test_a_listed_directory_that_is_excluded_is_deleted_with_its_contents(ours, tmp_path):
    """It is listed by its name, and in another one; the source has all of it."""
    source, destination = tmp_path / "source", tmp_path / "destination"
    for path in [top / name for top in (source, destination) for name in ("d/a", "d/out/a", "d/out/in/b")]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    paths = write_list(tmp_path / "list", "d", "d/out")
    done = sync(
        ours,
        source,
        destination,
        files_from=str(paths),
        from0=True,
        recursive=True,
        delete_excluded=True,
        filters=["- out"],
    )
    assert (done["exit_code"], done["deleted"], done["notices"]) == (0, 4, []), done
    assert sorted(path.name for path in destination.rglob("*")) == ["a", "d"]


def test_a_directory_that_leads_only_to_excluded_paths_is_deleted(ours, tmp_path):
    """It is in a listed one, and the source has it. Seed 921246189 found that what was in it stayed."""
    source, destination = tmp_path / "source", tmp_path / "destination"
    for path in [top / name for top in (source, destination) for name in ("d/1/in/kept", "d/1/in/out", "d/2/in/b")]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    paths = write_list(tmp_path / "list", "d/", "d/1/in/out", "d/2/in/b")
    filters = ["H out", "H 1", "H 2"]
    done = sync(ours, source, destination, files_from=str(paths), from0=True, delete=True, filters=filters)
    assert (done["exit_code"], done["deleted"], done["notices"]) == (0, 4, []), done
    assert sorted(str(path.relative_to(destination)) for path in destination.rglob("*")) == [
        "d",
        "d/2",
        "d/2/in",
        "d/2/in/b",
    ]


def test_nothing_of_a_mount_makes_way_for_what_is_listed(ours, tmp_path):
    source, destination = tmp_path / "source", tmp_path / "destination"
    (source / "m").mkdir(parents=True)
    (source / "m/d").write_text("a file")
    (destination / "m").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", destination / "m"], check=True)
    try:
        (destination / "m/d").mkdir()
        (destination / "m/d/kept").write_text("1")
        done = sync(
            ours, source, destination, files_from=str(write_list(tmp_path / "list", "m/d")), from0=True, force=True
        )
        assert done["exit_code"] == 23 and "a mount in the destination" in done["problems"][0]["message"], done
        assert (destination / "m/d/kept").read_text() == "1"
    finally:
        subprocess.run(["umount", destination / "m"], check=True)


def test_a_list_is_a_part_of_what_a_checkpoint_resumes(ours, tmp_path):
    source, destination, paths, checkpoint = (
        tmp_path / name for name in ("source", "destination", "list", "checkpoint")
    )
    source.mkdir()
    (source / "a").write_text("1"), (source / "b").write_text("2")

    def run(name):
        paths.write_text(name)
        done = sync(ours, source, destination, files_from=str(paths), checkpoint=str(checkpoint))
        (checkpoint / "finished.complete").unlink()
        return [notice.split(" ")[0] for notice in done["notices"]], sorted(os.listdir(destination))

    assert run("a") == ([], ["a"])
    assert run("a") == (["resuming"], ["a"])
    assert run("b") == ([], ["a", "b"])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"files_from": "absent"}, "the list of files cannot be read"),
        ({"files_from": "bad"}, "'a/./b' in the list of files"),
        ({"from0": True}, "from0 describes the format of files-from"),
        ({"recursive": False}, "without a list of files"),
    ],
)
def test_what_cannot_be_is_refused(ours, tmp_path, options, message):
    (tmp_path / "bad").write_text("a/./b")
    if "files_from" in options:
        options = {**options, "files_from": str(tmp_path / options["files_from"])}
    (tmp_path / "source").mkdir()
    refused = sync(ours, tmp_path / "source", tmp_path / "destination", **options)
    assert message in refused["error"], refused
    assert not (tmp_path / "destination").exists()


@pytest.mark.parametrize("text", ["", "\n# nothing\n"])
def test_an_empty_list_does_nothing(ours, tmp_path, text):
    source, destination = tmp_path / "source", tmp_path / "destination"
    for top, name in (source, "a"), (destination, "b"):
        top.mkdir()
        (top / name).write_text("1")
    (tmp_path / "list").write_text(text)
    done = sync(ours, source, destination, files_from=str(tmp_path / "list"), delete=True)
    assert (done["exit_code"], done["deleted"], done["copied_files"]) == (0, 0, 0), done
    assert os.listdir(destination) == ["b"]
