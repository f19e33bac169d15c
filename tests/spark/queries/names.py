"""Names that are error-prone in URIs, globs, partition directories and encodings."""

from datasets import NASTY_NAMES

from queries import READ_BY_SPARK, add, case


def escaped_glob(name):
    return "".join(f"\\{c}" if c in "\\*?[]{}," else c for c in name)


def read(context, name, path):
    """Spark cannot open a file with a colon in its name, but the native scan can; to compare them, Spark must read it."""
    if ":" in name:
        return context.with_conf(READ_BY_SPARK, lambda: context.text(path))
    return context.text(path)


for i, name in enumerate(NASTY_NAMES):
    label = name if name.isprintable() and len(name) < 50 else f"number {i}"
    add(f"file named {label}", lambda context, i=i, name=name: read(context, name, f"names/{i}"))
    add(
        f"directory named {label}",
        lambda context, i=i: context.text(f"directories/{i}", recursiveFileLookup=True).selectExpr(
            "value", "input_file_name()"
        ),
    )
    add(
        f"file named {label} as the path",
        lambda context, i=i, name=name: read(context, name, f"names/{i}/{escaped_glob(name)}"),
    )
    if len(name.encode()) < 250:
        add(f"partition named {label}", lambda context, i=i: context.text(f"partitions/{i}"))


@case("all file names")
def all_files(context):
    readable = [f"names/{i}" for i, name in enumerate(NASTY_NAMES) if ":" not in name]
    return context.text(*readable, recursiveFileLookup=True).selectExpr(
        "value", "input_file_name()", "_metadata.file_path", "_metadata.file_name"
    )


@case("all directory names")
def all_directories(context):
    return context.text("directories", recursiveFileLookup=True)


@case("names that Java cannot express")
def undecodable(context):
    return context.text("undecodable", recursiveFileLookup=True)


@case("RDD of names that Java cannot express")
def undecodable_rdd(context):
    return context.spark.sparkContext.textFile(f"{context.data}/undecodable/*")


@case("RDD of all file names")
def all_files_rdd(context):
    readable = [f"{context.data}/names/{i}" for i, name in enumerate(NASTY_NAMES) if ":" not in name]
    return context.spark.sparkContext.textFile(",".join(readable))
