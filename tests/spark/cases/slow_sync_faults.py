"""`millstream.sync` while executors and drivers are killed, requests fail and files change.

Run with `make test-group GROUP=sync-spark`.
"""

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest
import sync_trees
from clusters import SPECULATION, executors_of, two_hosts, wait_for
from latency_mount import LatencyMount
from sessions import Session
from sync_stores import Remote

FILES = 3000


def copied(top: Path) -> int:
    found = 0
    for _, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".psync-")]
        found += sum(not name.startswith(".psync-") for name in names)
    return found


def leftovers(top: Path) -> list[str]:
    """Temporary files and directories of psync."""
    return [
        os.path.join(directory, name)
        for directory, folders, names in os.walk(top)
        for name in folders + names
        if name.startswith(".psync-")
    ]


@pytest.fixture
def slow(local):
    """A source whose calls take some milliseconds."""
    (local / "source").mkdir()
    sync_trees.many_files(local / "source", FILES)
    with LatencyMount(local / "source", delay_us=2000, ttl_s=0) as mount:
        yield mount.path


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_killed_driver_leaves_whole_files_and_the_next_run_completes_the_tree(local, slow, has_checkpoint):
    target = local / "target"
    options = {
        "src": str(slow),
        "dst": str(target),
        "delete": True,
        **({"checkpoint": str(local / "checkpoint")} if has_checkpoint else {}),
    }
    session = Session(local / "first", millstream=True)
    jvm = session.call("sync_calls:jvm")
    session.ask("sync_calls:sync", **options)
    wait_for(lambda: copied(target) > FILES // 4, "nothing is copied")
    os.kill(jvm, signal.SIGKILL)
    session.process.kill()
    session.process.wait()
    found = sync_trees.contents(target)
    whole = sync_trees.contents(local / "source")
    partial = {name: content for name, content in found.items() if ".psync-" not in name}
    assert partial.items() <= whole.items() and len(partial) < len(whole)
    again = Session(local / "second", millstream=True)
    try:
        done = again.call("sync_calls:sync", **options)
        assert done["exit_code"] == 0, done
        assert sync_trees.snapshot(target) == sync_trees.snapshot(local / "source") and leftovers(target) == []
        if has_checkpoint:
            assert done["notices"] == [f"resuming the run whose plan is in file:{local / 'checkpoint'}"]
            assert done["kept"] >= FILES // 4 and done["kept"] + done["copied_files"] == FILES, done
            # It is finished: the next run makes a new plan.
            (local / "source/d0/f0").write_text("changed")
            assert again.call("sync_calls:sync", **options)["copied_files"] == 1
        else:
            assert 0 < done["copied_files"] <= FILES - FILES // 4, done
    finally:
        again.close()


def phases(checkpoint: Path) -> list[str]:
    """The parts of a manifest, in the order in which they were completed."""
    done = sorted(checkpoint.glob("manifest-*.complete"), key=lambda path: path.stat().st_mtime_ns)
    return [path.name.removesuffix(".complete") for path in done]


def test_a_run_is_resumed_from_every_phase(ours, local):
    """As if the driver had died when a phase had begun: that phase and later ones run again, or for the first time."""
    source, target, checkpoint = local / "source", local / "target", local / "checkpoint"
    sync_trees.many_files(source, 60, 6)
    (source / "deep/er").mkdir(parents=True, mode=0o500)
    os.link(source / "d0/f0", source / "d1/linked")
    (source / "d2/link").symlink_to("f2")
    os.setxattr(source / "d3", "user.note", b"1")
    wanted = {"delete": True, "force": True, "hard_links": True, "xattrs": True}

    def old(top: Path) -> None:
        (top / "d4").mkdir(parents=True)
        (top / "d4/surplus").mkdir()
        (top / "d4/surplus/file").write_text("x")
        (top / "d5").write_text("in the way of a directory")
        (top / "d0/f0").mkdir(parents=True)
        (top / "d1").mkdir()
        (top / "d1/f1").write_bytes((source / "d1/f1").read_bytes())
        os.utime(top / "d1/f1", ns=(0, (source / "d1/f1").stat().st_mtime_ns))
        (top / "d1/f1").chmod(0o600)

    old(target)
    options = {"src": str(source), "dst": str(target), "checkpoint": str(checkpoint), **wanted}
    before = ours.call("sync_calls:sync", **options)
    assert before["exit_code"] == 0, before
    whole, parts = sync_trees.snapshot(source), phases(checkpoint)
    assert sync_trees.snapshot(target) == whole and len(parts) >= 8, parts
    for number, part in enumerate(parts):
        for is_done in (True, False):
            shutil.rmtree(target, ignore_errors=True)
            if is_done:
                # The phase has done all its work, but not said so.
                subprocess.run(["rsync", "-aHX", f"{source}/", f"{target}/"], check=True)
            elif number == 0 or parts[number].endswith("way"):
                old(target)
            else:
                continue
            for name in ["finished", *parts[number:]]:
                (checkpoint / f"{name}.complete").unlink(missing_ok=True)
            again = ours.call("sync_calls:sync", **options)
            assert again["exit_code"] == 0 and again["notices"] == [
                f"resuming the run whose plan is in file:{checkpoint}"
            ], (part, again)
            assert sync_trees.snapshot(target) == whole, part
            assert (target / "d0/f0").stat().st_ino == (target / "d1/linked").stat().st_ino
            assert phases(checkpoint)[number:] == parts[number:], "the others are not carried out again"


def test_directories_are_closed_to_others_until_all_is_in_them(ours, local, slow):
    target = local / "target"
    (local / "source").chmod(0o755)
    ours.ask("sync_calls:sync", src=str(slow), dst=str(target))
    wait_for(lambda: copied(target) > 100, "nothing is copied")
    modes = {path.stat().st_mode & 0o777 for path in target.glob("d*")}
    done = ours.answer()
    assert modes == {0o700} and done["exit_code"] == 0, (modes, done)
    assert {path.stat().st_mode & 0o777 for path in target.glob("d*")} == {(local / "source/d0").stat().st_mode & 0o777}


def test_killed_executors_and_speculative_attempts(local, slow):
    target = local / "target"
    (local / "cluster").mkdir()
    with two_hosts(local / "cluster") as master:
        session = Session(
            local / "home",
            millstream=True,
            conf={**SPECULATION, "spark.master": master, "spark.millstream.sync.threads": "4"},
        )
        try:
            application = session.call("fault_calls:application")
            session.ask("sync_calls:sync", src=str(slow), dst=str(target))
            for count in (FILES // 8, FILES // 2):
                wait_for(lambda: copied(target) > count, "nothing is copied")
                for pid in executors_of(application)[:1]:
                    os.kill(pid, signal.SIGKILL)
            done = session.answer()
            assert done["exit_code"] == 0 and done["copied_files"] + done["kept"] == FILES, done
            assert sync_trees.snapshot(target) == sync_trees.snapshot(local / "source")
            assert leftovers(target) == []
        finally:
            session.close()


def test_an_executor_that_has_another_destination_writes_nothing(local):
    """The machines of a cluster lack what the driver has at the destination: they have an empty directory there."""
    source, target = local / "source", local / "target"
    sync_trees.many_files(source, FILES)
    target.mkdir()
    (local / "cluster").mkdir()
    elsewhere = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(target)]
    with two_hosts(local / "cluster", within=elsewhere) as master:
        session = Session(
            local / "home", millstream=True, conf={"spark.master": master, "spark.millstream.sync.dir": str(local)}
        )
        try:
            found = session.call("sync_calls:sync", src=str(source), dst=str(target))
        finally:
            session.close()
    assert "is not the directory that the driver sees under this name" in found["error"], found
    assert copied(target) == 0


def test_what_the_source_gets_meanwhile_is_not_deleted(ours, local, slow):
    target = local / "target"
    for name in ("late", "extra"):
        (target / name).mkdir(parents=True)
        (target / name / "file").write_text("the only copy")
    ours.ask("sync_calls:sync", src=str(slow), dst=str(target), delete=True)
    wait_for(lambda: copied(target) > 100, "nothing is copied")
    (local / "source/late").mkdir()
    (local / "source/late/file").write_text("x")
    done = ours.answer()
    assert (target / "late/file").read_text() == "the only copy" and not (target / "extra").exists()
    assert done["notices"] == [
        f"not deleted, because the source has it now: {name}" for name in ("late", "late/file")
    ], done


@pytest.mark.parametrize(
    "change, status",
    [
        ("grows", "grew while it was copied; run this again for the rest"),
        ("changes", "not copied, because it changed while it was read"),
        ("vanishes", "file has vanished"),
    ],
)
def test_files_that_change_while_they_are_read(ours, local, slow, change, status):
    target, moving = local / "target", local / "source/d0/moving"
    (target / "d0").mkdir(parents=True)
    (target / "d0/moving").write_text("old")
    moving.write_bytes(b"x" * (8 << 20))
    stop = threading.Event()

    def keep_changing():
        number = 0
        while not stop.wait(0.002):
            number += 1
            with moving.open("ab" if change == "grows" else "r+b") as file:
                file.write(b"y" if change == "grows" else b"%d" % number)

    if change == "vanishes":
        ours.ask("sync_calls:sync", src=str(slow), dst=str(target))
        wait_for(lambda: copied(target) > 20, "nothing is copied")
        assert (target / "d0/moving").read_text() == "old", "it was copied among the first"
        moving.unlink()
        done = ours.answer()
        if done["exit_code"] == 0:  # it was being read, and the copy is complete
            assert (target / "d0/moving").read_bytes() == b"x" * (8 << 20)
            return
    else:
        writer = threading.Thread(target=keep_changing)
        writer.start()
        try:
            done = ours.call("sync_calls:sync", src=str(local / "source"), dst=str(target))
        finally:
            stop.set()
            writer.join()
    assert done["exit_code"] == 24 and done["notices"] == [f"{status}: d0/moving"], done
    content = (target / "d0/moving").read_bytes()
    assert content.startswith(b"x" * 1000) if change == "grows" else content == b"old"
    assert ours.call("sync_calls:sync", src=str(local / "source"), dst=str(target))["exit_code"] == 0
    if change != "vanishes":
        assert sync_trees.contents(target) == sync_trees.contents(local / "source")


@pytest.mark.parametrize("operation", ["GetObject", "PutObject", "HeadObject", "ListObjectsV2"])
@pytest.mark.parametrize(
    "fault",
    [
        {"do": "drop", "count": 2},
        {"do": "answer", "status": 503, "code": "SlowDown", "count": 3},
        {"do": "answer", "status": 500, "code": "InternalError", "count": 3},
    ],
    ids=lambda fault: f"{fault['do']}-{fault.get('status', '')}",
)
def test_requests_that_fail_lose_nothing(places, local, operation, fault):
    s3, source = Remote(places["s3"]), local / "source"
    sync_trees.many_files(source, 60, 5)
    one, other = s3.new(), s3.new()
    try:
        s3.place.bed.inject({"operation": operation, **fault})
        assert s3.sync(source, one)["exit_code"] == 0
        s3.place.bed.inject({"operation": operation, **fault})
        assert s3.sync(one, other, verify=True)["exit_code"] == 0
    finally:
        s3.place.bed.inject()
    assert s3.contents(other) == sync_trees.contents(source)


def test_an_object_that_vanishes_while_it_is_read_changes_nothing(places, local):
    s3, target = Remote(places["s3"]), local / "target"
    source = s3.new()
    s3.session.call("remote_calls:put", root=source, files={"held.txt": "old", "other": "1"})
    target.mkdir()
    (target / "held.txt").write_text("previous")
    try:
        s3.place.bed.inject({"operation": "GetObject", "path": "held.txt", "do": "hold", "count": 1})
        s3.session.ask("sync_calls:sync", src=source, dst=str(target))
        wait_for(lambda: s3.place.bed.held() > 0, "the object is not being read")
        assert (target / "held.txt").read_text() == "previous"
        Path(s3.place.bed.data, source.removeprefix("s3a://"), "held.txt").unlink()
    finally:
        s3.place.bed.inject()
    done = s3.session.answer()
    assert done["exit_code"] == 24 and done["notices"] == ["file has vanished: held.txt"], done
    assert (target / "held.txt").read_text() == "previous" and (target / "other").read_text() == "1"


def test_what_a_store_refuses_to_delete_is_an_error_and_stays(places, local):
    s3, source = Remote(places["s3"]), local / "source"
    (source / "kept").mkdir(parents=True)
    (source / "kept/a").write_text("1")
    there = s3.new()
    s3.session.call("remote_calls:put", root=there, files={"surplus": "x", "kept/b": "y"})
    refusal = {"do": "answer", "status": 403, "code": "AccessDenied", "count": 1000}
    try:
        s3.place.bed.inject(*({"operation": operation, **refusal} for operation in ("DeleteObject", "DeleteObjects")))
        done = s3.sync(source, there, delete=True)
    finally:
        s3.place.bed.inject()
    assert done["exit_code"] == 23 and {problem["path"] for problem in done["problems"]} == {"surplus", "kept/b"}, done
    assert any("could not be removed" in notice for notice in done["notices"]), "the mark of the run stays, too"
    assert {name for name in s3.contents(there) if not name.startswith(".psync-")} == {
        "kept",
        "kept/a",
        "kept/b",
        "surplus",
    }
    assert s3.sync(source, there, delete=True)["deleted"] == 2


def test_an_object_that_is_replaced_while_it_is_read_is_read_again(places, local):
    s3 = Remote(places["s3"])
    source = s3.new()
    s3.session.call("remote_calls:put", root=source, files={"held.txt": "old", "other": "1"})
    try:
        s3.place.bed.inject({"operation": "GetObject", "path": "held.txt", "do": "hold", "count": 1})
        s3.session.ask("sync_calls:sync", src=source, dst=str(local / "target"))
        wait_for(lambda: s3.place.bed.held() > 0, "the object is not being read")
        Path(s3.place.bed.data, source.removeprefix("s3a://"), "held.txt").unlink()
        s3.place.stock.call("remote_calls:put", root=source, files={"held.txt": "new one"})
    finally:
        s3.place.bed.inject()
    done = s3.session.answer()
    assert done["exit_code"] == 0 and (local / "target/held.txt").read_text() == "new one", done["problems"]


def test_calls_to_the_name_node_that_are_lost(places, local):
    """Without high availability, the HDFS client does not retry every call: the run reports what failed, and the next
    one completes the tree.
    """
    hdfs, source = Remote(places["hdfs"]), local / "source"
    sync_trees.many_files(source, 100, 10)
    for method in ("create", "complete", "rename2", "setTimes", "getListing", "mkdirs"):
        there = hdfs.new()
        hdfs.place.bed.at_call(method, 3, lambda: None)
        done = hdfs.sync(source, there, delete=True)
        assert (
            "error" in done
            or done["exit_code"] == 0
            or (done["exit_code"] == 23 and done["errors"] == len(done["problems"]) > 0)
        ), (method, done)
        hdfs.place.bed.at_no_call()
        again = hdfs.sync(source, there, delete=True)
        assert again["exit_code"] == 0, (method, again)
        assert hdfs.contents(there) == sync_trees.contents(source), method


def test_overwritten_files_of_hdfs_are_never_missing(places, local):
    """A reader that opens a file again and again while it is replaced sees the old or the new content."""
    hdfs, source = Remote(places["hdfs"]), local / "source"
    source.mkdir()
    there = hdfs.new()
    for number in range(300):
        (source / f"f{number}").write_text("a" * 5000)
    hdfs.sync(source, there)
    for number in range(300):
        (source / f"f{number}").write_text("b" * 6000)
    hdfs.place.stock.ask("sync_calls:watch", url=there, names=[f"f{number}" for number in range(300)], until="b" * 6000)
    done = hdfs.sync(source, there)
    assert done["copied_files"] == 300, done
    seen = hdfs.place.stock.answer()
    assert "crash" not in seen, seen["crash"]
    assert set(seen) == {"a" * 5000, "b" * 6000}, {text[:80]: len(text) for text in seen}
