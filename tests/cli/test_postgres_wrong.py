"""A server that is set up wrongly, or is away: each line says what to do, and a command corrects what it has set."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from claudius.errors import StoreAway, StoreError, StoreRefused
from claudius.memory.database import StorePlace
from claudius.memory.postgres.session import check_server, translate
from driven import Machine
from lab import postgres

PASSWORD = "the-right-word"
AWAY = "postgres://tom@127.0.0.1:1/soul"


@pytest.fixture(scope="module")
def strict() -> Iterator[postgres.Server]:
    """Return a server that asks its user `soul` for a password, and has a database of that user's and one in SQL_ASCII."""
    if not postgres.programs():
        pytest.skip(postgres.MISSING)
    with postgres.running() as server:
        if server.data is None:
            pytest.skip("a server of our own is needed")
        with psycopg.connect(server.url, autocommit=True) as made:
            made.execute(f"CREATE ROLE soul LOGIN PASSWORD '{PASSWORD}'".encode())
            made.execute(b"CREATE DATABASE soul OWNER soul")
            made.execute(b"CREATE DATABASE shared")
            made.execute(
                b"CREATE DATABASE ascii OWNER soul ENCODING SQL_ASCII LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
            )
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"local all soul scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(server.url, autocommit=True) as made:
            made.execute(b"SELECT pg_reload_conf()")
        yield server


def url_of(server: postgres.Server, database: str = "soul") -> str:
    """Return where the user `soul` finds a database of the server."""
    return server.url.replace("claudius@", "soul@").replace("/postgres?", f"/{database}?")


def homed(tmp_path: Path, url: str, password: str = "") -> Machine:
    """Return a machine whose home names a store."""
    made = Machine(tmp_path)
    made.keep_at(url)
    if password:
        (made.home / ".env").write_text(f"CLAUDIUS_STORE_PASSWORD={password}\n")
        (made.home / ".env").chmod(0o600)
    return made


def test_scale_a_wrong_store_is_corrected_by_the_command_that_set_it(tmp_path: Path, postgres_url: str) -> None:
    """`config set store.url` works with a store that cannot be reached; the right store has it in its audit log."""
    machine = homed(tmp_path, AWAY)

    ran = machine.ok("config", "set", "store.url", postgres_url)

    assert ran.stderr == ""
    assert machine.ok("config", "get", "store.url").stdout.strip() == postgres_url
    assert [one["target"] for one in machine.ok("audit", "--json").json] == ["store.url"]


def test_scale_a_setting_is_written_where_the_audit_cannot_be(tmp_path: Path) -> None:
    """A setting is set while the server is away: one line on stderr says that it could not be noted."""
    machine = homed(tmp_path, AWAY)

    ran = machine.ok("config", "set", "history.budget_tokens", "9000")

    assert "budget_tokens = 9000" in (machine.home / "config.toml").read_text()
    assert len(ran.stderr.splitlines()) == 1
    assert "could not be noted in the audit log" in ran.stderr


def test_scale_a_refused_setting_is_in_no_audit_log(machine: Machine) -> None:
    """What was not set is not said to have been."""
    machine.run("config", "set", "store.url", "postgres://tom:hunter2-hunter2@host/soul")

    assert machine.ok("audit", "--json").json == []


@pytest.mark.parametrize("password", ["", "the-wrong-word"])
def test_scale_a_wrong_password_says_where_it_stands(tmp_path: Path, strict: postgres.Server, password: str) -> None:
    """A missing or wrong password: the line names the variable and the file."""
    ran = homed(tmp_path, url_of(strict), password).run("chat", "--once", "Hello")

    assert ran.code == 78
    assert len(ran.stderr.splitlines()) == 1
    assert "correct CLAUDIUS_STORE_PASSWORD in .env" in ran.stderr


@pytest.mark.parametrize("command", [("worker",), ("daemon", "start")])
def test_scale_no_process_tries_for_ever_with_a_wrong_password(
    tmp_path: Path, strict: postgres.Server, command: tuple[str, ...]
) -> None:
    """A unit starts nothing again after 78: only the owner can mend this. A server that is away is tried again (75)."""
    refused = homed(tmp_path / "refused", url_of(strict), "the-wrong-word").run(*command)
    away = homed(tmp_path / "away", AWAY).run(*command)

    assert (refused.code, away.code) == (78, 75)
    assert "cannot be used" in refused.stderr
    assert "cannot be reached" in away.stderr


