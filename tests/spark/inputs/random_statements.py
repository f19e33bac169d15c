"""Random sequences of statements for two sessions to run side by side, and the functions that run one in a session's
process.

`sequence(seed)` always returns the same statements for a seed. The generator records the existing
tables, their locations and the partition values they have had, so that statements interact: an
INSERT into a dropped partition, a table recreated over the files of the last one. These records
need not be correct. A failing statement is a valid test if it fails in both sessions.

With `kills`, some INSERTs are marked: their driver is to be killed within the commit. The statement after such an
INSERT finishes what was committed, as a recovery or by reading or writing the table.

With `metastore-swap` a partition's files are not in its directory, so that sequence leaves out what then differs
from stock on purpose: statements that read a directory instead of a table, and those that make a table or partition
from one.

A statement is SQL or Python; `{home}` in it stands for the sequence's directory, `{files}` for a
local directory with files to load. After each statement, `run` returns its error, the rows and
partitions of all tables, the rows of all written paths, and the number of data files in each
directory below `{home}`.
"""

import os
import random
import re
import shutil
import time
from dataclasses import asdict, dataclass, field

from write_calls import CHANGING, error_of, hadoop_path, is_local, loads, local_files, remote_files

HIVE_FORMATS = ("textfile", "textfile", "rcfile", "avro", "sequencefile", "parquet", "parquet", "orc")
SOURCES = ("parquet", "parquet", "orc", "csv", "json")
SHORTEST, LONGEST = 5, 15
MODE = "spark.sql.sources.partitionOverwriteMode"
SETTINGS = {
    MODE: ("dynamic", "static"),
    # Whether Spark's writers or Hive's serdes write the Parquet and ORC tables of Hive.
    "spark.sql.hive.convertMetastoreParquet": ("true", "false"),
    "spark.sql.hive.convertMetastoreOrc": ("true", "false"),
}
TYPES = {"y": "int", "k": "string"}
PLAIN = {"y": (1, 2, 3), "k": ("1", "2", "3", "new")}
SPECIAL = {
    "y": (None, 0, 2024),
    "k": (None, "", "a/b", "sp ace", "\u00fc", "a=b", "100%", "A", "01", 'q"q', "x'y", "c:d", "{z}"),
}
SWAP = "metastore-swap"
VISIBILITY = "fs.millstream.write.visibility"
KEEP = "fs.millstream.write.replaced.keep.ms"
KEPT_MS = 600_000
RECOVER_WITHIN_S = 60
LINES = "{0}\x01loaded\n{1}\x01\\N\n"


@dataclass
class Table:
    name: str
    storage: str  # `stored as textfile`, `using parquet`
    columns: tuple[str, ...]  # the partition columns
    location: str | None  # of an external table
    used: list[tuple] = field(default_factory=list)  # partition values

    @property
    def directory(self):
        return self.location or "{home}/warehouse/" + self.name

    @property
    def format(self):
        """The data source that reads the files of a partition; None if there is none, or none with the same columns."""
        name = self.storage.rpartition(" ")[2].removesuffix("file")
        return name if name in ("text", "parquet", "orc", "json") else None

    @property
    def is_text(self):
        return self.storage == "stored as textfile"

    def creation(self, select=""):
        where = f" location '{self.location}'" if self.location else ""
        if select:
            by = f" partitioned by ({', '.join(self.columns)})" if self.columns else ""
            return f"create table {self.name} {self.storage}{by}{where} as {select}"
        types = [f"{column} {TYPES[column]}" for column in self.columns]
        if self.storage.startswith("using"):
            by = f" partitioned by ({', '.join(self.columns)})" if types else ""
            return f"create table {self.name} ({', '.join(['a int', 'b string', *types])}) {self.storage}{by}{where}"
        by = f" partitioned by ({', '.join(types)})" if types else ""
        return f"create {'external ' if where else ''}table {self.name} (a int, b string){by} {self.storage}{where}"

    def partition(self, values):
        return f"partition({', '.join(f'{column}={literal(value)}' for column, value in zip(self.columns, values))})"

    def directory_of(self, values):
        return "/".join([self.directory, *(f"{column}={value}" for column, value in zip(self.columns, values))])


@dataclass
class Path:
    url: str
    format: str
    columns: tuple[str, ...]
    infers: bool  # whether it is read without a given schema


