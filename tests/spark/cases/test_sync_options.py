"""`millstream.sync` with random options, on random trees of every kind of entry, with rsync as the oracle."""

import os
import random
import subprocess
from pathlib import Path

import sync_trees
from sync_trees import sync

CASES = 3
# The arguments for Python and for rsync, each with its probability.
OPTIONS = [
    ("links", False, "--no-links", 0.15),
    ("devices", False, "--no-devices", 0.15),
    ("specials", False, "--no-specials", 0.15),
    ("perms", False, "--no-perms", 0.15),
    ("times", False, "--no-times", 0.15),
    ("owner", False, "--no-owner", 0.15),
    ("group", False, "--no-group", 0.15),
    ("omit_dir_times", True, "--omit-dir-times", 0.15),
    ("omit_link_times", True, "--omit-link-times", 0.15),
    ("force", True, "--force", 0.5),
    ("update", True, "--update", 0.2),
    ("existing", True, "--existing", 0.15),
    ("ignore_existing", True, "--ignore-existing", 0.15),
    ("hard_links", True, "--hard-links", 0.3),
    ("xattrs", True, "--xattrs", 0.2),
    ("sparse", True, "--sparse", 0.2),
    ("ignore_errors", True, "--ignore-errors", 0.1),
]
ONE_OF = [
    [
        ({}, []),
        ({"delete": True}, ["--delete"]),
        ({"delete_before": True}, ["--delete-before"]),
        ({"delete_excluded": True}, ["--delete-excluded"]),
    ],
    [
        ({}, []),
        ({}, []),
        ({"checksum": True}, ["--checksum"]),
        ({"size_only": True}, ["--size-only"]),
        ({"ignore_times": True}, ["--ignore-times"]),
    ],
    # Without it, times that differ by less than a second are the same for rsync.
    [({"modify_window": window}, [f"--modify-window={window}"]) for window in (0, 0, 0, 1, 3)],
]
FILTERS = ["- *1*", "+ *2*", "P *3*", "- /*4*", "H *5*", "R *6*", "- *7/"]


def options_of(chance):
    """Options for `millstream.sync`, and the same for rsync."""
    ours, theirs = {}, []
    for name, value, flag, how_often in OPTIONS:
        if chance.random() < how_often:
            ours[name] = value
            theirs.append(flag)
    for choices in ONE_OF:
        mine, flags = chance.choice(choices)
        ours |= mine
        theirs += flags
    rules = chance.sample(FILTERS, chance.choice([0, 0, 1, 3]))
    return ours | {"filters": rules}, [*theirs, *(f"--filter={rule}" for rule in rules)]


def state(top, with_modes):
    """What is in a tree; times later than those that trees are made with are those of the run."""
    of_run = (sync_trees.LAST_S + 1) * 1_000_000
    found = sync_trees.snapshot(top)
    return {
        name: (kind, mode if with_modes else 0, *owner, min(time, of_run), content)
        for name, (kind, mode, *owner, time, content) in found.items()
    }


def is_directory(path):
    return path.is_dir() and not path.is_symlink()


def is_linked(path):
    """Whether it has other names, of which rsync changes the attributes, too, whatever they are copies of."""
    return not path.is_dir() and path.lstat().st_nlink > 1


def with_names_below(top, directories):
    """Paths of those files that have one of their names in one of the directories."""
    paths = {os.path.relpath(path, top): path.lstat() for path in top.rglob("*")}
    below = {
        about.st_ino
        for name, about in paths.items()
        if about.st_nlink > 1 and any(map(Path(name).is_relative_to, directories))
    }
    return {name for name, about in paths.items() if about.st_ino in below and not is_directory(top / name)}


def printed(name):
    """A name as written in a problem."""
    return os.fsencode(name).decode(errors="backslashreplace")


def test_random_options_do_what_they_do_for_rsync(ours, tmp_path, seed):
    chance = random.Random(seed)
    source, destination, expected = (tmp_path / name for name in ("source", "destination", "expected"))
    for _ in range(CASES):
        subprocess.run(["rm", "-rf", source, destination, expected], check=True)
        number = chance.randrange(10**6)
        sync_trees.make(source, number, files=40, directories=12)
        sync_trees.enrich(source, number + 1)
        subprocess.run(["rsync", "-aHX", f"{source}/", f"{destination}/"], check=True)
        sync_trees.mutate(destination, number, changes=20)
        sync_trees.enrich(destination, number + 2, changes=10)
        subprocess.run(["cp", "-a", destination, expected], check=True)
        mine, theirs = options_of(chance)
        about = f"seed {seed}, tree {number}: {' '.join(theirs)}"
        before = state(destination, True)
        shared = {name for name in before if is_linked(destination / name)}
        several = set() if mine.get("hard_links") else shared
        # rsync gives an entry that stays although the source has a directory the time of that directory.
        barred = {
            name
            for name in before
            if mine.get("ignore_existing") and is_directory(source / name) and not is_directory(destination / name)
        }
        by_rsync = subprocess.run(
            ["rsync", "-a", *theirs, f"{source}/", f"{expected}/"], capture_output=True, text=True
        )
        if by_rsync.returncode == 2 and "File-list index" in by_rsync.stderr:
            # rsync 3.5.0 sometimes loses its place in its list where it cannot make way for files with several names.
            continue
        done = sync(ours, source, destination, **mine)
        # If nothing has to be created in this directory, rsync reports no error.
        is_of_barred = done.get("problems") and {problem["path"] for problem in done["problems"]} <= set(
            map(printed, barred)
        )
        assert "error" not in done and (is_of_barred or done["exit_code"] == by_rsync.returncode), (
            f"{about}\n{done}\n{by_rsync.stderr}"
        )
        # If rsync cannot make one name of a file, with -H it may leave out the others, too.
        left_out = with_names_below(source, barred) if mine.get("hard_links") else set()
        # Without -p, rsync gives what replaces a link the mode of the link.
        found, wanted = (state(tree, mine.get("perms", True)) for tree in (destination, expected))
        if not mine.get("times", True) or (mine.get("omit_dir_times") and wanted["."][-2] == before["."][-2]):
            # The root has held temporary files, even if nothing in it has changed.
            for tree in found, wanted:
                tree["."] = (*tree["."][:-2], None, tree["."][-1])
        if mine.get("hard_links") and not mine.get("times", True):
            # Where one hard link is right already and the first is not, rsync copies the first and links all to the copy,
            # and the job links all to the one that is right; where only the destination has a hard link, the job makes a
            # new file, and rsync keeps it for one of the names: only times differ.
            for name in found.keys() & wanted.keys():
                if name in shared or (os.path.lexists(source / name) and is_linked(source / name)):
                    for tree in found, wanted:
                        tree[name] = (*tree[name][:-2], None, tree[name][-1])
        # rsync deletes even after an error.
        names = (
            wanted.keys()
            if any("nothing is deleted" in notice for notice in done["notices"])
            else found.keys() | wanted.keys()
        )
        differing = {
            name: (found.get(name), wanted.get(name))
            for name in names - several - barred - left_out
            if found.get(name) != wanted.get(name)
        }
        assert not differing, f"{about}\n{differing}\n{done}\n{by_rsync.stderr}"
