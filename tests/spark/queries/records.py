"""Formats that Spark's readers parse, in packed tasks and read ahead: contents, options and errors."""

import gzip
import random
from pathlib import Path

from datasets import FORMATS

from queries import add

SCHEMA = "a int, b string, c double"
CORRUPT = SCHEMA + ", _corrupt_record string"

CSV = {
    "plain": b"1,x,0.5\n2,y,1.5\n",
    "no-end": b"3,z,2.5",
    "crlf": b"4,p,1\r\n5,q,2\r\n",
    "cr": b"6,r,1\r7,s,2\r",
    "mark": b"\xef\xbb\xbf8,t,1\n9,u,2\n",
    "blank": b"\n\n10,v,1\n   \n\n11,w,2\n\n",
    "comments": b"#c1\n12,a,1\n#c2\n13,#b,2\n",
    "quoted": b'14,"a,b",1\n15,"a""b",2\n16,"open\n17,c,3\n',
    "short": b"18\n19,x\n20,x,1,more,and,more\n",
    "bad": b"x,y,z\n21,ok,1\n,,\n22,\xff\xfe,nan\n",
    "nul": b"23,\x00,1\n\x00\n24,a\x00b,2\n",
    "spaces": b" 25 , x ,1.0 \n26,\ty\t, 2.0\n",
    "bars": b"27,x,1|28,y,2|",
    "latin": "29,é,1\n30,ü,2\n".encode("latin-1"),
    "wide": b"31," + b",".join(b"%d" % i for i in range(500)) + b"\n",
    "long": b"32," + b"x" * 300_000 + b",1\n33,y,2\n",
}
HEADERS = {"one": b"a,b,c\n1,x,0.5\n", "two": b"a,b,c\n2,y,1.5\n3,z,1\n", "alone": b"a,b,c\n", "without-end": b"a,b,c"}
OTHER_HEADERS = {"one": b"a,b,c\n1,x,0.5\n", "two": b"b,a,c\n2,y,1.5\n"}
JSON = {
    "plain": b'{"a":1,"b":"x","c":0.5}\n{"a":2,"b":"y","c":1.5}\n',
    "no-end": b'{"a":3,"b":"z"}',
    "crlf": b'{"a":4}\r\n{"b":"q"}\r\n',
    "cr": b'{"a":6}\r{"a":7}\r',
    "mark": b'\xef\xbb\xbf{"a":8}\n{"a":9}\n',
    "blank": b'\n\n{"a":10}\n   \n\n',
    "arrays": b'[{"a":11},{"a":12}]\n[]\n{"a":13}\n',
    "bad": b'{"a":14\n{"a":15}\nnonsense\n{"a":"x"}\n{"b":1}\n{"a":16,"c":"y"}\n\xff\xfe\n',
    "nul": b'{"b":"\\u0000"}\n\x00\n{"a":17}\n',
    "twice": b'{"a":18,"a":19}\n{"a":20} {"a":21}\n',
    "nested": b'{"a":{"x":1},"b":{"y":[1,2]},"c":null}\n',
    "comments": b"/*x*/{'a':22}\n{\"a\":23} // y\n",
    "bars": b'{"a":24}|{"a":25}|',
    "long": b'{"a":26,"b":"' + b"x" * 300_000 + b'"}\n{"a":27}\n',
}
CONTENTS = {"csv": CSV, "json": JSON}
LINES = {"csv": b"1,x,0.5\n2,y,1.5\n", "json": b'{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n'}


def long_gzip(format_name: str) -> bytes:
    """Of 20,000 lines that make some 600 KB of it."""
    digits = random.Random(1)
    records = ((i, f"{digits.getrandbits(200):050x}") for i in range(20_000))
    lines = (f"{i},{b},0.5\n" if format_name == "csv" else f'{{"a":{i},"b":"{b}"}}\n' for i, b in records)
    return gzip.compress("".join(lines).encode(), mtime=0)


def write(context, files: dict[str, bytes]) -> str:
    """Writes files, and returns their path."""
    for name, content in files.items():
        context.files.write(name, content)
    return context.scratch


def read(context, format_name, files, schema=SCHEMA, **options):
    return context.spark.read.format(format_name).options(**options).schema(schema).load(write(context, files))


def seen(frame):
    """As bytes, because invalid UTF-8 looks alike in Python; a long string is replaced by its checksum."""
    return frame.selectExpr("a", "hex(substr(b, 1, 30))", "md5(b)", "c")


