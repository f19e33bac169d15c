"""Buckets that S3A and Spark must serve themselves, and objects that need more than a plain GET, give the rows or the
errors of stock Spark.

Run with `make test-group GROUP=remote`.
"""

import base64
import hashlib
import subprocess
from pathlib import Path

import pyspark
import pytest
from access_bed import KEYS, SMALL, Buckets, S3Bed, trust_store

READS = {
    "text": "spark.read.text(f'{root}')",
    "recursively": "spark.read.option('recursiveFileLookup', True).text(f'{root}').selectExpr('value', '_metadata.file_path')",
    "rdd": "sc.textFile(f'{root}')",
}
KEY_OF_CUSTOMER = base64.b64encode(hashlib.sha256(b"customer").digest()).decode()
DIRECTORY_BUCKET = "near--use1-az1--x-s3"
SETTINGS = {
    "plain": KEYS,
    "version-1": {**KEYS, "list.version": "1"},
    "reversed": KEYS,
    "odd": KEYS,
    DIRECTORY_BUCKET: {**KEYS, "s3express.create.session": "false"},
    "payer": {**KEYS, "requester.pays.enabled": "true"},
    "no-payer": KEYS,
    "customer-key": {**KEYS, "encryption.algorithm": "SSE-C", "encryption.key": KEY_OF_CUSTOMER},
    "no-customer-key": KEYS,
    "client-side": {
        **KEYS,
        "encryption.algorithm": "CSE-KMS",
        "encryption.key": "none",
        "encryption.cse.kms.region": "us-east-1",
    },
    "change-detection": {**KEYS, "change.detection.source": "versionid", "change.detection.mode": "client"},
    "classic": {**KEYS, "experimental.input.fadvise": "random", "input.stream.type": "classic"},
}
FALLBACKS = {
    "version-1": "fs.s3a.list.version is not 2",
    "reversed": "the server lists keys out of order: set/",
    "odd": 'the key "data/small//" has no regular Hadoop path',
    DIRECTORY_BUCKET: "directory buckets do not list keys in order",
}
SERVED = ("plain", "payer", "customer-key", "change-detection", "classic")
REFUSED = {"no-payer": "Status Code: 403", "no-customer-key": "Status Code: 400"}
OTHER = """
package test;

public class OtherS3A extends org.apache.hadoop.fs.s3a.S3AFileSystem {}
"""

LOG = """
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
# Whose level Spark gives to all loggers of a Python session.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
"""
# Served by the proxy itself: the server does not know the signatures of directory buckets.
SYNTHETIC = {"reversed": "dirs:2,files:20,order:reverse", DIRECTORY_BUCKET: "files:20,order:reverse"}


def path_of(bucket):
    return f"s3a://{bucket}/{'set' if bucket in SYNTHETIC else 'data/small'}"


def listing(prefix, contents, prefixes=()):
    """The page of a listing."""
    details = "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;0&quot;</ETag><Size>15</Size>"
    objects = "".join(f"<Contents><Key>{key}</Key>{details}</Contents>" for key in contents)
    common = "".join(f"<CommonPrefixes><Prefix>{found}</Prefix></CommonPrefixes>" for found in prefixes)
    return f"<ListBucketResult><Name>odd</Name><Prefix>{prefix}</Prefix><IsTruncated>false</IsTruncated>{objects}{common}</ListBucketResult>"


def with_slashes():
    """Replies of a bucket that has a key with two slashes, which the server, whose keys are paths, cannot have."""
    small, twice = "data/small/", ["data/small//twice.txt", "data/small/part-00000.txt"]
    reply = {"operation": "ListObjectsV2", "path": "odd", "do": "answer", "status": 200}
    return [
        {**reply, "query": "_spark_metadata", "body": listing(f"{small}_spark_metadata/", [])},
        {**reply, "query": "delimiter", "body": listing(small, twice[1:], ["data/small//"])},
        {**reply, "body": listing(small, twice)},
    ]


