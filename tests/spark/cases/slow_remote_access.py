"""Objects on S3 are listed and read with the bucket's own credentials, endpoint and certificates, and errors are those
of stock Spark.

Run with `make test-group GROUP=remote`.
"""

import re
import shutil
import time

import pytest
from access_bed import ACCESS_KEY, KEYS, PROVIDERS, REGION, SECRET_KEY, SIMPLE, SMALL, Buckets, S3Bed, trust_store

ROLE = {
    "access.key": ACCESS_KEY,
    "secret.key": SECRET_KEY,
    "aws.credentials.provider": f"{PROVIDERS}.auth.AssumedRoleCredentialProvider",
    "assumed.role.arn": "arn:aws:iam::000000000000:role/reader",
}
MANY = 200
# The SDK uses no credentials whose stated expiry is within a minute.
LIFE_S = 1
STATED_MS = 60_000 + 1000 * LIFE_S
PATIENCE_S = 60
READS = {
    "text": "spark.read.text(f'{root}/small')",
    "filter": "spark.read.text(f'{root}/small').filter(\"value rlike 'line .*7'\")",
    "inferred csv": "spark.read.csv(f'{root}/table', inferSchema=True).where('d < 3')",
    "parquet": "spark.read.parquet(f'{root}/parquet').where('id > 250 and k != 0')",
    "rdd": "sc.textFile(f'{root}/small')",
    "missing": "spark.read.text(f'{root}/nowhere')",
}
SOME = {name: READS[name] for name in ("text", "parquet", "rdd")}
SERVED = ["static", "token", "role", "keystore", "environment", "first-of-two"]
REFUSED = {
    # The first request is a HEAD, whose answer has no code.
    "wrong": "Status Code: 403",
    "unset": "No AWS credentials",
    "anonymous": "Status Code: 403",
    "no-token": "Status Code: 403",
    "made-up": "Status Code: 403",
    "no-role": "InvalidClientTokenId",
}


def token_rule(bucket):
    return {"bucket": bucket, "header": "X-Amz-Security-Token", "status": 403, "code": "AccessDenied"}


def settings(bed):
    def temporary():
        provider = {"aws.credentials.provider": f"{PROVIDERS}.TemporaryAWSCredentialsProvider"}
        return {**{name.replace("_", "."): value for name, value in bed.new_credentials().items()}, **provider}

    return {
        "static": KEYS,
        "token": temporary(),
        "role": ROLE,
        "renewed": ROLE,
        "keystore": {"aws.credentials.provider": SIMPLE},
        "environment": {
            "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
        },
        # The first one has nothing to offer.
        "first-of-two": {**KEYS, "aws.credentials.provider": f"{PROVIDERS}.TemporaryAWSCredentialsProvider,{SIMPLE}"},
        "wrong": {**KEYS, "secret.key": "another"},
        "unset": {"access.key": "", "secret.key": ""},
        "anonymous": {"aws.credentials.provider": f"{PROVIDERS}.AnonymousAWSCredentialsProvider"},
        "no-token": KEYS,
        "made-up": {**temporary(), "session.token": "made-up"},
        "no-role": {**ROLE, "access.key": "stranger"},
        **{f"ended-{status}": temporary() for status in (400, 403)},
        **{f"ended-within-{name}": temporary() for name in ("stock", "ours")},
    }


class Access:
    """The two sessions, and a bucket for each kind of credentials."""

    def __init__(self, bed, scratch):
        self.bed = bed
        self.settings = settings(bed)
        self.buckets = buckets = Buckets(bed, scratch, self.settings)
        self.limit()
        keystore = f"jceks://file{scratch}/keys.jceks"
        options = trust_store(bed.certificate, scratch / "trust.p12")
        # The endpoint of roles is not in fs.s3a.assumed.role.sts.endpoint, where S3A accepts no port.
        environment = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL_STS": bed.endpoint,
            "AWS_REGION": REGION,
        }
        self.events = {}
        sessions = {}
        for name in ("stock", "ours"):
            events = scratch / f"{name}-events"
            events.mkdir()
            conf = {
                "spark.driver.extraJavaOptions": options,
                "spark.hadoop.hadoop.security.credential.provider.path": keystore,
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": f"file:{events}",
                "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.compress": "false",
            }
            sessions[name] = buckets.session(name, millstream=name == "ours", conf=conf, environment=environment)
            self.events[name] = events
        self.stock, self.ours = sessions["stock"], sessions["ours"]
        self.stock.call(
            "remote_calls:store_password",
            provider=keystore,
            entries={
                f"fs.s3a.bucket.keystore.{key}": value
                for key, value in (("access.key", ACCESS_KEY), ("secret.key", SECRET_KEY))
            },
        )
        buckets.fill(self.stock, "static", [name for name in self.settings if name != "static"])
        levels = {
            "": "INFO",
            "io.millstream": "TRACE",
            "org.apache.spark.sql.execution.datasources.millstream": "TRACE",
        }
        self.ours.call("remote_calls:log_level", levels=levels)

    def limit(self, *rules):
        """Sets rules in addition to those about tokens."""
        with_tokens = (
            "token",
            "role",
            "renewed",
            "no-token",
            "made-up",
            "no-role",
            "ended-403",
            "ended-within-stock",
            "ended-within-ours",
        )
        self.bed.limit(
            *map(token_rule, with_tokens), {**token_rule("ended-400"), "status": 400}, *rules, stated_ms=STATED_MS
        )

    def both(self, call, **arguments):
        """The answers of both sessions."""
        for session in (self.stock, self.ours):
            session.ask(call, **arguments)
        return self.stock.answer(), self.ours.answer()

    def close(self):
        self.stock.close()
        self.ours.close()


