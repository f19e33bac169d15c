"""`millstream.sync` between local directories: afterwards `rsync -n` finds nothing to do, and nothing is deleted
without need.
"""

import ctypes
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
import sync_trees
from sessions import Session
from sync_trees import files, rsync, rsync_finds, sync


def test_random_trees_become_like_their_source(ours, pair, seed):
    source, destination = pair
    sync_trees.make(source, seed)
    done = sync(ours, source, destination, delete=True)
    assert (done["errors"], done["exit_code"]) == (0, 0), done
    assert sync_trees.snapshot(destination) == sync_trees.snapshot(source)
    assert rsync_finds(source, destination) == ""
    again = sync(ours, source, destination, delete=True)
    assert [again[key] for key in ("created", "copied_files", "amended", "deleted", "errors")] == [0] * 5, again
    sync_trees.mutate(destination, seed)
    repaired = sync(ours, source, destination, delete=True, checksum=True)
    assert repaired["problems"] == [], repaired["problems"]
    assert sync_trees.snapshot(destination) == sync_trees.snapshot(source)
    assert rsync_finds(source, destination) == ""


def test_large_trees_are_listed_in_rounds_and_copied_by_many_tasks(ours, pair):
    source, destination = pair
    for directory in range(60):
        (source / f"d{directory}" / "below").mkdir(parents=True)
        for number in range(60):
            (source / f"d{directory}" / "below" / f"f{number}").write_text(f"{directory}.{number}")
    (source / "large").write_bytes(os.urandom(40 << 20))
    done = sync(ours, source, destination, verify=True)
    assert (done["files"], done["copied_files"], done["directories"]) == (3601, 3601, 121), done
    assert sync_trees.snapshot(destination) == sync_trees.snapshot(source)


def test_dry_run_changes_nothing_and_predicts_the_run(ours, pair):
    source, destination = pair
    sync_trees.make(source, 1)
    (destination / "extra").mkdir(parents=True)
    before = sync_trees.snapshot(destination)
    dry = sync(ours, source, destination, delete=True, dry_run=True)
    assert sync_trees.snapshot(destination) == before
    done = sync(ours, source, destination, delete=True)
    counted = ("created", "copied_files", "copied_bytes", "deleted")
    assert [dry[key] for key in counted] == [done[key] for key in counted]
    assert dry["dry_run"] and not done["dry_run"]


def test_dry_run_makes_no_destination(ours, pair):
    source, destination = pair
    files(source, a="1")
    before = source.parent.stat().st_mtime_ns
    assert sync(ours, source, destination, dry_run=True)["copied_files"] == 1
    assert (
        not destination.exists()
        and source.parent.stat().st_mtime_ns == before
        and sorted(os.listdir(source.parent)) == ["source"]
    )


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {"same": "old", "size": "longer", "time": "new", "older": "new", "new": "new", "extra": "old"}),
        ({"delete": True}, {"same": "old", "size": "longer", "time": "new", "older": "new", "new": "new"}),
        ({"existing": True}, {"same": "old", "size": "longer", "time": "new", "older": "new", "extra": "old"}),
        (
            {"ignore_existing": True},
            {"same": "old", "size": "old", "time": "old", "older": "old", "new": "new", "extra": "old"},
        ),
        (
            {"update": True},
            {"same": "old", "size": "longer", "time": "new", "older": "old", "new": "new", "extra": "old"},
        ),
        (
            {"size_only": True},
            {"same": "old", "size": "longer", "time": "old", "older": "old", "new": "new", "extra": "old"},
        ),
        (
            {"checksum": True},
            {"same": "new", "size": "longer", "time": "new", "older": "new", "new": "new", "extra": "old"},
        ),
        (
            {"ignore_times": True},
            {"same": "new", "size": "longer", "time": "new", "older": "new", "new": "new", "extra": "old"},
        ),
        (
            {"modify_window": 1000},
            {"same": "old", "size": "longer", "time": "old", "older": "new", "new": "new", "extra": "old"},
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) and not set(value) & {"same"} else "",
)
def test_what_counts_as_changed(ours, pair, options, expected):
    source, destination = pair
    files(source, same="new", size="longer", time="new", older="new", new="new")
    files(destination, same="old", size="old", time="old", older="old", extra="old")
    os.utime(source / "time", (1_500_000_500, 1_500_000_500))
    os.utime(destination / "older", (1_600_000_000, 1_600_000_000))
    done = sync(ours, source, destination, **options)
    assert {path.name: path.read_text() for path in destination.iterdir()} == expected
    assert done["exit_code"] == 0, done


