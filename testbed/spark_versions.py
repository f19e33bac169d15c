"""The Spark versions of spark-versions.tsv, by their use in tests and benches."""

from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().with_name("spark-versions.tsv")


@dataclass(frozen=True)
class SparkLine:
    """One supported line; versions not released for it are None."""

    line: str
    release: str
    used_as: str
    hadoop: str | None
    hadoop_cloud: str | None
    avro: str | None
    iceberg: str | None


def read(text: str) -> list[SparkLine]:
    """The lines of a table in the form of spark-versions.tsv, oldest first."""
    rows = (row.split("\t") for row in text.splitlines() if row and not row.startswith("#"))
    return [SparkLine(line, *(None if value == "-" else value for value in rest)) for line, *rest in rows]


SPARK_LINES = read(TABLE.read_text(encoding="utf-8"))
NEWEST, OLDEST, COMPILED = (
    next(known.release for known in SPARK_LINES if known.used_as == use) for use in ("newest", "oldest", "compiled")
)
# What only groups of tests run.
BETWEEN = tuple(known.release for known in SPARK_LINES if known.release not in (NEWEST, OLDEST))


def line_of(release: str) -> SparkLine:
    """The line of a release that is in the table.

    Raises KeyError if it is not.
    """
    return {known.release: known for known in SPARK_LINES}[release]
