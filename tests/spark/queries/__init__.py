"""Queries for a stock session and one with Millstream; `test_same_as_stock.py` compares the answers.

A case is a function of a `Context` that returns a DataFrame, an RDD or a plain value; a Spark
exception is a result as well.
"""

import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from scratch_files import files_below

COMPACT = "CompactFileIndex"
STOCK = "InMemoryFileIndex"
CATALOG = "CatalogFileIndex"
CATALOG_COMPACT = "CompactCatalogFileIndex"
STREAM_LOG = "MetadataLogFileIndex"

# For cases in which Spark's own reader must read the listed files.
READ_BY_SPARK = {"spark.millstream.read.enabled": "false"}
# For cases in which stock Spark deletes files that it has yet to read, and a direct write does not.
WRITTEN_BY_SPARK = {"spark.millstream.write.enabled": "false"}


@dataclass(frozen=True)
class Context:
    spark: SparkSession
    data: str
    scratch: str
    """An empty directory for this session and case."""
    native: set[bool] = field(default_factory=set)
    """Whether the plans that `rows` ran read natively; compared with what the case expects."""

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
        self.files.write(name, content.encode())

    @property
    def files(self):
        """Changes files below the scratch directory."""
        return files_below(self.spark, self.scratch)

    def rows(self, frame: DataFrame) -> list[str]:
        rows = sorted(map(repr, frame.collect()))
        self.native.add(reads_natively(frame))
        return rows

    @contextmanager
    def settings(self, conf: dict[str, str]):
        """Applies SQL settings within this context."""
        before = {key: self.spark.conf.get(key, None) for key in conf}
        for key, value in conf.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                self.spark.conf.unset(key) if value is None else self.spark.conf.set(key, value)

    def with_conf(self, conf: dict[str, str], run: Callable[[], DataFrame]) -> list[str]:
        """The rows of `run`'s result, collected with changed SQL settings."""
        with self.settings(conf):
            return self.rows(run())


@dataclass(frozen=True)
class Case:
    run: Callable[[Context], Any]
    index: str | None
    """The index that a resulting DataFrame is expected to have with Millstream: COMPACT, or Spark's own; None if it has
    no files.
    """
    native: bool | None = None
    """Whether all rows, or none, are expected to be read natively; None if the case does not test this."""


def reads_natively(frame: DataFrame) -> bool:
    """Whether the executed plan's scans of text are native."""
    plan = frame._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    return "NativeTextScan" in plan and "FileScan text" not in plan


def reads_packed(frame: DataFrame) -> bool:
    """Whether a scan in the plan is packed."""
    return re.search("NativeTextScan|PackedFileScan", frame._jdf.queryExecution().executedPlan().toString()) is not None


def is_packed(rdd: RDD) -> bool:
    """Whether the partitions of an RDD of `sc.textFile` are Millstream's."""
    partitions = rdd._jrdd.rdd().partitions()
    return any("PackedSplit" in split_class(partition) for partition in partitions)


def split_class(partition) -> str:
    return (
        partition.inputSplit().value().getClass().getName()
        if partition.getClass().getSimpleName() == "HadoopPartition"
        else ""
    )


CASES: dict[str, Case] = {}


def add(name: str, run: Callable[[Context], Any], index: str | None = COMPACT, native: bool | None = None) -> None:
    assert name not in CASES, name
    CASES[name] = Case(run, index, native)


def case(name: str, index: str | None = COMPACT, native: bool | None = None):
    """Registers a function as a case."""

    def register(run: Callable[[Context], Any]) -> Callable[[Context], Any]:
        add(name, run, index, native)
        return run

    return register


from queries import (
    changed_files,
    changes,
    columnar,
    contents,
    entries,
    errors,
    layouts,
    names,
    options,
    partitions,
    plans,
    predicates,
    rdds,
    records,
    scans,
    stream_options,
    streams,
    tables,
)
