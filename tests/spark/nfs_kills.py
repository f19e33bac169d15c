"""Drivers killed within their commits to tables on a kernel NFS mount, whose reader is another client. slow_kernel_nfs_writes.py runs it in the
guest of testbed/kernel-nfs: NFS_KILLS_DIRECTORY SEED.
"""

import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import conftest  # noqa: F401, E402
from faults import PostgresMetastore, StepTrap  # noqa: E402
from slow_kills_at_commit import Bed, Local, kill_many  # noqa: E402

# One slow processor, which is not to be taken for a dead driver.
LEASE = {"spark.hadoop.fs.millstream.write.lease.ms": "20000", "spark.hadoop.fs.millstream.write.help.after.ms": "10000"}
ANOTHER_CLIENT = ("bash", "-c", 'exec_as_another_client "$@"', "bash")


class Nfs(Local):
    visibilities = ("in-place", "metastore-swap")


def main(seed):
    root = Path(os.environ["MNT"], "tables")
    root.mkdir()
    with PostgresMetastore() as metastore, StepTrap() as trap, tempfile.TemporaryDirectory() as scratch:
        conf = {**LEASE, "spark.driver.extraClassPath": str(metastore.driver_jar())}
        bed = Bed(Path(scratch), metastore, conf, reader_within=ANOTHER_CLIENT)
        kill_many(bed, Nfs(root.parent, trap), root, seed)
        bed.reader.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(2**32))
