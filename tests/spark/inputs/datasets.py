"""The trees that the cases read. They are created once; every file has its own content and time, which are the same in
each run.
"""

import gzip
import os
import shutil
from pathlib import Path

FORMATS = ("text", "csv", "json", "parquet", "orc", "binaryFile")
TEMPLATES = 4
FIRST_MTIME_S = 1_600_000_000
MTIME_STEP_S = 3600

# Names that are error-prone in URIs, globs, partition directories, encodings or shells.
NASTY_NAMES = (
    "two words",
    " leading",
    "trailing ",
    "100%",
    "%20",
    "a%2Fb",
    "%zz",
    "a#b",
    "#",
    "what?",
    "a:b",
    ":",
    "a;b",
    "a&b",
    "a+b",
    "a=b",
    "k=v=w",
    "back\\slash",
    "quo'te",
    'quo"te',
    "back`tick",
    "[x]",
    "{a,b}",
    "star*",
    "a,b",
    "~",
    "-dash",
    "$x",
    "a@b",
    "a|b",
    "<a>",
    "^",
    "new\nline",
    "tab\there",
    "return\r",
    "\x01",
    "\x7f",
    "é",
    "e\u0301",
    "漢字",
    "🙂",
    "\u00a0",
    "\u2028",
    "\u0085",
    "\u200b",
    "..x",
    "x..",
    "file:",
    "http:",
    "n" * 255,
    "é" * 127,
)

# Directories whose files have different columns: the first file that Spark finds determines the schema.
FIRST_OF_MANY = ("m", "z", "a", "k=1", "b")


def lines(n: int) -> list[str]:
    return [f"line {n}.{k}" for k in range(n % 3 + 1)]


class Trees:
    """Writes files below one directory, with content `n` and time `n`; `n` increases from file to file."""

    def __init__(self, root: Path):
        self.root = root
        self.count = 0

    def file(self, path: str | Path, format_name: str = "text", content: bytes | None = None) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        n = self.count
        self.count += 1
        if content is not None:
            target.write_bytes(content)
        elif format_name in ("parquet", "orc"):
            shutil.copyfile(self.root / "templates" / f"{n % TEMPLATES}.{format_name}", target)
        else:
            target.write_bytes(self.content(format_name, n))
        set_time(target, n)

    @staticmethod
    def content(format_name: str, n: int) -> bytes:
        match format_name:
            case "text" | "binaryFile":
                rows = lines(n)
            case "csv":
                rows = ["id,name,price", *(f"{n * 10 + k},n{n}.{k},{k}.5" for k in range(3))]
            case "json":
                rows = [f'{{"id": {n * 10 + k}, "name": "n{n}.{k}", "tags": ["t{k}"]}}' for k in range(3)]
        return "".join(row + "\n" for row in rows).encode()

    def files(self, folder: str, names, format_name: str = "text") -> None:
        for name in names:
            self.file(f"{folder}/{name}", format_name)


def set_time(path: Path, n: int) -> None:
    time_s = FIRST_MTIME_S + n * MTIME_STEP_S
    os.utime(path, (time_s, time_s), follow_symlinks=False)


def write_templates(spark, root: Path) -> None:
    """One Parquet and one ORC file for each content, written by stock Spark, and ORC files with other columns."""
    for n in range(TEMPLATES):
        rows = spark.range(n * 10, n * 10 + 3).selectExpr("id", "id * 1.5 as price", "cast(id as string) as name")
        for format_name in ("parquet", "orc"):
            write_one_file(rows, format_name, root / "templates" / f"{n}.{format_name}")
    for i in range(len(FIRST_OF_MANY)):
        write_one_file(spark.range(1).selectExpr(f"id as column{i}"), "orc", root / "templates" / f"column{i}.orc")
        write_one_file(
            spark.range(2).selectExpr("id", f"id as column{i}"), "parquet", root / "templates" / f"different{i}.parquet"
        )