OPTIONS = {
    "as it is": {},
    "malformed dropped": {"mode": "DROPMALFORMED"},
    "another separator": {"lineSep": "|"},
    "another encoding": {"encoding": "ISO-8859-1", "lineSep": "\n"},
    "UTF-16": {"encoding": "UTF-16LE", "lineSep": "\n"},
    "several lines": {"multiLine": True},
}
for format_name, contents in CONTENTS.items():
    for name, options in OPTIONS.items():
        add(
            f"{format_name} {name}",
            lambda context, f=format_name, c=contents, o=options: seen(read(context, f, c, **o)),
        )
    add(
        f"{format_name} with what is corrupt",
        lambda context, f=format_name, c=contents: read(context, f, c, CORRUPT).selectExpr(
            "a", "md5(b)", "c", "hex(substr(_corrupt_record, 1, 30))"
        ),
    )
    add(
        f"{format_name} of what is corrupt alone",
        lambda context, f=format_name, c=contents: read(context, f, c, CORRUPT).select("_corrupt_record"),
    )
    add(
        f"{format_name} that must not be malformed",
        lambda context, f=format_name: read(context, f, {"bad": CONTENTS[f]["bad"]}, mode="FAILFAST"),
    )
    add(f"{format_name} counted", lambda context, f=format_name, c=contents: read(context, f, c).groupBy().count())
    add(
        f"{format_name} with a condition",
        lambda context, f=format_name, c=contents: seen(read(context, f, c).filter("a > 4 and b is not null")),
    )
    add(f"{format_name}, one column", lambda context, f=format_name, c=contents: read(context, f, c).select("a"))
    add(
        f"{format_name} whose names are asked for",
        lambda context, f=format_name, c=contents: read(context, f, c).selectExpr(
            "a",
            "substring_index(input_file_name(), '/', -1)",
            "input_file_block_start()",
            "input_file_block_length()",
            "_metadata.file_name",
            "_metadata.file_size",
        ),
    )
    add(
        f"{format_name} inferred",
        lambda context, f=format_name: context.spark.read.format(f).load(
            write(context, {"x": LINES[f], "y": LINES[f] * 3})
        ),
    )
    add(
        f"{format_name} beside compressed",
        lambda context, f=format_name: read(
            context, f, {"p": LINES[f], f"q.{f}.gz": gzip.compress(LINES[f], mtime=0), "r.txt": LINES[f]}
        ),
    )
    add(
        f"{format_name} broken in compression, left out",
        lambda context, f=format_name: read(
            context, f, {"p": LINES[f], "q.gz": gzip.compress(LINES[f] * 1000, mtime=0)[:40]}, ignoreCorruptFiles=True
        ),
    )
    add(
        f"{format_name} cut off in the middle, the rest left out",
        lambda context, f=format_name: read(
            context, f, {"p": LINES[f], "q.gz": long_gzip(f)[:300_000]}, ignoreCorruptFiles=True
        ).selectExpr("count(*)", "sum(hash(*))"),
    )
    add(
        f"{format_name} in tasks of 7 bytes",
        lambda context, f=format_name: context.with_conf(
            {
                "spark.sql.files.maxPartitionBytes": "7",
                "spark.sql.files.openCostInBytes": "0",
                "spark.millstream.read.openCostInBytes": "0",
            },
            lambda: seen(
                read(
                    context, f, {name: CONTENTS[f][name] for name in ("plain", "no-end", "crlf", "cr", "mark", "blank")}
                )
            ),
        ),
    )

for name, options in {
    "with a header": {"header": True},
    "with a header, columns not pruned": {"header": True, "enforceSchema": False},
}.items():
    add(f"csv {name}", lambda context, o=options: read(context, "csv", HEADERS, **o))
    add(f"csv {name} that differs", lambda context, o=options: read(context, "csv", OTHER_HEADERS, **o))
    add(f"csv {name}, one column of it", lambda context, o=options: read(context, "csv", HEADERS, **o).select("b"))
add(
    "csv, rows as variants with the names in the header",
    lambda context: (
        context.spark.read.options(header=True, singleVariantColumn="v")
        .csv(write(context, HEADERS))
        .selectExpr("to_json(v)")
    ),
)
add(
    "binaryFile by size",
    lambda context: context.read("binaryFile", "sizes").filter("length < 1000").selectExpr("length(content)", "path"),
)
add(
    "csv of a file named twice",
    lambda context: context.spark.read.schema(SCHEMA).csv(
        [f"{write(context, {'p': LINES['csv'], 'q': LINES['csv'] * 2})}/{name}" for name in "ppq"]
    ),
)
for name, options in {
    "comments": {"comment": "#"},
    "spaces cut": {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True},
    "short columns": {"maxCharsPerColumn": 1000},
    "nulls": {"nullValue": "x", "emptyValue": "e"},
    "tabs": {"sep": "\t"},
}.items():
    add(f"csv, {name}", lambda context, o=options: seen(read(context, "csv", CSV, **o)))
add("csv, more columns than may be", lambda context: read(context, "csv", {"wide": CSV["wide"]}, maxColumns=3))
add(
    "csv, all of every row",
    lambda context: context.with_conf(
        {"spark.sql.csv.parser.columnPruning.enabled": "false"}, lambda: seen(read(context, "csv", CSV))
    ),
)
for name, options in {
    "comments": {"allowComments": True, "allowSingleQuotes": False},
    "primitives as strings": {"primitivesAsString": True},
}.items():
    add(f"json, {name}", lambda context, o=options: seen(read(context, "json", JSON, **o)))
add(
    "json of nested columns",
    lambda context: read(context, "json", JSON, "a struct<x:int>, b string, c map<string,int>"),
)


