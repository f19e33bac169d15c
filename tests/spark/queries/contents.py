"""Contents of text files: line ends, byte order marks, invalid UTF-8, long lines; as whole files, and split into tasks
at any position.
"""

from datasets import CONTENTS

from queries import STOCK, add, case

SEPARATORS = ["|", "||", "ab", "aa", "\n", "\r\n", "é", "\n\n", "\0"]

# Tasks of this many bytes: stock's own key, and our cost of opening a file.
TINY = {"spark.sql.files.openCostInBytes": "0", "spark.millstream.read.openCostInBytes": "0"}


def tiny(size):
    return {"spark.sql.files.maxPartitionBytes": str(size), **TINY}


# The rows as bytes, in the order of each file: strings with invalid UTF-8 look alike in Python.
def bytes_of(frame):
    return frame.selectExpr("hex(cast(value as binary))", "length(value)")


for tree in CONTENTS:
    if tree != "empty":
        add(f"content {tree}", lambda context, tree=tree: bytes_of(context.text(f"contents/{tree}")), native=True)
        add(
            f"content {tree} counted",
            lambda context, tree=tree: context.text(f"contents/{tree}").groupBy().count(),
            native=True,
        )
        add(
            f"content {tree} in whole",
            lambda context, tree=tree: bytes_of(context.text(f"contents/{tree}", wholetext=True)),
            native=True,
        )

add("content empty", lambda context: context.text("contents/empty"))
add("all contents, wholetext false", lambda context: bytes_of(context.text("contents", wholetext=False)), native=True)
add(
    "all contents by pyspark's own call",
    lambda context: bytes_of(context.spark.read.text(f"{context.data}/contents", wholetext=True)),
    native=True,
)
add(
    "all contents counted in whole",
    lambda context: context.text("contents", wholetext=True).groupBy().count(),
    native=True,
)

for separator in SEPARATORS:
    # One that begins as it ends can be recognized only from the beginning of a file.
    native = separator not in ("||", "aa", "\n\n")
    add(
        f"separator {separator!r}",
        lambda context, s=separator: bytes_of(context.text("contents", lineSep=s)),
        native=native,
    )
    add(
        f"separator {separator!r} counted",
        lambda context, s=separator: context.text("contents", lineSep=s).groupBy().count(),
        native=native,
    )
    add(
        f"separator {separator!r} and a condition",
        lambda context, s=separator: bytes_of(
            context.text("contents", lineSep=s).filter("contains(value, 'b') or value = '' or value like '%a%b%'")
        ),
        native=native,
    )
    add(
        f"separator {separator!r} and a literal",
        lambda context, s=separator: bytes_of(context.text("contents", lineSep=s).filter("contains(value, 'ay')")),
        native=native,
    )

# Every row with its file, to detect a row with the wrong file, or twice in one file and missing in another.
for size in (1, 2, 3, 7):
    add(
        f"tasks of {size} bytes",
        lambda context, n=size: context.with_conf(
            tiny(n),
            lambda: context.text(
                "contents", pathGlobFilter="{lf,cr,crlf,mixed,un*,one*,new*,ends*,m*,half*,no*,nul,bars}"
            ).selectExpr("hex(value)"),
        ),
        native=True,
    )
    add(
        f"tasks of {size} bytes and a separator",
        lambda context, n=size: context.with_conf(
            tiny(n), lambda: context.text("contents/bars", "contents/mark-bar", lineSep="|").selectExpr("hex(value)")
        ),
        native=True,
    )
for size in (1000, 8191, 30_011):
    add(
        f"tasks of {size} bytes and long lines",
        lambda context, n=size: context.with_conf(
            tiny(n), lambda: context.text("contents").selectExpr("md5(value)", "input_file_name()")
        ),
        native=True,
    )
    add(
        f"tasks of {size} bytes, counted",
        lambda context, n=size: context.with_conf(tiny(n), lambda: context.text("sizes").groupBy().count()),
        native=True,
    )
    add(
        f"tasks of {size} bytes, whole files",
        lambda context, n=size: context.with_conf(
            tiny(n), lambda: context.text("sizes", wholetext=True).selectExpr("md5(value)")
        ),
        native=True,
    )


@case("a line of 50 MB", native=True)
def long_line(context):
    return context.text("long-lines").selectExpr("length(value)", "md5(value)")


@case("a line of 50 MB in many tasks", native=True)
def long_line_in_tasks(context):
    return context.with_conf(
        tiny(5_000_000), lambda: context.text("long-lines").selectExpr("length(value)", "md5(value)")
    )


@case("a line of 50 MB, filtered and in whole", native=True)
def long_line_filtered(context):
    frame = context.text("long-lines")
    return (
        context.rows(frame.filter("endswith(value, 'x')").selectExpr("length(value)")),
        context.rows(frame.filter("contains(value, 'yy')").selectExpr("length(value)")),
        context.rows(context.text("long-lines", wholetext=True).selectExpr("length(value)", "md5(value)")),
    )


@case("an empty separator")
def empty_separator(context):
    return context.text("contents/lf", lineSep="")


@case("wholetext that is no boolean")
def odd_wholetext(context):
    return context.text("contents/lf", wholetext="maybe")


@case("an encoding", native=False)
def encoding(context):
    return context.text("contents/bars", encoding="UTF-16LE", lineSep="|").selectExpr("hex(value)")


@case("the longest line that Hadoop may give", native=False)
def longest_line(context):
    key = "mapreduce.input.linerecordreader.line.maxlength"
    return context.text("contents", **{key: "8"})


@case("compressed files among others", native=True)
def compressed(context):
    return context.text("compressed")


@case("compressed files pruned", native=True)
def compressed_pruned(context):
    return context.text("compressed", pathGlobFilter="plain")


@case("corrupt files ignored in text", native=False)
def corrupt_ignored(context):
    return context.text("contents", ignoreCorruptFiles=True)


@case("corrupt files ignored by the setting", native=False)
def corrupt_ignored_by_setting(context):
    return context.with_conf({"spark.sql.files.ignoreCorruptFiles": "true"}, lambda: context.text("contents"))


@case("archives read as directories", native=False)
def archives(context):
    return context.with_conf({"spark.sql.files.archive.reader.enabled": "true"}, lambda: context.text("contents"))


@case("checksums that Spark has written", native=True)
def written_checksums(context):
    context.text("sizes").write.text(f"{context.scratch}/out")
    frame = context.spark.read.text(f"{context.scratch}/out")
    return context.rows(frame.selectExpr("md5(value)")), context.with_conf(
        tiny(10_000), lambda: frame.groupBy().count()
    )


@case("checksums that Spark has written, of a file changed since")
def changed_since(context):
    from pathlib import Path

    context.spark.range(500_000).selectExpr("cast(id as string)").coalesce(1).write.text(f"{context.scratch}/out")
    (part,) = Path(f"{context.scratch}/out").glob("part-*")
    with part.open("r+b") as file:
        file.seek(2_000_000)
        file.write(b"#")
    part.rename(f"{context.scratch}/out/p")
    Path(f"{context.scratch}/out/.{part.name}.crc").rename(f"{context.scratch}/out/.p.crc")
    return context.spark.read.text(f"{context.scratch}/out").groupBy().count()


@case("hidden column of the file", native=False)
def hidden_column(context):
    return context.text("contents/lf").selectExpr("value", "_metadata.file_name")


@case("second interface of text", index=STOCK, native=False)
def second_interface(context):
    return context.with_conf({"spark.sql.sources.useV1SourceList": ""}, lambda: context.text("contents"))
