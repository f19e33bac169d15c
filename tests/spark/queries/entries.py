"""Every format by every way to name its files, and the inference of csv and json with every option that changes it."""

from queries import CATALOG_COMPACT, COMPACT, STOCK, add, case

READERS = {"csv": {"header": True, "inferSchema": True}}
COLUMNS = {
    "text": "value string",
    "csv": "id int, name string, price double",
    "json": "id long, name string, tags array<string>",
    "parquet": "id long, price decimal(23, 1), name string",
    "orc": "id long, price decimal(23, 1), name string",
}
# Paths below layouts/<format>, and options.
LAYOUTS = {
    "flat": ("flat", {}),
    "file": ("flat/part-1", {}),
    "hive": ("hive", {}),
    "recursive": ("nested", {"recursiveFileLookup": True}),
    "zero-length files": ("empties", {}),
    "empty directories": ("nothing", {}),
    "glob": ("hive/year=20*", {}),
    "missing": ("missing", {}),
}
# As for `spark.read`, Spark itself reports that there is nothing.
LEFT_TO_SPARK = {"missing", "empty directories"}


def sql_options(options):
    return ", ".join(
        f"`{key}` '{str(value).lower() if isinstance(value, bool) else value}'" for key, value in options.items()
    )


def create(context, kind, name, format_name, path, columns, options):
    """Creates a view or a table, and returns it."""
    located = {**options, "path": path} if "view" in kind else options
    clause = f"options ({sql_options(located)})" if located else ""
    if "view" not in kind:
        context.spark.sql(f"drop table if exists {name}")
        clause += f" location '{path}'"
    context.spark.sql(f"create {kind} {name} {f'({columns})' if columns else ''} using {format_name} {clause}")
    return context.spark.table(f"global_temp.{name}" if "global" in kind else name)


def by_entry(kind, format_name, layout, with_columns):
    path, options = LAYOUTS[layout]

    def run(context):
        located = f"{context.data}/layouts/{format_name}/{path}"
        if kind == "sql path":
            return context.spark.sql(f"select * from {format_name}.`{located}`")
        every = {**READERS.get(format_name, {}), **options}
        return create(
            context,
            kind,
            f"entry_{format_name}",
            format_name,
            located,
            COLUMNS[format_name] if with_columns else None,
            every,
        )

    return run


KINDS = {
    "sql path": COMPACT,
    "or replace temporary view": COMPACT,
    "or replace global temporary view": COMPACT,
    "table": STOCK,
}
for format_name in COLUMNS:
    for layout in LAYOUTS:
        for kind, index in KINDS.items():
            for with_columns in (False, True):
                if (kind == "sql path" and (with_columns or layout == "recursive")) or (
                    kind == "table" and layout == "glob"
                ):
                    continue
                found = CATALOG_COMPACT if kind == "table" and layout == "hive" and not with_columns else index
                if (
                    layout in LEFT_TO_SPARK
                    and found == COMPACT
                    and (layout == "missing" or (not with_columns and format_name in ("csv", "json")))
                ):
                    found = STOCK
                label = f"{format_name}, {layout}: {kind}{' with columns' if with_columns else ''}"
                add(label, by_entry(kind, format_name, layout, with_columns), found)


@case("path in SQL with a condition on partitions")
def sql_partitions(context):
    return context.spark.sql(
        f"select name, month from parquet.`{context.data}/layouts/parquet/hive` where year = 2020 and month > 1"
    )


@case("path in SQL, joined with itself and in a subquery")
def sql_twice(context):
    path = f"json.`{context.data}/layouts/json/hive`"
    return context.spark.sql(
        f"select a.id, b.name from {path} a join {path} b using (id) where a.month in (select max(month) from {path})"
    )


@case("path in SQL in a view and a common table expression")
def sql_nested(context):
    path = f"csv.`{context.data}/layouts/csv/flat`"
    context.spark.sql(
        f"create or replace temporary view of_path as with rows as (select _c0 as a from {path}) select a, count(*) n from rows group by a"
    )
    return context.spark.table("of_path")


@case("path in SQL with options")
def sql_with_options(context):
    return context.spark.sql(
        f"select * from csv.`{context.data}/layouts/csv/flat` with (header = 'true', inferSchema = 'true')"
    )