def test_attributes_are_set_without_copying(ours, pair):
    source, destination = pair
    files(source, a="1", b__c="2")
    sync(ours, source, destination)
    (source / "a").chmod(0o600)
    (source / "b").chmod(0o700)
    os.chown(source / "b/c", 1234, 2345)
    done = sync(ours, source, destination)
    assert (done["copied_files"], done["amended"]) == (0, 3), done
    assert sync_trees.snapshot(destination) == sync_trees.snapshot(source)
    kept = sync(ours, source, destination, perms=False, owner=False, group=False)
    (source / "a").chmod(0o644)
    kept = sync(ours, source, destination, perms=False, owner=False, group=False)
    assert kept["amended"] == 0 and (destination / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
@pytest.mark.parametrize("there", ["file", "directory", "link"])
def test_what_is_of_another_kind_makes_way(ours, pair, kind, there):
    source, destination = pair

    def make(top, kind):
        top.mkdir()
        if kind == "file":
            files(top, x="content")
        elif kind == "directory":
            files(top, x__y="inside")
        else:
            (top / "x").symlink_to("target")

    make(source, kind)
    make(destination, there)
    if there == kind:
        (destination / "extra").mkdir()
    refused = sync(ours, source, destination)
    if there == "directory" and kind != "directory":
        assert refused["exit_code"] == 23 and (destination / "x/y").read_text() == "inside", refused
    done = sync(ours, source, destination, delete=True)
    assert done["exit_code"] == 0, done
    assert sync_trees.snapshot(destination) == sync_trees.snapshot(source)


def test_an_empty_source_deletes_nothing(ours, pair):
    source, destination = pair
    source.mkdir()
    files(destination, a__b="kept", c="kept")
    done = sync(ours, source, destination, delete=True)
    told = f"nothing is deleted, because the source is empty: file:{source}; to empty the destination, remove what is in it"
    assert (done["deleted"], done["notices"], done["exit_code"]) == (0, [told], 23)
    assert (destination / "a/b").read_text() == "kept"


def test_a_missing_source_changes_nothing(ours, pair):
    source, destination = pair
    files(destination, a="kept")
    assert sync(ours, source, destination, delete=True) == {
        "error": f"file:{source}: there is no such directory, so nothing was done"
    }
    assert os.listdir(destination) == ["a"]


@pytest.mark.parametrize("side", ["source", "destination"])
def test_errors_of_listings_prevent_deletions(ours, pair, side):
    source, destination = pair
    files(source, locked__a="1", open__b="2")
    files(destination, locked__a="1", open__b="2", locked__x="kept", open__x="kept")
    locked = (source if side == "source" else destination) / "locked"
    locked.chmod(0)
    try:
        done = sync(ours, source, destination, delete=True, perms=False, times=False)
        assert done["deleted"] == 0 and done["exit_code"] == 23, done
        assert done["notices"][0] == "nothing is deleted, because not everything could be listed"
        assert ("locked", f"list in the {side}") in [
            (problem["path"], problem["operation"]) for problem in done["problems"]
        ], done
    finally:
        locked.chmod(0o755)
    assert (destination / "locked/x").read_text() == (destination / "open/x").read_text() == "kept"


@pytest.fixture(scope="session")
def posix(top):
    """A session whose JVM knows no encoding but ASCII."""
    session = Session(top / "posix", millstream=True, within=("env", "LC_ALL=POSIX"))
    yield session
    session.close()


ODD_NAMES = (b"bad\xff", b"\xc3", b"ok \xc3\xbc\xe6\xbc\xa2", b"half\xe6\xbc", b"\xef\xbf\xbd", b"new\nline \\x%41")


@pytest.mark.parametrize("locale", ["ours", "posix"])
def test_names_may_have_any_bytes(request, pair, locale):
    session = request.getfixturevalue(locale)
    source, destination = pair
    top, target = os.fsencode(source), os.fsencode(destination)
    os.mkdir(top)
    for name in ODD_NAMES:
        os.makedirs(top + b"/d" + name + b"/deep")
        for path in (b"/" + name, b"/d" + name + b"/" + name):
            Path(os.fsdecode(top + path)).write_bytes(name)
        os.symlink(b"to" + name, top + b"/l" + name)
    done = sync(session, source, destination, delete=True)
    assert (done["errors"], done["exit_code"], done["copied_files"]) == (0, 0, 2 * len(ODD_NAMES)), done
    assert rsync_finds(source, destination) == ""
    again = sync(session, source, destination, delete=True, checksum=True)
    assert [again[key] for key in ("created", "copied_files", "amended", "deleted", "errors")] == [0] * 5, again
    for name in ODD_NAMES[::2]:
        shutil.rmtree(top + b"/d" + name)
        os.unlink(top + b"/l" + name)
    assert sync(session, source, destination, delete=True)["deleted"] == 4 * len(ODD_NAMES[::2])
    assert rsync_finds(source, destination) == "" and len(os.listdir(target)) == len(ODD_NAMES) + 2 * len(
        ODD_NAMES[1::2]
    )


def test_names_that_are_not_utf8_are_shown_so_that_they_can_be_read(ours, pair):
    source, destination = pair
    files(source, a="1")
    bad = Path(os.fsdecode(os.fsencode(source) + b"/bad\xff"))
    bad.write_text("x")
    bad.chmod(0)
    os.mkfifo(os.fsencode(source) + b"/pipe\xfe")
    done = sync(ours, source, destination, specials=False)
    assert done["problems"] == [
        {"path": "bad\\xff", "operation": "copy", "message": "AccessDenied: bad\\xff: open: Permission denied"}
    ]
    assert done["notices"] == ["skipping non-regular file: pipe\\xfe"]
    assert "\0" not in str(done)


def test_links_in_the_place_of_directories_are_replaced_and_not_followed(ours, pair, tmp_path):
    source, destination = pair
    outside = tmp_path / "outside"
    files(source, d__e__a="inside", d__b="inside")
    files(outside, e__a="outside", e__extra="outside", b="outside")
    sync(ours, source, destination)
    for link, target in (("d/e", outside / "e"), ("d", outside)):
        before = sync_trees.snapshot(outside)
        shutil.rmtree(destination / link)
        (destination / link).symlink_to(target)
        assert sync(ours, source, destination, delete=True)["exit_code"] == 0
        assert (
            sync_trees.snapshot(destination) == sync_trees.snapshot(source) and sync_trees.snapshot(outside) == before
        )


def test_nothing_outside_is_touched_while_a_directory_and_a_link_change_places(ours, pair, tmp_path):
    source, destination = pair
    outside, swapped = tmp_path / "outside", tmp_path / "swapped"
    files(source, **{f"d__e__f{number}": "inside" for number in range(300)})
    sync(ours, source, destination)
    files(outside, **{f"e__{kind}{number}": "outside" for number in range(300) for kind in ("f", "extra")})
    files(destination, **{f"d__e__extra{number}": "extra" for number in range(300)})
    before = sync_trees.snapshot(outside)
    swapped.symlink_to(outside)
    stop, libc, places = threading.Event(), ctypes.CDLL(None), (os.fsencode(destination / "d"), os.fsencode(swapped))

    def exchange():
        while not stop.is_set():
            libc.renameat2(-100, places[0], -100, places[1], 2)
            stop.wait(0.001)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(4):
            sync(ours, source, destination, delete=True, ignore_times=True)
            assert sync_trees.snapshot(outside) == before
            if not swapped.exists():
                swapped.symlink_to(outside)
    finally:
        stop.set()
        thread.join()
    assert sync(ours, source, destination, delete=True)["exit_code"] == 0
    assert rsync_finds(source, destination) == "" and sync_trees.snapshot(outside) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
def test_what_is_mounted_in_the_destination_is_kept(ours, pair, tmp_path, kind):
    source, destination = pair
    disk = tmp_path / "disk"
    files(source, both__a="1", a="1")
    files(destination, gone__mount__x="", gone__b="2", both__a="1", plain__c="3")
    disk.mkdir()
    mounts = [destination / "gone" / "mount", destination / "both"]
    for mount in mounts:
        subprocess.run(
            ["mount", "--bind", disk, mount] if kind == "bind" else ["mount", "-t", "tmpfs", "none", mount], check=True
        )
    try:
        files(mounts[0], deep__er__f="kept")
        dry = sync(ours, source, destination, delete=True, dry_run=True)
        done = sync(ours, source, destination, delete=True)
        words = "not deleted, because a file system is mounted on it: "
        kept = [f"{words}both", f"{words}gone/mount"] if kind == "bind" else [f"{words}gone/mount"]
        assert (done["exit_code"], done["problems"]) == (0, []), done
        assert done["notices"] == [*kept, "cannot delete non-empty directory: gone"] and dry["notices"] == kept, done
        assert (mounts[0] / "deep/er/f").read_text() == "kept" and str(mounts[0]) in Path(
            "/proc/self/mounts"
        ).read_text()
        assert sorted(os.listdir(destination)) == ["a", "both", "gone"] and os.listdir(destination / "gone") == [
            "mount"
        ]
        assert (mounts[1] / "a").read_text() == "1", "what is mounted is written to"
        assert (done["deleted"], done["undeleted"]) == (3, 0), done
        shutil.rmtree(source / "both")
        files(source, both="a file")
        refused = sync(ours, source, destination, delete=True)
        assert [(problem["path"], problem["message"]) for problem in refused["problems"]] == [
            ("both", "IO: a mount in the destination is in the way")
        ], refused
        assert (mounts[1] / "a").read_text() == "1"
    finally:
        for mount in mounts:
            subprocess.run(["umount", mount], check=True)


def test_no_more_is_deleted_than_allowed(ours, pair):
    source, destination = pair
    files(source, a="1")
    files(destination, **{f"d{n}__e{n}__f": "x" for n in range(5)})
    done = sync(ours, source, destination, delete=True, max_delete=7)
    assert (done["deleted"], done["undeleted"], done["exit_code"]) == (7, 8, 25), done
    left = [path for path in destination.rglob("*") if path.name != "a"]
    assert len(left) == 8 and not any(path.is_file() for path in left), "the deepest go first"
    assert sync(ours, source, destination, delete=True)["deleted"] == 8
    assert os.listdir(destination) == ["a"]


def test_unreadable_files_are_reported_and_the_others_copied(ours, pair):
    source, destination = pair
    files(source, a="1", b="2", c="3")
    (source / "b").chmod(0)
    done = sync(ours, source, destination)
    assert (done["errors"], done["exit_code"], done["copied_files"]) == (1, 23, 2), done
    assert (done["problems"][0]["path"], done["problems"][0]["operation"]) == ("b", "copy")


def test_pipes_are_skipped_and_named_unless_they_are_wanted(ours, pair):
    source, destination = pair
    files(source, a="1")
    os.mkfifo(source / "pipe")
    done = sync(ours, source, destination, specials=False)
    assert done["notices"] == ["skipping non-regular file: pipe"] and done["exit_code"] == 0 and done["specials"] == 1
    assert os.listdir(destination) == ["a"]


def test_what_killed_runs_have_left_is_removed_and_what_others_do_is_left_alone(ours, pair):
    source, destination = pair
    files(source, d__a="1")
    files(destination, d__a="1")
    days = {
        "d/.psync-0badcafe-1-1.tmp": 2,
        ".psync-0badcafe-1-2.tmp": 8,
        "d/.psync-0badcafe-2-1.tmp": 0,
        ".psync-0badcafe-2-2.tmp": 2,
    }
    for number, (name, age) in enumerate(days.items()):
        if number % 2:
            (destination / name / "source-0").mkdir(parents=True)
        else:
            (destination / name).write_text("left over")
        changed = time.time() - age * 86_400
        os.utime(destination / name, (changed, changed))
    done = sync(ours, source, destination, delete=True)
    assert (done["deleted"], done["exit_code"]) == (0, 0)
    left = {str(path.relative_to(destination)) for path in destination.rglob(".psync-*")}
    assert left == {"d/.psync-0badcafe-2-1.tmp", ".psync-0badcafe-2-2.tmp"}


def test_the_source_may_not_be_the_destination_by_another_name(ours, pair):
    source, destination = pair
    files(source, a="1", in__b="2")
    destination.symlink_to(source)
    assert "is the source itself" in sync(ours, source, destination, delete=True)["error"]
    assert "is inside the destination" in sync(ours, destination / "in", source, delete=True)["error"]
    assert "is inside the source" in sync(ours, source, destination / "new", delete=True)["error"]
    assert sorted(path.name for path in source.rglob("*")) == ["a", "b", "in"]


def test_a_source_that_holds_the_destination_through_a_mount_deletes_nothing(ours, pair):
    source, destination = pair
    files(source, a="1", in__b="2")
    files(destination, kept="3")
    subprocess.run(["mount", "--bind", destination, source / "in"], check=True)
    try:
        done = sync(ours, source, destination, delete=True)
    finally:
        subprocess.run(["umount", source / "in"], check=True)
    assert done == {
        "error": "the source contains the destination: in; choose directories that do not contain each other"
    }
    assert (destination / "kept").read_text() == "3" and os.listdir(destination) == ["kept"]


@pytest.mark.parametrize("inside", ["", "in"])
def test_a_source_in_the_destination_through_a_mount_stays(ours, pair, tmp_path, inside):
    source, destination = pair
    files(destination, in__f="1", extra="2")
    source.mkdir()
    before = sync_trees.snapshot(destination, times=False)
    subprocess.run(["mount", "--bind", destination / inside, source], check=True)
    try:
        refused = [sync(ours, source, destination, delete=True, dry_run=dry) for dry in (True, False)]
    finally:
        subprocess.run(["umount", source], check=True)
    reason = (
        "the destination contains the source: in; choose directories that do not contain each other"
        if inside
        else f"file:{destination}: is the source itself"
    )
    assert refused == [{"error": reason}] * 2
    assert sync_trees.snapshot(destination, times=False) == before


@pytest.mark.parametrize("existing", [False, True])
def test_what_exists_stays_in_the_way_of_directories_if_it_is_ignored(ours, pair, tmp_path, existing):
    source, destination = pair
    files(source, d__sub__f="new", l__f="new", e__f="new")
    files(destination, d="precious", e__f="old")
    (destination / "l").symlink_to("nowhere")
    shutil.copytree(destination, tmp_path / "copy", symlinks=True)
    rsync_done = subprocess.run(
        ["rsync", "-a", "--ignore-existing", *(["--existing"] if existing else []), f"{source}/", f"{tmp_path}/copy/"]
    )
    done = sync(ours, source, destination, ignore_existing=True, existing=existing)
    assert done["exit_code"] == rsync_done.returncode == 23, done
    assert [(problem["path"], problem["message"]) for problem in done["problems"]] == [
        (path, "directory not created, because something else has its name") for path in ("d", "l")
    ]
    assert (
        (destination / "d").read_text() == "precious"
        and os.readlink(destination / "l") == "nowhere"
        and (destination / "e/f").read_text() == "old"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"ignore_existing": True},
        {"links": False, "specials": False},
        {"links": False, "specials": False, "filters": ["P *.keep"]},
    ],
)
def test_a_directory_that_keeps_its_place_keeps_what_is_in_it(ours, pair, tmp_path, options):
    """The source has another kind of entry of that name, which is not copied, so the directory's contents are kept."""
    source, destination = pair
    files(source, file="new", d__e="new")
    (source / "link").symlink_to("file")
    os.mkfifo(source / "pipe")
    for name in ("link", "pipe", *(["file", "d/e"] if "ignore_existing" in options else [])):
        files(destination / name, inside="1", below__more="2")
    files(destination, gone__inside="x", extra="y")
    shutil.copytree(destination, tmp_path / "expected")
    words = {
        "ignore_existing": ["--ignore-existing"],
        "links": ["--no-links"],
        "specials": ["--no-specials"],
        "filters": ["--filter=P *.keep"],
    }
    rsync("-a", "--delete", *(word for key in options for word in words[key]), f"{source}/", f"{tmp_path}/expected/")
    done = sync(ours, source, destination, delete=True, **options)
    assert done["problems"] == [] and done["deleted"] == 3, done
    assert sync_trees.contents(destination) == sync_trees.contents(tmp_path / "expected")
    assert (destination / "pipe/below/more").read_text() == "2" and not (destination / "gone").exists()


