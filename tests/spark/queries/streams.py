"""The file source and the file sink of streaming queries."""

from queries import STREAM_LOG, case


def drained(context, stream):
    """All rows of a stream until it has caught up."""
    rows = []
    query = (
        stream.writeStream.option("checkpointLocation", f"{context.scratch}/checkpoint")
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: rows.extend(map(repr, batch.collect())))
        .start()
    )
    query.awaitTermination()
    return sorted(rows)


@case("stream from a directory")
def flat(context):
    return drained(context, context.spark.readStream.text(f"{context.data}/layouts/text/flat"))


@case("stream from partitions")
def partitions(context):
    return drained(
        context,
        context.spark.readStream.schema("id long, name string, year int, month int").json(
            f"{context.data}/layouts/json/hive"
        ),
    )


@case("stream from a nested directory")
def nested(context):
    return drained(
        context,
        context.spark.readStream.option("recursiveFileLookup", True).text(f"{context.data}/layouts/text/nested"),
    )


@case("stream from a glob, few files at a time")
def glob(context):
    return drained(
        context,
        context.spark.readStream.option("maxFilesPerTrigger", 1).text(f"{context.data}/layouts/text/flat/part-*"),
    )


@case("stream from a directory that grows")
def growing(context):
    stream = context.spark.readStream.text(f"{context.scratch}/d")
    context.write("d/a", "a\n")
    first = drained(context, stream)
    context.write("d/b", "b\n")
    return first, drained(context, context.spark.readStream.text(f"{context.scratch}/d"))


@case("stream from a missing path")
def missing(context):
    return drained(context, context.spark.readStream.text(f"{context.data}/nowhere"))


@case("the output of a stream, read as a batch", index=STREAM_LOG)
def output(context):
    stream = context.spark.readStream.text(f"{context.data}/layouts/text/flat")
    out = f"{context.scratch}/out"
    query = (
        stream.writeStream.format("text")
        .option("checkpointLocation", f"{context.scratch}/checkpoint")
        .trigger(availableNow=True)
        .start(out)
    )
    query.awaitTermination()
    context.write("out/not-committed", "not committed\n")
    frame = context.spark.read.text(out)
    glob = context.spark.read.text(f"{out}*")
    return sorted(row.value for row in frame.collect()), sorted(row.value for row in glob.collect())
