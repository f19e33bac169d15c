"""Unreadable paths: the same exception, condition and message."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from queries import add, case

for format_name in ("text", "parquet", "csv"):
    add(f"{format_name} from a missing path", lambda context, f=format_name: context.read(f, "nowhere"))
    add(f"{format_name} from a glob without matches", lambda context, f=format_name: context.read(f, "layouts/none*"))
    add(
        f"{format_name} from an empty directory",
        lambda context, f=format_name: context.read(f, "layouts/text/nothing/below/here"),
    )

UNREADABLE = {
    "missing path among others": ["layouts/text/flat", "nowhere"],
    "glob without matches among others": ["layouts/text/flat", "layouts/none*"],
    "path below a file": ["layouts/text/flat/part-0/x"],
    "glob with a syntax error": ["layouts/text/[a-"],
    "glob with an open brace": ["layouts/text/{flat"],
}
for name, paths in UNREADABLE.items():
    add(name, lambda context, paths=paths: context.text(*paths))

for tree in ("directory", "file", "search", "partitions"):
    add(
        f"forbidden {tree}",
        lambda context, tree=tree: context.text(f"forbidden/{tree}", recursiveFileLookup=tree != "partitions"),
    )
    add(
        f"RDD with a forbidden {tree}",
        lambda context, tree=tree: context.spark.sparkContext.textFile(f"{context.data}/forbidden/{tree}"),
    )


@case("a forbidden directory as the root")
def forbidden_root(context):
    return context.text("forbidden/directory/locked")


@case("a path below a forbidden directory")
def below_forbidden(context):
    return context.text("forbidden/directory/locked/q")


@case("forbidden directory with ignoreMissingFiles")
def forbidden_ignored(context):
    return context.text("forbidden/directory", recursiveFileLookup=True, ignoreMissingFiles=True)


@case("empty string as the path")
def empty_string(context):
    return context.spark.read.text("")


@case("unknown scheme")
def unknown_scheme(context):
    return context.spark.read.text("nosuchscheme://x/y")


@case("authority that a local path cannot have")
def with_authority(context):
    return context.spark.read.text(f"file://host{context.data}/layouts/text/flat")


@case("relative path in a URI")
def relative_uri(context):
    return context.spark.read.text("file:relative/path")


@case("a corrupt parquet file")
def corrupt(context):
    return context.read("parquet", "layouts/text/flat")


@case("corrupt files ignored")
def corrupt_ignored(context):
    return context.read("parquet", "layouts/text/flat", ignoreCorruptFiles=True)


@case("a file that is not as its checksum says")
def bad_checksum(context):
    return context.text("checksums")


@case("the classes of what a file that is not as its checksum says throws")
def classes_of_bad_checksum(context):
    try:
        context.text("checksums").collect()
    except (PySparkException, Py4JJavaError) as error:
        thrown, classes = getattr(error, "_origin", None) or error.java_exception, []
        while thrown is not None:
            classes.append(thrown.getClass().getName())
            thrown = thrown.getCause()
        return classes


@case("a file that is not as its checksum says, ignored")
def bad_checksum_ignored(context):
    return context.text("checksums", ignoreCorruptFiles=True)
