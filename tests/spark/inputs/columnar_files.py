"""Directories of small Parquet and ORC files, written by stock Spark, that differ in what a reader derives from a
footer.

In each directory, files of several writers alternate by name: so a task meets a file that is like the one before,
and one that is not. Dates are before 1582, where calendars differ.
"""

import shutil
from contextlib import contextmanager
from pathlib import Path

FILES = 3
ROWS = 60

FLAT = (
    "cast(id as int) a",
    "if(id % 7 = 0, null, concat('name ', id % 5)) b",
    "id * 0.5D c",
    "cast(id as decimal(20, 2)) d",
    "date_sub(date'1500-01-01', cast(id as int)) e",
    "timestamp'1400-01-01 10:11:12.345678' + make_interval(0, 0, 0, cast(id as int)) f",
    "id % 2 = 0 g",
    "cast(concat('bytes', id) as binary) h",
    "timestamp_ntz'2020-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) i",
)
NESTED = (
    "cast(id as int) a",
    "if(id % 5 = 0, null, named_struct('x', id, 'y', if(id % 3 = 0, null, cast(id as string)))) s",
    "if(id % 4 = 0, null, transform(sequence(0, id % 3), k -> named_struct('k', k, 'v', concat('v', k)))) l",
    "map(concat('k', id % 3), array(id, null)) m",
)
SCHEMAS = {
    "order": ("concat('name ', id) b", "cast(id as int) a"),
    "few": ("cast(id as int) a",),
    "more": (*FLAT, "id z"),
    "upper": ("cast(id as int) A", "'up' B"),
    "other": ("id y",),
}
CODECS = {"parquet": ("snappy", "gzip", "zstd", "none", "lz4_raw"), "orc": ("snappy", "zlib", "zstd", "none", "lz4")}
DATES = "spark.sql.parquet.datetimeRebaseModeInWrite"
INT96 = "spark.sql.parquet.int96RebaseModeInWrite"
TYPE = "spark.sql.parquet.outputTimestampType"
WRITERS = {
    "legacy": {DATES: "LEGACY", INT96: "LEGACY", TYPE: "INT96"},
    "corrected": {DATES: "CORRECTED", INT96: "CORRECTED", TYPE: "INT96"},
    "micros": {DATES: "LEGACY", TYPE: "TIMESTAMP_MICROS"},
    "millis": {DATES: "CORRECTED", TYPE: "TIMESTAMP_MILLIS"},
}
CORRECTED = {DATES: "CORRECTED", INT96: "CORRECTED"}
PAGES = {
    "dictionary": {},
    "plain": {"parquet.enable.dictionary": "false"},
    "delta": {"parquet.writer.version": "PARQUET_2_0", "parquet.enable.dictionary": "false"},
    "v2": {"parquet.writer.version": "PARQUET_2_0"},
    "small": {"parquet.page.size": "64", "parquet.block.size": "512", "parquet.page.row.count.limit": "7"},
    "bloom": {"parquet.bloom.filter.enabled": "true"},
}
STRIPES = {
    "plain": {},
    "no index": {"orc.create.index": "false"},
    "small": {"orc.row.index.stride": "1000", "orc.stripe.size": "64"},
    "dictionary": {"orc.dictionary.key.threshold": "1.0"},
    "bloom": {"orc.bloom.filter.columns": "a,b"},
}


@contextmanager
def settings(spark, conf):
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


class Writer:
    def __init__(self, spark, format_name: str, root: Path):
        self.spark, self.format_name, self.root = spark, format_name, root / format_name
        self.first = 0

    def add(
        self, directory: str, label: str, columns, conf=None, rows: int = ROWS, files: int = FILES, **options
    ) -> list[Path]:
        """Writes files of other rows each; their names sort by number, then by label."""
        out = self.root / "written"
        frame = self.spark.range(self.first, self.first + rows, 1, files).selectExpr(*columns)
        self.first += rows
        with settings(self.spark, {**CORRECTED, **(conf or {})}):
            frame.write.options(**options).format(self.format_name).save(str(out))
        (self.root / directory).mkdir(parents=True, exist_ok=True)
        made = [self.root / directory / f"{i:02}-{label}" for i in range(files)]
        for source, target in zip(sorted(out.glob("part-*")), made, strict=True):
            source.rename(target)
        shutil.rmtree(out)
        return made


def write(spark, root: Path) -> None:
    for format_name in ("parquet", "orc"):
        writer = Writer(spark, format_name, root)
        writer.add("same", "p", FLAT, files=8)
        writer.add("nested", "p", NESTED)
        for codec in CODECS[format_name]:
            writer.add("codecs", codec, FLAT, compression=codec)
        for label, columns in {"as usual": FLAT, **SCHEMAS}.items():
            writer.add("schemas", label, columns)
        for label, conf in WRITERS.items():
            writer.add("dates", label, ("cast(id as int) a", *FLAT[4:6]), conf)
        for label, options in (PAGES if format_name == "parquet" else STRIPES).items():
            writer.add("pages", label, FLAT, rows=3000, files=2, **options)
        writer.add("empty", "all", FLAT)
        (empty,) = writer.add("empty", "none", FLAT, rows=0, files=1)
        for i in range(1, FILES):
            shutil.copyfile(empty, empty.with_name(f"{i:02}-none"))
        for k in ("1", "__HIVE_DEFAULT_PARTITION__", "2"):
            writer.add(f"partitions/k={k}/l=x{k[0]}", "p", FLAT, files=2)
        writer.add("large", "p", ("cast(id as int) a", "sha2(cast(id as string), 512) b"))
        writer.add("large", "large", ("cast(id as int) a", "sha2(cast(id as string), 512) b"), rows=20_000, files=1)
        broken(writer)
    field_ids(Writer(spark, "parquet", root))


def broken(writer: Writer) -> None:
    """Good files next to one that is cut off, one whose footer is noise, and one whose data are."""
    for directory, spoil in {
        "cut": lambda content: content[:-10],
        "footer": lambda content: content[:-60] + b"\xff" * 40 + content[-20:],
        "data": lambda content: content[:40] + b"\xff" * 300 + content[340:],
        "short": lambda content: content[:5],
    }.items():
        middle = writer.add(f"broken/{directory}", "p", FLAT, rows=1200)[1]
        middle.write_bytes(spoil(middle.read_bytes()))


def field_ids(writer: Writer) -> None:
    for label, ids in {"p": (1, 2), "q": (2, 1)}.items():
        frame = writer.spark.range(1).selectExpr("cast(id as int) a", "id b")
        schema = frame.schema.jsonValue()
        for field, number in zip(schema["fields"], ids, strict=True):
            field["metadata"] = {"parquet.field.id": number}
        typed = writer.spark.createDataFrame([(1, 10), (2, 20)], type(frame.schema).fromJson(schema)).coalesce(1)
        out = writer.root / "written"
        typed.write.parquet(str(out))
        (writer.root / "field-ids").mkdir(exist_ok=True)
        for i in range(FILES):
            shutil.copyfile(next(out.glob("part-*")), writer.root / "field-ids" / f"{i:02}-{label}")
        shutil.rmtree(out)
