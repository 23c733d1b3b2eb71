"""What a process says of itself to the others that share its store: its soul, its settings, its pauses, its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from claudius.cognition.steps import STEPS
from claudius.config.load import common, load
from claudius.errors import StoreAway
from claudius.home import Home, shipped
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.soul import SoulSource
from claudius.soul.source import SoulInForce
from contracts.store.ground import NOW
from memory.test_leases import Ticking

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore


@asynccontextmanager
async def worker(url: str, boot: str, clock: Ticking | None = None) -> AsyncIterator[PostgresStore]:
    """Start a worker's store on a schema that others share, and cut it off at the end."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    store = PostgresStore(StorePlace(url), times=LeaseTimes(configuration="at the start"), clock=clock or Ticking())
    await store.start(boot, NOW)
    try:
        yield store
    finally:
        await store.close(clean=False)


def row(url: str, worker: str) -> dict[str, Any]:
    """Return what the others see of a worker."""
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as server:
        found = server.execute("SELECT * FROM worker WHERE worker = %s", (worker,)).fetchone()
    assert found
    return found


def run(url: str, sql: str) -> None:
    """Run one statement at the server."""
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.encode())


async def test_scale_an_idle_process_shows_the_pushed_soul_when_it_renews(postgres_url: str, tmp_path: Path) -> None:
    """The others see the pushed soul's hash with the renewal that heard of the push, without a turn."""
    async with worker(postgres_url, "w1") as store:
        assert store.leases
        souls = store.leases.souls
        soul = SoulInForce(
            tmp_path,
            lambda own: SoulSource(own, shipped("soul"), steps=STEPS),
            souls.newest,
            partial(setattr, souls, "in_force"),
        )
        souls.pushed = soul.look
        before = soul.current().sha256
        await store.leases.renew()
        shown_before = row(postgres_url, "w1")["soul"]

        await souls.push({"soul.md": "I am another."}, "0" * 64)
        await store.leases.renew()

        assert shown_before == before
        assert row(postgres_url, "w1")["soul"] == soul.current().sha256 != before


async def test_scale_a_process_shows_the_settings_in_force(postgres_url: str) -> None:
    """The hash of the settings is renewed with the row."""
    async with worker(postgres_url, "w1") as store:
        assert store.leases
        await store.leases.renew()
        first = row(postgres_url, "w1")["configuration"]

        store.leases.configuration = lambda: "changed since"
        await store.leases.renew()

        assert first == "at the start"
        assert row(postgres_url, "w1")["configuration"] == "changed since"


def test_settings_that_are_read_once_count_as_they_were_at_the_start(tmp_path: Path) -> None:
    """An edit of a live setting changes the hash of a process at work; one that needs a restart does not."""
    home = Home(tmp_path)
    began = load(home, {})
    live = load(home, {"CLAUDIUS_HISTORY_BUDGET_TOKENS": "9000"})
    once = load(home, {"CLAUDIUS_SLACK_API_URL": "http://127.0.0.1:9"})

    assert common(live, began) == common(live) != common(began)
    assert common(once, began) == common(began) != common(once)


async def test_scale_waiting_for_the_server_is_no_pause(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is the time in which the process itself did nothing, not an outage of the server."""
    clock = Ticking()
    async with worker(postgres_url, "w1", clock) as store:
        assert store.leases
        await store.leases.take(("slack",), 1)
        clock.now_s += 1.0

        async def away(_: object) -> None:
            """Fail after a long time."""
            clock.now_s += 79.0
            raise StoreAway("gone")

        with monkeypatch.context() as during:
            during.setattr(store.core, "write", away)
            with pytest.raises(StoreAway):
                await store.leases.take(("slack",), 1)
            with pytest.raises(StoreAway):
                await store.leases.renew()
        await store.leases.take(("slack",), 1)
        outage_s = store.leases.tally.pause_s
        clock.now_s += 8.0
        await store.leases.take(("slack",), 1)

        assert outage_s == 0.0
        assert store.leases.tally.pause_s == 7.0  # beyond its interval of a second


@pytest.mark.parametrize(("host", "is_fine"), [("'elsewhere'", True), ("host", False)])
async def test_scale_a_new_machine_is_not_blamed_for_another(postgres_url: str, host: str, *, is_fine: bool) -> None:
    """A process that begins beside one of another machine finds nothing amiss; one whose machine's last was cut off does."""
    async with worker(postgres_url, "w1"):
        pass
    run(postgres_url, f"UPDATE worker SET host = {host}")  # noqa: S608 - our own words
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    store = PostgresStore(StorePlace(postgres_url))

    waiting = await store.start("w2", NOW)
    await store.close(clean=True)

    assert waiting.was_clean is is_fine
