"""Random directories of csv and json files, and options to read them with, made from a seed.

Spark has a parser for each file, so the files begin with data that a parser treats differently there: byte order marks,
headers, blank lines and comments. Some have lines at which a parser fails.
"""

import gzip
import json
from dataclasses import dataclass
from random import Random

MARK = "\ufeff"
SCHEMA = "a int, b string, c double"
CORRUPT = "_corrupt_record"
NAMES = ["a,b,c", "a,b,c", "b,a,c", "A,b,c", " a ,b,c", "a,b", "x,y,z"]
VALUES = {
    "a": ["1", "02", "-3", "", "x", "99999999999"],
    "b": ["text", "é漢", '"a, b"', '"say ""x"""', '"open', "", " s ", "#no", "\0"],
    "c": ["0.5", "1", "", "NaN", "y"],
}
MODES = ["PERMISSIVE", "PERMISSIVE", "DROPMALFORMED", "FAILFAST"]


@dataclass
class Directory:
    files: dict[str, bytes]
    format_name: str
    options: dict[str, str]
    schema: str


def csv_line(rng: Random) -> str:
    match rng.randrange(12):
        case 0:
            return rng.choice(["", "   ", "#comment", "  # comment", "\t", ","])
        case 1:
            return ",".join(["1"] * rng.choice([1, 2, 4, 9]))
        case 2:
            return MARK + "7,marked,1"
        case 3:
            return f"8,{'x' * rng.choice([50, 2000])},1"
    return ",".join(rng.choice(VALUES[name]) for name in "abc")


def json_line(rng: Random) -> str:
    match rng.randrange(10):
        case 0:
            return rng.choice(["", "   ", "nonsense", '{"a": 1', "[]", "// no"])
        case 1:
            return MARK + '{"a": 7}'
        case 2:
            return '[{"a": 1}, {"a": 2}]'
    values = {"a": [1, -2, "x", None, 1 << 40], "b": ["text", "é漢", 5, {"x": 1}, None], "c": [0.5, 1, "y", None]}
    return json.dumps(
        {name: rng.choice(values[name]) for name in rng.sample("abc", rng.randrange(4))},
        ensure_ascii=rng.random() < 0.5,
    )


def directory(seed: int) -> Directory:
    rng = Random(seed)
    format_name = rng.choice(["csv", "csv", "json"])
    encoding, separator = rng.choice(
        [
            ("UTF-8", None),
            ("UTF-8", "\n"),
            ("UTF-16LE", "\n"),
            ("UTF-16BE", "\n"),
            ("ISO-8859-1", "\n"),
            ("UTF-16LE", "|"),
        ]
    )
    options = {"mode": rng.choice(MODES)}
    if encoding != "UTF-8" or rng.random() < 0.2:
        options["encoding"] = encoding
    if separator:
        options["lineSep"] = separator
    has_header = format_name == "csv" and rng.random() < 0.5
    if has_header:
        options |= {"header": "true", "enforceSchema": rng.choice(["true", "false"])}
    if format_name == "csv":
        for key, value in {
            "comment": "#",
            "maxCharsPerColumn": "500",
            "maxColumns": "6",
            "ignoreLeadingWhiteSpace": "true",
            "columnPruning": "false",
            "unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE",
            "multiLine": "true",
        }.items():
            if rng.random() < 0.15:
                options[key] = value
    elif rng.random() < 0.1:
        options["multiLine"] = "true"
    if rng.random() < 0.5:
        options["ignoreCorruptFiles"] = "true"
    schema = f"{SCHEMA}, {CORRUPT} string" if rng.random() < 0.5 else SCHEMA
    names = rng.choice([["a,b,c"], ["a,b,c"], NAMES])
    marks = rng.choice([(0, 1, 2), (1,), (0,)])
    files = {}
    for number in range(rng.randrange(2, 9)):
        first = [rng.choice(["", "#first", "  "]) for _ in range(rng.randrange(3))] if rng.random() < 0.3 else []
        body = [(csv_line if format_name == "csv" else json_line)(rng) for _ in range(rng.randrange(7))]
        lines = [*first, *([rng.choice(names)] if has_header else []), *body]
        text = (
            MARK * rng.choice(marks)
            + (separator or rng.choice(["\n", "\r\n"])).join(lines)
            + rng.choice(["", separator or "\n"])
        )
        content = text.encode(encoding, errors="replace")
        is_packed = rng.random() < 0.15
        files[f"{number}.{format_name}{'.gz' if is_packed else ''}"] = (
            gzip.compress(content, mtime=0) if is_packed else content
        )
    return Directory(files, format_name, options, schema)