class Place:
    def __init__(self, bed, scratch):
        self.bed, self.buckets = bed, Buckets(bed, scratch, SETTINGS)
        self.options = {"spark.driver.extraJavaOptions": trust_store(bed.certificate, scratch / "trust.p12")}
        self.stock, self.ours = (
            self.buckets.session(name, millstream=name == "ours", conf=self.options) for name in ("stock", "ours")
        )
        self.buckets.fill(self.stock, "plain", [name for name in SETTINGS if name != "plain" and name not in SYNTHETIC])
        reads = ["GetObject", "HeadObject"]
        key = {"operations": reads, "header": "X-Amz-Server-Side-Encryption-Customer-Key", "value": KEY_OF_CUSTOMER}
        payer = {"header": "X-Amz-Request-Payer", "value": "requester"}
        bed.limit(
            *(
                {"bucket": bucket, **key, "status": 400, "code": "InvalidRequest"}
                for bucket in ("customer-key", "no-customer-key")
            ),
            *({"bucket": bucket, **payer, "status": 403, "code": "AccessDenied"} for bucket in ("payer", "no-payer")),
        )
        bed.inject(*with_slashes())
        self.ours.call("remote_calls:log_level", levels={"": "INFO", "io.millstream": "INFO"})

    def both(self, path):
        for session in (self.stock, self.ours):
            session.ask("remote_calls:read", root=path, reads=READS)
        return self.stock.answer(), self.ours.answer()

    def close(self):
        self.stock.close()
        self.ours.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with S3Bed(tls=True, synthetic=SYNTHETIC) as bed:
        found = Place(bed, tmp_path_factory.mktemp("fallbacks"))
        yield found
        found.close()


@pytest.mark.parametrize("bucket", FALLBACKS)
def test_the_log_says_once_why_spark_lists(place, bucket):
    expected, actual = place.both(path_of(bucket))
    assert actual == expected
    assert any("value" in answer for answer in expected.values()), expected
    used = place.ours.call("remote_calls:index", path=path_of(bucket))
    assert used == {"index": "InMemoryFileIndex", "fileSystem": "MillstreamS3AFileSystem"}
    lines = [
        line
        for line in place.ours.log.read_text().splitlines()
        if f"s3a://{bucket} is listed and read by S3A and Spark themselves" in line
    ]
    assert len(lines) == 1
    assert FALLBACKS[bucket] in lines[0]


@pytest.mark.parametrize("bucket", SERVED)
def test_settings_of_requests_are_those_of_s3a(place, bucket):
    expected, actual = place.both(path_of(bucket))
    assert actual == expected
    assert all("value" in answer for answer in expected.values()), expected
    plan = place.ours.call("remote_calls:plan", path=path_of(bucket))
    assert (plan["node"], plan["index"]) == ("NativeTextScan", "CompactFileIndex")
    assert (plan["metrics"]["requests"], plan["metrics"]["retries"]) == (SMALL, 0)
    assert f"s3a://{bucket}/data/small/part-00000.txt is left to S3A" not in place.ours.log.read_text()


@pytest.mark.parametrize("bucket", REFUSED)
def test_requests_without_these_settings_are_the_error_of_stock(place, bucket):
    expected, actual = place.both(path_of(bucket))
    assert actual == expected
    assert all(REFUSED[bucket] in answer["message"] for answer in expected.values()), expected


def test_client_side_encryption_without_its_client_is_the_error_of_stock(place):
    expected, actual = place.both(path_of("client-side"))
    assert {name: answer["error"] for name, answer in actual.items()} == {
        name: answer["error"] for name, answer in expected.items()
    }
    # Which of its classes is missed first depends on the order in which the JVM loads them.
    assert all(
        "software.amazon.encryption.s3" in answer["cause"]
        for answers in (expected, actual)
        for answer in answers.values()
    ), expected


def test_another_class_is_left_alone(place, tmp_path):
    source = tmp_path / "test" / "OtherS3A.java"
    source.parent.mkdir()
    source.write_text(OTHER)
    jars = place.buckets.conf["spark.driver.extraClassPath"]
    spark = Path(pyspark.__file__).parent
    subprocess.run(["javac", "-cp", f"{jars}:{spark}/jars/*", "-d", tmp_path / "classes", source], check=True)
    log = tmp_path / "log.properties"
    log.write_text(LOG)
    conf = {
        "spark.hadoop.fs.s3a.impl": "test.OtherS3A",
        "spark.driver.extraClassPath": f"{jars}:{tmp_path / 'classes'}",
        "spark.driver.extraJavaOptions": f"{place.options['spark.driver.extraJavaOptions']} -Dlog4j2.configurationFile={log}",
    }
    other = place.buckets.session("other", millstream=True, conf=conf)
    try:
        other.ask("remote_calls:read", root=path_of("plain"), reads=READS)
        place.stock.ask("remote_calls:read", root=path_of("plain"), reads=READS)
        assert other.answer() == place.stock.answer()
        assert other.call("remote_calls:index", path=path_of("plain")) == {
            "index": "InMemoryFileIndex",
            "fileSystem": "OtherS3A",
        }
        assert (
            other.log.read_text().count("fs.s3a.impl is test.OtherS3A, so Spark and Hadoop list and read these files")
            == 1
        )
    finally:
        other.close()
