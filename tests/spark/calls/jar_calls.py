"""The messages of the Python functions in a session whose JVM does not have the jar."""

import millstream


def refused(spark, path):
    """The errors of the functions that need it."""
    calls = {
        millstream.CompactError: lambda: millstream.compact(spark, path, in_place=True),
        millstream.RecoverError: lambda: millstream.recover(spark, path),
        millstream.FormatsError: lambda: millstream.formats(spark, path),
    }
    return [error_of(call, kind) for kind, call in calls.items()]


def error_of(call, kind):
    try:
        call()
    except kind as error:
        return str(error)
    return None
