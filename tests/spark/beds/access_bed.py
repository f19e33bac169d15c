"""Buckets of the S3 test environment that need different settings, and sessions whose common settings are wrong for
all of them.

Each bucket has its own settings (`fs.s3a.bucket.NAME.…`). The settings for all buckets are wrong: nobody listens at
the endpoint, and the keys are refused. So a request that does not follow its bucket's settings fails.
"""

import shutil
import subprocess
from pathlib import Path

import pyspark
from bed_jars import s3a_jars
from s3_bed import ACCESS_KEY, REGION, SECRET_KEY, S3Bed
from sessions import Session

PROVIDERS = "org.apache.hadoop.fs.s3a"
SIMPLE = f"{PROVIDERS}.SimpleAWSCredentialsProvider"
KEYS = {"access.key": ACCESS_KEY, "secret.key": SECRET_KEY, "aws.credentials.provider": SIMPLE}
# Makes errors fast: every request is made twice, instead of up to 40 times.
WRONG = {
    "fs.s3a.endpoint": "https://127.0.0.1:1",
    "fs.s3a.endpoint.region": REGION,
    "fs.s3a.path.style.access": "true",
    "fs.s3a.access.key": "nobody",
    "fs.s3a.secret.key": "nothing",
    "fs.s3a.aws.credentials.provider": SIMPLE,
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.interval": "20ms",
    "fs.s3a.threads.max": "96",
    "fs.s3a.connection.maximum": "500",
}
SMALL = 40
FILES = {
    "table/d=1/x.csv": "1,a\n2,b\n",
    "table/d=2/y.csv": "3,c\n",
    **{f"small/part-{i:05d}.txt": f"line {i}\nother {i}\n" for i in range(SMALL)},
}
STORE_PASSWORD = "changeit"


def settings_of(bucket: str, settings: dict[str, str]) -> dict[str, str]:
    return {f"spark.hadoop.fs.s3a.bucket.{bucket}.{key}": value for key, value in settings.items()}


class Buckets:
    """The environment, and sessions for it. `settings` are those of each bucket; the endpoint is the environment's,
    unless they say otherwise.
    """

    def __init__(self, bed: S3Bed, scratch: Path, settings: dict[str, dict[str, str]]):
        self.bed, self.scratch = bed, scratch
        self.conf = {f"spark.hadoop.{key}": value for key, value in WRONG.items()}
        for bucket, own in settings.items():
            self.conf |= settings_of(bucket, {"endpoint": bed.endpoint, **own})
        self.conf["spark.driver.extraClassPath"] = ":".join(map(str, s3a_jars(pyspark.__version__)))

    def session(self, name: str, *, millstream: bool, conf: dict[str, str] | None = None, **details) -> Session:
        return Session(self.scratch / name, millstream=millstream, conf={**self.conf, **(conf or {})}, **details)

    def fill(self, session: Session, first: str, others: list[str]) -> None:
        """Writes the data sets to the first bucket, and copies them, with their ETags, to the others."""
        for bucket in (first, *others):
            (self.bed.data / bucket).mkdir(exist_ok=True)
        session.call("remote_calls:put", root=f"s3a://{first}/data", files=FILES)
        session.call("remote_calls:write_parquet", path=f"s3a://{first}/data/parquet")
        for bucket in others:
            shutil.copytree(self.bed.data / first / "data", self.bed.data / bucket / "data")


def trust_store(certificate: Path, store: Path) -> str:
    """Options with which a JVM trusts this certificate, and no other."""
    subprocess.run(
        [
            "keytool",
            "-importcert",
            "-noprompt",
            "-alias",
            "bed",
            "-file",
            certificate,
            "-keystore",
            store,
            "-storetype",
            "PKCS12",
            "-storepass",
            STORE_PASSWORD,
        ],
        check=True,
        capture_output=True,
    )
    return f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}"
