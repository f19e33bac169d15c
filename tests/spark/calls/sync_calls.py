"""Functions for tests of synchronization that run in a session's process."""

import hashlib
from dataclasses import asdict

from py4j.protocol import Py4JJavaError
from write_calls import hadoop_path


def sync(spark, **arguments):
    import millstream

    try:
        return asdict(millstream.sync(spark, **arguments))
    except millstream.SyncError as error:
        return {"error": str(error)}


def sync_at_once(spark, times_, **arguments):
    """Several runs in threads of one session."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(times_) as threads:
        return list(threads.map(lambda _: sync(spark, **arguments), range(times_)))


def temporary_directory(spark, directory):
    """Sets that of the JVM; returns the one before."""
    return spark._jvm.java.lang.System.setProperty("java.io.tmpdir", directory)


def settings(spark, **settings):
    """The job's response to settings for which Python has no arguments."""
    given = spark._jvm.java.util.HashMap()
    for key, value in settings.items():
        given[key.replace("_", "-")] = value
    try:
        return spark._jvm.io.millstream.spark.Sync.runJson(spark._jsparkSession, given)
    except Exception as error:
        return str(error.java_exception.getMessage())


def walk(spark, url):
    """Kind, permissions, time in milliseconds and digest of all entries below a URL, from Hadoop's file system."""
    top, file_system = hadoop_path(spark, url)
    found, left = {}, [(top, "")]
    while left:
        directory, above = left.pop()
        for status in file_system.listStatus(directory):
            name = above + status.getPath().getName()
            if status.isDirectory():
                left.append((status.getPath(), name + "/"))
                found[name] = ("directory", status.getPermission().toShort() & 0o1777, status.getModificationTime(), "")
            else:
                stream = file_system.open(status.getPath())
                content = bytes(stream.readAllBytes())
                stream.close()
                found[name] = (
                    "file",
                    status.getPermission().toShort() & 0o1777,
                    status.getModificationTime(),
                    hashlib.sha256(content).hexdigest(),
                )
    return found


def manifest(spark, checkpoint):
    """Status, size and checksum of each path in a manifest that was copied."""
    rows = spark.read.option("recursiveFileLookup", True).parquet(f"{checkpoint}/manifest-copies").collect()
    return {row.path: [row.status, row.size, row.checksum] for row in rows}


def delete(spark, url):
    path, file_system = hadoop_path(spark, url)
    return file_system.delete(path, True)


def exists(spark, url):
    path, file_system = hadoop_path(spark, url)
    return file_system.exists(path)


def metadata(spark, url):
    """The user metadata of an object that begins with our name."""
    path, file_system = hadoop_path(spark, url)
    headers = file_system.getXAttrs(path)
    return {
        name.lower(): bytes(headers[name]).decode() for name in headers if name.lower().startswith("header.millstream")
    }


def jvm(spark):
    """The PID of the driver's JVM."""
    return spark._jvm.java.lang.ProcessHandle.current().pid()


def watch(spark, url, names, until):
    """The different contents that files have until the last one has the content `until`."""
    top, file_system = hadoop_path(spark, url)
    seen, last = set(), None
    while last != until:
        for name in names:
            stream = file_system.open(spark._jvm.org.apache.hadoop.fs.Path(top, name))
            try:
                last = bytes(stream.readAllBytes()).decode()
            except Py4JJavaError:
                # HDFS takes the blocks of a replaced file away from those who have it open; that it can always be
                # opened is the point.
                continue
            finally:
                stream.close()
            seen.add(last)
    return sorted(seen)


def extend(spark, url, acl=None, xattrs=None):
    """Gives an entry of HDFS more access control entries, or none if `acl` is empty, and extended attributes."""
    path, fs = hadoop_path(spark, url)
    if acl:
        fs.modifyAclEntries(path, spark._jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(acl, True))
    elif acl is not None:
        fs.removeAcl(path)
    for name, value in (xattrs or {}).items():
        fs.setXAttr(path, name, bytearray(value.encode()))


def extended(spark, url):
    """The mode, the access control entries and the extended attributes of an entry of HDFS."""
    path, fs = hadoop_path(spark, url)
    found = fs.getXAttrs(path)
    xattrs = {name: bytes(found[name] or b"").hex() for name in found}
    mode = fs.getFileStatus(path).getPermission().toShort()
    return {"mode": mode, "acl": sorted(str(entry) for entry in fs.getAclStatus(path).getEntries()), "xattrs": xattrs}
