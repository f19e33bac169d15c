"""Many small Parquet and ORC files in a task, which one reader may read: columnar_files.py writes them."""

from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from queries import add

SCHEMA = "a int, b string, c double, d decimal(20, 2), e date, f timestamp, g boolean, h binary, i timestamp_ntz"
NESTED = "a int, s struct<x: bigint, y: string>, l array<struct<k: int, v: string>>, m map<string, array<bigint>>"
# The bytes of columns, because Python does not know the dates before 1582 in some sessions' time zones.
SEEN = ("a", "b", "c", "d", "cast(e as string)", "cast(f as string)", "g", "hex(h)", "cast(i as string)")
IN_ONE_TASK = {"spark.sql.files.minPartitionNum": "1", "spark.sql.leafNodeDefaultParallelism": "1"}
FORMATS = ("parquet", "orc")
# Columns that are decoded natively, where Parquet files allow it.
USUAL = ("a", "b", "c", "cast(e as string)", "cast(f as string)", "g", "hex(h)")


def read(context, format_name, directory, schema=SCHEMA, **options):
    return context.read(format_name, f"columnar/{format_name}/{directory}", schema=schema, **options)


def add_query(name, query, conf=None):
    """`query` makes a frame from a context; it is read by one task."""
    add(name, lambda context: context.with_conf({**IN_ONE_TASK, **(conf or {})}, lambda: query(context)))


DIRECTORIES = ("same", "codecs", "schemas", "pages", "empty")
QUERIES = {
    "all": lambda frame: frame.selectExpr(*SEEN),
    "usual columns": lambda frame: frame.selectExpr(*USUAL),
    "one column": lambda frame: frame.select("a"),
    "no column": lambda frame: frame.groupBy().count(),
    "a condition": lambda frame: frame.filter("a between 20 and 90 or a = 1500").selectExpr(*SEEN),
    "a condition on strings": lambda frame: frame.filter("b in ('name 2', 'nobody') and a > 30").select("a", "b"),
    "a condition that no row meets": lambda frame: frame.filter("a < -1"),
    "a condition, counted": lambda frame: frame.filter("b is null").groupBy("g").count(),
    "the names of files": lambda frame: frame.selectExpr("a", "input_file_name()", "input_file_block_length()"),
    "metadata": lambda frame: frame.selectExpr(
        "a", "_metadata.file_name", "_metadata.file_size", "_metadata.file_block_start"
    ),
    "strings that are kept": lambda frame: frame.groupBy("g").agg({"b": "max", "h": "min", "c": "sum"}),
    "sorted": lambda frame: frame.orderBy("a", "b").selectExpr("a", "b", "hex(h)").limit(40),
}
SETTINGS = {
    "rows": {"spark.sql.parquet.enableVectorizedReader": "false", "spark.sql.orc.enableVectorizedReader": "false"},
    "rows of batches": {"spark.sql.codegen.wholeStage": "false"},
    "off heap": {"spark.sql.columnVector.offheap.enabled": "true"},
    "batches of 7 rows": {
        "spark.sql.parquet.columnarReaderBatchSize": "7",
        "spark.sql.orc.columnarReaderBatchSize": "7",
    },
    "no filters pushed": {"spark.sql.parquet.filterPushdown": "false", "spark.sql.orc.filterPushdown": "false"},
    "case matters": {"spark.sql.caseSensitive": "true"},
    "no column index": {"parquet.filter.columnindex.enabled": "false", "orc.sarg.to.filter": "true"},
    "time zone": {
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.sql.parquet.int96TimestampConversion": "true",
    },
}
for format_name in FORMATS:
    for directory in DIRECTORIES:
        for name, query in QUERIES.items():
            add_query(
                f"{format_name} files, {directory}: {name}",
                lambda context, f=format_name, d=directory, q=query: q(read(context, f, d)),
            )
        for setting, conf in SETTINGS.items():
            add_query(
                f"{format_name} files, {directory}, {setting}",
                lambda context, f=format_name, d=directory: read(context, f, d).selectExpr(*SEEN),
                conf,
            )
            add_query(
                f"{format_name} files, {directory}, {setting}: usual columns",
                lambda context, f=format_name, d=directory: read(context, f, d).selectExpr(*USUAL),
                conf,
            )
            add_query(
                f"{format_name} files, {directory}, {setting}: a condition",
                lambda context, f=format_name, d=directory: (
                    read(context, f, d).filter("a between 20 and 90 and b like 'name%'").selectExpr(*SEEN)
                ),
                conf,
            )
    for setting, conf in {"as usual": {}, **SETTINGS}.items():
        add_query(
            f"{format_name} files, nested, {setting}",
            lambda context, f=format_name: read(context, f, "nested", NESTED),
            conf,
        )
        add_query(
            f"{format_name} files, partitions, {setting}",
            lambda context, f=format_name: read(context, f, "partitions", None).selectExpr("a", "b", "k", "l"),
            conf,
        )
    add_query(
        f"{format_name} files, nested, some",
        lambda context, f=format_name: (
            read(context, f, "nested", NESTED).filter("s.x > 20").selectExpr("s.y", "l[0].v", "m")
        ),
    )
    add_query(
        f"{format_name} files, nested as rows",
        lambda context, f=format_name: read(context, f, "nested", NESTED),
        {
            "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",
            "spark.sql.orc.enableNestedColumnVectorizedReader": "false",
        },
    )
    add_query(
        f"{format_name} files, another type of a nested column",
        lambda context, f=format_name: read(context, f, "nested", "a int, s struct<y: string, w: double>").selectExpr(
            "a", "s"
        ),
    )
    add_query(
        f"{format_name} files, partitions: counted",
        lambda context, f=format_name: read(context, f, "partitions", None).groupBy("k", "l").count(),
    )
    add_query(
        f"{format_name} files, partitions: metadata",
        lambda context, f=format_name: read(context, f, "partitions", None).selectExpr(
            "k", "a", "_metadata.file_path", "l"
        ),
    )
    add_query(
        f"{format_name} files, one that is large",
        lambda context, f=format_name: read(context, f, "large", "a int, b string"),
    )
    add_query(
        f"{format_name} files, schemas: merged",
        lambda context, f=format_name: read(context, f, "schemas", None, mergeSchema=True).selectExpr(
            "a", "b", "z", "y"
        ),
    )
    add_query(
        f"{format_name} files, a type that does not fit",
        lambda context, f=format_name: read(context, f, "same", "a string, b int").select("a", "b"),
    )
    add(
        f"{format_name} files, some of the rows",
        lambda context, f=format_name: [
            read(context, f, "same").limit(3).count(),
            len(read(context, f, "same").take(61)),
            read(context, f, "same").filter("a = 1").isEmpty(),
        ],
    )
    for directory in ("cut", "footer", "data", "short"):
        add_query(
            f"{format_name} files, broken: {directory}",
            lambda context, f=format_name, d=directory: read(context, f, f"broken/{d}").select("a", "b"),
        )
        add_query(
            f"{format_name} files, broken: {directory}, left out",
            lambda context, f=format_name, d=directory: read(
                context, f, f"broken/{d}", ignoreCorruptFiles=True
            ).selectExpr("a", "b", "_metadata.file_name"),
        )

