"""S3 and HDFS as sources and destinations of synchronization."""

import itertools

import sync_trees


def allowed_in(kind: str):
    """Which names a file system allows, and its Hadoop class can express."""
    if kind == "hdfs":
        return lambda name: ":" not in name
    # XML cannot express control characters, and S3A confuses them, and characters of two UTF-16 units, with others.
    return lambda name: (
        all(" " <= char <= "\uffff" and char not in "\x7f\u0085\u2028" for char in name)
        and ":" not in name
        and "\\" not in name
    )


class Remote:
    numbers = itertools.count()

    def __init__(self, place):
        self.place, self.kind, self.session = place, place.kind, place.ours

    def new(self) -> str:
        """A path that does not exist yet."""
        return f"{self.place.url}/sync{next(self.numbers)}/tree ü"

    def sync(self, source, destination, **options):
        return sync_trees.sync(self.session, source, destination, **options)

    def contents(self, url: str) -> dict[str, str]:
        return {name: about[3] if about[0] == "file" else "directory" for name, about in self.walk(url).items()}

    def walk(self, url: str):
        found = self.session.call("sync_calls:walk", url=url)
        assert "crash" not in found, found["crash"]
        return found