@dataclass
class Sequence:
    seed: int
    visibility: str
    settings: dict[str, str]
    statements: list[dict]
    paths: list[dict]

    def script(self, statements):
        """The sequence for people: SQL, and Python as comments."""
        lines = [f"set {key}={value};" for key, value in self.settings.items()]
        lines += [f"{s['text']};" if s["language"] == "sql" else f"-- in Python: {s['text']}" for s in statements]
        return "\n".join(lines)


def literal(value):
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "\\'") + "'"


def sequence(seed, visibility="in-place", kills=False):
    return Generator(seed, visibility, kills).sequence()


class Generator:
    def __init__(self, seed, visibility, kills):
        self.seed, self.random = seed, random.Random(seed)
        self.visibility, self.is_swap = visibility, visibility == SWAP
        self.statements, self.tables, self.paths = [], [], []
        self.number = 0
        self.actions = {
            self.insert_somewhere: 26,
            self.reload: 24,
            self.drop_partition: 6,
            self.add_partition: 7,
            self.repair: 4,
            self.truncate: 4,
            self.load: 5,
            self.rename: 3,
            self.make_again: 6,
            self.copy_by_hand: 7,
            self.write_path: 13,
            self.create_as_select: 3,
            self.create: 4,
            self.write_frame: 5,
            self.overwrite_directory: 2,
            self.switch_mode: 3,
            self.move_partition: 3,
            self.read_directory: 5,
        }
        if kills:
            kept = (
                self.insert_somewhere,
                self.drop_partition,
                self.truncate,
                self.rename,
                self.create,
                self.write_frame,
                self.switch_mode,
            )
            self.actions = {action: self.actions[action] for action in kept} | {self.insert_and_die: 40}
        # Whether replaced files stay; they come back with a partition that is dropped and then made by a program that
        # is not Millstream.
        self.keeps = self.is_swap and self.chance(0.5)
        if self.is_swap:
            self.leave_out(self.repair, self.make_again, self.copy_by_hand, self.read_directory)
        if self.keeps:
            self.leave_out(self.load, self.add_partition, self.move_partition)

    def sequence(self):
        settings = {key: self.random.choice(values) for key, values in SETTINGS.items()}
        settings |= {VISIBILITY: self.visibility, KEEP: str(KEPT_MS if self.keeps else 0)}
        length = self.random.randint(SHORTEST, LONGEST)
        self.create()
        while len(self.statements) < length:
            (action,) = self.random.choices(list(self.actions), self.actions.values())
            action()
        return Sequence(
            self.seed, self.visibility, settings, self.statements[:LONGEST], [asdict(path) for path in self.paths]
        )

    def leave_out(self, *actions):
        for action in actions:
            self.actions.pop(action, None)

    # Parts of statements.

    def sql(self, text, counted=True):
        self.statements.append({"language": "sql", "text": text, "counted": counted})

    def python(self, text):
        self.statements.append({"language": "python", "text": text, "counted": True})

    def chance(self, probability):
        return self.random.random() < probability

    def next(self):
        self.number += 1
        return self.number

    def table(self, wanted=lambda table: True):
        """A table that fulfils a condition, or any table."""
        return self.random.choice([table for table in self.tables if wanted(table)] or self.tables)

    def value(self, column):
        return self.random.choice((SPECIAL if self.chance(0.08) else PLAIN)[column])

    def values(self, table, new=0.25):
        """Values of a partition, mostly of one that the table has had."""
        if table.used and not self.chance(new):
            return self.random.choice(table.used)
        return tuple(self.value(column) for column in table.columns)

    def plain_values(self, table):
        return tuple(self.random.choice(PLAIN[column]) for column in table.columns)

    def use(self, table, values):
        if values not in table.used:
            table.used.append(values)

    # Rows.

    def rows(self, columns, tuples):
        """SELECT of columns a and b and partition columns, whose values are `tuples`."""
        first = self.next() * 10
        match self.random.choices(["values", "range", "nothing", "no rows"], [10, 5, 1, 2])[0]:
            case "range":
                return self.range(columns, tuples, first)
            case "nothing":
                return self.literals(columns, tuples, first) + " where false"
            case "no rows":
                return self.range(columns, tuples, first) + " where id < 0"
        return self.literals(columns, tuples, first)

    def literals(self, columns, tuples, first):
        if not columns:
            return f"select {first} a, 'v{first}' b"
        listed = ", ".join(f"({', '.join(map(literal, values))})" for values in tuples)
        return f"select {first} a, 'v{first}' b, {', '.join(columns)} from (values {listed}) v({', '.join(columns)})"

    def range(self, columns, tuples, first):
        cycle = self.random.randint(1, 3)
        chosen = {"y": f"cast(id % {cycle} + 1 as int) y", "k": f"cast(id % {cycle} + 1 as string) k"}
        selected = [f"cast(id + {first} as int) a", "concat('r', id) b", *(chosen[column] for column in columns)]
        tuples.extend(tuple({"y": i + 1, "k": str(i + 1)}[column] for column in columns) for i in range(cycle))
        return (
            f"select {', '.join(selected)} from range(0, {self.random.randint(1, 5)}, 1, {self.random.randint(1, 2)})"
        )

    def rows_of_a_table(self, columns, source, values):
        """SELECT from a table, with one task unless the number of files is not compared."""
        hint = self.chance(0.9)
        selected = [
            column if column in source.columns else f"{literal(self.random.choice(PLAIN[column]))} {column}"
            for column in columns
        ]
        where = ""
        if source.columns and self.chance(0.6):
            column, value = source.columns[-1], values[-1] if values else self.value(source.columns[-1])
            where = f" where {column} <=> {literal(value)}"
        text = f"select {'/*+ coalesce(1) */ ' if hint else ''}a + 1000, {', '.join(['b', *selected])} from {source.name}{where}"
        return text, hint

    # Statements.

    def create(self):
        if len(self.tables) >= 3:
            return
        self.tables.append(self.new_table())
        self.sql(self.tables[-1].creation())

    def new_table(self):
        storage = (
            f"using {self.random.choice(SOURCES)}"
            if self.chance(0.35)
            else f"stored as {self.random.choice(HIVE_FORMATS)}"
        )
        name = f"t{self.next()}"
        columns = self.random.choices([(), ("k",), ("y", "k")], [2, 5, 3])[0]
        return Table(name, storage, columns, f"{{home}}/{name}" if self.chance(0.5) else None)

    def insert_somewhere(self):
        table = self.table()
        self.insert(table, self.values(table))

    def insert(self, table, values, into=0.5):
        """INSERT with `values` as the static partition, or as one of the dynamic partitions."""
        statics = self.random.randint(0, len(table.columns))
        how = "into" if self.chance(into) else "overwrite"
        clause = ", ".join(
            [f"{column}={literal(value)}" for column, value in zip(table.columns[:statics], values)]
            + list(table.columns[statics:])
        )
        clause = f" partition({clause})" if clause and not (statics == 0 and self.chance(0.15)) else ""
        if how == "overwrite" and table.columns and statics == len(table.columns) and self.chance(0.15):
            clause += " if not exists"
        dynamic, counted = table.columns[statics:], True
        others = [values[:statics] + self.values(table)[statics:] for _ in range(self.random.randint(0, 2))]
        tuples = list(dict.fromkeys(row[statics:] for row in [values, *others]))
        if self.chance(0.15):
            source = table if self.chance(0.7) else self.table()
            rows, counted = self.rows_of_a_table(dynamic, source, self.values(source))
        else:
            rows = self.rows(dynamic, tuples)
        for row in tuples:
            self.use(table, values[:statics] + row)
        self.sql(f"insert {how} {self.random.choice(['', 'table '])}{table.name}{clause} {rows}", counted)

    def insert_and_die(self):
        """INSERT by a driver that is killed within its commit, and a statement that finishes the commit."""
        table = self.table()
        self.insert(table, self.values(table))
        insert = self.statements[-1]
        insert["kill"] = {
            "location": table.directory,
            "part": self.random.random(),
            "is_after": self.chance(0.5),
            "files": 1 if self.chance(0.7) else 2,
            "deletes": "insert overwrite" in insert["text"] and self.visibility == "in-place",
        }
        match self.random.choice(["recover", "insert", "copy", "copy of a directory"]):
            case "insert":
                self.insert(table, self.values(table))
            case "copy":
                self.sql(
                    f"create table c{self.next()} using parquet as select /*+ coalesce(1) */ a, b from {table.name}"
                )
            case "copy of a directory" if table.format and table.used and not self.is_swap:
                self.copy_directory(table)
            case _:
                self.python(f"recover(spark, '{table.name}')")

    def copy_directory(self, table):
        """CREATE TABLE AS SELECT of a directory, which is read through another table; the catalog may not know the
        partition.
        """
        plain = [
            values
            for values in table.used
            if all(value in PLAIN[column] for column, value in zip(table.columns, values))
        ]
        directory = table.directory_of(self.random.choice(plain or [self.plain_values(table)]))
        name = f"c{self.next()}"
        self.sql(f"create table {name}_part (a int, b string) {table.storage} location '{directory}'")
        self.statements[-1]["compared"] = False  # a SELECT finishes nothing
        self.sql(f"create table {name} using parquet as select /*+ coalesce(1) */ a, b from {name}_part")

    def reload(self):
        """DROP PARTITION, then INSERT into the partition."""
        table = self.table(self.may_drop)
        if not self.may_drop(table):
            return self.insert_somewhere()
        if not table.used:
            self.insert(table, self.values(table))
        values = self.values(table, new=0)
        self.drop_partition(table, values)
        if self.chance(0.15) and not self.is_swap:
            self.random.choice([self.copy_by_hand, self.repair, self.add_partition])(table)
        self.insert(table, values, into=0.75)

    def may_drop(self, table):
        """Whether partitions may be dropped: those of an external table leave their files, and where these are depends
        on the visibility.
        """
        return table.columns and not (self.is_swap and table.location)

    def drop_partition(self, table=None, values=None):
        table = table or self.table(self.may_drop)
        if not self.may_drop(table):
            return self.insert_somewhere()
        values = values or self.values(table)
        if len(values) == 2 and self.chance(0.2):
            values = values[:1]
        self.sql(f"alter table {table.name} drop {self.random.choice(['', 'if exists '])}{table.partition(values)}")

    def add_partition(self, table=None):
        table = table or self.table(lambda table: table.columns)
        values = self.values(table, new=0.6)
        where = ""
        if self.chance(0.5):
            far = self.far(table)
            where = f" location '{far}'"
            if self.chance(0.3) and not self.is_swap:
                self.python(
                    f"copy_data(spark, '{table.directory_of(self.plain_values(table))}', '{far}', 'far-{self.next()}')"
                )
        self.use(table, values)
        self.sql(
            f"alter table {table.name} add {self.random.choice(['', 'if not exists '])}{table.partition(values)}{where}"
        )

    def far(self, table):
        """A location for a partition. Two partitions in one directory are overwritten together, except by a swap."""
        new = f"{{home}}/far{self.next()}"
        if self.is_swap:
            return new
        return self.random.choice(
            [new, "{home}/far", table.directory_of(self.plain_values(table)), f"{table.directory}/inside"]
        )

    def move_partition(self):
        table = self.table(lambda table: table.columns and table.used)
        if table.columns:
            self.sql(
                f"alter table {table.name} {table.partition(self.values(table, new=0.1))} set location '{self.far(table)}'"
            )

    def read_directory(self):
        """INSERT of the rows in the directory of a partition, which is read by its path."""
        source = self.table(lambda table: table.format)
        if not source.format:
            return self.insert_somewhere()
        plain = [
            values
            for values in source.used
            if all(value in PLAIN[column] for column, value in zip(source.columns, values))
        ]
        directory = source.directory_of(self.random.choice(plain or [self.plain_values(source)]))
        columns = (
            "cast(split(value, '\\u0001')[0] as int) + 2000 a, split(value, '\\u0001')[1] b"
            if source.format == "text"
            else "a + 2000 a, b"
        )
        target = self.table(lambda table: table is not source)
        values = self.values(target)
        self.use(target, values)
        clause = f" {target.partition(values)}" if values else ""
        self.sql(
            f"insert {self.random.choice(['into', 'overwrite'])} {target.name}{clause} select /*+ coalesce(1) */ {columns} from {source.format}.`{directory}`"
        )

    def repair(self, table=None):
        self.sql(f"msck repair table {(table or self.table(lambda table: table.columns)).name}")

    def truncate(self):
        table = self.table(lambda table: not table.location)
        values = self.values(table)[: self.random.randint(1, 2)]
        self.sql(f"truncate table {table.name}{' ' + table.partition(values) if values and self.chance(0.6) else ''}")

    def load(self):
        """LOAD DATA; stock copies local files and moves others."""
        table = self.table(lambda table: table.is_text)
        if not table.is_text and self.chance(0.9):
            return self.insert_somewhere()
        values = self.values(table)
        if self.chance(0.6):
            source = "local inpath '{files}/rows.txt'"
        else:
            source = f"inpath '{{home}}/load{self.next()}'"
            self.python(
                f"put(spark, '{{home}}/load{self.number}/rows.txt', {LINES.format(self.number, self.number + 1)!r})"
            )
        self.use(table, values)
        clause = f" {table.partition(values)}" if values else ""
        self.sql(f"load data {source} {self.random.choice(['', 'overwrite '])}into table {table.name}{clause}")

    def rename(self):
        table = self.table()
        new = f"r{self.next()}"
        self.sql(f"alter table {table.name} rename to {new}")
        table.name = new

    def make_again(self):
        table = self.table(lambda table: table.location)
        self.sql(f"drop table {table.name}")
        if self.chance(0.1):
            table.columns = self.random.choice([(), ("k",)])
            table.used.clear()
        self.sql(table.creation())
        if table.location and table.columns and self.chance(0.4):
            self.repair(table)

    def copy_by_hand(self, table=None):
        """Adds files to a directory that the catalog may not know."""
        table = table or self.table()
        plain = [
            values
            for values in table.used
            if all(value in PLAIN[column] for column, value in zip(table.columns, values))
        ]
        source = self.random.choice(plain or [self.plain_values(table)])
        target = self.plain_values(table)
        self.use(table, target)
        self.python(
            f"copy_data(spark, '{table.directory_of(source)}', '{table.directory_of(target)}', 'hand-{self.next()}')"
        )

    def create_as_select(self):
        if len(self.tables) >= 3:
            return
        table = self.new_table()
        tuples = [self.values(table) for _ in range(2)]
        table.used = list(dict.fromkeys(tuples))
        if self.tables and self.chance(0.3):
            source = self.table()
            rows, counted = self.rows_of_a_table(table.columns, source, self.values(source))
            rows = rows.replace("a + 1000", "a + 1000 a")
        else:
            rows, counted = self.rows(table.columns, table.used), True
        self.sql(table.creation(rows), counted)
        self.tables.append(table)

    def write_path(self):
        if not self.paths or self.chance(0.35):
            columns = self.random.choice([(), ("k",), ("k",), ("y", "k")])
            self.paths.append(Path(f"{{home}}/p{self.next()}", self.random.choice(SOURCES), columns, self.chance(0.3)))
        path = self.random.choice(self.paths)
        tuples = [tuple(self.value(column) for column in path.columns) for _ in range(self.random.randint(1, 3))]
        mode = self.random.choices(["append", "overwrite", "errorifexists", "ignore"], [8, 12, 1, 1])[0]
        option = self.random.choice(
            ["", '.option("partitionOverwriteMode", "static")', '.option("partitionOverwriteMode", "dynamic")']
        )
        by = f".partitionBy({', '.join(map(repr, path.columns))})" if path.columns else ""
        self.frame(self.rows(path.columns, tuples), f'.mode("{mode}"){option}{by}.{path.format}("{path.url}")')

    def frame(self, rows, writer):
        self.python(f'spark.sql(r"""{rows}""").write{writer}')

    def write_frame(self):
        table = self.table()
        values = [self.values(table) for _ in range(2)]
        rows = self.rows(table.columns, values)
        for row in values:
            self.use(table, row)
        if table.storage.startswith("using") and self.chance(0.4):
            by = f".partitionBy({', '.join(map(repr, table.columns))})" if table.columns else ""
            where = f'.option("path", "{table.location}")' if table.location else ""
            format = table.storage.removeprefix("using ")
            return self.frame(
                rows,
                f'.mode("{self.random.choice(["append", "overwrite"])}").format("{format}"){where}{by}.saveAsTable("{table.name}")',
            )
        self.frame(rows, f'.insertInto("{table.name}", overwrite={self.chance(0.5)})')

    def overwrite_directory(self):
        format = self.random.choice(SOURCES)
        written = [path for path in self.paths if not path.columns and path.format == format]
        if not written or self.chance(0.5):
            written = [Path(f"{{home}}/p{self.next()}", format, (), False)]
            self.paths += written
        self.sql(f"insert overwrite directory '{written[0].url}' using {format} {self.rows((), [])}")

    def switch_mode(self):
        self.sql(f"set {MODE}={self.random.choice(SETTINGS[MODE])}")