def test_scale_the_right_password_needs_no_remedy(tmp_path: Path, strict: postgres.Server) -> None:
    """With it, the soul speaks."""
    homed(tmp_path, url_of(strict), PASSWORD).ok("chat", "--once", "Hello")


def test_scale_a_database_that_is_not_there_is_told_with_its_remedy(tmp_path: Path, strict: postgres.Server) -> None:
    """A misspelt database: correct it, or create it."""
    ran = homed(tmp_path, url_of(strict, "nosoul"), PASSWORD).run("chat", "--once", "Hello")

    assert ran.code == 78
    assert "correct store.url, or create it" in ran.stderr


def test_scale_a_database_in_another_encoding_is_one_line(tmp_path: Path, strict: postgres.Server) -> None:
    """An SQL_ASCII database: no traceback, but what it must be; doctor says the same, once."""
    machine = homed(tmp_path, url_of(strict, "ascii"), PASSWORD)

    ran = machine.run("chat", "--once", "Hello")
    failing = [one for one in machine.run("doctor", "--json").json["checks"] if not one["ok"]]

    assert ran.code == 78
    assert "Traceback" not in ran.stderr
    assert "is a database in SQL_ASCII" in ran.stderr
    assert "createdb --encoding UTF8" in ran.stderr
    assert ["SQL_ASCII" in one["detail"] for one in failing] == [True]


def test_scale_doctor_says_once_that_a_server_is_away(tmp_path: Path) -> None:
    """One check fails, with its remedy; nothing advises to make room."""
    checks = homed(tmp_path, AWAY).run("doctor", "--json").json["checks"]

    failing = [one for one in checks if not one["ok"]]
    assert [one["name"] for one in failing] == ["server"]
    assert failing[0]["fix"] == "make sure that the server is running, and that store.url names it"
    assert failing[0]["fix"] not in failing[0]["detail"]


