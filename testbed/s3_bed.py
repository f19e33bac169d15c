"""An S3 server on this machine with a delay, counters and faults: versitygw behind testbed/s3proxy, as a context
manager.

    with S3Bed(delay_ms=20, synthetic={"many": "dirs:1000,files:1000"}) as bed:
        ... bed.endpoint, bed.spark_conf() ...
        print(bed.statistics().by_kind)

Objects are files below `data`/`BUCKET`. versitygw reads a whole directory for each page of a listing, so buckets
with very many keys are synthetic: the proxy computes their keys and contents. Both programs are built by Go the
first time; versitygw takes some minutes.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from latency_mount import Statistics
from service import Server, ServiceError, accepts, built_by_one, checked, free_port

PROXY_SOURCES = Path(__file__).resolve().parent / "s3proxy"
VERSITYGW_VERSION = "1.8.0"
VERSITYGW_NEEDS_GO = (1, 25)
# For machines with an older Go: a release that any Go can download as a module from the module proxy.
TOOLCHAIN = "golang.org/toolchain@v0.0.1-go1.25.4.linux-" + {"aarch64": "arm64"}.get(os.uname().machine, "amd64")
ACCESS_KEY, SECRET_KEY, BUCKET, REGION = "millstream", "millstream-secret", "bed", "us-east-1"
READY_WITHIN_S = 60
NO_SERVER = "http://127.0.0.1:9"  # the port of the discard service, which nobody runs


def go_version(go: str) -> tuple[int, ...]:
    return tuple(map(int, re.search(r"go(\d+)\.(\d+)", checked([go, "version"])).groups()))


def go_command() -> str:
    """A sufficiently new Go: the machine's, or one from the module proxy."""
    go = shutil.which("go")
    if not go:
        raise ServiceError("Go is missing: run testbed/setup write")
    if go_version(go) >= VERSITYGW_NEEDS_GO:
        return go
    root = Path(json.loads(checked([go, "mod", "download", "-json", TOOLCHAIN], cwd="/"))["Dir"])
    for program in [*root.glob("bin/*"), *root.glob("pkg/tool/*/*")]:
        program.chmod(0o755)  # files of a module are not executable
    return str(root / "bin" / "go")


def build(stores: bool = True) -> tuple[Path, Path]:
    """Builds s3proxy, and versitygw if it is needed, unless they are there and up to date, and returns the paths of
    versitygw and s3proxy.
    """
    with built_by_one("s3") as directory:
        server, proxy = directory / f"versitygw-{VERSITYGW_VERSION}", directory / "s3proxy"
        if stores and not server.exists():
            with tempfile.TemporaryDirectory(dir=directory) as scratch:
                package = f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW_VERSION}"
                checked([go_command(), "install", package], cwd="/", env={**os.environ, "GOBIN": scratch})
                Path(scratch, "versitygw").rename(server)
        newest = max(source.stat().st_mtime for source in PROXY_SOURCES.iterdir())
        if not proxy.exists() or proxy.stat().st_mtime < newest:
            checked([go_command(), "build", "-o", proxy, "."], cwd=PROXY_SOURCES)
            proxy.touch()
    return server, proxy