@pytest.fixture(scope="module")
def access(tmp_path_factory):
    with S3Bed(tls=True) as bed:
        found = Access(bed, tmp_path_factory.mktemp("access"))
        yield found
        found.close()


@pytest.mark.parametrize("bucket", SERVED)
def test_rows_are_those_of_stock(access, bucket):
    root = f"s3a://{bucket}/data"
    expected, actual = access.both("remote_calls:read", root=root, reads=READS)
    assert actual == expected
    assert {name for name in READS if "error" in expected[name]} == {"missing"}, expected["text"]
    plan = access.ours.call("remote_calls:plan", path=f"{root}/small")
    assert (plan["node"], plan["index"], plan["fileSystem"]) == (
        "NativeTextScan",
        "CompactFileIndex",
        "MillstreamS3AFileSystem",
    )
    assert (plan["metrics"]["requests"], plan["metrics"]["retries"]) == (SMALL, 0)


@pytest.mark.parametrize("bucket", REFUSED)
def test_refused_credentials_are_the_error_of_stock(access, bucket):
    expected, actual = access.both("remote_calls:read", root=f"s3a://{bucket}/data", reads=SOME)
    assert actual == expected
    assert all(REFUSED[bucket] in answer["message"] for answer in expected.values()), expected


def many(access, bucket):
    """A data set of many small files, copied with its ETag."""
    directory = access.bed.data / bucket / "many"
    if not directory.exists():
        directory.mkdir()
        for i in range(MANY):
            shutil.copy2(access.bed.data / "static/data/small/part-00000.txt", directory / f"part-{i:05d}.txt")
    return f"s3a://{bucket}/many"


def held(access, least):
    """Waits until that many requests are held, and no more arrive."""
    deadline, before = time.monotonic() + PATIENCE_S, -1
    while (now := access.bed.held()) < least or now != before:
        assert time.monotonic() < deadline, now
        before = now
        time.sleep(0.2)


@pytest.mark.parametrize("name", ["stock", "ours"])
@pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObject"])
def test_a_role_is_assumed_again_within_a_job(access, name, operation):
    """When all readers wait for a response, their credentials expire; the remaining requests need others."""
    session, path = getattr(access, name), many(access, "renewed")
    session.call("remote_calls:read", root=path, reads={"one": "spark.read.text(f'{root}/part-00000.txt')"})
    access.bed.inject({"operation": operation, "path": "renewed", "do": "hold"})
    refused = access.bed.tokens()["refused"]
    try:
        session.ask("remote_calls:read", root=path, reads={"many": "spark.read.text(root).groupBy('value').count()"})
        held(access, 1 if operation == "ListObjectsV2" else 2)
        time.sleep(LIFE_S)
        access.bed.revoke_credentials("renewed")
    finally:
        access.bed.inject()
    assert session.answer()["many"]["value"] == repr(
        [f"Row(value='line 0', count={MANY})", f"Row(value='other 0', count={MANY})"]
    )
    assert access.bed.tokens()["refused"] == refused


@pytest.mark.parametrize("status", [400, 403])
def test_credentials_that_end_after_the_listing_are_the_error_of_stock(access, status):
    """S3 answers 400, some other servers 403."""
    path = many(access, f"ended-{status}")
    code = f"spark.read.text({path!r})"
    assert access.both("remote_calls:keep", name="ended", code=code) == (MANY, MANY)
    access.bed.revoke_credentials(f"ended-{status}")
    expected, actual = access.both("remote_calls:count", name="ended")
    assert without_numbers(actual) == without_numbers(expected)
    assert f"Status Code: {status}" in expected["cause"]
    # Those of listings, too.
    expected, actual = access.both("remote_calls:read", root=path, reads={"again": "spark.read.text(root)"})
    assert actual == expected
    assert f"Status Code: {status}" in expected["again"]["message"]