add_query(
    "parquet files with the numbers of rows",
    lambda context: read(context, "parquet", "pages").filter("a > 4000").selectExpr("a", "_metadata.row_index"),
)
add_query(
    "parquet files as rows with the numbers of rows",
    lambda context: read(context, "parquet", "same").selectExpr("a", "_metadata.row_index", "_metadata.file_name"),
    SETTINGS["rows of batches"],
)
for name, query in {
    "all": lambda frame: frame,
    "a condition": lambda frame: frame.filter("e < '1500-01-01' and f < '1400-03-01'"),
}.items():
    for mode in ("EXCEPTION", "LEGACY", "CORRECTED"):
        add_query(
            f"parquet dates, {mode.lower()}: {name}",
            lambda context, q=query, m=mode: q(
                read(context, "parquet", "dates", "a int, e date, f timestamp", datetimeRebaseMode=m, int96RebaseMode=m)
            ).selectExpr("a", "cast(e as string)", "cast(f as string)"),
        )
    add_query(
        f"orc dates: {name}",
        lambda context, q=query: q(read(context, "orc", "dates", "a int, e date, f timestamp")).selectExpr(
            "a", "cast(e as string)", "cast(f as string)"
        ),
    )


def by_field_id(context):
    schema = StructType(
        [
            StructField("first", IntegerType(), True, {"parquet.field.id": 1}),
            StructField("second", LongType(), True, {"parquet.field.id": 2}),
        ]
    )
    return context.spark.read.schema(schema).parquet(f"{context.data}/columnar/parquet/field-ids")


add_query("parquet files by field id", by_field_id, {"spark.sql.parquet.fieldId.read.enabled": "true"})
add_query(
    "parquet files by name in spite of field ids",
    lambda context: read(context, "parquet", "field-ids", "a int, b bigint"),
)


def vanished(context, format_name, **options):
    files = f"{context.scratch}/files"
    context.files.copy(f"{context.data}/columnar/{format_name}/same", "files")
    frame = context.spark.read.options(**options).schema(SCHEMA).format(format_name).load(files).select("a", "b")
    context.files.remove("files/03-p")
    return frame


def with_default(context, format_name):
    """A column that was added, with a default, after files were written."""
    context.spark.sql(f"create table later (a int) using {format_name} location '{context.scratch}/later'")
    try:
        for i in range(3):
            context.spark.sql(f"insert into later values ({i})")
        context.spark.sql("alter table later add column b string default 'new'")
        for i in range(3):
            context.spark.sql(f"insert into later values ({10 + i}, 'own')")
        return context.rows(context.spark.table("later"))
    finally:
        context.spark.sql("drop table later")


for format_name in FORMATS:
    add_query(f"{format_name} files, one that is gone", lambda context, f=format_name: vanished(context, f))
    add_query(
        f"{format_name} files, one that is gone, left out",
        lambda context, f=format_name: vanished(context, f, ignoreMissingFiles=True),
    )
    add(f"{format_name} files before a column with a default", lambda context, f=format_name: with_default(context, f))
