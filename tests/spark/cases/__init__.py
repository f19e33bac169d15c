"""What is asked of a stock session and of one with Millstream; `test_same_as_stock.py` compares the answers.

A case is a function of a `Context` that returns a DataFrame, an RDD or a plain value; an exception of Spark's is a result as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

COMPACT = "CompactFileIndex"
STOCK = "InMemoryFileIndex"
CATALOG = "CatalogFileIndex"
STREAM_LOG = "MetadataLogFileIndex"


@dataclass(frozen=True)
class Context:
    spark: SparkSession
    data: str
    scratch: str
    """A directory of this session's and this case's own, empty."""

    def read(self, format_name: str, *paths: str, schema: str | None = None, **options: Any):
        reader = self.spark.read.format(format_name).options(**options)
        if schema:
            reader = reader.schema(schema)
        located = [f"{self.data}/{path}" for path in paths]
        return reader.load(located[0] if len(located) == 1 else located)

    def text(self, *paths: str, **options: Any):
        return self.read("text", *paths, **options)

    def write(self, name: str, content: str) -> None:
        """Writes a file below the scratch directory."""
        path = Path(self.scratch, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def with_conf(self, conf: dict[str, str], run: Callable[[], Any]):
        """What `run` gives, collected while SQL settings are changed."""
        before = {key: self.spark.conf.get(key, None) for key in conf}
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        try:
            return sorted(map(repr, run().collect()))
        finally:
            for key, value in before.items():
                self.spark.conf.unset(key) if value is None else self.spark.conf.set(key, value)


@dataclass(frozen=True)
class Case:
    run: Callable[[Context], Any]
    index: str
    """Which index a resulting DataFrame is expected to have with Millstream: what is not COMPACT goes Spark's own way."""


CASES: dict[str, Case] = {}


def add(name: str, run: Callable[[Context], Any], index: str = COMPACT) -> None:
    assert name not in CASES, name
    CASES[name] = Case(run, index)


def case(name: str, index: str = COMPACT):
    """Makes a function a case."""

    def register(run: Callable[[Context], Any]) -> Callable[[Context], Any]:
        add(name, run, index)
        return run

    return register


from cases import changes, errors, layouts, names, options, partitions, plans, rdds, streams, tables  # noqa: E402, F401