@case("database named as a format", index=STOCK)
def database_named_as_format(context):
    context.spark.sql("create database if not exists json")
    try:
        context.spark.sql("create or replace temporary view unrelated as select 1")
        return context.spark.sql(f"select * from json.`{context.data}/layouts/json/flat`")
    finally:
        context.spark.sql("drop database json")


@case("table in a database named as a format")
def table_in_database_named_as_format(context):
    context.spark.sql("create database if not exists parquet")
    try:
        context.spark.sql(f"create table parquet.`x` using json location '{context.data}/layouts/json/flat'")
        return sorted(map(repr, context.spark.sql("select * from parquet.x").collect()))
    finally:
        context.spark.sql("drop database parquet cascade")


@case("time travel of a path", index=None)
def time_travel(context):
    return context.spark.sql(f"select * from parquet.`{context.data}/layouts/parquet/flat` version as of 1")


@case("path of SQL as the target of a delete", index=None)
def delete_from_path(context):
    return context.spark.sql(f"delete from parquet.`{context.data}/layouts/parquet/flat` where id = 1")


@case("temporary view that exists")
def view_exists(context):
    context.spark.sql("create or replace temporary view exists_already as select 1")
    return context.spark.sql(
        f"create temporary view exists_already using text options (path '{context.data}/layouts/text/flat')"
    )


@case("temporary view with a quoted name")
def view_quoted(context):
    context.spark.sql(
        f"create or replace temporary view `odd ``name.x` using text options (path '{context.data}/layouts/text/flat')"
    )
    return context.spark.table("`odd ``name.x`")


@case("temporary view of a broken file")
def view_broken(context):
    context.write("broken/p", "not parquet")
    return context.spark.sql(
        f"create or replace temporary view broken using parquet options (path '{context.scratch}/broken')"
    )


@case("path in SQL of a broken file")
def sql_broken(context):
    context.write("broken/p", "not parquet")
    return context.spark.sql(f"select * from parquet.`{context.scratch}/broken`")


@case("table that exists", index=None)
def table_exists(context):
    context.spark.sql("drop table if exists twice")
    create_it = f"create table {{}} twice using json location '{context.data}/layouts/json/flat'"
    context.spark.sql(create_it.format(""))
    context.spark.sql(create_it.format("if not exists"))
    return context.spark.sql(create_it.format(""))


@case("table described")
def table_described(context):
    create(context, "table", "described", "json", f"{context.data}/layouts/json/hive", None, {})
    shown = context.spark.sql("describe extended described").collect()
    return [repr(row) for row in shown if not row.col_name.startswith(("Created", "Last Access", "Location"))]


@case("table whose columns are partitions and in the files", index=STOCK)
def table_overlapping(context):
    return create(context, "table", "overlapping", "json", f"{context.data}/columns/in-data", None, {})


@case("columns that are not null", index=STOCK)
def not_null(context):
    with context.settings({"spark.sql.fileSource.insert.enforceNotNull": "true"}):
        return create(context, "table", "not_null", "parquet", f"{context.data}/layouts/parquet/flat", None, {})


def partitioned(context, name):
    context.spark.sql(f"drop table if exists {name}")
    context.spark.sql(
        f"create table {name} (id long, name string, k int) using json partitioned by (k) location '{context.scratch}/{name}'"
    )
    for k in range(40):
        context.write(f"{name}/k={k}/p", f'{{"id": {k}, "name": "n{k}"}}\n')
    context.spark.sql(f"msck repair table {name}")


@case("partitioned table, with and without conditions", index=None)
def partitioned_queries(context):
    partitioned(context, "parts")
    conditions = (
        "k > 36",
        "k > 30 and id % 2 = 0",
        "k in (1, 2) or id = 7",
        "true",
        "k is null",
        "k > 100",
        "cast(k as string) like '3%'",
        "id = 3",
    )
    return [
        sorted(map(repr, context.spark.sql(f"select * from parts where {condition}").collect()))
        for condition in conditions
    ]


@case("partitioned table, files added by others until it is refreshed", index=None)
def partitioned_refreshed(context):
    partitioned(context, "changing")

    def counts():
        return [context.spark.sql(f"select count(*) from changing where k > {k}").first()[0] for k in (38, 10, -1)]

    found = [counts()]
    context.write("changing/k=39/q", '{"id": 390, "name": "late"}\n')
    found.append(counts())
    context.spark.sql("refresh table changing")
    found.append(counts())
    context.spark.sql("alter table changing drop partition (k = 39)")
    found.append(counts())
    context.spark.sql(f"alter table changing add partition (k = 77) location '{context.scratch}/changing/k=1'")
    found.append(counts())
    context.spark.sql("insert into changing partition (k = 5) values (5000, 'inserted')")
    found.append(counts())
    return found


