"""Objects on S3 are listed and read with the bucket's own credentials, endpoint and certificates, and errors are those of stock Spark.

Run with `make test-group GROUP=remote`.
"""

import json
import time

import pytest
from access_bed import ACCESS_KEY, FILES, KEYS, PROVIDERS, REGION, SECRET_KEY, SIMPLE, SMALL, Buckets, S3Bed, trust_store

ROLE = {
    "access.key": ACCESS_KEY, "secret.key": SECRET_KEY, "aws.credentials.provider": f"{PROVIDERS}.auth.AssumedRoleCredentialProvider",
    "assumed.role.arn": "arn:aws:iam::000000000000:role/reader",
}
MANY = 200
# The SDK renews credentials five minutes before they are said to end, so these are renewed at once.
STATED_MS = 61_000
PATIENCE_S = 60
READS = {
    "text": "spark.read.text(f'{root}/small')",
    "filter": "spark.read.text(f'{root}/small').filter(\"value rlike 'line .*7'\")",
    "inferred csv": "spark.read.csv(f'{root}/table', inferSchema=True).where('d < 3')",
    "parquet": "spark.read.parquet(f'{root}/parquet').where('id > 250 and k != 0')",
    "rdd": "sc.textFile(f'{root}/small')",
    "missing": "spark.read.text(f'{root}/nowhere')",
}
SERVED = ["static", "token", "role", "keystore", "environment", "first-of-two"]
REFUSED = {
    # The first request is a HEAD, whose answer has no code.
    "wrong": "Status Code: 403", "unset": "No AWS credentials", "anonymous": "Status Code: 403",
    "no-token": "Status Code: 403", "made-up": "Status Code: 403", "no-role": "InvalidClientTokenId",
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
        "environment": {"aws.credentials.provider": "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"},
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
        buckets = Buckets(bed, scratch, settings(bed))
        names = list(settings(bed))
        with_tokens = ("token", "role", "renewed", "no-token", "made-up", "no-role", "ended-403", "ended-within-stock", "ended-within-ours")
        bed.limit(*map(token_rule, with_tokens), {**token_rule("ended-400"), "status": 400}, stated_ms=STATED_MS)
        keystore = f"jceks://file{scratch}/keys.jceks"
        options = trust_store(bed.certificate, scratch / "trust.p12")
        # The endpoint of roles is not in fs.s3a.assumed.role.sts.endpoint, where S3A accepts no port.
        environment = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_ENDPOINT_URL_STS": bed.endpoint, "AWS_REGION": REGION,
        }
        self.homes = {}
        sessions = {}
        for name in ("stock", "ours"):
            events = scratch / f"{name}-events"
            events.mkdir()
            conf = {
                "spark.driver.extraJavaOptions": options, "spark.hadoop.hadoop.security.credential.provider.path": keystore,
                "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{events}", "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.compress": "false",
            }
            sessions[name] = buckets.session(name, millstream=name == "ours", conf=conf, environment=environment)
            self.homes[name] = events
        self.stock, self.ours = sessions["stock"], sessions["ours"]
        self.stock.call("remote_calls:store_password", provider=keystore, entries={
            f"fs.s3a.bucket.keystore.{key}": value for key, value in (("access.key", ACCESS_KEY), ("secret.key", SECRET_KEY))
        })
        buckets.fill(self.stock, "static", names[1:])
        self.ours.call("remote_calls:log_level", levels={"": "INFO", "io.millstream": "TRACE", "org.apache.spark.sql.execution.datasources.millstream": "TRACE"})

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
    assert (plan["node"], plan["index"], plan["fileSystem"]) == ("NativeTextScan", "CompactFileIndex", "MillstreamS3AFileSystem")
    assert (plan["metrics"]["requests"], plan["metrics"]["retries"]) == (SMALL, 0)


@pytest.mark.parametrize("bucket", REFUSED)
def test_refused_credentials_are_the_error_of_stock(access, bucket):
    expected, actual = access.both("remote_calls:read", root=f"s3a://{bucket}/data", reads={name: READS[name] for name in ("text", "parquet", "rdd")})
    assert actual == expected
    assert all(REFUSED[bucket] in answer["message"] for answer in expected.values()), expected
