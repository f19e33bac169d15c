"""`psync` with an S3 bucket, without Spark: killed runs, expiring credentials, changing sources, many objects.

Run with `make test-group GROUP=sync-buckets`.
"""

import datetime
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

import pytest
import sync_trees
from bucket_bed import BUCKET, LIMIT_S, Bucket, S3Bed, files_of, is_possible, wait_until
from sync_trees import PSYNC

ROOT = Path(__file__).resolve().parents[2]
KILLS = 12
# More than a listing remembers.
MANY = 300_000


@pytest.fixture(scope="module")
def bucket():
    with S3Bed(synthetic={"flat": f"files:{MANY}", "tenth": f"files:{MANY // 10}"}) as bed:
        yield Bucket(bed)


@pytest.fixture(autouse=True)
def without_faults(bucket):
    yield
    bucket.bed.inject()
    bucket.bed.set_rate(0)
    bucket.bed.set_delay(0)


@pytest.mark.parametrize("way", ["up", "down"])
def test_killed_runs_leave_whole_files_and_the_next_one_completes(bucket, tmp_path, seed, way):
    chance = random.Random(seed)
    old, new, url = tmp_path / "old", tmp_path / "new", bucket.place()
    sync_trees.make(old, chance.randrange(10**6), allowed=is_possible, links=False)
    shutil.copytree(old, new)
    sync_trees.mutate(new, chance.randrange(10**6))
    subprocess.run(["find", new, "-type", "l", "-delete"], check=True)
    (new / "large").write_bytes(chance.randbytes(30 << 20))
    bucket.fill(old if way == "up" else new, url)
    target = bucket.path(url) if way == "up" else tmp_path / "target"
    if way == "down":
        shutil.copytree(old, target)
    sides = [f"{new}/", f"{url}/"] if way == "up" else [f"{url}/", f"{target}/"]
    versions = [sync_trees.contents(tree) for tree in (old, new)]
    bucket.bed.set_delay(5)
    hits = 0
    for _ in range(KILLS):
        with bucket.start("-rt", "--delete", *sides) as running:
            time.sleep(chance.uniform(0.02, 0.4))
            hits += running.poll() is None
            running.send_signal(chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        for name, content in sync_trees.contents(target).items():
            is_temporary = os.path.basename(name).startswith(".psync-")
            assert is_temporary or content in [version.get(name) for version in versions], f"seed {seed}: {name}"
    assert hits > 0, f"seed {seed}"
    bucket.bed.set_delay(0)
    bucket.psync("-rt", "--delete", *sides)
    assert sync_trees.contents(target) == versions[1], f"seed {seed}"
    assert bucket.psync("-rti", "--delete", *sides).stdout == b""


def test_a_bucket_keeps_the_contract_of_a_volume(bucket):
    test = ["cargo", "test", "--locked", "--profile", "checked", "-p", "millstream-bucket", "--test", "contract"]
    environment = bucket.environment(S3_BUCKET=BUCKET, S3_DATA=str(bucket.bed.data))
    subprocess.run([*test, "--", "--ignored"], cwd=ROOT, env=environment, check=True)


def test_a_terminated_run_gives_its_uploads_up(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    source.mkdir()
    (source / "large").write_bytes(os.urandom(40 << 20))
    bucket.bed.reset_statistics()
    bucket.bed.inject({"operation": "UploadPart", "query": "partNumber=4", "do": "hold"})
    with bucket.start("-rt", f"{source}/", f"{url}/") as running:
        wait_until(lambda: bucket.bed.held() == 1)
        running.terminate()
        running.wait(LIMIT_S)
    assert bucket.bed.statistics().by_kind["AbortMultipartUpload"] == 1
    assert not bucket.path(f"{url}/large").exists()


@pytest.mark.parametrize("round", range(5))
def test_a_terminated_run_makes_no_object_empty(bucket, tmp_path, round):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 2000, 20)
    for path in source.rglob("f*"):
        path.write_text(f"old {path.name}")
    bucket.fill(source, url)
    for path in source.rglob("f*"):
        path.write_text(f"newer {path.name}")
    with bucket.start("-rt", f"{source}/", f"{url}/") as running:
        time.sleep(0.3 + 0.1 * round)
        assert running.poll() is None
        running.terminate()
    for path in bucket.path(url).rglob("f*"):
        assert path.read_text() in (f"old {path.name}", f"newer {path.name}")


def test_an_upload_whose_completion_was_not_heard_of_is_complete(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    source.mkdir()
    (source / "large").write_bytes(os.urandom(20 << 20))
    bucket.bed.inject({"operation": "CompleteMultipartUpload", "do": "drop", "after": True, "count": 1})
    bucket.fill(source, url)
    assert bucket.bed.struck == 1
    assert bucket.path(f"{url}/large").read_bytes() == (source / "large").read_bytes()


def test_credentials_that_are_good_yet_are_used_while_a_service_hangs(bucket, services, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 50)
    services.good_for_s, services.hangs_after = 120, 1
    started = time.monotonic()
    bucket.psync(
        "-rt",
        f"{source}/",
        f"{url}/",
        AWS_ACCESS_KEY_ID="",
        AWS_SECRET_ACCESS_KEY="",
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{services.url}/container",
        AWS_CONTAINER_AUTHORIZATION_TOKEN="secret",
    )
    assert services.calls == 2 and time.monotonic() - started < 60
    assert sync_trees.contents(bucket.path(url)) == sync_trees.contents(source)


def test_a_file_that_grows_is_a_beginning_and_the_next_run_copies_the_rest(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    source.mkdir()
    content = os.urandom(30 << 20)
    (source / "log").write_bytes(content)
    bucket.bed.inject({"operation": "UploadPart", "query": "partNumber=2", "count": 1, "do": "hold"})
    with bucket.start("-rt", f"{source}/", f"{url}/") as running:
        wait_until(lambda: bucket.bed.held() == 1)
        with (source / "log").open("ab") as log:
            log.write(b"more")
        bucket.bed.inject()
        assert running.wait(LIMIT_S) == 24
    copy = bucket.path(f"{url}/log").read_bytes()
    assert copy == (content + b"more")[: len(copy)] and len(copy) >= len(content)
    bucket.psync("-rt", f"{source}/", f"{url}/")
    assert bucket.path(f"{url}/log").read_bytes() == content + b"more"


def test_a_file_that_becomes_shorter_leaves_the_object_as_it_was(bucket, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    source.mkdir()
    (source / "file").write_bytes(b"old")
    bucket.psync("-rt", f"{source}/", f"{url}/")
    (source / "file").write_bytes(os.urandom(30 << 20))
    bucket.bed.reset_statistics()
    with bucket.start("-rt", "--bwlimit=10m", f"{source}/", f"{url}/") as running:
        wait_until(lambda: bucket.bed.statistics().by_kind.get("CreateMultipartUpload", 0) > 0)
        (source / "file").write_bytes(b"short")
        assert running.wait(LIMIT_S) == 24
    assert bucket.path(f"{url}/file").read_bytes() == b"old"
    bucket.psync("-rt", f"{source}/", f"{url}/")
    assert bucket.path(f"{url}/file").read_bytes() == b"short"


def test_a_bucket_that_turns_requests_away_gets_all_in_the_end(bucket, tmp_path):
    source, back, url = tmp_path / "source", tmp_path / "back", bucket.place()
    sync_trees.many_files(source, 600)
    bucket.bed.set_rate(100)
    bucket.psync("-rt", f"{source}/", f"{url}/")
    bucket.psync("-rt", f"{url}/", f"{back}/")
    assert bucket.bed.refused > 0
    assert files_of(back) == files_of(source)


def test_encrypted_connections_need_a_certificate_that_is_trusted(tmp_path):
    with S3Bed(tls=True) as bed:
        bucket = Bucket(bed)
        source, back, url = tmp_path / "source", tmp_path / "back", bucket.place()
        sync_trees.many_files(source, 40)
        bucket.psync("-rt", f"{source}/", f"{url}/")
        bucket.psync("-rt", f"{url}/", f"{back}/")
        assert files_of(back) == files_of(source)
        assert b"certificate" in bucket.psync("-rt", f"{url}/", f"{back}/", expected=23, AWS_CA_BUNDLE="").stderr


class Services(http.server.BaseHTTPRequestHandler):
    """Issues credentials like the services of a machine, a container and the token service."""

    def do_PUT(self):
        self.reply(
            "the-token"
            if self.path == "/latest/api/token" and self.headers["x-aws-ec2-metadata-token-ttl-seconds"]
            else None
        )

    def do_GET(self):
        path = self.path
        is_machine = self.headers["x-aws-ec2-metadata-token"] == "the-token"
        if path == "/latest/meta-data/iam/security-credentials/" and is_machine:
            self.reply("a-role")
        elif path == "/latest/meta-data/iam/security-credentials/a-role" and is_machine:
            self.reply(json.dumps(self.server.next() | {"Code": "Success"}))
        elif path == "/container" and self.headers["authorization"] == "secret":
            self.reply(json.dumps(self.server.next()))
        else:
            self.reply(None)

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
        wanted = {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": "a/token", "RoleArn": "arn:x"}
        if self.path != "/sts" or not wanted.items() <= form.items():
            return self.reply(None)
        given = self.server.next()
        given["SessionToken"] = given.pop("Token")
        return self.reply(
            "<R><Credentials>"
            + "".join(f"<{name}>{value}</{name}>" for name, value in given.items())
            + "</Credentials></R>"
        )

    def reply(self, body):
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or "")))
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def services(bucket):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Services) as server:
        server.calls, server.good_for_s, server.hangs_after = 0, 3600, 10**6

        def new():
            server.calls += 1
            if server.calls > server.hangs_after:
                time.sleep(30)
            given = bucket.bed.new_credentials()
            until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=server.good_for_s)
            return {
                "AccessKeyId": given["access_key"],
                "SecretAccessKey": given["secret_key"],
                "Token": given["session_token"],
                "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }

        server.next = new
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    "settings",
    ["[default]\nsso_session = x\n", "[default]\nrole_arn = x\naws_access_key_id = a\naws_secret_access_key = b\n"],
)
def test_profiles_that_are_not_supported_are_refused(bucket, services, tmp_path, settings):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(settings)
    variables = {
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
        "HOME": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": services.url,
    }
    done = bucket.psync("-rt", f"{tmp_path}/", f"{bucket.place()}/", expected=3, **variables)
    assert b"single sign-on" in done.stderr and services.calls == 0, done.stderr


