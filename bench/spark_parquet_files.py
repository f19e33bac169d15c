"""Writes small Parquet files, each of one to three records, by stock Spark. Run by bench/spark-read with a Spark's Python.

    spark_parquet_files.py DIRECTORY FILES
"""

import shutil
import sys
import tempfile
from pathlib import Path

from spark_probe import session

TEMPLATES = 30
"""Spark takes milliseconds for a file, so there are copies of so many."""


def main(directory: Path, files: int) -> None:
    spark = session("stock", "1g")
    with tempfile.TemporaryDirectory() as scratch:
        for n in range(min(TEMPLATES, files)):
            rows = spark.range(n % 3 + 1).selectExpr(
                f"cast(id + {n} as int) id", "timestamp'2020-01-01 12:00:00' date", f"'{n} Some Street' address", "'BALTIMORE' city", "'MD' state",
                "'21201' zip", "'water' service", f"cast(id * 7 + {n} as int) amount")
            rows.coalesce(1).write.parquet(f"{scratch}/{n}")
        templates = [next(Path(scratch, str(n)).glob("part-*")) for n in range(min(TEMPLATES, files))]
        directory.mkdir()
        for i in range(files):
            shutil.copyfile(templates[i % len(templates)], directory / f"part-{i:06}.parquet")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
