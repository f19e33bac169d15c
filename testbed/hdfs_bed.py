"""An HDFS cluster on this machine, a name node and data nodes in one JVM (Hadoop's MiniDFSCluster), as a context
manager.

    with HdfsBed(hosts=("one", "two", "three")) as bed:      # as the name node calls them
    with HdfsBed(kerberos=True) as bed:                      # clients need bed.client() and bed.login()

`client_jars()` returns the jars that a client needs; Spark contains them already. A relay between
clients and the name node can end a program at an exact call, and delay answers:

    bed.at_call("rename", 2, kill)     # kill() at the third rename from now on, which the name node does not receive
    bed.set_delay(2)                   # the name node answers 2 ms later from now on, however many calls are under way
"""

import json
import shutil
import socket
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from bed_jars import jars_by_pom
from service import Server, free_port

HADOOP_VERSION = "3.5.0"
PROGRAM = Path(__file__).resolve().parent / "HdfsCluster.java"
READY_WITHIN_S = 180
STOPPED_WITHIN_S = 60
HEAP = "512m"


def client_jars() -> list[Path]:
    return jars_by_pom("hdfs", f"hadoop-{HADOOP_VERSION}")


class Relay:
    """Forwards Hadoop's remote procedure calls; each is a frame that names its method."""

    def __init__(self, port: int):
        self._server = ("127.0.0.1", port)
        self._lock = threading.Lock()
        self._wanted: tuple[str, Callable[[], None]] | None = None
        self._left = 0
        self.delay_s = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def at_call(self, method: str, skip: int, action: Callable[[], None]) -> None:
        with self._lock:
            self._wanted, self._left = (method, action), skip

    def at_no_call(self) -> None:
        with self._lock:
            self._wanted = None

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(self._server)
            for work in (
                lambda c=client, s=server: self._pass_calls(c, s),
                lambda c=client, s=server: self._pass_answers(s, c),
            ):
                threading.Thread(target=work, daemon=True).start()

    def _pass_calls(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, client.makefile("rb") as calls:
            try:
                server.sendall(calls.read(7))  # greeting: magic, version, service class, authentication
                while head := calls.read(4):
                    frame = calls.read(int.from_bytes(head))
                    if action := self._action_at(method_of(frame)):
                        action()
                        return  # not forwarded: it would be executed although its sender is dead
                    server.sendall(head + frame)
            except OSError:
                return  # one side has closed, so close the other

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        answers: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        threading.Thread(target=send_when_due, args=(answers, client), daemon=True).start()
        try:
            while data := server.recv(1 << 16):
                answers.put((time.monotonic() + self.delay_s, data))
        except OSError:
            pass  # a connection that breaks has ended
        answers.put((0, b""))

    def _action_at(self, method: str) -> Callable[[], None] | None:
        with self._lock:
            if not self._wanted or method != self._wanted[0]:
                return None
            self._left -= 1
            if self._left >= 0:
                return None
            action, self._wanted = self._wanted[1], None
            return action

    def close(self) -> None:
        self._listener.close()


def send_when_due(answers: SimpleQueue, client: socket.socket) -> None:
    """Sends data at their times; empty data are the end."""
    try:
        while True:
            due, data = answers.get()
            if not data:
                client.shutdown(socket.SHUT_WR)
                return
            time.sleep(max(0, due - time.monotonic()))
            client.sendall(data)
    except OSError:
        return


def method_of(frame: bytes) -> str:
    """The method that a call names, which is the first field of the second message in its frame; "" if it is not a
    call.
    """
    length, at = varint(frame, 0)
    _, at = varint(frame, at + length)
    if frame[at : at + 1] != b"\x0a":
        return ""
    length, at = varint(frame, at + 1)
    return frame[at : at + length].decode()


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint of protocol buffers, and the offset of its end."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


# A client that closes a file waits 400 ms if the name node does not know its last block yet, which here is the usual case.
# The wait doubles with every retry; six retries more make up for a machine that is busy.
LESS_DELAY = {
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "11",
}


class HdfsBed:
    """`bed.url` is hdfs://HOST:PORT; the files are deleted with the cluster. The user who starts it is the superuser;
    with Kerberos, all users who have logged in may write, except to /private. `bed.direct_url` is the name node itself,
    without the relay, which delays and loses calls and costs CPU time.
    """

    def __init__(self, hosts: tuple[str, ...] = (), kerberos: bool = False):
        self._hosts = hosts
        self._kerberos = kerberos

    def __enter__(self):
        jars = client_jars()
        self._scratch = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self._server: Server | None = None
        self._relay: Relay | None = None
        try:
            self._start(jars)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, jars: list[Path]) -> None:
        port = self._port = free_port()
        java = ["java", f"-Xmx{HEAP}", f"-Dtest.build.data={self._scratch}", "-cp", ":".join(map(str, jars))]
        cluster = [PROGRAM, port, self._scratch, ",".join(self._hosts), *(["kerberos"] if self._kerberos else [])]
        self._server = Server([*java, *cluster], self._scratch / "log", cwd=self._scratch)
        self._server.wait_until((self._scratch / "ready").exists, READY_WITHIN_S)
        self._relay = Relay(port)
        self.url = f"hdfs://127.0.0.1:{self._relay.port}"
        self.direct_url = f"hdfs://127.0.0.1:{port}"

    def client(self) -> tuple[dict[str, str], str]:
        """The environment variables and the JVM option that make clients use Kerberos."""
        return {
            "HADOOP_CONF_DIR": str(self._scratch)
        }, f"-Djava.security.krb5.conf={self._scratch / 'client-krb5.conf'}"

    def login(self) -> dict[str, str]:
        """Settings with which Spark logs in."""
        return {"spark.kerberos.principal": "reader", "spark.kerberos.keytab": str(self._scratch / "reader.keytab")}

    def at_call(self, method: str, skip: int, action: Callable[[], None]) -> None:
        """Performs an action once, at a call of this name, after `skip` of them. The call and its connection are lost."""
        self._relay.at_call(method, skip, action)

    def at_no_call(self) -> None:
        """Cancels the action for a call that has not come."""
        self._relay.at_no_call()

    def calls(self) -> int:
        """The number of calls that the name node has answered, including a few per second from its data nodes."""
        metrics = f"http://{(self._scratch / 'http').read_text()}/jmx?qry=Hadoop:service=NameNode,name=RpcActivityForPort{self._port}"
        with urllib.request.urlopen(metrics) as answer:
            return sum(int(bean["RpcProcessingTimeNumOps"]) for bean in json.load(answer)["beans"])

    def set_delay(self, delay_ms: float) -> None:
        """Delays the answers of the name node from now on."""
        self._relay.delay_s = delay_ms / 1000

    def damage_blocks(self, longer_than: int) -> int:
        """Changes a byte in the middle of each block larger than that many bytes, on the data nodes' disks; returns the
        number of these blocks.
        """
        blocks = [
            path
            for path in self._scratch.rglob("blk_*")
            if path.suffix != ".meta" and path.stat().st_size > longer_than
        ]
        for block in blocks:
            with block.open("r+b") as file:
                file.seek(block.stat().st_size // 2)
                byte = file.read(1)[0]
                file.seek(-1, 1)
                file.write(bytes((byte ^ 1,)))
        return len(blocks)

    def stop_data_node(self, number: int) -> None:
        """Stops a data node. The name node is not notified, and clients still request blocks from the data node."""
        demand = self._scratch / f"stop-{number}"
        demand.touch()
        self._server.wait_until(lambda: not demand.exists(), STOPPED_WITHIN_S)

    def __exit__(self, *_):
        if self._relay:
            self._relay.close()
        if self._server:
            self._server.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def settings(self) -> dict[str, str]:
        return {"HDFS_URL": self.url}