def write_one_file(rows, format_name: str, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    out = target.with_suffix(".written")
    rows.coalesce(1).write.option("compression", "uncompressed").format(format_name).save(str(out))
    (part,) = (f for f in out.iterdir() if f.name.startswith("part-"))
    part.rename(target)
    shutil.rmtree(out)


def build(root: Path) -> None:
    trees = Trees(root)
    for format_name in FORMATS:
        layouts_of(trees, format_name)
    partition_values(trees)
    hidden_names(trees)
    links_and_odd_files(trees)
    nasty_names(trees)
    unreadable(trees)
    text_contents(trees)
    inference(trees)


def layouts_of(trees: Trees, format_name: str) -> None:
    top = f"layouts/{format_name}"
    trees.files(f"{top}/flat", [f"part-{i}" for i in range(5)], format_name)
    trees.files(f"{top}/nested", ["p0", "a/p1", "a/b/p2", "c d/p3", "a/b/c/d/e/p4"], format_name)
    hive = [
        "year=2020/month=1/p0",
        "year=2020/month=2/p1",
        "year=2020/month=2/p1b",
        "year=2021/month=10/p2",
        "year=2021/month=__HIVE_DEFAULT_PARTITION__/p3",
    ]
    trees.files(f"{top}/hive", hive, format_name)
    trees.files(f"{top}/hive-deep", ["year=2020/x/p0", "year=2020/x/y/p1", "year=2021/p2"], format_name)
    trees.files(f"{top}/empties", ["p0", "sub/p1"], format_name)
    trees.file(f"{top}/empties/zero", content=b"")
    (trees.root / top / "nothing" / "below" / "here").mkdir(parents=True)


# The values of each partition column; every list is a separate data set.
PARTITION_VALUES = {
    "ints": ["1", "2", "10", "-3"],
    "longs": ["1", "3000000000", "99999999999999999999"],
    "doubles": ["1", "1.5", "1e5", "NaN"],
    "decimals": ["123456789012345678901234567890", "1"],
    "dates": ["2020-01-01", "2021-12-31"],
    "bad-dates": ["2020-13-01", "2020-01-01"],
    "timestamps": ["2020-01-01 12%3A00%3A00", "2020-01-02 00%3A00%3A00.5"],
    "dates-and-timestamps": ["2020-01-01", "2020-01-02 00%3A00%3A00"],
    "strings": ["a", "b", "A"],
    "mixed": ["1", "a", "2020-01-01"],
    "zeros": ["007", "0", "00", "-0"],
    "booleans": ["true", "false"],
    "nulls": ["1", "__HIVE_DEFAULT_PARTITION__"],
    "all-null": ["__HIVE_DEFAULT_PARTITION__"],
    "suffixes": ["1L", "2d", "0x1F"],
    "escaped": ["a%20b", "a%2Fb", "a%3Db", "%25", "%", "%zz", "a%3Fb", "%C3%A9", "é"],
    "spaces": ["a b", " a", "a "],
    "empty": ["", "x"],
}


def partition_values(trees: Trees) -> None:
    for name, values in PARTITION_VALUES.items():
        trees.files(f"values/{name}", [f"k={value}/p" for value in values])
    trees.files("columns/case", ["A=1/p", "a=2/p"])
    trees.files("columns/conflict", ["a=1/p", "b=2/p"])
    trees.files("columns/depth", ["a=1/b=2/p", "a=3/p"])
    trees.files("columns/beside-root-file", ["p", "a=1/p"])
    trees.files("columns/beside-directory", ["plain/p", "a=1/p"])
    trees.files("columns/escaped-name", ["my%20column=1/p", "my%20column=2/p"])
    trees.files("columns/no-name", ["=1/p", "=2/p"])
    trees.files("columns/twice", ["a=1/a=2/p"])
    trees.files("columns/in-value", ["value=7/p", "value=8/p"])
    trees.files("columns/in-data", ["id=100/p", "id=200/p"], "json")
    trees.files("columns/hidden-name", ["_k=1/p", "_k=2/p"])
    trees.files("columns/many", [f"a={i % 3}/b={i % 5}/c={i}/p" for i in range(40)])


def hidden_names(trees: Trees) -> None:
    names = [
        "seen",
        "_SUCCESS",
        "_hidden",
        ".hidden",
        "_metadata",
        "_common_metadata",
        "_metadata_x",
        "x._COPYING_",
        ".x=1",
        "_x=1",
        "x.crc",
        "_temporary/0/t",
        ".dot/d",
        "_metadata/m2",
        "_metadata_dir/m",
        "dir._COPYING_/c",
        "_common_metadata_dir/cm",
        "a/_b/c",
        "a/.b/c",
        "a/b/_c",
        "_a=1/p",
    ]
    used = set()
    for name in names:
        if name.split("/")[0] not in used or "/" not in name:
            trees.file(f"hidden/{name}")
            used.add(name)
    trees.files(
        "hidden-partitions", ["k=1/p", "k=1/_p", "k=2/.p", "k=3/_temporary/p", "_temporary/k=9/p", "k=4/_k=5/p"]
    )


def links_and_odd_files(trees: Trees) -> None:
    trees.files("links", ["real", "dir/inside"])
    top = trees.root / "links"
    (top / "to-file").symlink_to("real")
    (top / "to-dir").symlink_to("dir")
    (top / "dangling").symlink_to("nowhere")
    trees.files("loop", ["p", "sub/q"])
    (trees.root / "loop" / "sub" / "up").symlink_to("..")
    (trees.root / "link-to-root").symlink_to("links")
    trees.files("checksums", ["good", "bad"])
    (trees.root / "checksums" / ".bad.crc").write_bytes(b"crc\0\0\0\x02\0\0\0\0\0")
    trees.file("compressed/a.gz", content=gzip.compress(b"zipped 1\nzipped 2\n", mtime=0))
    trees.file("compressed/plain")
    trees.file("endings/crlf", content=b"one\r\ntwo\r\n\r\nlast")
    trees.file("endings/cr", content=b"one\rtwo\r")
    trees.file("endings/lf", content=b"one\n\n\ntwo\n")
    trees.file("endings/mark", content=b"\xef\xbb\xbfmarked\nnot")
    trees.file("endings/mark-alone", content=b"\xef\xbb\xbf")
    trees.file("endings/not-utf8", content=b"caf\xe9\n\xff\xfe\n")
    trees.file("endings/zero-bytes", content=b"a\0b\n")
    trees.file("endings/long", content=b"x" * 200_000 + b"\nshort\n")
    for fill in ("a", "b", "c"):
        trees.file(f"sizes/{fill}", content=b"".join(b"%s %d\n" % (fill.encode(), i) for i in range(30_000)))
    for i, directory in enumerate(FIRST_OF_MANY):
        trees.file(f"first/csv/{directory}/p", content=f"c{i}\nvalue\n".encode())
        trees.file(f"first/orc/{directory}/p", content=(trees.root / "templates" / f"column{i}.orc").read_bytes())
    trees.files("first/text", [f"{directory}/{name}" for directory in FIRST_OF_MANY for name in ("p", "x/q", "a/r")])
    trees.files("siblings", [f"d{i:02}/e{j}/p{k}" for i in range(8) for j in range(3) for k in range(2)])


def nasty_names(trees: Trees) -> None:
    for i, name in enumerate(NASTY_NAMES):
        trees.file(f"names/{i}/{name}")
        trees.file(f"directories/{i}/{name}/p")
        if len(name.encode()) < 250:
            trees.file(f"partitions/{i}/k={name}/p")
    raw = os.fsencode(trees.root) + b"/undecodable"
    os.makedirs(raw + b"/d\xff")
    for name in (b"ok", b"bad\xff", b"d\xff/p"):
        with open(raw + b"/" + name, "wb") as out:
            out.write(b"of undecodable\n")


def unreadable(trees: Trees) -> None:
    trees.files("forbidden/directory", ["p", "locked/q"])
    trees.files("forbidden/file", ["p", "locked"])
    trees.files("forbidden/search", ["p", "listable/q"])
    trees.files("forbidden/partitions", ["k=1/p", "k=2/p"])
    for path, mode in {"directory/locked": 0, "file/locked": 0, "search/listable": 0o600, "partitions/k=2": 0}.items():
        (trees.root / "forbidden" / path).chmod(mode)


MARK = b"\xef\xbb\xbf"
# Files that are difficult for a reader of lines.
CONTENTS = {
    "lf": b"one\ntwo\n\nfour\n",
    "cr": b"one\rtwo\r\rfour\r",
    "crlf": b"one\r\ntwo\r\n\r\nfour\r\n",
    "mixed": b"a\rb\nc\r\nd\n\re\r\r\nf\n\n\rg",
    "unended": b"one\ntwo",
    "one-newline": b"\n",
    "one-cr": b"\r",
    "newlines": b"\n\n\n",
    "ends-in-cr": b"one\r",
    "empty": b"",
    "mark": MARK + b"marked\nnot\n",
    "mark-alone": MARK,
    "mark-newline": MARK + b"\n",
    "mark-crlf": MARK + b"\r\nx",
    "mark-twice": MARK * 2 + b"x\n",
    "mark-inside": b"a\n" + MARK + b"b\n",
    "half-mark": MARK[:2] + b"\n",
    "mark-bar": MARK + b"|x",
    "not-utf8": b"caf\xe9\n\xff\xfe\n\xc3\n\xed\xa0\x80\n",
    "nul": b"a\0b\n\0\n",
    "bars": b"a|b||c|||d|\n|e",
    "overlapping": b"xaaay\naaaa\nbaabaaab",
    "pairs": b"ababab\nxabc\nab",
    "accents": "é1é2\né".encode(),
    "long": b"y" * 9000 + b"\nshort\r\n" + b"z" * 70_000,
    "separators": "a\u2028b\u0085c\x0bd\x0ce\n".encode(),
}
# Rows for conditions. In some, `é` consists of two characters; some are not UTF-8.
ROWS = [
    "",
    " ",
    "a",
    "ab",
    "abc",
    "ABC",
    "aXbXc",
    "a_b",
    "a%b",
    "a\\b",
    "a\\%b",
    "aab",
    "abab",
    "ba",
    "BALTIMORE",
    "in BALTIMORE, MD",
    "baltimore",
    "é",
    "e\u0301",
    "xéy",
    "漢字",
    "🙂🙂",
    "a\tb",
    "null",
    "NULL",
    "[a]",
    "a.b",
    "a+b",
    "\ufffd",
    "x\ufffdy",
    "1",
    "01",
    "  a",
    "a  ",
    "i̇",
    "İ",
    "ß",
    "SS",
]
RAW_ROWS = [b"\xff", b"x\xffy", b"\xc3\xc3\xa9", b"a\xc3", b"\xe2\x82", b"a\0b"]


def text_contents(trees: Trees) -> None:
    for name, content in CONTENTS.items():
        trees.file(f"contents/{name}", content=content)
    for k in range(3):
        rows = [row.encode() for row in ROWS] + RAW_ROWS
        trees.file(
            f"rows/k={k}/p",
            content=b"\n".join(b"%s%s" % (row, b" %d" % i if i % 3 < k else b"") for i, row in enumerate(rows)),
        )
    trees.file("long-lines/p", content=b"first\n" + b"x" * 50_000_000 + b"\nlast " + b"y" * 3_000_000)
    for k in range(12):
        trees.file(
            f"batches/f{k:02}",
            content=b"".join(
                b"%s %06d %s\n" % (b"zz" if (k, i) == (0, 5) else b"ab", (i * 7919 + k) % 100_003, b"w" * (i % 50))
                for i in range(8000)
            ),
        )


# csv and json whose types and columns differ from file to file. In the first of each, several values have types that
# the others narrow or widen.
CSV_FILES = {
    "a": "id,amount,when,what\n1,1.5,2020-01-01,x\n2,,2020-01-02,none\n",
    "b": "id,amount,when,what\n3000000000,123456789012345678901.5,2020-01-01 12:00:00,true\n# comment,1,2,3\nnone,nix,,\n",
    "c": 'id,amount,when,what\n4,1e10,31/12/2020,"a,b"\n5,-Infinity,01/02/2021 10:30,"quoted ""x"""\n',
    "longest": "what,id;amount,when\n" + "1,2,3\n" * 60,
}
CSV_ODD = {
    "empty": "",
    "blank": "\n\n  \n",
    "short": "x\n1\n",
    "wide": "p,q,r,s,t\n1,2,3,4,5\n1,2\n1,2,3,4,5,6,7\n",
    "lines": 'a,b\n"one\ntwo",2\n',
    "cr": "a,b\r1,2\r",
    "twice": "a,A,a,\n1,2,3,4\n",
    "spaces": " a , b \n 1 , 2 \n",
}
JSON_FILES = {
    "a": '{"id": 1, "amount": 1.5, "when": "2020-01-01T00:00:00", "nested": {"x": 1}, "list": [1, 2]}\n{"id": 2, "none": null}\n',
    "b": '{"id": 3000000000, "amount": 12345678901234567890.5, "nested": {"y": "s"}, "list": ["a"]}\n{"id": "text"}\n',
    "c": '{"Id": true, "amount": 1e400, "list": null}\nnot json\n{"a": 1} trailing\n',
    "longest": '{"longest": {"deep": [{"x": 1.0}]}}\n' * 30,
}
JSON_ODD = {
    "empty": "",
    "blank": "\n\n",
    "array": '[{"a": 1}, {"a": 2}]\n',
    "comment": '/* c */ {"a": 1}\n',
    "quotes": "{'a': 1}\n{b: 2}\n",
    "scalar": '1\n"x"\nnull\n',
    "lines": '{"a":\n 1}\n',
    "nan": '{"a": NaN, "b": 1}\n',
    "twice": '{"a": 1, "a": "x"}\n',
}


def inference(trees: Trees) -> None:
    for format_name, files, odd in (("csv", CSV_FILES, CSV_ODD), ("json", JSON_FILES, JSON_ODD)):
        top = f"inference/{format_name}"
        for n, (name, content) in enumerate(files.items()):
            trees.file(f"{top}/mixed/{name}", content=content.encode())
            trees.file(f"{top}/parts/k={n % 3}/{name}", content=content.encode())
            trees.file(f"{top}/value/value={n}/{name}", content=content.encode())
            trees.file(
                f"{top}/compressed/{name}{'.gz' if n % 2 else ''}",
                content=gzip.compress(content.encode(), mtime=0) if n % 2 else content.encode(),
            )
        for name, content in odd.items():
            trees.file(f"{top}/odd/{name}", content=content.encode())
        trees.file(
            f"{top}/odd/latin",
            content="a,b\ncaf\u00e9,1\n".encode("latin-1")
            if format_name == "csv"
            else '{"a": "caf\u00e9"}\n'.encode("latin-1"),
        )
    # The path that is the first in the order of strings is not the first in a listing, nor in the order of directories.
    for i, name in enumerate(("b/c/z", "b-/a", "b", "a.b/x", "a/x")):
        path = f"inference/different/{name}" if name != "b" else "inference/different/b.parquet"
        trees.file(path, content=(trees.root / "templates" / f"different{i}.parquet").read_bytes())
    for i, name in enumerate(("_metadata", "_common_metadata", "part-0", "part-1")):
        trees.file(
            f"inference/summaries/{name}", content=(trees.root / "templates" / f"different{i % 2}.parquet").read_bytes()
        )
