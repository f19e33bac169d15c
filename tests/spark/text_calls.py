"""Functions for test_read_text.py that run in a session's process."""

from answers import answer_of


def pure_lines(spark, path, start):
    import millstream

    return sorted(millstream.pure_read_text(spark.sparkContext if start == "context" else spark, path).collect())


def partition_count(spark, path, partitions):
    import millstream

    return millstream.read_text(spark, path, partitions).rdd.getNumPartitions()


def with_small_partitions(spark, path):
    import millstream

    key = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(key)
    spark.conf.set(key, "100000")
    try:
        frame = millstream.read_text(spark, path)
        return {"partitions": frame.rdd.getNumPartitions(), "lines": sorted(row.value for row in frame.collect())}
    finally:
        spark.conf.set(key, before)


def refused(spark, path, partitions):
    import millstream

    try:
        millstream.read_text(spark, path, partitions)
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def error_of_stock(spark, path):
    return answer_of(lambda: spark.read.option("recursiveFileLookup", True).text(path))


def error_of_read_text(spark, path):
    import millstream

    return answer_of(lambda: millstream.read_text(spark, path))