def vanished(context, format_name, **options):
    frame = read(context, format_name, {name: LINES[format_name] for name in "pqr"}, **options)
    context.files.remove("q")
    return frame


def grown(context, format_name):
    frame = read(context, format_name, {name: LINES[format_name] for name in "pqr"})
    frame.count()
    context.files.append("q", LINES[format_name] * 2)
    return context.rows(frame)


def shrunk(context, format_name):
    frame = read(context, format_name, {name: LINES[format_name] * 5 for name in "pqr"})
    context.files.write("q", LINES[format_name])
    return context.rows(frame)


def with_checksums(context, format_name, change=None):
    """The rows of files written by Hadoop's local file system, after one of them was changed without it."""
    out = f"{context.scratch}/out"
    frame = context.spark.range(20).selectExpr("id a", "cast(id as string) b").repartition(3)
    frame.write.format(format_name).save(out)
    file = sorted(Path(out).glob("part-*"))[0]
    if change:
        file.write_bytes(change(file.read_bytes()))
    return sorted(map(repr, context.spark.read.format(format_name).schema("a int, b string").load(out).collect()))


def cached(context, frame):
    frame.cache()
    try:
        return [context.rows(frame), frame.count()]
    finally:
        frame.unpersist()


for format_name in CONTENTS:
    add(f"{format_name}: a file is gone", lambda context, f=format_name: vanished(context, f))
    add(
        f"{format_name}: a file is gone, left out",
        lambda context, f=format_name: vanished(context, f, ignoreMissingFiles=True),
    )
    add(f"{format_name}: a file has grown", lambda context, f=format_name: grown(context, f))
    add(f"{format_name}: a file has shrunk", lambda context, f=format_name: shrunk(context, f))
    add(f"{format_name}: checksums are right", lambda context, f=format_name: with_checksums(context, f))
    add(
        f"{format_name}: checksums are wrong",
        lambda context, f=format_name: with_checksums(context, f, lambda content: content.replace(b"1", b"2")),
    )

# Every format that is read in packed tasks, by partition columns, in parts, with the names of its files.
for format_name in FORMATS:
    columns = "length(content)" if format_name == "binaryFile" else "*"
    if format_name != "text":
        add(
            f"packed {format_name} of partitions",
            lambda context, f=format_name, c=columns: context.read(f, f"layouts/{f}/hive").selectExpr(
                c, "year", "month"
            ),
        )
        add(
            f"packed {format_name} of one partition",
            lambda context, f=format_name, c=columns: (
                context.read(f, f"layouts/{f}/hive").filter("year = 2020 and month = 2").selectExpr(c)
            ),
        )
        add(
            f"packed {format_name}, counted by partition",
            lambda context, f=format_name: context.read(f, f"layouts/{f}/hive").groupBy("year", "month").count(),
        )
        add(
            f"packed {format_name}, a list of names",
            lambda context, f=format_name: context.read(f, f"layouts/{f}/nested", recursiveFileLookup=True).selectExpr(
                "input_file_name()", "_metadata.file_path", "_metadata.file_modification_time"
            ),
        )
        add(
            f"packed {format_name}, cached",
            lambda context, f=format_name, c=columns: cached(
                context, context.read(f, f"layouts/{f}/flat").selectExpr(c)
            ),
        )
        add(
            f"packed {format_name}, joined with itself",
            lambda context, f=format_name: (
                context.read(f, f"layouts/{f}/hive")
                .alias("l")
                .join(context.read(f, f"layouts/{f}/hive").alias("r"), ["year", "month"])
                .groupBy("year")
                .count()
            ),
        )
        add(
            f"packed {format_name}, pruned dynamically",
            lambda context, f=format_name: (
                context.read(f, f"layouts/{f}/hive")
                .join(
                    context.spark.createDataFrame([(2, "x")], "month int, label string").filter("label = 'x'"), "month"
                )
                .groupBy("year", "label")
                .count()
            ),
        )
for format_name in ("parquet", "orc"):
    add(
        f"packed {format_name} as rows",
        lambda context, f=format_name: context.with_conf(
            {f"spark.sql.{f}.enableVectorizedReader": "false"}, lambda: context.read(f, f"layouts/{f}/hive")
        ),
    )
    add(
        f"packed {format_name} as rows of batches",
        lambda context, f=format_name: context.with_conf(
            {"spark.sql.codegen.wholeStage": "false"}, lambda: context.read(f, f"layouts/{f}/hive")
        ),
    )
    add(
        f"packed {format_name} with a condition",
        lambda context, f=format_name: context.read(f, f"layouts/{f}/flat").filter("id >= 1 and name is not null"),
    )
add(
    "packed parquet with the numbers of rows",
    lambda context: context.read("parquet", "layouts/parquet/hive").selectExpr("id", "_metadata.row_index"),
)
add(
    "text of another encoding",
    lambda context: context.spark.read.option("encoding", "ISO-8859-1").text(write(context, {"p": CSV["latin"]})),
)
add(
    "text with the names of files",
    lambda context: context.text("layouts/text/nested", recursiveFileLookup=True).selectExpr(
        "value", "_metadata.file_name"
    ),
)
