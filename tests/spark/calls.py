"""Functions that the tests call in a session's process, besides the cases (answers.py)."""

from pathlib import Path

import datasets


def write_templates(spark, data):
    datasets.write_templates(spark, Path(data))