def test_without_perms_modes_are_as_rsync_makes_them(ours, pair, tmp_path):
    source, destination = pair
    names = {
        "secret": 0o600,
        "exe": 0o755,
        "sticky": 0o4755,
        "priv/f": 0o640,
        "priv/deep/f": 0o644,
        "replaced": 0o644,
        "same": 0o644,
        "was/f": 0o666,
    }
    files(source, **{name.replace("/", "__"): name for name in names})
    files(destination, replaced="other", same="same", was__x="1")
    for name, mode in names.items():
        (source / name).chmod(mode)
    for name, mode in {"priv": 0o700, "priv/deep": 0o500, "was": 0o777}.items():
        (source / name).chmod(mode)
    files(source, team__new__f="new")
    (destination / "team").mkdir()
    for name, mode in {"replaced": 0o600, "same": 0o640, "was": 0o710, "team": 0o2775}.items():
        (destination / name).chmod(mode)
    expected = tmp_path / "expected"
    shutil.copytree(destination, expected, symlinks=True)
    rsync("-a", "--no-p", f"{source}/", f"{expected}/")
    assert sync(ours, source, destination, perms=False)["exit_code"] == 0
    # Without -p, this rsync leaves out the times of directories.
    assert sync_trees.snapshot(destination, times=False) == sync_trees.snapshot(expected, times=False)
    assert sync_trees.snapshot(destination)["priv/deep"][4] == sync_trees.snapshot(source)["priv/deep"][4]