class S3Bed:
    """`data` is a directory for the objects, which is kept; without it they are deleted at the end. `log` gets a line
    for each request. `synthetic` are read-only buckets, and the rules of their keys
    (testbed/s3proxy/synthetic.go); if the bed `stores` nothing, there are no other buckets, and no versitygw. With
    `tls`, the endpoint is https, and clients must trust the file `certificate`. With `versions`, buckets may keep the
    versions of their objects, once a client has asked for it.
    """

    def __init__(
        self,
        delay_ms: float = 0,
        data: Path | None = None,
        log: Path | None = None,
        synthetic: Mapping[str, str] | None = None,
        tls: bool = False,
        stores: bool = True,
        versions: bool = False,
    ):
        self._delay_ms = delay_ms
        self._data = data
        self._request_log = log
        self._synthetic = synthetic or {}
        self._tls = tls
        self._stores = stores
        self._versions = versions
        self._servers: list[Server] = []

    def __enter__(self):
        server, proxy = build(self._stores)
        self._scratch = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self.data = Path(self._data or self._scratch / "data").resolve()
        self.certificate = self._scratch / "certificate.pem" if self._tls else None
        (self.data / BUCKET).mkdir(parents=True, exist_ok=True)
        try:
            self.server_endpoint = self._start_server(server) if self._stores else NO_SERVER
            self.endpoint = self._start_proxy(proxy)
            self.set_delay(self._delay_ms)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, command: list, **details) -> Server:
        self._servers.append(Server(command, self._scratch / f"{Path(command[0]).name}.log", **details))
        return self._servers[-1]

    def _start_server(self, program: Path) -> str:
        port = free_port()
        options = ["--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet"]
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        server = self._start([program, *options, "posix", *self._versioning(), self.data], env={**os.environ, **keys})
        server.wait_until(lambda: accepts(port), READY_WITHIN_S)
        return f"http://127.0.0.1:{port}"

    def _versioning(self) -> list:
        if not self._versions:
            return []
        (self._scratch / "versions").mkdir()
        return ["--versioning-dir", self._scratch / "versions"]

    def _start_proxy(self, program: Path) -> str:
        options = ["-log", self._request_log] if self._request_log else []
        options += ["-tls", self.certificate] if self.certificate else []
        for bucket, rule in self._synthetic.items():
            options += ["-synthetic", f"{bucket}={rule}"]
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        proxy = self._start(
            [program, "-server", self.server_endpoint, *options], stdout=subprocess.PIPE, env={**os.environ, **keys}
        )
        address = proxy.process.stdout.readline().decode().strip()
        if not address:
            raise proxy.error("did not start")
        return f"{'https' if self.certificate else 'http'}://{address}"

    def __exit__(self, *_):
        for server in self._servers:
            server.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _ask(self, what: str, body: bytes | None = None) -> str:
        trust = ssl.create_default_context(cafile=self.certificate) if self.certificate else None
        with urllib.request.urlopen(f"{self.endpoint}/__bed/{what}", data=body, context=trust) as answer:
            return answer.read().decode()

    def set_delay(self, delay_ms: float) -> None:
        """Sets the delay of each request from now on, in addition to the server's time."""
        self._ask(f"delay?us={round(delay_ms * 1000)}", b"")

    def set_bandwidth(self, total_bytes_per_s: int = 0, connection_bytes_per_s: int = 0) -> None:
        """Limits the bandwidth of GetObject from now on, in total and for each connection; 0 means no limit."""
        self._ask(f"bandwidth?total={total_bytes_per_s}&connection={connection_bytes_per_s}", b"")

    def set_rate(self, requests_per_s: float = 0) -> None:
        """Refuses requests above this rate from now on, with 503; 0 means no limit."""
        self._ask(f"rate?requests={requests_per_s}", b"")

    @property
    def refused(self) -> int:
        """The number of requests refused since the rate was set."""
        return int(self._ask("refused"))

    def statistics(self) -> Statistics:
        """Requests since the start or the last reset; `by_kind` counts them by operation of the S3 API."""
        return Statistics(self._ask("statistics"))

    def reset_statistics(self) -> None:
        self._ask("reset", b"")

    def inject(self, *faults: dict) -> None:
        """Replaces the current faults by others, as s3proxy/fault.go describes them; `inject()` ends all faults."""
        self._ask("faults", json.dumps(faults).encode())

    def held(self) -> int:
        """The number of requests that faults are holding now."""
        return int(self._ask("held"))

    @property
    def struck(self) -> int:
        """The number of requests that the faults have hit since they were injected."""
        return int(self._ask("struck"))

    def limit(self, *rules: dict, token_ms: int = 0, stated_ms: int = 0) -> None:
        """Replaces the rules about the headers that buckets require, and how long tokens are valid, as
        s3proxy/access.go describes them; `limit()` ends all rules.
        """
        self._ask("access", json.dumps({"rules": rules, "token_ms": token_ms, "stated_ms": stated_ms}).encode())

    def new_credentials(self) -> dict[str, str]:
        """Temporary credentials: an `access_key`, a `secret_key` and a `session_token`."""
        return json.loads(self._ask("credentials", b""))

    def revoke_credentials(self, bucket: str) -> None:
        """Revokes the credentials that have been used for a bucket."""
        self._ask(f"revoke?bucket={bucket}", b"")

    def tokens(self) -> dict[str, int]:
        """How many temporary credentials were `issued` and `used`, and how many requests were `refused` since the rules
        were set.
        """
        return json.loads(self._ask("tokens"))

    def settings(self) -> dict[str, str]:
        return {
            "S3_ENDPOINT": self.endpoint,
            "S3_SERVER_ENDPOINT": self.server_endpoint,
            "S3_DATA": str(self.data),
            "S3_BUCKET": BUCKET,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            **({"AWS_CA_BUNDLE": str(self.certificate)} if self.certificate else {}),
        }

    def spark_conf(self) -> dict[str, str]:
        """Settings with which Spark finds the bucket as s3a://BUCKET/; requires the jars of testbed/s3a-jars."""
        return {f"spark.hadoop.{key}": value for key, value in s3a_conf(self.endpoint).items()}


def s3a_conf(endpoint: str) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": str(endpoint.startswith("https:")).lower(),
        "fs.s3a.access.key": ACCESS_KEY,
        "fs.s3a.secret.key": SECRET_KEY,
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
