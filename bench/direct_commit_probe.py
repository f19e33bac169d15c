"""Compiles direct_commit_probe.java against the protocol's classes and runs it with 1 GB of heap.

    direct_commit_probe.py FILES BED

BED gets the compiled class. The classes are those that `make jar` leaves in jvm/hadoop/target and jvm/write/target.
"""

import subprocess
import sys
from pathlib import Path

import pyspark

BENCH = Path(__file__).resolve().parent
JVM = BENCH.parent / "jvm"
CLASSES = [JVM / name for name in ("write/target/classes", "write/target/test-classes", "hadoop/target/classes")]
HEAP = "1g"


def main(files: str, bed: str) -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    path = ":".join(map(str, [bed, *CLASSES, f"{jars}/*"]))
    subprocess.run(["javac", "-d", bed, "-cp", path, str(BENCH / "direct_commit_probe.java")], check=True)
    subprocess.run(
        ["java", f"-Xmx{HEAP}", "-cp", path, "io.millstream.write.protocol.DirectCommitProbe", files], check=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
