"""HDFS: a client writes and reads files. The first run downloads it with Maven."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTBED = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTBED))
from hdfs_bed import HdfsBed, client_jars  # noqa: E402


class Hdfs(unittest.TestCase):
    def setUp(self):
        conf = self.enterContext(tempfile.TemporaryDirectory())
        Path(conf, "core-site.xml").write_text("<configuration/>")  # without one the shell does not start
        self.shell = f"java -cp {':'.join(map(str, [conf, *client_jars()]))} org.apache.hadoop.fs.FsShell -fs"

    def test_files_are_read_as_written(self):
        shell = f"{self.shell} $HDFS_URL"
        commands = f"echo contents | {shell} -put - /file && {shell} -cat /file"
        done = subprocess.run([TESTBED / "hdfs", "--", "sh", "-c", commands], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "contents\n"), done.stderr[-2000:])

    def test_a_client_can_be_ended_at_a_call(self):
        bed = self.enterContext(HdfsBed())
        heard = []

        def kill():
            heard.append(clients[-1].poll())
            clients[-1].kill()
            clients[-1].wait()

        clients = []
        for skip, made in ((1, "/a"), (0, None)):
            bed.at_call("mkdirs", skip, kill)
            clients.append(
                subprocess.Popen(
                    [*self.shell.split(), bed.url, "-mkdir", "/a" if made else "/b"], stderr=subprocess.DEVNULL
                )
            )
            self.assertEqual(clients[-1].wait(), 0 if made else -9)
        self.assertEqual(heard, [None])


if __name__ == "__main__":
    unittest.main()