# In a session's process.


def begin(spark, home, files, database, settings):
    for key, value in settings.items():
        spark.conf.set(key, value)
    os.makedirs(files, exist_ok=True)
    with open(f"{files}/rows.txt", "w") as file:
        file.write(LINES.format(7, 8))
    spark.sql(f"create database {database} location '{home}/warehouse'")
    spark.sql(f"use {database}")


def run(spark, home, files, database, statement, paths):
    text = statement["text"].replace("{home}", home).replace("{files}", files)
    if statement["language"] == "sql":
        error = error_of(lambda: spark.sql(text))
    else:
        error = error_of(lambda: exec(text, {"spark": spark, "copy_data": copy_data, "put": put, "recover": recover}))
    return {"error": stable(error, home), **state(spark, home, database, paths)}


def state(spark, home, database, paths):
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    names = catalog.listTables(database)
    return {
        "tables": {
            name: table(spark, catalog, database, name, home)
            for name in sorted(names.apply(i) for i in range(names.size()))
        },
        "paths": {path["url"]: rows(lambda path=path: read(spark, path, home), home) for path in paths},
        "files": counts(spark, home),
    }


def table(spark, catalog, database, name, home):
    found = {"rows": rows(lambda: spark.table(name), home), "partitions": None}
    if not catalog.getTable(database, name).partitionColumnNames().isEmpty():
        # As in SHOW PARTITIONS.
        names = catalog.listPartitionNames(database, name, spark._jvm.scala.Option.empty())
        found["partitions"] = sorted(names.apply(i) for i in range(names.size()))
        found["locations"] = locations(catalog.listPartitions(database, name, spark._jvm.scala.Option.empty()), home)
    return found


