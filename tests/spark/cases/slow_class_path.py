"""Iceberg and Avro on the class path: their tables and files are read and written as by stock Spark, and text is still
read natively.

Run with `make test-group GROUP=class-path`.
"""

import pyspark
import pytest
from bed_jars import avro_jar, iceberg_jar
from sessions import Session

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
ROWS = "select id, id % 3 k, concat('name ', id) name from range(0, 60, 1, 4)"
AVRO = [
    f">spark.sql(\"{ROWS}\").write.format('avro').save('{{home}}/flat')",
    f">spark.sql(\"{ROWS}\").write.partitionBy('k').format('avro').save('{{home}}/parts')",
    ">spark.read.format('avro').load('{home}/flat')",
    ">spark.read.format('avro').load('{home}/parts').where('k = 1 and id > 10')",
    ">spark.read.format('avro').load('{home}/parts').selectExpr('id', '_metadata.file_size > 0', '_metadata.file_block_start')",
    ">spark.read.format('avro').load('{home}/parts/k=*')",
    "select k, count(*), max(name) from avro.`{home}/parts` group by k",
    "create table avro_table (id bigint, k bigint, name string) using avro partitioned by (k) location '{home}/table'",
    f"insert into avro_table select id, name, k from ({ROWS})",
    f"insert overwrite avro_table partition (k = 1) select id, name from ({ROWS}) where id < 5",
    "select * from avro_table",
    f"insert overwrite avro_table select id, name, k from ({ROWS}) where id > 50",
    "select * from avro_table",
    f"create table avro_as using avro as {ROWS}",
    "select count(*), sum(id) from avro_as",
    "create table if not exists avro_hive (id bigint, name string) stored as avro",
    f"insert into avro_hive select id, name from ({ROWS})",
    "select * from avro_hive where id < 3",
    ">spark.read.format('avro').load('{home}/nowhere')",
    f">spark.sql(\"{ROWS}\").write.text('{{home}}/flat')",
    "select a.id, count(*) from avro_table a join avro_as b on a.id = b.id group by a.id",
]
ICEBERG = [
    "create table {catalog}.db.t (id bigint, k bigint, name string) using iceberg partitioned by (k)",
    f"insert into {{catalog}}.db.t {ROWS}",
    f"insert overwrite {{catalog}}.db.t select id, k, upper(name) from ({ROWS}) where k = 1",
    "select * from {catalog}.db.t where k = 1 and id > 10",
    "update {catalog}.db.t set name = 'updated' where id = 4",
    "delete from {catalog}.db.t where id in (7, 10)",
    "merge into {catalog}.db.t t using (select id, 1 k, 'merged' name from range(0, 80, 4)) s on t.id = s.id when matched then update set name = s.name when not matched then insert *",
    "select * from {catalog}.db.t",
    "select count(*), sum(record_count) from {catalog}.db.t.files",
    "alter table {catalog}.db.t add column later string",
    f">spark.sql(\"{ROWS}\").selectExpr('*', \"'x' later\").writeTo('{{catalog}}.db.t').append()",
    "call {catalog}.system.rewrite_data_files(table => 'db.t', options => map('min-input-files', '2'))",
    "select count(*), max(later) from {catalog}.db.t",
    "select count(*) from {catalog}.db.t.snapshots",
    f"create table {{catalog}}.db.as_select using iceberg as {ROWS}",
    "select sum(id) from {catalog}.db.as_select",
    "create table {catalog}.db.text_beside (v string, k int) using iceberg",
    "select * from {catalog}.db.nowhere",
    ">spark.read.format('iceberg').load('{catalog}.db.t').where('k = 2')",
    "drop table {catalog}.db.as_select purge",
    # Not an Iceberg table, even where its catalog replaces Spark's.
    "create table plain (id bigint, name string, k bigint) using parquet partitioned by (k)",
    f"insert into plain select id, name, k from ({ROWS})",
    f"insert overwrite plain partition (k = 1) select id, name from ({ROWS}) where id < 5",
    "select * from plain",
    "create table lines (value string) using text",
    "insert into lines select name from {catalog}.db.t",
    "select count(*), max(value) from lines",
]
NATIVE = {
    "spark.read.text({path!r}).where(\"value like '%1%'\")": "NativeTextScan",
    "spark.read.csv({path!r})": "PackedFileScan",
    "spark.read.json({path!r})": "PackedFileScan",
}


class Sides:
    def __init__(self, top, jars, conf):
        self.top = top
        self.sessions = {}
        for name in ("stock", "ours"):
            settings = {
                "spark.jars": ",".join(map(str, jars)),
                "spark.sql.catalogImplementation": "hive",
                "spark.sql.sources.partitionOverwriteMode": "dynamic",
                **{key: value.format(warehouse=top / f"warehouse-{name}") for key, value in conf.items()},
            }
            self.sessions[name] = Session(top / name, millstream=name == "ours", conf=settings)

    def answers(self, statements, **names):
        """The results of each side, in a separate directory, whose name is left out."""
        found = {}
        for name, session in self.sessions.items():
            home = self.top / f"home-{name}"
            session.ask(
                "class_path_calls:run", statements=[statement.format(home=home, **names) for statement in statements]
            )
        for name, session in self.sessions.items():
            answer = session.answer()
            assert "crash" not in answer, answer["crash"]
            found[name] = [str(one).replace(f"-{name}", "").replace(f"/{name}/", "/side/") for one in answer]
        return found["stock"], found["ours"]

    def check(self, statements, failing, **names):
        expected, actual = self.answers(statements, **names)
        for statement, one, other in zip(statements, expected, actual, strict=True):
            assert other == one, statement
        assert sum("'error'" in one for one in expected) == failing, [
            pair for pair in zip(statements, expected) if "'error'" in pair[1]
        ]

    def check_native(self):
        path = self.top / "text"
        path.mkdir(exist_ok=True)
        for i in range(20):
            (path / f"{i}").write_text(f'{{"line": {i}}}\n')
        for code, node in NATIVE.items():
            assert node in self.sessions["ours"].call("class_path_calls:plan", code=code.format(path=str(path))), code
            assert node not in self.sessions["stock"].call("class_path_calls:plan", code=code.format(path=str(path))), (
                code
            )

    def close(self):
        for session in self.sessions.values():
            session.close()


@pytest.fixture
def sides(tmp_path):
    opened = []

    def open_sides(jars, conf):
        opened.append(Sides(tmp_path, jars, conf))
        return opened[-1]

    yield open_sides
    for found in opened:
        found.close()


def test_avro(sides):
    found = sides([avro_jar(pyspark.__version__)], {})
    found.check(AVRO, failing=2)
    found.check_native()


@pytest.mark.parametrize("catalog", ["ice", "spark_catalog"])
def test_iceberg(sides, catalog):
    jar = iceberg_jar(pyspark.__version__)
    if jar is None:
        pytest.skip(f"Iceberg has no runtime for Spark {pyspark.__version__}")
    kind = "SparkCatalog" if catalog == "ice" else "SparkSessionCatalog"
    prefix = f"spark.sql.catalog.{catalog}"
    found = sides(
        [jar, avro_jar(pyspark.__version__)],
        {
            "spark.sql.extensions": EXTENSIONS,
            prefix: f"org.apache.iceberg.spark.{kind}",
            f"{prefix}.type": "hadoop",
            f"{prefix}.warehouse": "{warehouse}",
        },
    )
    found.check(["create database if not exists {catalog}.db"], failing=0, catalog=catalog)
    found.check(ICEBERG, failing=1, catalog=catalog)
    found.check_native()
