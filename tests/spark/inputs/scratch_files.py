"""Changes to the files that a case reads: on local files by Python, elsewhere by Hadoop's file system."""

import os
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

from write_calls import hadoop_path, is_local

FIRST_TIME_S, STEP_S = 1_700_000_000, 60
# Times of objects have no fractions.
OBJECT_STEP_S = 1.1


class LocalFiles:
    def __init__(self, top: str):
        self._top = Path(top)

    def write(self, name: str, content: bytes) -> None:
        path = self._top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def append(self, name: str, content: bytes) -> None:
        with (self._top / name).open("ab") as file:
            file.write(content)

    def remove(self, name: str) -> None:
        path = self._top / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def make_directory(self, name: str) -> None:
        (self._top / name).mkdir()

    def copy(self, source: str, name: str) -> None:
        target = self._top / name
        shutil.copytree(source, target) if Path(source).is_dir() else shutil.copyfile(source, target)

    def names(self, name: str) -> list[str]:
        """All files below a directory, without checksums."""
        files = (path for path in (self._top / name).rglob("*") if path.is_file() and path.suffix != ".crc")
        return sorted(str(path.relative_to(self._top)) for path in files)

    def in_order(self, names: list[str]) -> None:
        """Gives each file a later time than the ones before it."""
        for number, name in enumerate(names):
            os.utime(self._top / name, (FIRST_TIME_S + number * STEP_S,) * 2)


class HadoopFiles:
    """Files that are replaced as a whole, because objects cannot be changed otherwise."""

    def __init__(self, spark, top: str):
        self._spark, self._top = spark, top

    def _located(self, name: str):
        return hadoop_path(self._spark, f"{self._top}/{name}")

    def write(self, name: str, content: bytes) -> None:
        path, files = self._located(name)
        out = files.create(path, True)
        out.write(bytearray(content))
        out.close()

    def append(self, name: str, content: bytes) -> None:
        path, files = self._located(name)
        file = files.open(path)
        before = bytes(file.readAllBytes())
        file.close()
        self.write(name, before + content)

    def remove(self, name: str) -> None:
        path, files = self._located(name)
        assert files.delete(path, True), name

    def make_directory(self, name: str) -> None:
        path, files = self._located(name)
        files.mkdirs(path)

    def names(self, name: str) -> list[str]:
        path, files = self._located(name)
        found, names = files.exists(path) and files.listFiles(path, True), []
        while found and found.hasNext():
            names.append(found.next().getPath().toUri().getPath().removeprefix(urlsplit(self._top).path + "/"))
        return sorted(names)

    def in_order(self, names: list[str]) -> None:
        for number, name in enumerate(names):
            path, files = self._located(name)
            if files.getScheme() == "hdfs":
                files.setTimes(path, (FIRST_TIME_S + number * STEP_S) * 1000, -1)
            else:
                # The time of an object is when it was written.
                self.append(name, b"")
                time.sleep(OBJECT_STEP_S)

    def copy(self, source: str, name: str) -> None:
        (original, files), (path, _) = hadoop_path(self._spark, source), self._located(name)
        copy = self._spark._jvm.org.apache.hadoop.fs.FileUtil.copy
        assert copy(files, original, files, path, False, self._spark._jsc.hadoopConfiguration())


def files_below(spark, top: str):
    return LocalFiles(top) if is_local(top) else HadoopFiles(spark, top)
