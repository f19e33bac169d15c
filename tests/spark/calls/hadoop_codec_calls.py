"""Functions for test_hadoop_codecs.py that run in a session's process."""

from compressed_calls import answered
from pyspark.errors import StreamingQueryException

TEXT_INPUT = "org.apache.hadoop.{}.TextInputFormat"
KEY, VALUE = "org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.Text"
WITHOUT_COLUMNS = {"schema": "value string", "sep": "\u0001", "quote": ""}


def hive_table(spark, path):
    spark.sql("drop table if exists of_lines")
    spark.sql(
        f"create external table of_lines (value string) row format delimited fields terminated by '\\001' stored as textfile location '{path}'"
    )
    return [row.value for row in spark.table("of_lines").collect()]


def from_rdd(pairs):
    return [line for _, line in pairs.collect()]


def split(texts):
    return [line for text in texts for line in text.splitlines()]


def stream(spark, made):
    """The rows of a query; its error is the first one of the cause, which Python's exception lacks."""
    query = made.writeStream.format("memory").queryName("of_stream").trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException:
        cause = query._jsq.exception().get()
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise RuntimeError(cause.toString()) from None
    return [row.value for row in spark.table("of_stream").collect()]


FORMS = {
    "hive table": hive_table,
    "hadoop file": lambda spark, path: from_rdd(
        spark.sparkContext.hadoopFile(path, TEXT_INPUT.format("mapred"), KEY, VALUE)
    ),
    "new hadoop file": lambda spark, path: from_rdd(
        spark.sparkContext.newAPIHadoopFile(path, TEXT_INPUT.format("mapreduce.lib.input"), KEY, VALUE)
    ),
    "whole files": lambda spark, path: split(text for _, text in spark.sparkContext.wholeTextFiles(path).collect()),
    "whole text": lambda spark, path: split(row.value for row in spark.read.text(path, wholetext=True).collect()),
    "csv of many lines": lambda spark, path: [
        row.value for row in spark.read.csv(path, multiLine=True, **WITHOUT_COLUMNS).collect()
    ],
    "stream of text": lambda spark, path: stream(spark, spark.readStream.text(path)),
    "stream of csv": lambda spark, path: stream(spark, spark.readStream.csv(path, **WITHOUT_COLUMNS)),
}


def read(spark, form, path):
    """The lines, sorted, or an error."""
    return answered(lambda: sorted(FORMS[form](spark, path)))


def json_of_many_lines(spark, path):
    return answered(
        lambda: sorted(map(repr, spark.read.json(path, schema="id long, what string", multiLine=True).collect()))
    )


def codecs(spark):
    """The configured codecs, and for each extension and name of a codec the class that Hadoop finds."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop = spark._jvm.org.apache.hadoop
    factory = hadoop.io.compress.CompressionCodecFactory(conf)
    found = {ending: factory.getCodec(hadoop.fs.Path(f"/f.{ending}")) for ending in ("lz4", "snappy", "zst", "gz")}
    found |= {name: factory.getCodecByName(name) for name in ("Lz4Codec", "SnappyCodec", "ZStandardCodec")}
    return {
        "set": conf.get("io.compression.codecs"),
        **{name: codec.getClass().getSimpleName() for name, codec in found.items()},
    }


def write_lz4(spark, path):
    """Rows by each writer that takes the codec's name or class."""
    rows = spark.range(0, 30_000, 1, 1).selectExpr("concat(id, ' ', sha2(string(id), 256)) value")
    rows.write.option("compression", "lz4").text(f"{path}/frame")
    rows.rdd.map(lambda row: row.value).saveAsTextFile(f"{path}/rdd", "org.apache.hadoop.io.compress.Lz4Codec")
    spark.sparkContext._jsc.hadoopConfiguration().set("mapreduce.output.fileoutputformat.compress", "true")
    spark.sparkContext._jsc.hadoopConfiguration().set(
        "mapreduce.output.fileoutputformat.compress.codec", "org.apache.hadoop.io.compress.Lz4Codec"
    )
    rows.rdd.map(lambda row: (row.value, 1)).saveAsSequenceFile(
        f"{path}/sequence", "org.apache.hadoop.io.compress.Lz4Codec"
    )
    return len(spark.sparkContext.sequenceFile(f"{path}/sequence").collect())
