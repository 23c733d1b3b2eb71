"""`claudius upgrade --check`: asks the index when it is typed, and says whether the database fits this release."""

from __future__ import annotations

import http.server
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

import claudius
from claudius.home import shipped
from claudius.memory.postgres.schema import known
from driven import Machine

KNOWN = len([*(shipped("memory") / "schema").glob("*.sql")])


@contextmanager
def index(latest: str) -> Iterator[tuple[str, list[str]]]:
    """Run a package index whose newest release is `latest`; yield its address, and what it was asked for."""
    asked: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        """Answers every request."""

        def do_GET(self) -> None:
            """Answer one."""
            asked.append(self.path)
            body = json.dumps({"info": {"version": latest}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/pypi", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("latest", "code"), [(claudius.__version__, 0), ("0.0.1", 0), ("99.0", 1), ("99.0.0rc1", 1), ("0", 0)]
)
def test_a_newer_release_is_told(latest: str, code: int, tmp_path: Path) -> None:
    """0 where this is the newest, 1 where there is a newer one; the index is asked once, by the name of the package."""
    machine = Machine(tmp_path)
    with index(latest) as (url, asked):
        ran = machine.run("upgrade", "--check", "--json", env={"CLAUDIUS_UPGRADE_INDEX_URL": url})

    assert ran.code == code
    assert ran.json["ok"] is (code == 0)
    assert (ran.json["version"], ran.json["latest"], ran.json["schema"]) == (claudius.__version__, latest, None)
    assert asked == ["/pypi/claudius-daemon/json"]
    assert not machine.home.exists()


def test_a_database_of_a_later_release_is_told(tmp_path: Path) -> None:
    """A schema that this release does not know is a failure, whatever the index says."""
    machine = Machine(tmp_path)
    machine.ok("chat", "--once", "hello")
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as database:
        database.execute(f"PRAGMA user_version = {KNOWN + 1}")
    with index(claudius.__version__) as (url, _):
        ran = machine.run("upgrade", "--check", env={"CLAUDIUS_UPGRADE_INDEX_URL": url})

    assert ran.code == 1
    assert "a later release wrote the database" in ran.stdout


def test_an_index_that_is_away_is_tried_again(tmp_path: Path) -> None:
    """Without an answer it exits 75, and says which address it asked; without --check nothing is asked at all."""
    machine = Machine(tmp_path)

    away = machine.run("upgrade", "--check", env={"CLAUDIUS_UPGRADE_INDEX_URL": "http://127.0.0.1:9/pypi"})
    bare = machine.run("upgrade")

    assert away.code == 75
    assert "127.0.0.1:9" in away.stdout
    assert bare.code == 2


@pytest.mark.parametrize(("oldest", "code"), [(25, 0), (99, 1)])
def test_scale_the_schema_of_a_server_is_told(tmp_path: Path, postgres_url: str, oldest: int, code: int) -> None:
    """With a server, its own version is told, and that it fits as long as this release may write beside it."""
    machine, env = Machine(tmp_path), {"CLAUDIUS_STORE_URL": postgres_url}
    with index(claudius.__version__) as (url, _):
        env |= {"CLAUDIUS_UPGRADE_INDEX_URL": url}
        empty = machine.ok("upgrade", "--check", "--json", env=env).json
        machine.ok("chat", "--once", "hello", env=env)
        with psycopg.connect(postgres_url) as made:
            made.execute("UPDATE release SET schema = 99, oldest = %s", (oldest,))
        ran = machine.run("upgrade", "--check", env=env)
        found = machine.run("upgrade", "--check", "--json", env=env).json

    assert (empty["schema"], empty["schema_known"], empty["ok"]) == (None, known(shipped("memory")), True)
    assert ran.code == code
    assert f"knows schema {known(shipped('memory'))}; postgres://claudius@/postgres has 99" in ran.stdout
    assert ("a later release wrote the database" in ran.stdout) is bool(code)
    assert found["schema"] == 99
