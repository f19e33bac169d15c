"""Writes files of records in a format that only Spark writes, with stock Spark. Run by bench/spark-read with the Python
of a Spark environment.

    spark_record_files.py FORMAT TEMPLATES DIRECTORY FILES PARTITIONS

Each csv file in TEMPLATES is written once and copied until there are FILES, because Spark takes milliseconds for a
file. With PARTITIONS they are spread over the directories `part=0`, `part=1` and so on.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from spark_probe import RECORD, session


def main(kind: str, templates: Path, directory: Path, files: int, partitions: int) -> None:
    spark = session("stock", "1g")
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        written = []
        for path in sorted(templates.iterdir()):
            spark.read.schema(RECORD).csv(str(path)).coalesce(1).write.format(kind).save(f"{scratch}/{path.name}")
            written += Path(scratch, path.name).glob("part-*")
        homes = [directory / f"part={n}" for n in range(partitions)] or [directory]
        for home in homes:
            home.mkdir(parents=True)
        for i in range(files):
            shutil.copyfile(written[i % len(written)], homes[i % len(homes)] / f"part-{i:06}.{kind}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
