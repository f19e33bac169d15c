"""The options of the file source of streams: which files are in which batch, and what happens to files that have been
read.
"""

import re

from queries import case

# By their times; neither by their names nor in the order in which they are written.
FILES = [f"in/x/{name}" for name in ("c", "e", "a", "d", "b")]
SYNCHRONOUS = {"spark.sql.streaming.fileSource.cleaner.numThreads": "0"}


def put(context, names=FILES):
    for name in sorted(names):
        context.write(name, "".join(f"{name} {line}\n" for line in range(3)))
    context.files.in_order(names)


def batches(context, path="in/x", fails=False, columns=("value",), **options):
    """The rows of each batch until the stream has caught up; or its errors."""
    found = []

    def take(batch, number):
        found.append((number, sorted(map(str, batch.collect()))))
        if fails:
            raise ValueError("this batch fails")

    stream = context.spark.readStream.options(**options).text(f"{context.scratch}/{path}").selectExpr(*columns)
    query = (
        stream.writeStream.option("checkpointLocation", f"{context.scratch}/checkpoint")
        .trigger(availableNow=True)
        .foreachBatch(take)
        .start()
    )
    try:
        query.awaitTermination()
    except Exception as error:
        found.append(sorted(set(re.findall(r"\[([A-Z_.]+)\]", str(error)))))
    return found


@case("a stream, the oldest files first")
def oldest(context):
    put(context)
    return batches(context, maxFilesPerTrigger=2)


@case("a stream, the latest files first")
def latest(context):
    put(context)
    return batches(context, maxFilesPerTrigger=2, latestFirst=True), batches(
        context, maxFilesPerTrigger=2, latestFirst=True
    )


@case("a stream, the latest files first, whatever their age")
def latest_of_any_age(context):
    put(context)
    return batches(context, maxFilesPerTrigger=2, latestFirst=True, maxFileAge="1s")


@case("a stream, so many bytes a batch")
def bytes_per_batch(context):
    put(context)
    return batches(context, maxBytesPerTrigger="50b")


@case("a stream, files that are too old")
def too_old(context):
    put(context, FILES[2:])
    first = batches(context, maxFileAge="30s")
    put(context)
    return first, batches(context, maxFileAge="30s")


@case("a stream, files with the names of others")
def same_names(context):
    put(context)
    first = batches(context, fileNameOnly=True)
    context.write("in/y/a", "another\n")
    context.write("in/y/f", "the first of its name\n")
    return first, batches(context, "in/*", fileNameOnly=True)


@case("a stream, files that are written again")
def written_again(context):
    put(context)
    first = batches(context)
    context.write(FILES[0], "new\n")
    context.write("in/x/f", "new\n")
    return first, batches(context)


@case("a stream of the metadata of files")
def metadata(context):
    put(context)
    return batches(
        context,
        columns=("value", "_metadata.file_name", "_metadata.file_size", "_metadata.file_block_start"),
        maxFilesPerTrigger=2,
    )


def cleaned(context, *runs, **options):
    """The batches of each run, and the files after it. Files are written before all of them but the last."""
    found = []
    with context.settings(SYNCHRONOUS):
        for names in runs:
            put(context, names)
            rows = batches(context, "in/*", maxFilesPerTrigger=1, **options)
            found.append((rows, context.files.names("in"), context.files.names("archive")))
    return found


@case("a stream that deletes what it has read")
def deleting(context):
    return cleaned(context, FILES, [*FILES, "in/y/f"], [], cleanSource="delete")


@case("a stream that archives what it has read")
def archiving(context):
    return cleaned(
        context, FILES, [*FILES, "in/y/f"], [], cleanSource="archive", sourceArchiveDir=f"{context.scratch}/archive"
    )


@case("a stream that archives what it has read, the latest files first")
def archiving_latest(context):
    return cleaned(
        context, FILES, [], cleanSource="archive", sourceArchiveDir=f"{context.scratch}/archive", latestFirst=True
    )


@case("a stream that archives into what it reads")
def archiving_into_source(context):
    put(context)
    return batches(context, "in/*", cleanSource="archive", sourceArchiveDir=f"{context.scratch}/in/x")


def repeated(context, **options):
    """A batch that has failed is read again after a file of it was deleted."""
    put(context)
    first = batches(context, fails=True, **options)
    context.files.remove(FILES[2])
    return first, batches(context, **options)


@case("a stream, a batch that is repeated without one of its files")
def repeated_without(context):
    return repeated(context)


@case("a stream, a batch that is repeated without one of its files, missing ones ignored")
def repeated_ignoring(context):
    return repeated(context, ignoreMissingFiles=True)


@case("a stream, a file that is deleted while a batch is read")
def deleted_in_batch(context):
    put(context)
    found = []

    def take(batch, number):
        batch._jdf.queryExecution().executedPlan()
        context.files.remove(FILES[number])
        found.append((number, sorted(map(str, batch.collect()))))

    stream = context.spark.readStream.options(maxFilesPerTrigger=1, ignoreMissingFiles=True).text(
        f"{context.scratch}/in/x"
    )
    query = (
        stream.writeStream.option("checkpointLocation", f"{context.scratch}/checkpoint")
        .trigger(availableNow=True)
        .foreachBatch(take)
        .start()
    )
    query.awaitTermination()
    return found