@pytest.mark.parametrize("place", ["machine", "container", "identity", "program", "profile", "named profile"])
def test_credentials_come_from_where_amazons_tools_find_them(bucket, services, tmp_path, place):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 20, 2)
    home = tmp_path / "home/.aws"
    home.mkdir(parents=True)
    (tmp_path / "token").write_text("a/token\n")
    given = bucket.bed.new_credentials()
    keys = "".join(
        f"{name} = {given[key]}\n"
        for name, key in [
            ("aws_access_key_id", "access_key"),
            ("aws_secret_access_key", "secret_key"),
            ("aws_session_token", "session_token"),
        ]
    )
    answer = {
        "Version": 1,
        "AccessKeyId": given["access_key"],
        "SecretAccessKey": given["secret_key"],
        "SessionToken": given["session_token"],
    }
    (tmp_path / "answer").write_text(json.dumps(answer))
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path / "home")}
    match place:
        case "machine":
            variables |= {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": services.url}
        case "container":
            variables |= {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{services.url}/container",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "secret",
            }
        case "identity":
            variables |= {
                "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
                "AWS_ROLE_ARN": "arn:x",
                "AWS_ENDPOINT_URL_STS": f"{services.url}/sts",
            }
        case "program":
            (home / "config").write_text(f"[default]\ncredential_process = cat {tmp_path / 'answer'}\n")
        case "profile":
            (home / "credentials").write_text(f"[default]\n{keys}[other]\naws_access_key_id = wrong\n")
        case "named profile":
            (home / "credentials").write_text(
                f"[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n[mine]\n{keys}"
            )
            (home / "config").write_text(f"[profile mine]\nregion = us-east-1\nendpoint_url = {bucket.bed.endpoint}\n")
            variables |= {"AWS_PROFILE": "mine", "AWS_ENDPOINT_URL": "", "AWS_REGION": ""}
    bucket.psync("-rt", f"{source}/", f"{url}/", **variables)
    assert sync_trees.contents(bucket.path(url)) == sync_trees.contents(source)
    assert services.calls == (1 if place in ("machine", "container", "identity") else 0)
    refused = bucket.psync(
        "-rt",
        f"{source}/",
        f"{url}/",
        expected=3,
        **variables
        | {
            "HOME": str(tmp_path),
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{services.url}/nothing",
            "AWS_WEB_IDENTITY_TOKEN_FILE": "",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{services.url}/nothing",
            "AWS_PROFILE": "",
        },
    )
    assert b"no S3 credentials found (container credentials:" in refused.stderr, refused.stderr


def test_credentials_that_end_are_renewed(bucket, services, tmp_path):
    source, url = tmp_path / "source", bucket.place()
    sync_trees.many_files(source, 400)
    services.good_for_s = 4
    bucket.bed.limit(token_ms=5000)
    bucket.bed.set_delay(300)
    try:
        bucket.psync(
            "-rt",
            "--threads=8",
            f"{source}/",
            f"{url}/",
            AWS_ACCESS_KEY_ID="",
            AWS_SECRET_ACCESS_KEY="",
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{services.url}/container",
            AWS_CONTAINER_AUTHORIZATION_TOKEN="secret",
        )
    finally:
        bucket.bed.limit()
    assert services.calls > 1
    assert sync_trees.contents(bucket.path(url)) == sync_trees.contents(source)


def test_memory_does_not_grow_with_the_number_of_objects(bucket, tmp_path):
    peaks = []
    for name, count in (("tenth", MANY // 10), ("flat", MANY)):
        with (tmp_path / "stats").open("wb") as out:
            running = subprocess.Popen(
                [PSYNC, "-rtn", "--stats", f"s3://{name}/", tmp_path / "target"], env=bucket.environment(), stdout=out
            )
            _, status, used = os.wait4(running.pid, 0)
        assert status == 0 and f"Number of regular files transferred: {count:,}" in (tmp_path / "stats").read_text()
        peaks.append(used.ru_maxrss)
    # The rest belongs to the threads, whose number differs.
    assert peaks[1] <= peaks[0] + (60 << 10), peaks