def without_numbers(answer):
    """The file that is read first differs between the sessions."""
    return {key: re.sub(r"part-\d+", "part", value) for key, value in answer.items()}


def test_credentials_that_end_within_a_job_are_the_error_of_stock(access):
    answers = []
    for name in ("stock", "ours"):
        session, path = getattr(access, name), many(access, f"ended-within-{name}")
        assert session.call("remote_calls:keep", name="ended", code=f"spark.read.text({path!r})") == MANY
        access.bed.inject({"operation": "GetObject", "path": path.removeprefix("s3a:/"), "do": "hold"})
        try:
            session.ask("remote_calls:count", name="ended")
            held(access, 2)
            access.bed.revoke_credentials(f"ended-within-{name}")
        finally:
            access.bed.inject()
        answers.append(
            {key: value.replace(f"within-{name}", "within") for key, value in without_numbers(session.answer()).items()}
        )
    assert answers[1] == answers[0]
    assert "Status Code: 403" in answers[0]["cause"]


@pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObject"])
def test_requests_that_are_refused_are_the_error_of_stock(access, operation):
    """As with policies that allow HEAD requests and listings, but not reading data, or similar."""
    access.limit(
        {
            "bucket": "static",
            "operations": [operation],
            "header": "X-Amz-Never-Sent",
            "status": 403,
            "code": "AccessDenied",
        }
    )
    try:
        expected, actual = access.both("remote_calls:read", root="s3a://static/data", reads=SOME)
    finally:
        access.limit()
    assert {name: without_numbers(answer) for name, answer in actual.items()} == {
        name: without_numbers(answer) for name, answer in expected.items()
    }
    assert all("Status Code: 403" in answer["message"] + answer["cause"] for answer in expected.values()), expected


def test_a_log_of_streams_that_may_not_be_looked_for_is_taken_to_be_missing(access):
    access.bed.inject({"path": "_spark_metadata", "do": "answer", "status": 403, "code": "AccessDenied"})
    try:
        expected, actual = access.both("remote_calls:read", root="s3a://static/data", reads={"text": READS["text"]})
        index = access.ours.call("remote_calls:index", path="s3a://static/data/small")["index"]
        struck = access.bed.struck
    finally:
        access.bed.inject()
    assert actual == expected
    assert "value" in expected["text"]
    assert index == "CompactFileIndex"
    assert struck >= 2


def test_secrets_are_nowhere_to_be_seen(access):
    """At the most detailed level of Millstream's loggers: in the log, the plans, what tasks get, and the events, of
    which the UI is made.
    """
    temporary = re.compile("(secret|token)-[0-9a-f]{32}")
    assert temporary.fullmatch(access.settings["token"]["session.token"])
    assert temporary.fullmatch(access.settings["token"]["secret.key"])
    seen = {}
    for name in ("stock", "ours"):
        session = getattr(access, name)
        paths = [f"s3a://{bucket}/data/small" for bucket in SERVED]
        seen[name] = {
            "plans": "".join(session.call("remote_calls:explained", path=path) for path in paths),
            "tasks": "".join(session.call("remote_calls:serialized", path=path) for path in paths),
            "log": session.log.read_text(),
            "events": "".join(file.read_text() for file in access.events[name].iterdir()),
        }
    assert "NativeTextScan" in seen["ours"]["plans"]
    assert "TextScanRDD" in seen["ours"]["tasks"]
    assert "Listed s3a://static/data/small in" in seen["ours"]["log"]
    assert "fs.s3a.bucket.token.session.token" in seen["ours"]["events"]
    for place, text in seen["ours"].items():
        assert SECRET_KEY not in text, place
        assert not temporary.search(text), place


def test_a_certificate_that_is_not_trusted_is_the_error_of_stock(access):
    sessions = [access.buckets.session(f"untrusting-{name}", millstream=name == "ours") for name in ("stock", "ours")]
    try:
        for session in sessions:
            session.ask("remote_calls:read", root="s3a://static/data", reads=SOME)
        expected, actual = (session.answer() for session in sessions)
    finally:
        for session in sessions:
            session.close()
    assert actual == expected
    assert all("unable to find valid certification path" in answer["message"] for answer in expected.values()), expected
