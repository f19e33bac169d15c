"""Functions for test_linked_locations.py that run in a session's process: tables whose directories are links, or are
inside each other.
"""

import os
import re

from lost_row_calls import STOCK, error_of
from swap_calls import settings

CREATED = {
    "serde": "create external table {name} (a int) partitioned by (p string) stored as textfile location '{at}'",
    "source": "create table {name} (a int, p string) using parquet partitioned by (p) location '{at}'",
    "flat serde": "create external table {name} (a int) stored as textfile location '{at}'",
    "flat source": "create table {name} (a int) using parquet location '{at}'",
}


def run(spark, database, home, steps, tables, is_stock, conf):
    """Runs steps in a new database; returns after each step its error, the rows of all tables, the visible files of
    each directory, and the links.

    A step is SQL with `{home}`, or a list: `link` and the link's target and path, or `table` and the kind, name and
    directory of a table.
    """
    spark.sql(f"create database {database} location '{home}/warehouse'")
    spark.sql(f"use {database}")
    os.makedirs(home, exist_ok=True)
    found = []
    try:
        with settings(spark, {**conf, **(STOCK if is_stock else {})}):
            for step in steps:
                error = step_error(spark, step, home)
                found.append(
                    {
                        "step": str(step),
                        "error": kind_of(error),
                        "rows": {name: rows(spark, name) for name in tables},
                        **tree(home),
                    }
                )
    finally:
        spark.sql("use default")
    return found


def step_error(spark, step, home):
    match step:
        case ["link", target, path]:
            os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
            os.makedirs(f"{home}/{target}", exist_ok=True)
            os.symlink(f"{home}/{target}", f"{home}/{path}")
        case ["table", kind, name, at]:
            return error_of(lambda: spark.sql(CREATED[kind].format(name=name, at=f"{home}/{at}")))
        case _:
            return error_of(lambda: spark.sql(step.replace("{home}", home)))


def kind_of(error):
    """The class of an error, without paths and numbers of objects."""
    return error and re.sub(r"\bo\d+\.", "", error.split("]")[0].split(":")[0])[:60]


def rows(spark, name):
    if not spark.catalog.tableExists(name):
        return None
    spark.catalog.refreshTable(name)
    found = []
    error = error_of(lambda: found.extend(list(row) for row in spark.table(name).collect()))
    return kind_of(error) or sorted(found)


def tree(home):
    """The number of visible files of each directory, by its path without links, and the links."""
    files, links = {}, {}
    for directory, folders, names in os.walk(home):
        links |= {
            os.path.relpath(f"{directory}/{name}", home): os.path.relpath(os.readlink(f"{directory}/{name}"), home)
            for name in folders
            if os.path.islink(f"{directory}/{name}")
        }
        folders[:] = [name for name in folders if name[0] not in "._"]
        if number := sum(name[0] not in "._" for name in names):
            files[os.path.relpath(directory, home)] = number
    return {"files": files, "links": links}