def test_scale_a_copy_that_may_not_be_verified_names_the_right(tmp_path: Path, strict: postgres.Server) -> None:
    """A user who may not create schemas in the database is told which right a copy needs."""
    with psycopg.connect(strict.url.replace("/postgres?", "/shared?"), autocommit=True) as made:
        made.execute(b"CREATE SCHEMA soul AUTHORIZATION soul")
    machine = homed(tmp_path, f"{url_of(strict, 'shared')}&options={quote('-csearch_path=soul')}", PASSWORD)
    machine.ok("chat", "--once", "Hello")

    ran = machine.run("backup", "create")

    assert ran.code == 78
    assert 'GRANT CREATE ON DATABASE "shared" TO "soul"' in ran.stderr
    (check,) = (one for one in machine.run("doctor", "--json").json["checks"] if one["name"] == "copies")
    assert not check["ok"]
    assert check["fix"] == 'GRANT CREATE ON DATABASE "shared" TO "soul"'


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("CREATE TABLE shop (id int)", "holds what is not Claudius's"),
        ("CREATE TABLE release (name text)", "holds what is not Claudius's"),
        ("CREATE VIEW seen AS SELECT 1", "holds what is not Claudius's"),
        ("CREATE FUNCTION max(text, text) RETURNS text LANGUAGE sql AS 'SELECT $1'", "holds what is not Claudius's"),
        ("REVOKE CREATE ON SCHEMA {0} FROM soul", 'GRANT CREATE ON SCHEMA "{0}" TO "soul"'),
        ("DROP SCHEMA {0}", "the schema that it names does not exist"),
        ("ALTER SCHEMA {0} OWNER TO CURRENT_USER", "the schema that it names does not exist, or is not soul's to use"),
    ],
)
def test_scale_a_schema_that_can_hold_no_soul_is_one_line(
    tmp_path: Path, strict: postgres.Server, made: str, says: str
) -> None:
    """What is another's, or may not be filled: a start, a move and doctor say the same, once, with what to do."""
    name = f"held_{abs(hash(made))}"
    with psycopg.connect(strict.url.replace("/postgres?", "/soul?"), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION soul; SET search_path = {name}".encode())
        connection.execute(made.format(name).encode())
    url = f"{url_of(strict)}&options={quote(f'-csearch_path={name}')}"
    machine = homed(tmp_path, url, PASSWORD)

    started = machine.run("worker")
    moved = machine.run("migrate", url)
    failing = [one for one in machine.run("doctor", "--json").json["checks"] if not one["ok"]]

    assert (started.code, moved.code) == (78, 78)
    assert says.format(name) in started.stderr
    assert len(started.stderr.splitlines()) == 1
    assert moved.stderr == started.stderr
    assert [says.format(name) in one["detail"] for one in failing] == [True]


def test_scale_what_belongs_to_an_extension_is_nobodys_table(tmp_path: Path, strict: postgres.Server) -> None:
    """An extension may stand in the schema before the soul does."""
    with psycopg.connect(strict.url.replace("/postgres?", "/soul?"), autocommit=True) as made:
        made.execute(b"CREATE SCHEMA extended AUTHORIZATION soul")
        try:
            made.execute(b"CREATE EXTENSION pg_stat_statements SCHEMA extended")
        except psycopg.Error:
            pytest.skip("this server has no extensions to install")

    url = f"{url_of(strict)}&options={quote('-csearch_path=extended')}"
    homed(tmp_path, url, PASSWORD).ok("chat", "--once", "Hello")


def test_scale_a_service_is_named_and_nothing_else_of_its_url() -> None:
    """A URL without a host is shown by its service; parameters, which may be secret, never are."""
    assert StorePlace("postgres://?service=soul&passfile=/x").shown == "postgres://?service=soul"
    assert StorePlace("postgres://tom:pw@db/soul?service=x&sslkey=/y").shown == "postgres://tom@db/soul"


def test_scale_a_server_that_is_too_old_is_one_line() -> None:
    """A release of PostgreSQL that lacks what the tables need is named, with what it must be."""
    info = SimpleNamespace(server_version=130023, parameter_status=lambda _: "UTF8")
    made: Any = SimpleNamespace(info=info, close=lambda: None)

    with pytest.raises(StoreError, match=r"^postgres://db/soul is PostgreSQL 13: Claudius needs 14 or newer$"):
        check_server(made, "postgres://db/soul")


@pytest.mark.parametrize(
    ("said", "words", "remedy"),
    [
        ("failed to resolve host 'db.other.org': [Errno -2] Name or service not known", "its host was not found", "the host in store.url"),
        ('connection to server at "db" failed: Connection refused', "connection refused", "the server is running"),
        ("connection timeout expired", "it did not answer in time", "the server is running"),
        ('root certificate file "/root/.postgresql/root.crt" does not exist', "there is no root certificate", "sslrootcert="),
        ('FATAL: no pg_hba.conf entry for host "10.0.0.2"', "it has no pg_hba.conf entry for us", "pg_hba.conf"),
        ("SSL error: certificate verify failed", "its certificate cannot be verified", "sslrootcert"),
        ("FATAL: too many connections for role", "it has too many connections", "max_connections"),
        ('definition of service "soul" not found', "store.url does not say how to connect", "the service"),
        ('FATAL: permission denied for database "soul"', "permission denied for the database", "GRANT CONNECT"),
        ("SSL error: something new", "psycopg.OperationalError", ""),
    ],
)  # fmt: skip
def test_scale_a_way_that_fails_is_told_with_its_remedy(said: str, words: str, remedy: str) -> None:
    """The usual causes are told in our own words, and what to do; others by their class alone."""
    error = translate(psycopg.OperationalError(said), "postgres://db/soul")

    assert isinstance(error, StoreAway)  # whoever is at work waits for it
    how = "used" if isinstance(error, StoreRefused) else "reached"
    assert error.message.startswith(f"postgres://db/soul cannot be {how}: {words}")
    assert remedy in error.message
    assert bool(remedy) is ("; " in error.message)