def test_a_checkpoint_is_for_one_run_at_a_time(ours, pair, tmp_path):
    source, destination = pair
    files(source, **{f"d{number % 50}__f{number}": "1" for number in range(2000)})
    done = ours.call(
        "sync_calls:sync_at_once",
        src=str(source),
        dst=str(destination),
        checkpoint=str(tmp_path / "checkpoint"),
        times_=3,
    )
    errors = [one["error"] for one in done if "error" in one]
    assert len(errors) == 2 and all(
        "another run of this process is using this checkpoint" in error for error in errors
    ), done
    assert sync_trees.contents(destination) == sync_trees.contents(source)


def test_the_source_may_hold_the_temporary_files_of_the_machine(ours, pair):
    source, destination = pair
    files(source, a="1", tmp__b="2")
    files(destination, extra="3")
    # Libraries put files there when they are used for the first time.
    sync(ours, source, destination, verify=True)
    before = ours.call("sync_calls:temporary_directory", directory=str(source / "tmp"))
    try:
        done = sync(ours, source, destination, delete=True)
    finally:
        ours.call("sync_calls:temporary_directory", directory=before)
    assert (done["exit_code"], done["deleted"], done["problems"]) == (0, 1, []), done
    assert sync_trees.contents(destination) == sync_trees.contents(source)


