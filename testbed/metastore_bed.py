"""A Hive metastore's database for Spark: embedded Derby, or a separate PostgreSQL server. Context managers with
`spark_conf()`.

Spark runs the metastore itself in its driver; this is the metastore's database. Derby allows one driver at a time.
PostgreSQL allows any number, and survives a killed driver. The first driver that connects creates the tables.
"""

import os
import pwd
import shutil
import signal
import tempfile
from pathlib import Path

from bed_jars import jar_of
from service import Server, ServiceError, checked, free_port

DRIVER = "org.postgresql:postgresql:42.7.7"
OWNER = "postgres"  # Debian's user for the server, which refuses to run as root
READY_WITHIN_S = 60
# All tables of the metastore are created when it starts: creating a table with a foreign key on first use would wait
# forever for the transaction that needs it. Derby has no such problem.
MODEL_PACKAGE = "org.apache.hadoop.hive.metastore.model"
MODELS = [
    "MDatabase",
    "MType",
    "MTable",
    "MConstraint",
    "MSerDeInfo",
    "MColumnDescriptor",
    "MStringList",
    "MStorageDescriptor",
    "MPartition",
    "MIndex",
    "MRole",
    "MRoleMap",
    "MGlobalPrivilege",
    "MDBPrivilege",
    "MTablePrivilege",
    "MPartitionPrivilege",
    "MTableColumnPrivilege",
    "MPartitionColumnPrivilege",
    "MPartitionEvent",
    "MMasterKey",
    "MDelegationToken",
    "MTableColumnStatistics",
    "MPartitionColumnStatistics",
    "MVersionTable",
    "MFunction",
    "MNotificationLog",
    "MNotificationNextId",
]


class DerbyMetastore:
    """A directory; it is kept if it is given."""

    def __init__(self, directory: Path | None = None):
        self._directory = directory

    def __enter__(self):
        self._scratch = None if self._directory else Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self.directory = Path(self._directory or self._scratch).resolve()
        return self

    def __exit__(self, *_):
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"jdbc:derby:;databaseName={self.directory}/metastore_db;create=true"

    def settings(self) -> dict[str, str]:
        return {"METASTORE_URL": self.url}

    def spark_conf(self) -> dict[str, str]:
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": self.url,
            "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={self.directory}/derby.log",
        }


class PostgresMetastore:
    def __enter__(self):
        self._scratch = Path(tempfile.mkdtemp(prefix="millstream-bed."))
        self._server: Server | None = None
        try:
            self._programs, self._user = programs(), OWNER if os.geteuid() == 0 else None
            self.port = free_port()
            self._initialize()
            self.start()
            checked([self._programs / "createdb", *self._client_options(), "metastore"], cwd="/")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _initialize(self) -> None:
        if self._user:
            os.chown(self._scratch, pwd.getpwnam(OWNER).pw_uid, -1)
        options = ["-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        checked([self._programs / "initdb", "-D", self._scratch / "cluster", *options], user=self._user, cwd="/")

    def _client_options(self) -> list:
        return ["-h", "127.0.0.1", "-p", self.port, "-U", OWNER]

    def start(self) -> None:
        """Starts the server again after `stop`, with the same data."""
        # Nothing is synced, because test data need not survive a crash of the machine.
        options = ["-p", self.port, "-k", "", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        command = [self._programs / "postgres", "-D", self._scratch / "cluster", *options]
        self._server = Server(command, self._scratch / "log", self._user, cwd="/")
        self._server.wait_until(
            lambda: answers([self._programs / "pg_isready", *self._client_options()]), READY_WITHIN_S
        )

    def stop(self) -> None:
        """Stops the server at once: clients lose their connections, and new ones are refused."""
        self._server.stop(signal.SIGQUIT)

    def __exit__(self, *_):
        if self._server:
            self._server.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/metastore"

    def settings(self) -> dict[str, str]:
        return {"METASTORE_URL": self.url, "METASTORE_USER": OWNER, "METASTORE_DRIVER_JAR": str(jar_of(DRIVER))}

    def spark_conf(self) -> dict[str, str]:
        """Settings for Spark. `driver_jar()` returns the JDBC driver's jar, for spark.driver.extraClassPath."""
        prefix = "spark.hadoop.javax.jdo.option.Connection"
        return {
            "spark.sql.catalogImplementation": "hive",
            f"{prefix}URL": self.url,
            f"{prefix}DriverName": "org.postgresql.Driver",
            f"{prefix}UserName": OWNER,
            f"{prefix}Password": "",
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.datanucleus.autoStartMechanism": "Classes",
            "spark.hadoop.datanucleus.autoStartClassNames": ",".join(f"{MODEL_PACKAGE}.{name}" for name in MODELS),
            "spark.hadoop.hive.metastore.schema.verification": "false",
        }

    @staticmethod
    def driver_jar() -> Path:
        return jar_of(DRIVER)


def programs() -> Path:
    """The directory of the newest PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise ServiceError("PostgreSQL is missing: run testbed/setup write")
    return found[-1].parent


def answers(question: list) -> bool:
    try:
        checked(question, cwd="/")
    except ServiceError:
        return False
    return True
