"""The HDFS bed: a client writes and reads files there. The first run fetches it by Maven."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from hdfs_bed import client_jars  # noqa: E402


class Hdfs(unittest.TestCase):
    def test_what_is_written_is_read(self):
        conf = self.enterContext(tempfile.TemporaryDirectory())
        Path(conf, "core-site.xml").write_text("<configuration/>")  # without one the shell does not start
        shell = f"java -cp {':'.join(map(str, [conf, *client_jars()]))} org.apache.hadoop.fs.FsShell -fs $HDFS_URL"
        commands = f"echo contents | {shell} -put - /file && {shell} -cat /file"
        done = subprocess.run([TESTBED / "hdfs", "--", "sh", "-c", commands], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "contents\n"), done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