def locations(partitions, home):
    """The catalog's locations of partitions."""
    found = (partitions.apply(i) for i in range(partitions.size()))
    return sorted(
        [partition.spec().mkString(" "), partition.location().toString().partition(path_of(home))[2]]
        for partition in found
    )


def path_of(url):
    return url if url.startswith("/") else "/" + url.split("/", 3)[3]


def read(spark, path, home):
    reader = spark.read
    if not path["infers"]:
        reader = reader.schema(
            ", ".join(["a int", "b string", *(f"{column} {TYPES[column]}" for column in path["columns"])])
        )
    return reader.format(path["format"]).load(path["url"].replace("{home}", home))


def rows(frame, home):
    """Sorted rows, or the error of reading them."""
    found = []
    error = error_of(lambda: found.extend(map(str, frame().collect())))
    return stable(error, home) or sorted(found)


def stable(error, home):
    """An error without parts specific to a session or run; S3A names objects without a leading slash."""
    return error and re.sub(r"\w+PATH", "PATH", CHANGING.sub("", error.replace(path_of(home), "HOME")))


def counts(spark, home):
    """Number of data files by directory, without directories that have none."""
    found = {}
    for directory, name, _ in local_files(home) if is_local(home) else remote_files(spark, home):
        if name[0] not in "._":
            found[directory] = found.get(directory, 0) + 1
    return found


