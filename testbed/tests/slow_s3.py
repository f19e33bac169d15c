"""The S3 server and its proxy: the features that S3A needs work, requests are counted and delayed, objects can be kept.

The first run builds the server, which takes some minutes.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from bed_jars import hadoop_cloud_jar, s3a_jars  # noqa: E402
from s3_bed import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Bed  # noqa: E402
from spark_versions import NEWEST, OLDEST, line_of  # noqa: E402


class Client:
    """Sends signed requests with curl."""

    def __init__(self, bed):
        self.bed = bed

    def __call__(self, method, resource, body=b"", **headers):
        """Status, headers and body of the answer; a header's name is written with _."""
        how = ["-I"] if method == "HEAD" else ["-X", method, "--data-binary", "@-"]
        words = [word for name, value in headers.items() for word in ("-H", f"{name.replace('_', '-')}: {value}")]
        done = subprocess.run(
            [
                "curl",
                "-sSi",
                "--max-time",
                "30",
                *how,
                "--aws-sigv4",
                f"aws:amz:{REGION}:s3",
                "--user",
                f"{ACCESS_KEY}:{SECRET_KEY}",
                "-H",
                "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                *words,
                f"{self.bed.endpoint}/{BUCKET}{resource}",
            ],
            input=body,
            capture_output=True,
            check=True,
        )
        head, _, answer = done.stdout.rpartition(b"\r\n\r\n")
        return int(head.rpartition(b"HTTP/1.1 ")[2][:3]), head.decode(), answer.decode()


class Bed(unittest.TestCase):
    def setUp(self):
        self.bed = self.enterContext(S3Bed())
        self.client = Client(self.bed)

    def upload(self, key, contents):
        """A multipart upload that waits to be completed: its id, and the body that completes it."""
        upload = re.search("<UploadId>(.*)</UploadId>", self.client("POST", f"/{key}?uploads=")[2])[1]
        status, head, _ = self.client("PUT", f"/{key}?partNumber=1&uploadId={upload}", contents)
        self.assertEqual(status, 200, head)
        tag = re.search("(?i)etag: (.*)\r", head + "\r")[1]
        return upload, (
            f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part></CompleteMultipartUpload>".encode()
        )

    def test_an_upload_is_visible_only_after_its_completion(self):
        upload, parts = self.upload("t/k", b"contents")
        self.assertEqual(self.client("GET", "/t/k")[0], 404)
        self.assertIn(f"<UploadId>{upload}</UploadId>", self.client("GET", "?prefix=t%2F&uploads=")[2])
        self.assertEqual(self.client("POST", f"/t/k?uploadId={upload}", parts)[0], 200)
        self.assertEqual(self.client("GET", "/t/k")[2], "contents")

    def test_an_aborted_upload_cannot_be_completed(self):
        upload, parts = self.upload("t/k", b"contents")
        self.assertEqual(self.client("DELETE", f"/t/k?uploadId={upload}")[0], 204)
        status, _, answer = self.client("POST", f"/t/k?uploadId={upload}", parts)
        self.assertEqual(status, 404)
        self.assertIn("<Code>NoSuchUpload</Code>", answer)

    def test_of_two_creators_one_is_refused(self):
        statuses = [self.client("PUT", "/lock", owner, If_None_Match="*")[0] for owner in (b"1", b"2")]
        self.assertEqual((statuses, self.client("GET", "/lock")[2]), ([200, 412], "1"))

    def test_many_objects_are_deleted_by_one_request(self):
        for key in ("a", "b", "c"):
            self.client("PUT", f"/d/{key}", b"x")
        keys = b"<Delete><Object><Key>d/a</Key></Object><Object><Key>d/c</Key></Object></Delete>"
        digest = base64.b64encode(hashlib.md5(keys).digest()).decode()
        self.assertEqual(self.client("POST", "?delete=", keys, Content_MD5=digest)[0], 200)
        self.assertEqual(re.findall("<Key>(.*?)</Key>", self.client("GET", "?list-type=2")[2]), ["d/b"])
        self.assertEqual(self.bed.statistics().by_kind, {"PutObject": 3, "DeleteObjects": 1, "ListObjectsV2": 1})

    def test_a_request_takes_the_delay_once_it_is_set(self):
        self.bed.set_delay(300)
        start = time.monotonic()
        self.assertEqual(self.client("HEAD", "/none")[0], 404)
        self.assertGreater(time.monotonic() - start, 0.3)

    def test_an_answer_can_be_lost_after_the_work(self):
        upload, parts = self.upload("k", b"contents")
        fault = {"do": "answer", "status": 503, "code": "SlowDown", "after": True}
        self.bed.inject({"operation": "CompleteMultipartUpload", "count": 1, **fault})
        self.assertEqual(self.client("POST", f"/k?uploadId={upload}", parts)[0], 503)
        self.assertEqual(self.client("GET", "/k")[2], "contents")


class Objects(unittest.TestCase):
    def test_objects_are_kept_in_a_given_directory(self):
        with tempfile.TemporaryDirectory() as data:
            for expected in (404, 200):
                with S3Bed(data=Path(data)) as bed:
                    self.assertEqual(Client(bed)("GET", "/k")[0], expected)
                    Client(bed)("PUT", "/k", b"x")

    def test_the_command_finds_the_settings_and_the_counters_are_printed(self):
        done = subprocess.run(
            [TESTBED / "s3", "--", "sh", "-c", "curl -s $S3_ENDPOINT/$S3_BUCKET/k >/dev/null"],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        self.assertEqual((done.returncode, done.stderr), (0, "GetObject=1 total=1 max_inflight=1\n"))


class Jars(unittest.TestCase):
    def test_there_are_jars_for_every_spark(self):
        for spark in (OLDEST, NEWEST):
            with self.subTest(spark):
                names = [jar.name for jar in s3a_jars(spark)]
                self.assertIn(f"hadoop-aws-{line_of(spark).hadoop}.jar", names)
                self.assertFalse([name for name in names if re.match("netty-(?!nio-client)|slf4j|bundle", name)])
                self.assertLess(sum(jar.stat().st_size for jar in s3a_jars(spark)), 20 << 20)
                self.assertIn("spark-hadoop-cloud", hadoop_cloud_jar(spark).name)


if __name__ == "__main__":
    unittest.main()
