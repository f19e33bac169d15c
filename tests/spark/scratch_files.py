"""Changes to the files that a case reads: on local files by Python, elsewhere by Hadoop's file system."""

import shutil
from pathlib import Path

from write_calls import hadoop_path, is_local


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
        shutil.copytree(source, self._top / name)


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

    def copy(self, source: str, name: str) -> None:
        (original, files), (path, _) = hadoop_path(self._spark, source), self._located(name)
        copy = self._spark._jvm.org.apache.hadoop.fs.FileUtil.copy
        assert copy(files, original, files, path, False, self._spark._jsc.hadoopConfiguration())


def files_below(spark, top: str):
    return LocalFiles(top) if is_local(top) else HadoopFiles(spark, top)
