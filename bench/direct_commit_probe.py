"""Compiles direct_commit_probe.java against the protocol's classes and runs it with 1 GB of heap.

    direct_commit_probe.py FILES BED

BED gets the compiled class. The classes are those that `make jar` leaves in jvm/hadoop/target.
"""

import subprocess
import sys
from pathlib import Path

import pyspark

BENCH = Path(__file__).resolve().parent
CLASSES = BENCH.parent / "jvm" / "hadoop" / "target"
HEAP = "1g"


def main(files: str, bed: str) -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    path = f"{bed}:{CLASSES / 'classes'}:{CLASSES / 'test-classes'}:{jars}/*"
    subprocess.run(["javac", "-d", bed, "-cp", path, str(BENCH / "direct_commit_probe.java")], check=True)
    subprocess.run(
        ["java", f"-Xmx{HEAP}", "-cp", path, "io.millstream.write.protocol.DirectCommitProbe", files], check=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
