"""What an operator sees of a soul on PostgreSQL: `status`, `workers`, `doctor`, and each worker's `/metrics`."""

import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from claudius.home import Home
from claudius.reports import server_checks
from claudius.runtime.life import HomeLock
from driven import CLAUDIUS, Machine, until
from lab import postgres

TOKEN = "a-token-of-more-than-thirty-two-characters"


@pytest.fixture(scope="module")
def safe_server() -> Iterator[postgres.Server]:
    """Return a server that keeps what it acknowledges, as an operator's does."""
    if not postgres.programs():
        pytest.skip(postgres.MISSING)
    with postgres.running({"fsync": "on"}) as server:
        yield server


@pytest.fixture
def url(safe_server: postgres.Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of an empty schema there."""
    with postgres.schema(safe_server, f"t_{request.node.name}") as found:
        yield found


@pytest.fixture
def machine(tmp_path: Path, url: str) -> Machine:
    """Return a machine whose soul keeps everything there, and has spoken."""
    made = Machine(tmp_path)
    made.keep_at(url)
    made.ok("chat", "--once", "My name is Tom.")
    return made


def run(url: str, sql: str) -> None:
    """Run one statement at the server."""
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(sql.encode())


def beside(url: str, **values: object) -> None:
    """Have another process take turns there."""
    row = {"worker": "w", "host": "far", "pid": 7, "version": "1", "roles": "lanes", **values}
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(
            f"INSERT INTO worker ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})".encode(),  # noqa: S608 - our own names
            list(row.values()),
        )


def failing(machine: Machine, **env: str) -> dict[str, str]:
    """Return the checks of `claudius doctor` that fail, with their details."""
    checks = machine.run("doctor", "--json", env=env).json["checks"]
    return {one["name"]: one["detail"] for one in checks if not one["ok"]}


@contextmanager
def worker(machine: Machine, **env: str) -> Iterator[int]:
    """Run `claudius worker` for a block."""
    process = subprocess.Popen([str(CLAUDIUS), "worker"], env=machine.environment(env), stderr=subprocess.PIPE)
    try:
        machine.until_logged("awake for lanes")
        yield process.pid
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()
        process.communicate()


def test_scale_status_shows_the_server_its_lanes_and_its_processes(machine: Machine, url: str) -> None:
    """Version and round trip, who is at work with which role, lanes held and waiting and since when, as JSON and text."""
    beside(url, roles="all")
    run(url, "UPDATE role SET worker = 'w', lease_until = clock_timestamp() + interval '1 min' WHERE role = 'clock'")
    run(url, "UPDATE lane SET worker = 'w', lease_until = clock_timestamp() + interval '1 min'")
    run(
        url,
        "INSERT INTO inbox (key, conversation, position, kind, owes, person, payload, heard_at, turn) "
        "VALUES ('k', 'slack:t:c:', '1', 'message', 1, 'p', '{}', '2026-01-05T12:00:00Z', 't')",
    )
    run(url, "UPDATE lane SET since = clock_timestamp() - interval '5 min' WHERE conversation = 'slack:t:c:'")
    run(  # one that was left ready by who took its turns, with nothing in it
        url,
        "INSERT INTO lane (conversation, ready, since) VALUES ('slack:t:d:', true, clock_timestamp() - interval '1 h')",
    )
    found = machine.run("status", "--json").json
    text = machine.run("status").stdout
    plain = Machine(machine.root / "other").run("status", "--json").json

    assert found["store"] == "postgres"
    assert plain["store"] == "sqlite"
    assert found["server"]["version"].split(".")[0].isdigit()
    assert found["server"]["round_trip_ms"] > 0
    assert found["server"]["lanes"]["held"] == 1
    assert found["server"]["lanes"]["ready"] == 1
    assert 300 <= found["server"]["lanes"]["oldest_wait_s"] < 3600
    assert found["server"]["roles"] == [{"role": "clock", "worker": "w", "host": "far"}]
    assert [one["state"] for one in found["workers"]] == ["ended", "at work"]
    assert found["archive_lag"] == 0
    assert "1 held, 1 wait for a process" in text
    assert "worker: far 7, clock, 1 lanes" in text


def test_scale_the_metrics_of_a_worker_are_its_own(machine: Machine) -> None:
    """A worker listens on its `http.listen`, and says how often it looked, lost, was refused, wrote and waited."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with worker(machine, CLAUDIUS_HTTP_LISTEN=f"127.0.0.1:{port}", CLAUDIUS_HTTP_TOKEN=TOKEN):
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - our own server
            text = answer.read().decode()
        shown = machine.ok("workers", "--json").json

    found = {one.name: one.samples[0].value for one in text_string_to_metric_families(text) if one.samples}
    names = {
        "lanes_held", "looks", "lease_losses", "stale_turns", "late_copies", "batches", "batch_jobs",
        "lock_wait_seconds",
    }  # fmt: skip
    assert {f"claudius_{name}" for name in names} <= set(found)
    assert found["claudius_store_round_trip_seconds"] > 0
    assert found["claudius_batches"] > 0
    assert found["claudius_lease_losses"] == found["claudius_stale_turns"] == 0
    assert [one["state"] for one in shown] == ["at work"]


def test_scale_a_worker_that_is_drained_leaves_in_good_order(machine: Machine) -> None:
    """`claudius workers drain NAME`: it ends by itself when it renews; a name that is no one's is an error."""
    quick = {"CLAUDIUS_WORKER_LEASE_S": "3"}
    with worker(machine, **quick):
        (name,) = (one["worker"] for one in machine.ok("workers", "--json").json if one["state"] == "at work")
        nobody = machine.run("workers", "drain", "nobody")
        machine.ok("workers", "drain", name)
        machine.until_logged("asleep")
    shown = machine.ok("workers", "--json").json

    assert nobody.code == 2
    assert [one["state"] for one in shown] == ["ended"]


def test_scale_doctor_finds_nothing_wrong_with_a_good_server(machine: Machine) -> None:
    """A server that is set up well, with a worker of the same settings, passes every check."""
    with worker(machine):
        checks = {one["name"]: one for one in machine.run("doctor", "--json").json["checks"]}

    named = (
        "durability", "isolation", "collation", "clock of the server", "way to the server", "notices",
        "configurations", "leases",
    )  # fmt: skip
    assert [(name, checks[name]["ok"]) for name in named] == [(name, True) for name in named]


def test_scale_doctor_takes_a_setting_that_is_changed_everywhere(machine: Machine) -> None:
    """A live setting that is changed while a process runs is no difference once that process has renewed."""
    quick = {"CLAUDIUS_WORKER_LEASE_S": "3"}
    with worker(machine, **quick) as pid:
        machine.ok("config", "set", "history.budget_tokens", "9000")
        until(pid, lambda: "configurations" not in failing(machine))
        machine.ok("config", "set", "slack.status", "")
        restart = failing(machine)

    assert "other settings" in restart["configurations"]


def test_scale_doctor_fails_on_settings_that_are_not_ours(machine: Machine, url: str) -> None:
    """What is acknowledged may be lost, or transactions are not what the store counts on: doctor says which setting."""
    options = " -c synchronous_commit=off -c default_transaction_isolation=serializable"
    found = failing(machine, CLAUDIUS_STORE_URL=f"{url}{quote(options)}")

    assert "synchronous_commit off" in found["durability"]
    assert "serializable" in found["isolation"]


def test_scale_doctor_says_that_a_home_is_missing(machine: Machine, url: str) -> None:
    """A store that holds turns, and no home: that is what is wrong, and the other checks are made."""
    found = failing(machine, CLAUDIUS_HOME=str(machine.root / "nowhere"), CLAUDIUS_STORE_URL=url)

    assert "does not exist" in found["home"]


@pytest.mark.slow
def test_scale_doctor_fails_on_a_server_without_fsync(postgres_url: str, tmp_path: Path) -> None:
    """A server that may lose what it acknowledged is named; the tests' own quick server is one."""
    found = failing(Machine(tmp_path), CLAUDIUS_STORE_URL=postgres_url)

    assert "fsync" in found["durability"]


def test_scale_doctor_fails_on_text_that_does_not_sort_by_bytes(machine: Machine, url: str) -> None:
    """A column that a person gave another collation is counted."""
    run(url, 'ALTER TABLE person ALTER COLUMN name TYPE text COLLATE "unicode"' if _has_unicode(url) else
        'ALTER TABLE person ALTER COLUMN name TYPE text COLLATE "POSIX"')  # fmt: skip

    assert "1 columns" in failing(machine)["collation"]


def _has_unicode(url: str) -> bool:
    with psycopg.connect(url) as made:
        return made.execute("SELECT 1 FROM pg_collation WHERE collname = 'unicode'").fetchone() is not None


def test_scale_doctor_fails_on_a_process_that_is_set_up_otherwise(machine: Machine, url: str) -> None:
    """A clock, the settings or the pauses of a process elsewhere are told with its machine and number."""
    beside(url, skew_s=-75.0, configuration="other", pause_s=21.0)
    found = failing(machine)

    assert "its clock is -75 s" in found["clocks"]
    assert "process 7 on far runs with other settings" in found["configurations"]
    assert "the longest pause was 21.0 s (process 7 on far)" in found["leases"]


def test_scale_doctor_fails_where_nobody_listens(machine: Machine, url: str) -> None:
    """A process that only thinks hears nothing: a network whose tokens are here needs one that listens to it."""
    tokens = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1", "CLAUDIUS_SLACK_API_URL": "http://127.0.0.1:9"}
    beside(url, started_at="2026-01-01")
    deaf = failing(machine, **tokens)
    run(url, "INSERT INTO role (role, worker, lease_until) VALUES ('listen/slack/1', 'w', 'infinity')")
    heard = failing(machine, **tokens)

    assert "nothing that is said arrives" in deaf["slack listeners"]
    assert "slack listeners" not in heard
    assert "discord listeners" not in deaf


@pytest.mark.slow
def test_scale_doctor_fails_where_no_standby_follows(machine: Machine) -> None:
    """A person who counts on a standby is told that none follows synchronously."""
    assert "standby" in failing(machine, CLAUDIUS_STORE_FAILOVER="1")
    assert "standby" not in failing(machine)


def test_scale_doctor_finds_a_pooler_in_the_way(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no notice arrives, as behind a pooler in transaction mode, the check says so; and not if none is wanted."""
    monkeypatch.setattr(os, "environ", machine.environment())
    monkeypatch.setattr(psycopg.Connection, "notifies", lambda *_, **__: iter(()))
    found = {one.name: one for one in server_checks.server(Home(machine.home))}

    machine.ok("config", "set", "store.listen_url", "")
    unwanted = {one.name: one for one in server_checks.server(Home(machine.home))}

    assert not found["notices"].ok
    assert "pooler" in found["notices"].fix
    assert unwanted["notices"].ok


def test_scale_doctor_finds_a_way_for_notices_that_leads_elsewhere(machine: Machine, url: str) -> None:
    """Processes that listen in another schema than the soul's hear nothing, and doctor says so."""
    elsewhere = url.replace("search_path%3D", "search_path%3Dpublic%2C")

    assert "do not arrive" in failing(machine, CLAUDIUS_STORE_LISTEN_URL=elsewhere)["notices"]


def test_scale_doctor_finds_two_homes_with_one_token(machine: Machine) -> None:
    """Another home that runs here with the same token, and another store, is named."""
    token = {"SLACK_BOT_TOKEN": "xoxb-1-canary"}
    other = Home(machine.home.parent / ".claudius-two")
    other.create()
    lock = HomeLock(other, "daemon")
    other.lock.write_text(json.dumps({"pid": 1, "tokens": {"SLACK_BOT_TOKEN": _digest(token["SLACK_BOT_TOKEN"])}}))
    found = failing(machine, **token)
    lock.release()

    assert "runs with the same SLACK_BOT_TOKEN" in found["homes"]
    assert "homes" not in failing(machine, **token)


def _digest(value: str) -> str:
    from claudius.config.load import Secret  # noqa: PLC0415 - its one use
    from claudius.runtime.life import fingerprints  # noqa: PLC0415 - likewise

    return fingerprints({"it": Secret(value)})["it"]
