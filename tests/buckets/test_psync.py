"""`psync` between a local tree and an S3 bucket, without Spark, compared with a local run, whose oracle elsewhere is
rsync.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest
import sync_trees
from bucket_bed import BUCKET, LIMIT_S, Bucket, S3Bed, files_of, is_possible, lines, wait_until
from sync_trees import PSYNC

ONE_OF = [
    [[], ["--delete"], ["--delete-before"], ["--delete-excluded", "--max-delete=5"]],
    [[], [], ["-c"], ["--size-only"], ["-I"]],
    [[], [], ["-u"], ["--existing"], ["--ignore-existing"]],
]
FILTERS = ["- *1*", "+ *2*", "P *3*", "- /*4*", "H *5*", "R *6*", "- *7/"]


@pytest.fixture(scope="module")
def bucket():
    with S3Bed() as bed:
        yield Bucket(bed)


@pytest.fixture(autouse=True)
def without_faults(bucket):
    yield
    bucket.bed.inject()


def options_of(chance: random.Random) -> list[str]:
    rules = chance.sample(FILTERS, chance.choice([0, 0, 1, 3]))
    return [
        "-rtO",
        *(flag for choices in ONE_OF for flag in chance.choice(choices)),
        *(f"--filter={rule}" for rule in rules),
    ]


def test_a_tree_comes_back_as_it_was(bucket, tmp_path, seed):
    source, back, url = tmp_path / "source", tmp_path / "back", bucket.place()
    sync_trees.make(source, seed, allowed=is_possible, links=False)
    (source / "large").write_bytes(random.Random(seed).randbytes(20 << 20))
    bucket.psync("-rt", f"{source}/", f"{url}/")
    bucket.psync("-rt", f"{url}/", f"{back}/")
    assert files_of(back) == files_of(source)
    for sides in ((f"{source}/", f"{url}/"), (f"{url}/", f"{back}/")):
        assert bucket.psync("-rti", "--delete", *sides).stdout == b"", sides


@pytest.mark.parametrize("way", ["up", "down", "between"])
def test_options_do_what_they_do_locally(bucket, tmp_path, seed, way):
    chance = random.Random(seed)
    for number in range(3):
        top = tmp_path / str(number)
        source, found, local = top / "source", top / "found", top / "local"
        sync_trees.make(source, chance.randrange(10**6), files=40, directories=12, allowed=is_possible, links=False)
        subprocess.run(["cp", "-a", source, found], check=True)
        sync_trees.mutate(found, chance.randrange(10**6), changes=20)
        subprocess.run(["find", found, "-type", "l", "-delete"], check=True)
        subprocess.run(["cp", "-a", found, local], check=True)
        # The time of an object is never newer than the file's.
        options = options_of(chance)
        about = f"seed {seed}: {' '.join(options)}"
        by_local = subprocess.run([PSYNC, *options, "-i", f"{source}/", f"{local}/"], capture_output=True)
        sides = {"source": source, "found": found}
        for side in {"up": ["found"], "down": ["source"], "between": ["source", "found"]}[way]:
            url = bucket.place()
            bucket.fill(sides[side], url)
            sides[side] = url
        done = bucket.psync(*options, "-i", f"{sides['source']}/", f"{sides['found']}/", expected=by_local.returncode)
        if "--max-delete=5" in options:
            assert done.stdout.count(b"*deleting") == by_local.stdout.count(b"*deleting") <= 5, about
        else:
            assert lines(done) == lines(by_local), about
            if way != "down":
                back = top / "back"
                bucket.psync("-rt", f"{sides['found']}/", f"{back}/")
                sides["found"] = back
            assert files_of(sides["found"]) == files_of(local), about


def test_a_dry_run_says_what_a_run_does_and_changes_nothing(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.make(source, 3, allowed=is_possible, links=False)
    bucket.bed.reset_statistics()
    dry = bucket.psync("-rtin", f"{source}/", f"{url}/")
    assert set(bucket.bed.statistics().by_kind) <= {"HeadObject", "ListObjectsV2"}
    assert lines(bucket.psync("-rti", f"{source}/", f"{url}/")) == lines(dry)


def test_requests_are_as_few_as_can_be(bucket, tmp_path):
    source, back, url = tmp_path / "source", tmp_path / "back", bucket.place()
    sync_trees.many_files(source, 300, 10)

    up = bucket.counted("-rt", f"{source}/", f"{url}/")
    assert up["PutObject"] == 300 and up.get("HeadObject", 0) <= 15 and up["ListObjectsV2"] <= 15, up
    down = bucket.counted("-rt", f"{url}/", f"{back}/")
    assert down["GetObject"] == 300 and down.get("HeadObject", 0) <= 2 and down["ListObjectsV2"] <= 15, down
    again = bucket.counted("-rt", f"{url}/", f"{back}/")
    assert again.keys() == {"HeadObject", "ListObjectsV2"} and again["HeadObject"] <= 302, again
    between = bucket.counted("-rt", f"{url}/", f"{bucket.place()}/")
    empty = sum(path.stat().st_size == 0 for path in source.rglob("f*"))
    assert (
        (between["CopyObject"], between["PutObject"]) == (300 - empty, empty)
        and between["HeadObject"] <= 315
        and "GetObject" not in between
    ), between


def test_one_file_and_directories_with_and_without_a_slash(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 5, 2)
    bucket.psync("-rt", source, f"{url}/new/below/")
    assert sync_trees.contents(bucket.path(url) / "new/below/source") == sync_trees.contents(source)
    bucket.psync("-t", source / "d1/f1", f"{url}/one")
    assert bucket.path(f"{url}/one").read_bytes() == (source / "d1/f1").read_bytes()
    bucket.psync("-t", f"{url}/one", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (source / "d1/f1").read_bytes()
    bucket.psync("-rt", f"{url}/new/below/source", tmp_path / "into")
    assert files_of(tmp_path / "into/source") == files_of(source)
    assert bucket.psync("-rti", source, f"{url}/new/below").stdout == b""


def test_listed_files_and_several_sources(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 30, 3)
    (tmp_path / "list").write_text("d0/f0\nd1/\nd2/f2\n")
    bucket.psync("-rt", f"--files-from={tmp_path / 'list'}", source, f"{url}/")
    expected = {
        name: content
        for name, content in sync_trees.contents(source).items()
        if name.startswith(("d0", "d1", "d2")) and (name in ("d0", "d0/f0", "d2", "d2/f2") or name.startswith("d1"))
    }
    assert sync_trees.contents(bucket.path(url)) == expected
    (tmp_path / "list").write_text("d0/f0\nd1/f1\nmissing\n")
    missing = bucket.psync("-rt", f"--files-from={tmp_path / 'list'}", f"{url}/", tmp_path / "some", expected=23)
    assert b"missing" in missing.stderr and sorted(sync_trees.contents(tmp_path / "some")) == [
        "d0",
        "d0/f0",
        "d1",
        "d1/f1",
    ]
    bucket.psync("-rt", f"{source}/d0", f"{url}/d1", f"{url}/d2/", tmp_path / "several")
    assert sorted(os.listdir(tmp_path / "several")) == ["d0", "d1", "f2"]


def test_rules_of_absolute_paths_begin_at_the_bucket(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 5, 2)
    name = url.rpartition("/")[2]
    for surplus in ("kept", "lost"):
        bucket.psync("-t", source / "d0/f0", f"{url}/{surplus}")
    bucket.psync("-rt", "--delete", f"--filter=-s/ {source}/d1/", f"--filter=P/ /{name}/kept", f"{source}/", f"{url}/")
    assert sorted(os.listdir(bucket.path(url))) == ["d0", "kept"]


def test_directories_without_files(bucket, tmp_path):
    source, back, url = tmp_path / "source", tmp_path / "back", bucket.place()
    (source / "a/empty").mkdir(parents=True)
    (source / "b").mkdir()
    (source / "b/only").write_text("x")
    bucket.psync("-rt", f"{source}/", f"{url}/")
    bucket.psync("-rt", f"{url}/", f"{back}/")
    assert files_of(back) == files_of(source)
    # A directory whose last file is deleted stays.
    (source / "b/only").unlink()
    for sides in ((f"{source}/", f"{url}/"), (f"{url}/", f"{back}/")):
        assert bucket.psync("-rti", "--delete", *sides).stdout == b"*deleting   b/only\n"
        assert bucket.psync("-rti", "--delete", *sides).stdout == b""
    assert files_of(back) == files_of(source)


def test_what_objects_cannot_be_is_named_and_the_rest_is_done(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    source.mkdir()
    (source / "file").write_text("x")
    (source / "link").symlink_to("file")
    os.mkfifo(source / "pipe")
    Path(os.fsdecode(bytes(source) + b"/\xff")).write_text("x")
    done = bucket.psync("-a", f"{source}/", f"{url}/", expected=23)
    assert b"cannot create symbolic link" in done.stderr and rb"\377" in done.stderr, done.stderr
    assert done.stdout == b'skipping non-regular file "pipe"\n' and os.listdir(bucket.path(url)) == ["file"]
    for option in ("-H", "-A", "-X", "-S", "--verify"):
        assert option.encode() in bucket.psync("-a", option, f"{source}/", f"{url}/", expected=1).stderr


def test_failures_of_the_server_are_retried(bucket, tmp_path):
    source, back, url = tmp_path / "source", tmp_path / "back", bucket.place()
    sync_trees.many_files(source, 60, 6)
    (source / "large").write_bytes(os.urandom(20 << 20))
    faults = [
        {"do": "answer", "status": 503, "code": "SlowDown", "every": 7},
        {"do": "answer", "status": 500, "code": "InternalError", "every": 11},
        {"do": "drop", "every": 13},
        {"operation": "GetObject", "do": "truncate", "bytes": 5000, "every": 3},
    ]
    bucket.bed.inject(*faults)
    bucket.psync("-rt", f"{source}/", f"{url}/")
    bucket.psync("-rt", f"{url}/", f"{back}/")
    assert bucket.bed.struck > 20
    assert files_of(back) == files_of(source)


def test_what_cannot_be_written_is_an_error_of_that(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 20, 2)
    (source / "large").write_bytes(os.urandom(20 << 20))
    bucket.fill(source, url)
    (source / "d0/f0").write_text("changed")
    (source / "large").write_bytes(os.urandom(21 << 20))
    (source / "d1/f1").unlink()
    before = bucket.path(f"{url}/large").read_bytes()
    bucket.bed.inject(
        {"operation": "PutObject", "path": "d0/f0", "do": "answer", "status": 403, "code": "AccessDenied"},
        {
            "operation": "UploadPart",
            "path": "large",
            "query": "partNumber=2",
            "do": "answer",
            "status": 403,
            "code": "AccessDenied",
        },
    )
    bucket.bed.reset_statistics()
    done = bucket.psync("-rt", "--delete", f"{source}/", f"{url}/", expected=23)
    assert b"403 AccessDenied" in done.stderr and b"nothing is deleted" in done.stderr, done.stderr
    assert b"cannot write 's3://" in done.stderr and b"/d0/f0': Permission denied" in done.stderr, done.stderr
    assert bucket.path(f"{url}/large").read_bytes() == before and bucket.path(f"{url}/d1/f1").exists()
    assert bucket.bed.statistics().by_kind["AbortMultipartUpload"] == 1
    bucket.bed.inject()
    bucket.psync("-rt", "--delete", f"{source}/", f"{url}/")
    assert sync_trees.contents(bucket.path(url)) == sync_trees.contents(source)


def test_a_listing_that_fails_prevents_deletions(bucket, tmp_path):
    source, target, url = tmp_path / "source", tmp_path / "target", bucket.place()
    sync_trees.many_files(source, 20, 4)
    bucket.fill(source, url)
    subprocess.run(["cp", "-a", source, target], check=True)
    (target / "d1/surplus").write_text("x")
    bucket.bed.inject(
        {"operation": "ListObjectsV2", "query": "d2%2F", "do": "answer", "status": 403, "code": "AccessDenied"}
    )
    done = bucket.psync("-rt", "--delete", f"{url}/", f"{target}/", expected=23)
    assert b"nothing is deleted" in done.stderr and (target / "d1/surplus").exists() and (target / "d2").is_dir()
    bucket.bed.inject()
    bucket.psync("-rt", "--delete", f"{url}/", f"{target}/")
    assert files_of(target) == files_of(source)


@pytest.mark.parametrize(
    "answer",
    [
        {"operation": "ListObjectsV2", "query": "d2%2F", "status": 404, "body": "<html>nothing here</html>"},
        {"query": "d2%2F", "status": 404, "code": "NoSuchKey"},
    ],
)
def test_another_server_that_says_404_is_no_missing_directory(bucket, tmp_path, answer):
    source, target, url = tmp_path / "source", tmp_path / "target", bucket.place()
    sync_trees.many_files(source, 20, 4)
    bucket.fill(source, url)
    subprocess.run(["cp", "-a", source, target], check=True)
    (target / "d1/surplus").write_text("x")
    bucket.bed.inject({"do": "answer"} | answer)
    done = bucket.psync("-rt", "--delete", f"{url}/", f"{target}/", expected=23)
    assert b"404 to a list request" in done.stderr and b"nothing is deleted" in done.stderr, done.stderr
    assert files_of(target).items() >= files_of(source).items() and (target / "d1/surplus").exists()


def test_copies_by_the_server_keep_what_describes_the_contents(bucket, tmp_path):
    source, url, other = tmp_path / "source", bucket.place(), bucket.place()
    sync_trees.many_files(source, 3, 1)
    bucket.fill(source, url)
    about = {"user.content-type": b"text/csv", "user.content-encoding": b"gzip"}
    for path in ("d0/f1", "d0/f2"):
        for name, value in about.items():
            os.setxattr(bucket.path(url) / path, name, value)
    bucket.psync("-rt", f"{url}/", f"{other}/")
    os.utime(source / "d0/f2", ns=(0, 10**18))
    bucket.psync("-rt", "--size-only", f"{source}/", f"{url}/")
    for copy in (bucket.path(other) / "d0/f1", bucket.path(url) / "d0/f2"):
        assert {name: os.getxattr(copy, name) for name in about} == about, os.listxattr(copy)
    assert bucket.psync("-rti", f"{source}/", f"{url}/").stdout == b""


@pytest.mark.parametrize(
    "page",
    [
        "<Contents><Key>{0}a</Key>{1}</Contents><CommonPrefixes><Prefix>{0}a/</Prefix></CommonPrefixes>",
        "<Contents><Key>{0}..</Key>{1}</Contents>",
        "<CommonPrefixes><Prefix>{0}/</Prefix></CommonPrefixes>",
        "<Contents><Key>{0}</Key>{1}</Contents>",
        "<Contents><Key>{0}\ufffd</Key>{1}</Contents>",
    ],
)
def test_keys_that_are_no_paths_are_an_error_and_prevent_deletions(bucket, tmp_path, page):
    source, target, url = tmp_path / "source", tmp_path / "target", bucket.place()
    sync_trees.many_files(source, 5, 1)
    bucket.fill(source, url)
    bucket.psync("-rt", f"{url}/", f"{target}/")
    (target / "d0/surplus").write_text("x")
    key = f"{url}/".removeprefix(f"s3://{BUCKET}/")
    about = "<Size>1</Size><LastModified>2024-01-01T00:00:00Z</LastModified><ETag>x</ETag>"
    body = f"<ListBucketResult><IsTruncated>false</IsTruncated><CommonPrefixes><Prefix>{key}d0/</Prefix></CommonPrefixes>{page.format(key, about)}</ListBucketResult>"
    (source / "d0/more").write_text("more")
    bucket.fill(source, url)
    # The first request lists the source itself.
    query = f"max-keys=1000&prefix={key.replace('/', '%2F')}"
    bucket.bed.inject(
        {"operation": "ListObjectsV2", "query": query, "count": 1, "do": "answer", "status": 200, "body": body}
    )
    done = bucket.psync("-rt", "--delete", f"{url}/", f"{target}/", expected=23)
    assert (
        b'the key "' in done.stderr and b"cannot read directory" in done.stderr and b"nothing is deleted" in done.stderr
    ), done.stderr
    assert (target / "d0/surplus").exists() and (target / "d0/more").exists()


def test_an_object_that_is_replaced_after_it_was_listed_is_copied_as_it_is_now(bucket, tmp_path):
    source, target, url = tmp_path / "source", tmp_path / "target", bucket.place()
    source.mkdir()
    (source / "file").write_text("old")
    bucket.fill(source, url)
    bucket.bed.inject({"operation": "GetObject", "path": "file", "count": 1, "do": "hold"})
    with bucket.start("-rt", f"{url}/", f"{target}/") as running:
        wait_until(lambda: bucket.bed.held() == 1)
        (source / "file").write_text("newer")
        bucket.psync("-t", source / "file", f"{url}/file")
        bucket.bed.inject()
        assert running.wait(LIMIT_S) == 0
    assert (target / "file").read_text() == "newer"


def test_a_large_object_that_is_replaced_or_deleted_while_it_is_read_changes_nothing(bucket, tmp_path):
    source, target, url = tmp_path / "source", tmp_path / "target", bucket.place()
    for tree, content in ((source, os.urandom(70 << 20)), (target, b"old")):
        tree.mkdir()
        (tree / "file").write_bytes(content)
    for then, text in (("replaced", b"changed while it was read"), ("deleted", b"file has vanished")):
        (target / "file").write_text("old")
        bucket.fill(source, url)
        bucket.bed.inject({"operation": "GetObject", "skip": 1, "count": 1, "do": "hold"})
        with bucket.start("-rt", "--threads=1", f"{url}/", f"{target}/") as running:
            wait_until(lambda: bucket.bed.held() == 1)
            if then == "replaced":
                (source / "file").write_bytes(os.urandom(70 << 20))
                bucket.psync("-t", source / "file", f"{url}/file")
            else:
                bucket.path(f"{url}/file").unlink()
            bucket.bed.inject()
            _, errors = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 24 and text in errors, (then, errors)
        assert os.listdir(target) == ["file"] and (target / "file").read_text() == "old"


def test_a_directory_makes_way_when_the_object_is_there(bucket, tmp_path):
    old, new, url = tmp_path / "old", tmp_path / "new", bucket.place()
    sync_trees.many_files(old, 12, 3)
    bucket.fill(old, url)
    new.mkdir()
    for name in ("d0", "d1"):
        (new / name).write_bytes(os.urandom(20 << 20 if name == "d0" else 5))
    bucket.bed.inject(
        {"operation": "CompleteMultipartUpload", "do": "answer", "status": 403, "code": "AccessDenied"},
        {"operation": "PutObject", "path": "d1", "do": "answer", "status": 403, "code": "AccessDenied"},
    )
    done = bucket.psync("-rt", "--delete", f"{new}/", f"{url}/", expected=23)
    assert done.stderr.count(b"cannot write") == 2 and sync_trees.contents(bucket.path(url)) == sync_trees.contents(
        old
    ), done.stderr


def test_names_of_temporary_files_are_names_like_others(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    source.mkdir()
    (source / "file").write_text("x")
    for name in (".psync-0badcafe-1-1.tmp", "kept"):
        bucket.psync("-t", source / "file", f"{url}/{name}")
    bucket.psync("-rt", f"{source}/", f"{url}/")
    assert len(os.listdir(bucket.path(url))) == 3
    bucket.psync("-rt", "--delete", f"{source}/", f"{url}/")
    assert os.listdir(bucket.path(url)) == ["file"]


def test_many_requests_are_under_way_from_the_beginning(bucket, tmp_path):
    source, empty, url = tmp_path / "source", tmp_path / "empty", bucket.place()
    sync_trees.many_files(source, 800, 2)
    empty.mkdir()
    (empty / "file").write_text("x")
    bucket.bed.set_delay(20)
    try:
        for sides in ((source, url), (empty, url)):
            bucket.bed.reset_statistics()
            bucket.psync("-rt", "--delete", f"{sides[0]}/", f"{sides[1]}/")
            assert bucket.bed.statistics().max_in_flight >= 20, sides
    finally:
        bucket.bed.set_delay(0)


def test_wrong_settings_are_told_once_and_say_what_to_do(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 20, 2)
    for about, variables, target, code, text in [
        ("secret", {"AWS_SECRET_ACCESS_KEY": "wrong"}, url, 11, b"SignatureDoesNotMatch"),
        ("bucket", {}, "s3://no-such-bucket/x", 11, b"create the bucket first"),
        ("credentials", {"AWS_ACCESS_KEY_ID": "", "HOME": str(tmp_path)}, url, 3, b"AWS_ACCESS_KEY_ID"),
        ("profile", {"AWS_PROFILE": "nobody", "HOME": str(tmp_path)}, url, 3, b"no profile 'nobody'"),
        ("endpoint", {"AWS_ENDPOINT_URL": "localhost:9000"}, url, 3, b"not a valid endpoint URL"),
    ]:
        done = bucket.psync("-rt", f"{source}/", f"{target}/", expected=code, **variables)
        assert done.stderr.count(text) == 1, (about, done.stderr)
    for wrong in ("s3://", "s3:///x", "s3://u:p@bed/x", "s3://bed:80/x"):
        assert b"s3://BUCKET/KEY" in bucket.psync("-rt", f"{source}/", wrong, expected=1).stderr
    bucket.psync("-t", source / "d0/f0", f"{url}/object")
    assert b"Not a directory" in bucket.psync("-rt", f"{source}/", f"{url}/object/", expected=3).stderr
    mixed = bucket.psync("-rt", f"{url}/", "hdfs://host/x", expected=1)
    assert b"s3a://" in mixed.stderr
