"""Functions for test_read_text.py that run in a session's process."""

from answers import answer_of


def pure_lines(spark, path, start):
    import millstream

    return sorted(millstream.pure_read_text(spark.sparkContext if start == "context" else spark, path).collect())


def partition_count(spark, path, partitions):
    import millstream

    return millstream.read_text(spark, path, partitions).rdd.getNumPartitions()


def pure_partition_count(spark, path, partitions, most_bytes):
    import millstream

    key = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(key)
    spark.conf.set(key, most_bytes)
    try:
        return millstream.pure_read_text(spark, path, partitions).getNumPartitions()
    finally:
        spark.conf.set(key, before)


def with_small_partitions(spark, path, partitions=None):
    import millstream

    key = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(key)
    spark.conf.set(key, "100000")
    try:
        frame = millstream.read_text(spark, path, partitions)
        return {"partitions": frame.rdd.getNumPartitions(), "lines": sorted(row.value for row in frame.collect())}
    finally:
        spark.conf.set(key, before)


def text(spark, path, ours):
    """All lines below a path, read by Millstream or by Spark."""
    if ours:
        import millstream

        return millstream.read_text(spark, path)
    return spark.read.option("recursiveFileLookup", True).text(path)


def input_files(spark, path, ours):
    """Lines with their files, then a line without a file, in one task."""

    def rows():
        frame = text(spark, path, ours).union(spark.range(1).selectExpr("'of no file'")).coalesce(1)
        return frame.selectExpr("value", "input_file_name()")

    answer = answer_of(rows)
    return answer["rows"] if "rows" in answer else answer


def read_metrics(spark, path, ours):
    """The amount read, according to Spark's status store."""
    sc = spark.sparkContext
    group = f"metrics of {path}"
    sc.setJobGroup(group, group)
    text(spark, path, ours).collect()
    sc._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = sc.statusTracker(), sc._jsc.sc().statusStore()
    stages = [
        store.lastStageAttempt(stage)
        for job in tracker.getJobIdsForGroup(group)
        for stage in tracker.getJobInfo(job).stageIds
    ]
    return {
        "bytes": sum(stage.inputBytes() for stage in stages),
        "records": sum(stage.inputRecords() for stage in stages),
    }


def warned_of(spark, path, partitions):
    """The warnings, and the lines of both functions."""
    import warnings

    import millstream

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lines = [row.value for row in millstream.read_text(spark, path, partitions).collect()]
        rdd_lines = millstream.pure_read_text(spark, path, partitions).collect()
    return {
        "warnings": [str(warning.message) for warning in caught if warning.category is RuntimeWarning],
        "lines": sorted(lines),
        "rdd": sorted(rdd_lines),
    }


def refused(spark, path, partitions):
    import millstream

    try:
        millstream.read_text(spark, path, partitions)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def error_of_stock(spark, path):
    return answer_of(lambda: spark.read.option("recursiveFileLookup", True).text(path))


def error_of_read_text(spark, path):
    import millstream

    return answer_of(lambda: millstream.read_text(spark, path))
