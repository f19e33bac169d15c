"""Random small Parquet and ORC files, and random queries of them; both follow from a seed. Run in a session."""

import hashlib
import random
import re
from pathlib import Path
from urllib.parse import unquote

from columnar_files import CORRECTED, WRITERS, settings

VALUES = {
    "boolean": ("id % 3 = 0",),
    "tinyint": ("cast(id % 256 - 128 as tinyint)", "tinyint(5)"),
    "smallint": ("cast(id % 65536 - 32768 as smallint)", "smallint(-1)"),
    "int": ("cast(id as int)", "cast(hash(id) as int)", "7", "if(id % 2 = 0, 2147483647, -2147483648)"),
    "bigint": ("id", "xxhash64(id)", "id div 100"),
    "float": (
        "cast(hash(id) / 7 as float)",
        "float('nan')",
        "if(id % 2 = 0, float('-0.0'), float('0.0'))",
        "if(id % 3 = 0, float('inf'), float('-inf'))",
    ),
    "double": ("xxhash64(id) / 7.0D", "double('nan')", "-0.0D"),
    "decimal(5,2)": ("cast(id % 1000 / 7 - 50 as decimal(5,2))",),
    "decimal(9,0)": ("cast(hash(id) % 1000000000 as decimal(9,0))",),
    "decimal(10,5)": ("cast(hash(id) / 100000 as decimal(10,5))",),
    "decimal(18,3)": ("cast(xxhash64(id) % 1000000000000 / 7 as decimal(18,3))",),
    "decimal(30,3)": ("cast(xxhash64(id) / 7 as decimal(30,3))",),
    "date": (
        "date_add(date'1970-01-01', cast(hash(id) % 30000 as int))",
        "date_sub(date'1582-10-20', cast(id % 30 as int))",
    ),
    "timestamp": (
        "timestamp_micros(xxhash64(id) % 4000000000000000)",
        "timestamp_micros(-12219292800000000 + id * 1000003)",
    ),
    "timestamp_ntz": ("cast(timestamp_micros(id * 1000003) as timestamp_ntz)",),
    "string": (
        "cast(id as string)",
        "concat('name ', id % 5)",
        "''",
        "repeat('漢🙂', cast(id % 4 as int))",
        "sha2(cast(id as string), 256)",
        "decode(X'00610062', 'utf-8')",
    ),
    "binary": ("cast(cast(id as string) as binary)", "X'FF00C3'"),
    "array<int>": ("array(cast(id as int), null)",),
    "struct<x: int, y: string>": ("named_struct('x', cast(id as int), 'y', cast(id as string))",),
}
NULLS = (
    "{}",
    "if(id % 5 = 0, null, {})",
    "if(id % 64 > 20, null, {})",
    "if(id < 50, {}, null)",
    "if(id >= 0, null, {})",
)
CONDITIONS = ("{} is null", "{} is not null", "{} = (select max({}) from seen)", "{} > (select min({}) from seen)")


def schema(rng):
    return [
        (f"c{i}" if rng.random() < 0.9 else f"Ñame {i}", rng.choice(list(VALUES))) for i in range(rng.randrange(1, 9))
    ]


def write(spark, path, format_name, seed):
    """Files of one schema by several writers, with rows that differ from file to file."""
    rng = random.Random(seed)
    columns = schema(rng)
    for writer in range(rng.randrange(1, 4)):
        rows, files = rng.choice((0, 1, 40, 300, 5000)), rng.randrange(1, 6)
        chosen = [
            f"cast({rng.choice(NULLS).format(rng.choice(VALUES[kind]))} as {kind}) `{name}`" for name, kind in columns
        ]
        version = rng.choice(("PARQUET_1_0", "PARQUET_2_0"))
        # Spark's vectorized reader returns wrong strings (4.3.0, not 4.0.1) from uncompressed files of the second
        # version, or fails.
        compressions = (
            "snappy",
            "snappy",
            "zstd",
            "none" if version == "PARQUET_1_0" or format_name == "orc" else "snappy",
        )
        options = {
            "parquet.enable.dictionary": rng.choice(("true", "false")),
            "parquet.writer.version": version,
            "parquet.page.size": rng.choice(("64", "1048576")),
            "parquet.block.size": rng.choice(("512", "134217728")),
            "compression": rng.choice(compressions),
        }
        conf = {**CORRECTED, **rng.choice(({}, *WRITERS.values()))}
        with settings(spark, conf):
            frame = spark.range(writer * 10_000, writer * 10_000 + rows, 1, files).selectExpr(*chosen)
            frame.write.options(**options).format(format_name).mode("append").save(path)
    return len(list(Path(path).glob("part-*")))


