"""The S3 proxy beyond single requests: synthetic buckets with a million keys, bandwidth limits, TLS.

The first run builds the server, which takes some minutes.
"""

import re
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from s3_bed import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Bed, s3a_conf  # noqa: E402


class Connection:
    """One connection that is kept."""

    def __init__(self, bed):
        self._connection = HTTPConnection(urllib.parse.urlsplit(bed.endpoint).netloc)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def get(self, path, **query):
        """The response, of which the body is still to be read; a parameter's name is written with _."""
        words = urllib.parse.urlencode({name.replace("_", "-"): value for name, value in query.items()})
        self._connection.request("GET", f"{path}?{words}")
        return self._connection.getresponse()

    def list(self, bucket, **query):
        """Keys and common prefixes, and the next token."""
        answer = self.get(f"/{bucket}", list_type=2, **query).read().decode()
        token = re.search("<NextContinuationToken>(.*?)<", answer)
        return re.findall("<Key>(.*?)<", answer) + re.findall(
            "<CommonPrefixes><Prefix>(.*?)<", answer
        ), token and token[1]


class SyntheticBuckets(unittest.TestCase):
    def setUp(self):
        self.bed = self.enterContext(
            S3Bed(
                synthetic={"flat": "files:1000000", "deep": "dirs:1000,files:1000", "back": "files:1500,order:reverse"}
            )
        )
        self.connection = self.enterContext(Connection(self.bed))

    def test_a_million_keys_are_listed_in_order(self):
        keys, token = self.connection.list("flat")
        while token:
            page, token = self.connection.list("flat", continuation_token=token)
            keys += page
        self.assertEqual(keys, [f"set/part-{number:07}.txt" for number in range(1_000_000)])
        self.assertEqual(self.bed.statistics().by_kind, {"ListObjectsV2": 1000})

    def test_directories_are_common_prefixes(self):
        names, token = self.connection.list("deep", prefix="set/", delimiter="/")
        self.assertEqual((names, token), ([f"set/dir={number:04}/" for number in range(1000)], None))
        names, token = self.connection.list(
            "deep", prefix="set/dir=0999/", delimiter="/", start_after="set/dir=0999/part-00997"
        )
        self.assertEqual((names, token), ([f"set/dir=0999/part-00{number}.txt" for number in (997, 998, 999)], None))

    def test_a_bucket_may_be_out_of_order(self):
        first, token = self.connection.list("back")
        second, end = self.connection.list("back", continuation_token=token)
        self.assertEqual((first + second, end), ([f"set/part-{number:07}.txt" for number in range(1499, -1, -1)], None))

    def test_objects_have_contents(self):
        self.assertEqual(
            self.connection.get("/deep/set/dir=0007/part-00011.txt").read(), b"=0007/part-00011.txt"[1:] + b"\n"
        )
        self.assertEqual(self.connection.get("/deep/set/dir=0007/part-01000.txt").status, 404)


class Bandwidth(unittest.TestCase):
    def rate(self, bed, connections, seconds=1.0):
        """Bytes per second over that many connections."""
        counts = [0] * connections
        start = time.monotonic()

        def read(number):
            buffer = bytearray(1 << 18)
            with Connection(bed) as connection:
                body = connection.get("/big/set/part-0000000.txt")
                while time.monotonic() - start < seconds:
                    counts[number] += body.readinto(buffer)

        readers = [threading.Thread(target=read, args=(number,)) for number in range(connections)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        return sum(counts) / (time.monotonic() - start)

    def test_bodies_are_limited_in_total_and_for_each_connection(self):
        with S3Bed(synthetic={"big": "files:1,bytes:100,lines:20000000"}) as bed:
            for total, connection, connections, expected in [
                (0, 40_000_000, 2, 80_000_000),
                (240_000_000, 40_000_000, 16, 240_000_000),
                (0, 2_000_000, 3, 6_000_000),
            ]:
                with self.subTest(total=total, connection=connection, connections=connections):
                    bed.set_bandwidth(total, connection)
                    self.assertAlmostEqual(self.rate(bed, connections) / expected, 1, delta=0.1)

    def test_objects_of_the_server_are_limited(self):
        with S3Bed() as bed:
            (bed.data / BUCKET / "k").write_bytes(bytes(4_000_000))
            bed.set_bandwidth(connection_bytes_per_s=8_000_000)
            start = time.monotonic()
            done = subprocess.run(
                [
                    "curl",
                    "-sSf",
                    "--aws-sigv4",
                    f"aws:amz:{REGION}:s3",
                    "--user",
                    f"{ACCESS_KEY}:{SECRET_KEY}",
                    "-H",
                    "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                    f"{bed.endpoint}/{BUCKET}/k",
                ],
                capture_output=True,
                check=True,
            )
            self.assertEqual(len(done.stdout), 4_000_000)
            self.assertAlmostEqual(time.monotonic() - start, 0.5, delta=0.05)


class Tls(unittest.TestCase):
    def test_clients_that_trust_the_certificate_connect(self):
        with S3Bed(synthetic={"made": "files:1"}, tls=True) as bed:
            self.assertTrue(bed.endpoint.startswith("https://127.0.0.1:"))
            self.assertEqual(s3a_conf(bed.endpoint)["fs.s3a.connection.ssl.enabled"], "true")
            address = f"{bed.endpoint}/made/set/part-0000000.txt"
            trust = ssl.create_default_context(cafile=bed.settings()["AWS_CA_BUNDLE"])
            with urllib.request.urlopen(address, context=trust) as answer:
                self.assertEqual(len(answer.read()), 20)
            with self.assertRaisesRegex(urllib.error.URLError, "CERTIFICATE_VERIFY_FAILED"):
                urllib.request.urlopen(address)
            self.assertEqual(bed.statistics().by_kind, {"GetObject": 1})

    def test_the_command_has_both_options(self):
        ask = 'curl -sS --cacert "$AWS_CA_BUNDLE" "$S3_ENDPOINT/made?list-type=2&max-keys=1"'
        done = subprocess.run(
            [
                TESTBED / "s3",
                "--tls",
                "--synthetic",
                "made=dirs:2,files:2",
                "--synthetic",
                "other=files:1",
                "--",
                "sh",
                "-c",
                ask,
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, "ListObjectsV2=1 total=1 max_inflight=1\n"))
        self.assertIn("<Key>set/dir=0000/part-00000.txt</Key>", done.stdout)


if __name__ == "__main__":
    unittest.main()
