"""session_worker.py SETTINGS - one Spark session in a separate process; the tests talk to it through pipes.

SETTINGS is a JSON object: `millstream` (whether to enable it), `jar` (null for the wheel's own),
`conf`. Reads requests from standard input and writes answers to standard output, one JSON object
per line:

    {"call": "module:function", "arguments": {...}}  ->  {"answer": ...}

The function gets the session and the arguments. Spark's exceptions are ordinary answers.
"""

import importlib
import json
import os
import sys
import traceback


def make_session(settings):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings["conf"].items():
        builder = builder.config(key, value)
    if settings["millstream"]:
        import millstream
        from millstream import session

        if settings["jar"]:
            session.add_settings(builder, millstream.spark_conf(settings["jar"]))
        else:
            builder = millstream.enable(builder)
    return builder.getOrCreate()


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # output of the JVM and libraries goes to the log
    spark = make_session(json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        module, function = request["call"].split(":")
        try:
            reply = {"answer": getattr(importlib.import_module(module), function)(spark, **request["arguments"])}
        except Exception:
            reply = {"crash": traceback.format_exc()}
        print(json.dumps(reply), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
