"""Functions for test_impossible_names.py that run in a session's process: directories that a process cannot create or
cannot name.
"""

import os

from lost_row_calls import error_of, rows

TABLES = {
    "text": "(a int) partitioned by (p string) stored as textfile",
    "datasource": "(a int, p string) using parquet partitioned by (p)",
}
WRITES = {
    "static": "insert into {table} partition(p='{value}') select 1",
    "static overwrite": "insert overwrite {table} partition(p='{value}') select 2",
    "dynamic": "insert into {table} partition(p) select 3, '{value}'",
}


def write(spark, name, kind, folder, value, how):
    """Writes to a partition of a new table; returns whether it fails, rows, and the bytes of the directories' names in
    hexadecimal.
    """
    spark.sql(f"create external table {name} {TABLES[kind]} location '{folder}'")
    spark.sql(f"insert into {name} partition(p='old') select 0")
    error = error_of(lambda: spark.sql(WRITES[how].format(table=name, value=value)))
    directories = sorted(entry.hex() for entry in os.listdir(os.fsencode(folder)) if entry.startswith(b"p="))
    return {"fails": error is not None, "rows": [list(row) for row in rows(spark, name)], "directories": directories}


def write_again(spark, name):
    """The error of a later statement, if it fails, and the rows."""
    error = error_of(lambda: spark.sql(f"insert into {name} partition(p='old') select 7"))
    return [error, [list(row) for row in rows(spark, name)]]