@pytest.mark.parametrize("name", ["source-notes", "other"])
def test_a_directory_with_other_things_is_no_checkpoint(ours, pair, tmp_path, name):
    source, destination = pair
    files(source, a="1")
    files(tmp_path / "mine", **{name: "kept"})
    done = sync(ours, source, destination, checkpoint=str(tmp_path / "mine"))
    assert "is not empty and is not a checkpoint" in done["error"] and (tmp_path / "mine" / name).read_text() == "kept"


@pytest.mark.parametrize("destination, word", [("", "is the source itself"), ("/in", "is inside the source")])
def test_directories_that_contain_each_other_are_refused(ours, pair, destination, word):
    source, _ = pair
    files(source, a="1")
    assert word in sync(ours, source, f"{source}{destination}")["error"]
    assert "is inside the destination" in sync(ours, source / "x" / "..", source.parent, delete=True)["error"]


def test_checkpoint_keeps_the_manifest(ours, pair, tmp_path):
    source, destination = pair
    files(source, a="1", b="22")
    checkpoint = tmp_path / "checkpoint"
    done = sync(ours, source, destination, checkpoint=str(checkpoint))
    assert done["manifest"] == f"file:{checkpoint}"
    assert ours.call("sync_calls:manifest", checkpoint=str(checkpoint)) == {
        "a": ["done", 1, None],
        "b": ["done", 2, None],
    }
    sync(ours, source, destination, checkpoint=str(checkpoint), ignore_times=True, verify=True)
    # XXH3 of these texts.
    assert ours.call("sync_calls:manifest", checkpoint=str(checkpoint)) == {
        "a": ["done", 1, "xxh3-128:df3ce784d856334d65cd25028f98f158"],
        "b": ["done", 2, "xxh3-128:41bca5cc346b1c1ba2d9242e96f5dfac"],
    }
    assert "is inside" in sync(ours, source, destination, checkpoint=f"{destination}/checkpoint")["error"]
