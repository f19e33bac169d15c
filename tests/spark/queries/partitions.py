"""Partition discovery, and pruning by what it found."""

from datasets import PARTITION_VALUES

from queries import add, case

for values in PARTITION_VALUES:
    add(f"partition values: {values}", lambda context, values=values: context.text(f"values/{values}"))
    add(
        f"partition values as strings: {values}",
        lambda context, values=values: context.with_conf(
            {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"},
            lambda: context.text(f"values/{values}"),
        ),
    )

for columns in (
    "case",
    "conflict",
    "depth",
    "beside-root-file",
    "beside-directory",
    "escaped-name",
    "no-name",
    "twice",
    "in-value",
    "hidden-name",
    "many",
):
    add(f"partition columns: {columns}", lambda context, columns=columns: context.text(f"columns/{columns}"))


@case("partition column that is in the data, too")
def in_data(context):
    return context.read("json", "columns/in-data")


@case("partition columns, names told apart by case")
def case_sensitive(context):
    return context.with_conf({"spark.sql.caseSensitive": "true"}, lambda: context.text("columns/case"))


@case("partition column given in the schema")
def typed_by_user(context):
    return context.read("text", "values/ints", schema="value string, k string")


@case("partition column given in the schema, with a type that does not fit")
def mistyped_by_user(context):
    return context.read("text", "values/strings", schema="value string, k int")


@case("partition column alone in the schema")
def only_partition_column(context):
    return context.read("json", "values/ints", schema="k bigint")


@case("schema without the partition column")
def schema_without(context):
    return context.read("csv", "layouts/csv/hive", schema="id int", header=True)


@case("type inference validated")
def validated(context):
    return context.with_conf(
        {"spark.sql.sources.validatePartitionColumns": "true"},
        lambda: context.read("text", "values/strings", schema="value string, k int"),
    )


@case("time zone of partition values")
def time_zone(context):
    return context.text("values/timestamps", timeZone="America/Los_Angeles")


PRUNED = [
    "year = 2020",
    "year > 2020",
    "month is null",
    "month is not null and year = 2020",
    "year = 2020 or month = 10",
    "month in (1, 10)",
    "year = 1999",
    "year = 2020 and value like '%.0'",
    "cast(year as string) = '2020'",
    "year + month > 2022",
]
for condition in PRUNED:

    def pruned(context, condition=condition):
        return context.text("layouts/text/hive").filter(condition)

    add(f"pruned by {condition}", pruned)


def scan_metrics(context, condition):
    """The numbers of files and partitions in a scan's metrics."""
    frame = context.text("layouts/text/hive").filter(condition)
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    return {name: plan.metrics().apply(name).value() for name in ("numFiles", "numPartitions", "filesSize")}


for condition in PRUNED[:4]:
    add(
        f"metrics of the scan pruned by {condition}",
        lambda context, condition=condition: scan_metrics(context, condition),
    )


@case("dynamic partition pruning")
def dynamic_pruning(context):
    facts = context.text("columns/many")
    dimension = context.spark.createDataFrame([(1, "x"), (2, "y")], "a int, name string").filter("name = 'y'")
    return sorted(map(repr, facts.join(dimension, "a").collect()))


@case("aggregate of partition columns alone")
def metadata_only(context):
    return context.with_conf(
        {"spark.sql.optimizer.metadataOnly": "true"},
        lambda: context.text("layouts/text/hive").select("year").distinct(),
    )


@case("merged schemas")
def merged(context):
    return context.read("parquet", "layouts/parquet/hive", mergeSchema=True)
