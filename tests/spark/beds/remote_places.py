"""S3 and HDFS with Spark sessions, which several test files share: each takes half a minute to start."""

from contextlib import ExitStack
from functools import cached_property

import pyspark
from bed_jars import s3a_jars
from hdfs_bed import LESS_DELAY, HdfsBed
from s3_bed import BUCKET, S3Bed
from sessions import Session

KINDS = ("s3", "hdfs")


class Place:
    """A file system, a stock session and one with Millstream."""

    def __init__(self, kind: str, new_directory):
        """`new_directory` makes one by name."""
        self.kind = kind
        self._closing, self._new_directory = ExitStack(), new_directory
        if kind == "s3":
            self.bed = self._closing.enter_context(S3Bed())
            self.url = f"s3a://{BUCKET}"
            self.conf = {
                **self.bed.spark_conf(),
                "spark.driver.extraClassPath": ":".join(map(str, s3a_jars(pyspark.__version__))),
            }
        else:
            self.bed = self._closing.enter_context(HdfsBed())
            self.url = self.bed.url
            self.conf = LESS_DELAY
        self.root = f"{self.url}/data"
        self.stock, self.ours = (self.session(name, millstream=name == "ours") for name in ("stock", "ours"))

    @cached_property
    def by_client(self) -> Session:
        """A session with Millstream that makes no request natively."""
        return self.session("by-client", millstream=True, **{"spark.hadoop.fs.millstream.s3a.native.enabled": "false"})

    def session(self, name: str, *, millstream: bool, **conf: str) -> Session:
        """Another session, which is closed together with this one's."""
        conf = {**self.conf, "spark.sql.warehouse.dir": f"{self.url}/warehouse-{name}", **conf}
        session = Session(self._new_directory(f"{self.kind}-{name}") / name, millstream=millstream, conf=conf)
        self._closing.callback(session.close)
        return session

    def close(self) -> None:
        self._closing.close()


class Places:
    """The file system of each kind, started when it is first used."""

    def __init__(self, new_directory):
        self._new_directory, self._places = new_directory, {}

    def __getitem__(self, kind: str) -> Place:
        if kind not in self._places:
            self._places[kind] = Place(kind, self._new_directory)
        return self._places[kind]

    def close(self) -> None:
        for place in self._places.values():
            place.close()
