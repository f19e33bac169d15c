"""The relation in other parts of Spark: statistics, caching, writing, views."""

import re

from queries import case


def plan_of(frame):
    return frame._jdf.queryExecution().withCachedData().toString()


@case("a cached DataFrame serves a second read of the path")
def cached(context):
    first = context.text("layouts/text/flat").cache()
    first.count()
    hit = "InMemoryRelation" in plan_of(context.text("layouts/text/flat"))
    other = "InMemoryRelation" in plan_of(context.text("layouts/text/nested"))
    first.unpersist()
    return hit, other


@case("two reads of a path are the same plan")
def same_plan(context):
    one, two = (context.text("layouts/text/hive")._jdf.queryExecution().analyzed() for _ in range(2))
    return one.sameResult(two), one.canonicalized().equals(two.canonicalized())


@case("statistics of a pruned scan")
def statistics(context):
    frame = context.text("layouts/text/hive").filter("year = 2020")
    return str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


@case("a small table is broadcast")
def broadcast(context):
    small, large = context.text("layouts/text/flat"), context.text("sizes")
    return "BroadcastHashJoin" in large.join(small, "value")._jdf.queryExecution().sparkPlan().toString()


@case("join of a path with itself")
def self_join(context):
    frame = context.text("layouts/text/hive")
    return sorted(
        map(repr, frame.alias("l").join(frame.alias("r"), "value").selectExpr("l.year", "r.month", "value").collect())
    )


@case("union of two paths")
def union(context):
    return sorted(map(repr, context.text("layouts/text/flat").union(context.text("layouts/text/nested")).collect()))


@case("columns are those of the file")
def columns(context):
    frame = context.text("layouts/text/hive")
    return frame.columns, frame.dtypes, frame.selectExpr("*").schema.simpleString()


@case("a view over a DataFrame")
def view(context):
    context.text("layouts/text/hive").createOrReplaceTempView("over_frame")
    return context.spark.sql("select year, count(*) from over_frame group by year")


@case("a subquery over a DataFrame")
def subquery(context):
    context.text("layouts/text/hive").createOrReplaceTempView("for_subquery")
    context.text("columns/many").createOrReplaceTempView("outer_frame")
    return sorted(
        map(
            repr,
            context.spark.sql(
                "select * from outer_frame where a in (select month from for_subquery) and c < (select max(month) from for_subquery)"
            ).collect(),
        )
    )


@case("an explained plan names the location")
def explained(context):
    # Spark cuts what is in brackets where the path of the tests is long.
    plan = context.text("layouts/text/flat")._jdf.queryExecution().executedPlan().toString()
    shown = re.search(r"\[(?:file:)?((?:/|\w+://)\S+?)(\]|\.\.\.)", plan)[1]
    return shown.count("/") > 1 and f"{context.data}/layouts/text/flat".startswith(shown)


@case("hint on a DataFrame")
def hint(context):
    return context.text("layouts/text/flat").hint("broadcast").hint("coalesce", 1)


@case("a DataFrame as an RDD of rows")
def as_rdd(context):
    return sorted(row.value for row in context.text("layouts/text/hive").rdd.collect())


@case("a checkpoint of a DataFrame")
def checkpoint(context):
    return sorted(map(repr, context.text("layouts/text/flat").localCheckpoint().collect()))