def end(spark, home, database):
    spark.sql("use default")
    error = error_of(lambda: spark.sql(f"drop database {database} cascade"))
    if is_local(home):
        shutil.rmtree(home, ignore_errors=True)
    else:
        path, file_system = hadoop_path(spark, home)
        file_system.delete(path, True)
    return error


def copy_data(spark, source, target, prefix):
    """Copies the data files of a directory, like a program that knows neither the catalog nor the journal.

    The session's listings are discarded: a Millstream statement that reads a table that it has
    written relists the files, a stock one may not.
    """
    source, file_system = hadoop_path(spark, source)
    target, _ = hadoop_path(spark, target)
    configuration = spark._jsc.hadoopConfiguration()
    files = (
        [status.getPath() for status in file_system.listStatus(source) if status.isFile()]
        if file_system.exists(source)
        else []
    )
    file_system.mkdirs(target)
    for number, file in enumerate(file for file in files if file.getName()[0] not in "._"):
        copy = spark._jvm.org.apache.hadoop.fs.Path(target, f"{prefix}-{number}")
        spark._jvm.org.apache.hadoop.fs.FileUtil.copy(file_system, file, file_system, copy, False, configuration)
    forget_listings(spark)


def recover(spark, table):
    """Recovers a table until none of its jobs counts as alive; does nothing in a session without Millstream."""
    if not loads(spark, "io.millstream.write.protocol.DirectJob"):
        return
    import millstream

    deadline = time.monotonic() + RECOVER_WITHIN_S
    while any(finding.verdict == "alive" for finding in millstream.recover(spark, table)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"a job of {table} stays alive")
        time.sleep(0.2)


def forget_listings(spark):
    """Another session has written files."""
    spark._jsparkSession.sessionState().catalog().invalidateAllCachedTables()


def put(spark, file, text):
    path, file_system = hadoop_path(spark, file)
    stream = file_system.create(path)
    stream.write(bytearray(text.encode()))
    stream.close()
