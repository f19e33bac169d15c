"""Tasks that Spark kills while they are in native code end soon, and leave no readers, open files or memory. Run with
`make test-group GROUP=reads`.
"""

import pytest
from latency_mount import LatencyMount

MUCH_KB = 300_000
"""A fraction of the memory of readers of that many long lines, but more than the JVM's own growth."""


@pytest.mark.parametrize("how", ["DataFrame", "RDD"])
def test_a_cancelled_job_ends_soon_and_frees_its_memory(ours, data, tmp_path, how):
    for i in range(400):
        (tmp_path / f"f{i}").hardlink_to(data / "long-lines" / "p")
    got = ours.call("kill_calls:killed", how=how, paths=[str(tmp_path)], by="group")
    assert got["end"] == ["cancelled"], got
    assert got["grown kb"] < MUCH_KB and got["open files left"] == 0, got


def slow_files(top, count):
    for i in range(count):
        (top / f"f{i:05}").write_text(f"line {i}\n")
    return count


@pytest.mark.parametrize("how", ["DataFrame", "RDD"])
def test_memory_does_not_grow_with_every_cancelled_job(ours, tmp_path, how):
    """A scan holds at least a megabyte for each of two tasks, and many more that are read ahead. After some, the
    allocator has all it needs.
    """
    (tmp_path / "source").mkdir()
    (tmp_path / "megabyte").write_bytes((b"x" * 99 + b"\n") * 10_000)
    for i in range(400):
        (tmp_path / "source" / f"f{i}").hardlink_to(tmp_path / "megabyte")
    with LatencyMount(tmp_path / "source", delay_us=20_000, ttl_s=60, prepared=True) as mount:
        found = ours.call("kill_calls:memory_of_cancelled", how=how, paths=[str(mount.path)], rounds=4, times=15)
    assert all((one["ends"], one["jobs"]) == (["cancelled"], 15) for one in found), found
    assert found[-1]["kb"] - found[1]["kb"] < 40_000, found


@pytest.mark.parametrize("how", ["DataFrame", "RDD"])
def test_a_cancelled_job_leaves_no_readers(ours, tmp_path, how):
    slow_files(tmp_path, 20_000)  # a minute, if nothing stopped the tasks
    with LatencyMount(tmp_path, delay_us=50_000, ttl_s=60, prepared=True) as mount:
        got = ours.call("kill_calls:killed", how=how, paths=[str(mount.path)], by="group")
    assert got["end"] == ["cancelled"], got
    assert got["readers"] > 0 and got["readers left"] == 0 and got["open files left"] == 0, got
    assert got["seconds"] < 20, got


def test_the_result_is_correct_if_attempts_are_killed(ours, tmp_path):
    """As with speculation, when another attempt was faster: half of the attempts are interrupted, half are only
    notified.
    """
    count = slow_files(tmp_path, 4000)
    with LatencyMount(tmp_path, delay_us=50_000, ttl_s=60, prepared=True) as mount:
        got = ours.call("kill_calls:killed", how="RDD", paths=[str(mount.path)], by="attempt")
    assert got["kills"] > 0 and got["end"] == [count], got
    assert got["readers left"] == 0 and got["open files left"] == 0, got
