"""Twenty everyday jobs over a directory with one data set in csv (with headers), json, parquet and orc. Run by
bench/spark_read_probe.py.

A job is named after its steps: `csv-inferred-view-group` creates a view on the csv files, infers their schema, and
groups. They are the format; the schema, where there is a choice; how the files become a DataFrame; and the question.
All of it is timed. Nothing is imported from Spark here, so that bench/spark-read can list the jobs without it.
"""

import contextlib
import io

JOBS = (
    "csv-inferred-read-show",
    "csv-inferred-view-group",
    "csv-inferred-table-sum",
    "csv-given-read-filter",
    "csv-path-filter",
    "json-inferred-read-sum",
    "json-inferred-path-group",
    "json-given-view-show",
    "json-given-table-count",
    "parquet-inferred-read-count",
    "parquet-inferred-path-sum",
    "parquet-inferred-table-filter",
    "parquet-given-view-group",
    "orc-inferred-read-group",
    "orc-inferred-view-filter",
    "orc-given-table-sum",
    "text-read-count",
    "text-path-filter",
    "text-view-group",
    "text-table-show",
)
CITY_AND_AMOUNT = {"text": ("split(value, ',')[3]", "length(value)"), "csv-path": ("_c3", "_c7")}


def opened(spark, kind, schema, access, directory):
    """A DataFrame of the files, by `spark.read`, a path in SQL, a table or a temporary view; without a schema it is
    inferred.
    """
    files = f"{directory}/{'csv' if kind == 'text' else kind}"
    options = {"header": "true", "inferSchema": str(not schema).lower()} if kind == "csv" else {}
    if access == "path":
        return spark.sql(f"select * from {kind}.`{files}`")
    if access == "read":
        reader = spark.read.format(kind).options(**options)
        return (reader.schema(schema) if schema else reader).load(files)
    columns = f"({schema})" if schema else ""
    settings = ", ".join(f"{key} '{value}'" for key, value in {**options, "path": files}.items())
    spark.sql("drop table if exists everyday_table")
    create = "create or replace temporary view everyday_view" if access == "view" else "create table everyday_table"
    spark.sql(f"{create} {columns} using {kind} options ({settings})")
    return spark.sql(f"select * from everyday_{access}")


def shown_lines(frame):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        frame.show()
    return shown.getvalue().count("\n")


def asked(frame, question, city, amount):
    """The answer: rows, and a sum over them."""
    if question == "show":
        return shown_lines(frame), None
    if question == "count":
        return frame.count(), None
    if question == "filter":
        return frame.where(f"{city} = 'BALTIMORE'").count(), None
    if question == "sum":
        return tuple(frame.selectExpr(f"count({amount})", f"sum({amount})").first())
    groups = frame.selectExpr(f"{city} city").groupBy("city").count().collect()
    return len(groups), sum(group["count"] for group in groups)


def everyday(spark, directory, name, record):
    """Does the job of this name; `record` is the schema where one is given."""
    kind, *schema, access, question = name.split("-")
    city, amount = CITY_AND_AMOUNT.get(kind) or CITY_AND_AMOUNT.get(f"{kind}-{access}") or ("city", "amount")
    frame = opened(spark, kind, record if schema == ["given"] else None, access, directory)
    return asked(frame, question, city, amount)
