"""Functions for test_keys.py that run in a session's process."""

from write_calls import error_of


def known(spark):
    """All keys of Millstream."""
    keys = spark._jvm.org.apache.spark.sql.execution.datasources.millstream.settings.Keys.Known().iterator()
    found = []
    while keys.hasNext():
        found.append(keys.next())
    return sorted(found)


def near_pairs(spark):
    """Keys of which one would count as a misspelling of the other."""
    keys = spark._jvm.org.apache.spark.sql.execution.datasources.millstream.settings.Keys
    names = known(spark)
    return [
        [one, other]
        for i, one in enumerate(names)
        for other in names[i + 1 :]
        if keys.isNear(one, other) or keys.isNear(other, one)
    ]


def with_key(spark, key, value):
    """The errors of a statement with a key set, by the session and by SET, and of one after its removal each time."""
    spark.conf.set(key, value)
    errors = [error_of(lambda: spark.sql("select 1").collect())]
    spark.conf.unset(key)
    errors.append(error_of(lambda: spark.sql("select 1").collect()))
    errors.append(error_of(lambda: spark.sql(f"set {key}={value}")))
    errors.append(error_of(lambda: spark.range(1).collect()))
    errors.append(error_of(lambda: spark.sql(f"reset {key}")))
    errors.append(error_of(lambda: spark.sql("select 1").collect()))
    return errors


def written_with(spark, key, path):
    """The error of a write with an option."""
    return error_of(lambda: spark.range(1).write.option(key, "exchange").csv(path))


def plan_after_unset(spark, key):
    """The command of an INSERT with a switch disabled, and after the switch was unset."""
    plans = []
    for change in (lambda: spark.conf.set(key, "false"), lambda: spark.conf.unset(key)):
        change()
        plans.append(
            "DirectInsert"
            in spark.sql("explain insert overwrite directory '/nowhere' using csv select 1 a").collect()[0][0]
            or "DirectInsert" in spark.sql("explain insert overwrite directory '/nowhere' select 1").collect()[0][0]
        )
    return plans


def readers(spark, key, value):
    """The readers that each of 1, 100 and 100,000 tasks has on remote and on local files; then with a key set, on
    remote ones.
    """
    settings = spark._jvm.org.apache.spark.sql.execution.datasources.millstream.settings.ReadSettings

    def of(is_local):
        found = settings.of(spark._jsparkSession)
        return [found.readers(tasks, is_local, spark.sparkContext._jsc.sc()) for tasks in (1, 100, 100_000)]

    shares = [of(False), of(True)]
    spark.conf.set(key, value)
    return [*shares, of(False)]
