"""nfs_kills.py [SEED]: kills Spark drivers within their commits to tables on a kernel NFS mount, $MNT, while a driver
on another NFS client reads them.

slow_kernel_nfs_writes.py runs it in the guest of testbed/kernel-nfs.
"""

import os
import random
import sys
import tempfile
from pathlib import Path

from faults import PostgresMetastore, StepTrap
from slow_kills_at_commit import Bed, Local, kill_many

# The guest has one slow CPU: a lease must outlast its pauses.
LEASE = {
    "spark.hadoop.fs.millstream.write.lease.ms": "20000",
    "spark.hadoop.fs.millstream.write.help.after.ms": "10000",
}
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
