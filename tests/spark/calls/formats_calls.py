"""Functions for test_formats.py that run in a session's process."""

import json


def formats(spark, **arguments):
    """The rows as objects, and the types of the columns."""
    import millstream

    try:
        found = millstream.formats(spark, **arguments)
    except millstream.FormatsError as error:
        return {"error": str(error)}
    return {"rows": [row.asDict() for row in found.collect()], "schema": found.schema.simpleString()}


def plan(spark, **settings):
    """The report of a dry run."""
    given = spark._jvm.java.util.HashMap()
    for key, value in {**settings, "dry-run": "true"}.items():
        given[key] = value
    return json.loads(spark._jvm.io.millstream.spark.Formats.runJson(spark._jsparkSession, given))


def advice(spark, rows, cores):
    """Of the first source, the format and the sentences that `FormatsAdvice` makes of made-up rows."""
    made = classes(spark).FormatsAdvice.of(sequence(spark, [row_of(spark, *row) for row in rows]), cores).head()
    sentences = [made.sentences().apply(i) for i in range(made.sentences().size())]
    return [made.format().get() if made.format().isDefined() else None, sentences]


def chart(spark, bars, ascii):
    """Bars of a label, a length and whether they are ours, as text."""
    option = spark._jvm.scala.Option
    made = [classes(spark).FormatsBar(label, option.apply(length), f"{length} s", ours) for label, length, ours in bars]
    group = classes(spark).FormatsBars("title", sequence(spark, made))
    return classes(spark).FormatsChart("chart", sequence(spark, [group])).text(ascii)


def settings(spark, engine, given, jar):
    found = spark._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given_map(spark, given))
    made = getattr(classes(spark).FormatsSettings, engine)(found, jar)
    names = made.keys().toSeq()
    return {names.apply(i): made.apply(names.apply(i)) for i in range(names.size())}


def given_map(spark, given):
    made = spark._jvm.java.util.HashMap()
    for key, value in given.items():
        made[key] = value
    return made


def row_of(spark, format, engine, size, lines, wall_s, partitions=1, rows=None, job="read"):
    """A row; `wall_s` is the problem of one that has no figures."""
    option = spark._jvm.scala.Option
    figures = (
        classes(spark).FormatsFigures(rows if rows is not None else lines, partitions, wall_s, 1.0, 1, 1.0)
        if not isinstance(wall_s, str)
        else None
    )
    problem = (
        wall_s if isinstance(wall_s, str) else f"{rows} of {lines} rows, without an error" if rows is not None else None
    )
    return classes(spark).FormatsRow(
        "local", format, job, engine, size, lines, option.apply(figures), option.apply(problem)
    )


def sequence(spark, items):
    made = spark._jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq(made)


def classes(spark):
    return spark._jvm.io.millstream.spark.formats
