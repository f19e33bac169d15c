"""`millstream.sync` preserves the metadata of local files: hard links, ACLs, extended attributes, holes, owners."""

import json
import os
import random
import subprocess

import pytest
import sync_trees
from slow_compact import environment
from sync_trees import PSYNC, files, rsync_finds, sync

ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount, and make devices")
EVERYTHING = {"delete": True, "hard_links": True, "acls": True, "xattrs": True, "sparse": True}


@ONLY_ROOT
def test_everything_that_local_trees_have_is_preserved(ours, pair, seed):
    source, destination = pair
    sync_trees.make(source, seed)
    sync_trees.enrich(source, seed)
    done = sync(ours, source, destination, **EVERYTHING)
    assert (done["problems"], done["exit_code"], done["notices"]) == ([], 0, []), done
    assert rsync_finds(source, destination, "-aHAXnic") == ""
    again = sync(ours, source, destination, **EVERYTHING)
    assert [again[key] for key in ("created", "copied_files", "amended", "deleted", "errors")] == [0] * 5, again
    sync_trees.mutate(destination, seed)
    sync_trees.enrich(destination, seed + 1)
    sync_trees.enrich(source, seed + 2, changes=10)
    repaired = sync(ours, source, destination, checksum=True, **EVERYTHING)
    assert (repaired["problems"], repaired["exit_code"]) == ([], 0), repaired
    assert rsync_finds(source, destination, "-aHAXnic") == ""


def test_names_of_one_file_become_names_of_one_copy(ours, pair):
    source, destination = pair
    files(source, a="1", d__b="2", alone="1", kept="old")
    os.link(source / "a", source / "d/c")
    os.link(source / "a", source / "e")
    os.link(source / "d/b", source.parent / "outside")
    os.link(source / "kept", source / "new")
    files(destination, kept="old", e="another", alone="1")
    os.link(destination / "alone", destination / "a")
    os.link(destination / "kept", destination / "surplus")
    kept = (destination / "kept").stat().st_ino
    done = sync(ours, source, destination, hard_links=True, delete=True)
    inodes = {name: (destination / name).stat().st_ino for name in ("a", "d/c", "e", "d/b", "alone", "kept", "new")}
    assert inodes["a"] == inodes["d/c"] == inodes["e"] and inodes["kept"] == inodes["new"] == kept, inodes
    assert len(set(inodes.values())) == 4 and (destination / "d/b").stat().st_nlink == 1
    assert (done["copied_files"], done["created"], done["errors"]) == (2, 4, 0), done
    assert rsync_finds(source, destination) == ""
    (source / "a").write_text("changed")
    assert sync(ours, source, destination, hard_links=True, verify=True)["copied_files"] == 1
    assert rsync_finds(source, destination) == ""
    assert {(destination / name).read_text() for name in ("a", "d/c", "e")} == {"changed"}


@pytest.mark.parametrize("old", ["old", "old contents"])
def test_no_hard_link_is_made_to_a_copy_that_failed(ours, pair, old):
    source, destination = pair
    files(source, a="new contents")
    os.link(source / "a", source / "b")
    files(destination, a=old)
    os.utime(destination / "a", (1, 1))
    (source / "a").chmod(0)
    done = sync(ours, source, destination, hard_links=True, delete=True)
    assert [problem["path"] for problem in done["problems"]] == ["a", "b"], done
    assert "that it links to was not copied: a" in done["problems"][1]["message"] and os.listdir(destination) == ["a"]
    assert (destination / "a").read_text() == old


def test_attributes_of_a_file_with_other_names_are_not_theirs(ours, pair):
    source, destination = pair
    files(source, a="1", b="1")
    (source / "b").chmod(0o600)
    files(destination, a="1")
    os.link(destination / "a", destination / "b")
    sync(ours, source, destination)
    assert rsync_finds(source, destination) == "" and (destination / "a").stat().st_mode & 0o777 != 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_other_file_systems_are_left_alone_if_asked(ours, pair):
    source, destination = pair
    files(source, a="1")
    (source / "d/mount").mkdir(parents=True)
    files(destination, d__mount__kept="2", d__gone="3", gone__x="")
    subprocess.run(["mount", "-t", "tmpfs", "none", source / "d/mount"], check=True)
    try:
        files(source / "d/mount", not__copied="4")
        done = sync(ours, source, destination, delete=True, one_file_system=True)
        assert done["problems"] == [] and sync_trees.contents(destination).keys() == {
            "a",
            "d",
            "d/mount",
            "d/mount/kept",
        }, done
        sync(ours, source, destination, delete=True)
        assert (destination / "d/mount/not/copied").read_text() == "4" and not (destination / "d/mount/kept").exists()
    finally:
        subprocess.run(["umount", source / "d/mount"], check=True)


@ONLY_ROOT
def test_what_the_destination_cannot_store_is_an_error_of_the_attribute(ours, pair):
    source, destination = pair
    files(source, a="1", d__b="2")
    os.setxattr(source / "a", "user.note", b"1")
    os.setxattr(source / "d/b", "system.posix_acl_access", sync_trees.access_list(random.Random(1)))
    os.link(source / "a", source / "c")
    destination.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", destination], check=True)
    try:
        files(destination, surplus="x")
        done = sync(ours, source, destination, **EVERYTHING)
        assert [(problem["path"], problem["operation"]) for problem in done["problems"]] == [
            ("a", "set attributes of"),
            ("d/b", "set attributes of"),
        ], done
        assert "Operation not supported" in done["problems"][0]["message"] and done["exit_code"] == 23
        assert sync_trees.contents(destination) == sync_trees.contents(source)
        assert (destination / "a").stat().st_nlink == 2
    finally:
        subprocess.run(["umount", destination], check=True)


@ONLY_ROOT
def test_a_user_needs_no_more_than_to_write_to_the_destination(tmp_path):
    """Neither the directory for temporary files nor the destination is the user's, who is root without the right to
    change what is not his.
    """
    files(tmp_path / "source", a="1", d__b="2", secret="3")
    (tmp_path / "source/secret").chmod(0)
    for name in ("destination", "tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o1777)
        os.chown(tmp_path / name, 1234, 1234)
    powers = "-fowner,-chown,-dac_override,-dac_read_search"
    command = [
        "setpriv",
        f"--bounding-set={powers}",
        f"--inh-caps={powers}",
        PSYNC,
        "--spark=local[2]",
        "--conf=spark.ui.enabled=false",
        "--json",
        f"--conf=spark.driver.extraJavaOptions=-Djava.io.tmpdir={tmp_path / 'tmp'}",
    ]

    def run(*options):
        words = [*command, *options, f"{tmp_path / 'source'}/", tmp_path / "destination"]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True)
        assert done.returncode == 23, done.stderr[-2000:]
        return json.loads(done.stdout)

    done = run("-r")
    assert (done["copied_files"], [problem["path"] for problem in done["problems"]]) == (2, ["secret"]), done
    assert (tmp_path / "destination/d/b").read_text() == "2"
    assert {problem["path"] for problem in run("-a")["problems"]} == {"", "secret"}


@pytest.mark.parametrize("option", ["hard_links", "sparse"])
def test_what_a_store_cannot_have_is_refused(ours, pair, option):
    source, destination = pair
    files(source, a="1")
    said = sync(ours, source, f"hdfs://127.0.0.1:1{destination}", **{option: True})["error"]
    assert option in said and f"hdfs://127.0.0.1:1{destination}" in said and "does not support it" in said, said