@case("partitioned table, twice in a query, before and after an insert", index=None)
def partitioned_twice(context):
    partitioned(context, "doubled")
    frame = context.spark.sql(
        "select count(*), max(a.id), max(b.id) from doubled a join doubled b using (k) where k >= (select max(k) - 1 from doubled)"
    )
    found = [frame.first()]
    context.spark.sql("insert into doubled partition (k = 39) values (390, 'inserted')")
    found.append(context.spark.sql("select count(*) from doubled where k = 39").first())
    found.append(
        context.spark.sql(
            "select count(*), max(a.id), max(b.id) from doubled a join doubled b using (k) where k >= (select max(k) - 1 from doubled)"
        ).first()
    )
    return list(map(repr, found))


@case("partitioned table, filled from itself before it is read", index=None)
def partitioned_from_itself(context):
    partitioned(context, "self_fed")
    context.spark.sql(
        "insert into self_fed select id + 1000, name, k from self_fed where k in (select max(k) from self_fed) or k = 3"
    )
    found = [sorted(map(repr, context.spark.sql("select * from self_fed where k in (3, 39)").collect()))]
    context.spark.sql("insert overwrite self_fed partition (k = 3) select id, name from self_fed where k = 4")
    found.append(sorted(map(repr, context.spark.sql("select * from self_fed where k in (3, 4)").collect())))
    return found


@case("type that can only be read, in a view")
def only_read(context):
    return create(
        context, "or replace temporary view", "only_read", "csv", f"{context.data}/layouts/csv/flat", "v variant", {}
    )


@case("partitioned table, a partition's directory missing", index=None)
def partition_missing(context):
    partitioned(context, "gone")
    context.spark.sql(f"alter table gone add partition (k = 99) location '{context.scratch}/nowhere'")
    return sorted(map(repr, context.spark.sql("select k, count(*) from gone where k > 37 group by k").collect()))


@case("partitioned table, cached")
def partitioned_cached(context):
    partitioned(context, "kept")
    context.spark.sql("cache table kept")
    context.spark.sql("insert into kept partition (k = 3) values (33, 'more')")
    rows = sorted(map(repr, context.spark.sql("select * from kept where k = 3").collect()))
    plan = context.spark.sql("select * from kept")._jdf.queryExecution().executedPlan().toString()
    context.spark.sql("uncache table kept")
    return rows, "InMemoryTableScan" in plan


@case("partitioned table, dynamic pruning", index=None)
def partitioned_dynamic(context):
    partitioned(context, "pruned")
    return sorted(
        map(
            repr,
            context.spark.sql(
                "select p.id, d.x from pruned p join (select explode(array(3, 4)) x) d on p.k = d.x where d.x < 4"
            ).collect(),
        )
    )


