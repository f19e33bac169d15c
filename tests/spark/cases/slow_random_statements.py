"""Many random sequences of statements on local files, S3 and HDFS, in every visibility that these have: after each
statement, the result is the same as with stock Spark.

MILLSTREAM_SEQUENCES is the number for each store and visibility, MILLSTREAM_SEED the seed of the first. The servers are
those of testbed/s3 and testbed/hdfs.
"""

from contextlib import ExitStack

import pyspark
import pytest
from bed_jars import s3a_jars
from hdfs_bed import HdfsBed
from random_statements import SWAP
from s3_bed import BUCKET, S3Bed
from test_random_statements import CONF, VISIBILITIES, Pair, check, home_below, local_home, repeated_by, seeds

S3A = {
    "spark.driver.extraClassPath": ":".join(map(str, s3a_jars(pyspark.__version__))),
    # Retries after faults are quick.
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
    # LOAD DATA LOCAL through another S3A client occasionally fails at this server, also in stock Spark, and is retried
    # for minutes.
    "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
}


@pytest.fixture(scope="module")
def place(request, tmp_path_factory):
    """A pair of sessions and their root directories."""
    with ExitStack() as servers:
        conf, home_of = CONF, local_home
        if request.param == "s3":
            bed = servers.enter_context(S3Bed())
            conf = {**conf, **bed.spark_conf(), **S3A}
            home_of = home_below(f"s3a://{BUCKET}")
        elif request.param == "hdfs":
            home_of = home_below(servers.enter_context(HdfsBed()).url)
        pair = Pair(tmp_path_factory.mktemp(request.param), conf)
        yield pair, home_of
        pair.close()


# Elsewhere an exchange is done in place.
CASES = [("local", visibility) for visibility in VISIBILITIES] + [
    (store, visibility) for store in ("s3", "hdfs") for visibility in ("in-place", SWAP)
]


@pytest.mark.parametrize("place, visibility", CASES, indirect=["place"])
@pytest.mark.parametrize("statements_seed", seeds(13))
def test_random_statements(place, visibility, statements_seed, capsys):
    with capsys.disabled():
        print(f" {repeated_by(statements_seed)} ({visibility}) ", end="", flush=True)
    check(*place, statements_seed, visibility)
