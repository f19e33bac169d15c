"""`millstream.sync` of listed paths alone, with rsync as the oracle."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
import sync_trees


def sync(session, source, destination, **options):
    found = session.call("sync_calls:sync", src=str(source), dst=str(destination), **options)
    assert "crash" not in found, found["crash"]
    return found


def write_list(file: Path, *paths: str) -> Path:
    file.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
    return file


def below(top: Path) -> dict:
    """A list says nothing about the root unless it names it, so its time may differ."""
    return {name: about for name, about in sync_trees.snapshot(top).items() if name != "."}


def written(path: str, chance: random.Random) -> str:
    """A path in one of the ways in which a list can have it."""
    return chance.choice(["{}", "{}", "./{}", "/{}", "none/../{}"]).format(path) + chance.choice(["", "", "/", "/."])


@pytest.mark.parametrize("options", [
    {}, {"recursive": True}, {"delete": True}, {"recursive": True, "delete": True},
    {"recursive": True, "delete": True, "filters": ["- *1*", "+ *2*", "P *3*", "- /*4*"]},
], ids=lambda options: "-".join(options) or "plain")
def test_the_same_as_with_rsync(ours, tmp_path, seed, options):
    chance = random.Random(seed)
    source, destination, expected, paths = (tmp_path / name for name in ("source", "destination", "expected", "list"))
    sync_trees.make(source, seed)
    shutil.copytree(source, destination, symlinks=True, copy_function=shutil.copy2)
    sync_trees.mutate(destination, seed)
    subprocess.run(["cp", "-a", f"{destination}/", expected], check=True)
    found = sorted(str(path.relative_to(source)) for path in source.rglob("*"))
    write_list(paths, *(written(path, chance) for path in chance.choices(found, k=chance.choice([1, 5, 40]))))
    flags = ["-r"] * options.get("recursive", False) + ["--delete"] * options.get("delete", False)
    filters = [f"--filter={rule}" for rule in options.get("filters", [])]
    subprocess.run(["rsync", "-a", "--force", *flags, *filters, "--from0", f"--files-from={paths}", f"{source}/", f"{expected}/"], check=True)
    done = sync(ours, source, destination, files_from=str(paths), from0=True, force=True, **options)
    assert done["exit_code"] == 0, done["problems"]
    assert below(destination) == below(expected), paths.read_bytes()


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
    assert sync(ours, source, destination, files_from=str(paths), from0=True, recursive=True, delete=True)["deleted"] == 1
    assert sorted(path.name for path in destination.rglob("*")) == ["a", "b", "d", "gone"], "what no list names is not deleted"


def test_what_is_beside_listed_paths_is_not_looked_at(ours, tmp_path):
    source, destination = tmp_path / "source", tmp_path / "destination"
    for number in range(50):
        (source / f"d{number}").mkdir(parents=True)
        (source / f"d{number}/f").write_text(f"{number}")
    (tmp_path / "list").write_text("d7/f\n# a comment\n\nd8\n")
    done = sync(ours, source, destination, files_from=str(tmp_path / "list"))
    assert (done["files"], done["directories"], done["copied_files"]) == (1, 2, 1), done
    assert sorted(str(path.relative_to(destination)) for path in destination.rglob("*")) == ["d7", "d7/f", "d8"]
    again = sync(ours, source, destination, files_from=str(tmp_path / "list"))
    assert (again["copied_files"], again["created"], again["amended"]) == (0, 0, 0), again


def test_a_list_is_a_part_of_what_a_checkpoint_resumes(ours, tmp_path):
    source, destination, paths = tmp_path / "source", tmp_path / "destination", tmp_path / "list"
    source.mkdir()
    (source / "a").write_text("1"), (source / "b").write_text("2")
    for name in "a", "b":
        paths.write_text(name)
        assert sync(ours, source, destination, files_from=str(paths), checkpoint=str(tmp_path / "checkpoint"))["copied_files"] == 1
    assert sorted(os.listdir(destination)) == ["a", "b"]


@pytest.mark.parametrize("options, message", [
    ({"files_from": "absent"}, "the list of files cannot be read"),
    ({"files_from": "bad"}, "'a/./b' in the list of files"),
    ({"from0": True}, "from0 says how files-from is written"),
    ({"recursive": False}, "without a list of files"),
])
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