# Inference. The data sets are in datasets.py, `inference`.
CSV = [
    {},
    {"header": True},
    {"inferSchema": True},
    {"header": True, "inferSchema": True},
    {"header": True, "inferSchema": True, "samplingRatio": 0.5},
    {"header": True, "inferSchema": True, "multiLine": True},
    {"header": True, "comment": "#"},
    {"header": True, "sep": ";"},
    {"header": True, "lineSep": "\n"},
    {"header": True, "inferSchema": True, "encoding": "ISO-8859-1"},
    {"header": True, "inferSchema": True, "nullValue": "none", "nanValue": "nix"},
    {"header": True, "inferSchema": True, "dateFormat": "dd/MM/yyyy", "timestampFormat": "dd/MM/yyyy HH:mm"},
    {"header": True, "inferSchema": True, "preferDate": False},
    {"header": True, "inferSchema": True, "mode": "DROPMALFORMED"},
    {"header": True, "inferSchema": True, "columnNameOfCorruptRecord": "bad"},
    {"header": True, "ignoreLeadingWhiteSpace": True, "inferSchema": True},
    {"header": True, "pathGlobFilter": "*b*", "inferSchema": True},
    {"header": True, "modifiedAfter": "2030-01-01T00:00:00"},
    {"header": True, "wholetext": True},
    {"header": True, "recursiveFileLookup": True, "inferSchema": True},
    {"header": True, "ignoreCorruptFiles": True},
    {"header": True, "samplingRatio": 0},
    {"header": True, "charset": "no-such-charset"},
    {"header": True, "maxColumns": 2, "inferSchema": True},
    {"header": True, "locale": "de", "inferSchema": True},
]
JSON = [
    {},
    {"primitivesAsString": True},
    {"prefersDecimal": True},
    {"samplingRatio": 0.4},
    {"multiLine": True},
    {"dropFieldIfAllNull": True},
    {"allowComments": True},
    {"allowSingleQuotes": False},
    {"mode": "DROPMALFORMED"},
    {"columnNameOfCorruptRecord": "bad"},
    {"encoding": "UTF-8"},
    {"lineSep": "\n"},
    {"encoding": "UTF-16LE", "lineSep": "\n"},
    {"inferTimestamp": True},
    {"allowUnquotedFieldNames": True},
    {"pathGlobFilter": "*b*"},
    {"recursiveFileLookup": True},
    {"ignoreCorruptFiles": True},
    {"allowNonNumericNumbers": False},
    {"timestampFormat": "dd/MM/yyyy", "inferTimestamp": True},
    {"wholetext": True},
]


def labelled(options):
    return ", ".join(f"{key}={value!r}" for key, value in options.items()) or "no options"


def inferred(format_name, folder, options):
    return lambda context: context.read(format_name, f"inference/{format_name}/{folder}", **options)


for format_name, all_options in (("csv", CSV), ("json", JSON)):
    for folder in ("mixed", "parts", "odd"):
        for options in all_options:
            add(f"{format_name} inferred from {folder}, {labelled(options)}", inferred(format_name, folder, options))
    add(f"{format_name} inferred, partition named as the lines", inferred(format_name, "value", {}))
    add(
        f"{format_name} inferred, basePath",
        lambda context, f=format_name: context.read(
            f, f"inference/{f}/parts/k=1", basePath=f"{context.data}/inference/{f}/parts"
        ),
    )
    add(
        f"{format_name} inferred, compressed",
        inferred(format_name, "compressed", {"header": True, "inferSchema": True} if format_name == "csv" else {}),
    )
    add(
        f"{format_name} inferred, several roots",
        lambda context, f=format_name: context.read(f, f"inference/{f}/odd", f"inference/{f}/mixed"),
    )
    add(
        f"{format_name} inferred, one file",
        inferred(format_name, "mixed/b", {"header": True, "inferSchema": True} if format_name == "csv" else {}),
    )


# Of several broken files, an error may name another one than stock Spark's.
for options in ({"mode": "FAILFAST"}, {"mode": "FAILFAST", "enforceSchema": False, "header": True}):
    add(
        f"csv inferred from a broken file, {labelled(options)}",
        inferred("csv", "odd/wide", {"inferSchema": True, **options}),
    )
    add(f"json inferred from a broken file, {labelled(options)}", inferred("json", "odd/quotes", options))


@case("csv inferred, then limited and shown")
def shown(context):
    frame = context.read("csv", "inference/csv/mixed", header=True)
    return len(frame.limit(5).collect()), frame.columns, frame.count()


@case("variants instead of a schema")
def variants(context):
    return sorted(
        map(
            repr,
            context.read("json", "inference/json/mixed", singleVariantColumn="v").selectExpr("to_json(v)").collect(),
        )
    )


@case("inference with Spark's scans", native=False)
def inferred_by_spark(context):
    return context.with_conf(
        {"spark.millstream.read.enabled": "false"},
        lambda: context.read("csv", "inference/csv/parts", header=True, inferSchema=True),
    )


@case("parquet with summaries")
def parquet_summaries(context):
    return context.read("parquet", "inference/summaries")


@case("parquet whose schemas differ")
def parquet_different(context):
    return context.read("parquet", "inference/different")


@case("parquet whose schemas are merged")
def parquet_merged(context):
    return context.read("parquet", "inference/different", mergeSchema=True)


@case("parquet whose schemas are merged by a setting")
def parquet_merged_by_setting(context):
    return context.with_conf(
        {"spark.sql.parquet.mergeSchema": "true"}, lambda: context.read("parquet", "inference/different")
    )