def read(spark, path, format_name, seed):
    """The answers to some queries, as sorted text; and how many files were decoded natively."""
    rng = random.Random(seed)
    columns = schema(rng)
    rng = random.Random(seed + 1)
    text = ", ".join(f"`{name}` {kind}" for name, kind in columns)
    frame = spark.read.schema(text).format(format_name).load(path)
    frame.createOrReplaceTempView("seen")
    answers = []
    for _ in range(4):
        some = rng.sample(columns, rng.randrange(0, len(columns) + 1))
        shown = ", ".join(f"cast(`{name}` as string), hash(`{name}`)" for name, _ in some) or "1"
        where = (
            rng.choice(CONDITIONS).replace(
                "{}", f"`{rng.choice([c for c in columns if '<' not in c[1]] or columns)[0]}`"
            )
            if rng.random() < 0.5
            else "true"
        )
        statement = rng.choice(
            (
                f"select {shown} from seen where {where}",
                f"select count(*), bit_xor(xxhash64({shown})) from seen where {where}",
            )
        )
        conf = rng.choice(
            (
                {},
                {"spark.sql.parquet.columnarReaderBatchSize": "7"},
                {"spark.sql.columnVector.offheap.enabled": "true"},
                {"spark.sql.codegen.wholeStage": "false"},
                {"spark.sql.files.minPartitionNum": "1"},
            )
        )
        with settings(spark, conf):
            try:
                answers.append((statement, sorted(map(repr, spark.sql(statement).collect()))))
            except Exception as error:
                answers.append((statement, f"{type(error).__name__} {getattr(error, 'getCondition', lambda: None)()}"))
    return answers


EDITED = (
    "a int, b string, c double, e date, f timestamp, g boolean, h binary",
    (
        "a",
        "b",
        "c",
        "cast(e as string)",
        "cast(f as string)",
        "g",
        "hex(h)",
        "regexp_extract(input_file_name(), '[^/]*$', 0)",
    ),
)


def read_edited(spark, path):
    """The rows of each file in a directory, if corrupt files are ignored; and the errors of some files, if not."""
    files = sorted(map(str, Path(path).iterdir()))
    rows, refused = {}, {}
    with settings(spark, {"spark.sql.files.minPartitionNum": "1", "spark.sql.leafNodeDefaultParallelism": "1"}):
        # A value that is wrong may fail where Spark no longer knows the file.
        for first in range(0, len(files), 20):
            found = answer_of_edited(spark, [files[0], *files[first : first + 20]], ignoreCorruptFiles=True)
            rows |= (
                {name: lines for name, lines in found.items()}
                if isinstance(found, dict)
                else {f"{first} and others": found}
            )
        for file in files[2::10]:
            refused[file] = answer_of_edited(spark, [files[0], file])
    return {"rows": rows, "refused": refused}


def answer_of_edited(spark, files, **options):
    """The number of rows of each file and their hash, or the class of the error."""
    schema, columns = EDITED
    rows = {}
    try:
        for *values, name in (
            spark.read.schema(schema).options(**options).parquet(*files).selectExpr(*columns).collect()
        ):
            rows.setdefault(unquote(name), []).append(repr(values))
    except Exception as error:
        return re.findall(r"(?:Caused by|driver\)): ([\w.$]+)", str(error))[-1]
    return {name: [len(lines), hash_of(sorted(lines))] for name, lines in rows.items()}


def hash_of(lines):
    return hashlib.md5("\n".join(lines).encode(errors="surrogatepass")).hexdigest()


def decoded_files(spark, path, columns, conf=None):
    """The number of files in a directory of Parquet files, and of those that are decoded natively for some columns."""
    with settings(
        spark, {"spark.sql.files.minPartitionNum": "1", "spark.sql.leafNodeDefaultParallelism": "1", **(conf or {})}
    ):
        frame = spark.read.parquet(path).select(*columns)
        frame.collect()
        metrics = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0).metrics()
        return {"files": metrics.apply("numFiles").value(), "decoded": metrics.apply("filesDecoded").value()}
