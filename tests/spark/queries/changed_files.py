"""Files that are deleted or replaced after they were listed: their rows, and the metadata that Spark has of them."""

import time

from queries import add

FORMATS = ("text", "csv", "json", "parquet", "orc", "binaryFile")
CHANGED = "d/part-2"
METADATA = ("file_name", "file_size", "file_block_start", "file_block_length")


def source(context, format_name, number):
    return f"{context.data}/layouts/{format_name}/flat/part-{number}"


CHANGES = {
    "deleted": lambda context, format_name: context.files.remove(CHANGED),
    # Some of them have the size of the first one.
    "replaced by another": lambda context, format_name: context.files.copy(source(context, format_name, 4), CHANGED),
    "replaced by its neighbour": lambda context, format_name: context.files.copy(
        source(context, format_name, 1), CHANGED
    ),
    "longer": lambda context, format_name: context.files.append(CHANGED, b'{"id": 99}\n' * 3),
    "emptied": lambda context, format_name: context.write(CHANGED, ""),
}


def with_metadata(context, format_name, change, **options):
    """The times of files are not the same in both sessions: whether they are those of the listing."""
    context.files.copy(f"{context.data}/layouts/{format_name}/flat", "d")
    frame = context.spark.read.format(format_name).options(**options).load(f"{context.scratch}/d")
    listed = dict(
        map(tuple, frame.selectExpr("_metadata.file_name", "_metadata.file_modification_time").distinct().collect())
    )
    if format_name == "binaryFile" and "://" in str(context.scratch):
        time.sleep(1.1)  # S3 states the time of an object in whole seconds
    CHANGES[change](context, format_name)
    columns = (
        ["length", "hex(content)", "modificationTime = _metadata.file_modification_time"]
        if format_name == "binaryFile"
        else ["*"]
    )
    found = frame.selectExpr(
        *columns, *(f"_metadata.{name}" for name in METADATA), "_metadata.file_modification_time time"
    ).collect()
    return sorted(str((*row[:-1], row.time == listed[row.file_name])) for row in found)


def without(context, format_name, change, **options):
    """Where text is read natively."""
    context.files.copy(f"{context.data}/layouts/{format_name}/flat", "d")
    frame = context.spark.read.format(format_name).options(**options).load(f"{context.scratch}/d")
    frame._jdf.queryExecution().executedPlan()
    CHANGES[change](context, format_name)
    columns = ["path", "length", "hex(content)"] if format_name == "binaryFile" else ["*"]
    return context.rows(frame.selectExpr(*columns)), context.rows(frame.groupBy().count())


for format_name in FORMATS:
    for change in CHANGES:
        for ignores in (False, True) if change == "deleted" else (False,):
            name = f"{format_name}, a file {change} once it is listed" + (", missing ones ignored" if ignores else "")
            options = {"ignoreMissingFiles": True} if ignores else {}
            add(
                f"metadata of {name}",
                lambda context, f=format_name, c=change, o=options: with_metadata(context, f, c, **o),
            )
            # A text file that became shorter is an error, and longer ones are among the scans: docs/read.md.
            if format_name != "text" or change == "deleted":
                add(f"rows of {name}", lambda context, f=format_name, c=change, o=options: without(context, f, c, **o))
