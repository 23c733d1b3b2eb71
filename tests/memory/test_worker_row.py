"""What a process says of itself to those that share its store, and the soul that one pushes for all."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from claudius.cognition.mind import lately
from claudius.cognition.steps import STEPS
from claudius.config.load import common, load
from claudius.errors import StoreAway
from claudius.home import Home, shipped
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes, SoulStore
from claudius.soul import SoulSource
from claudius.soul.source import PushedSoul, SoulInForce, own_files, written
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


def of(directory: Path) -> SoulSource:
    """Return the soul of a directory, over the shipped one."""
    return SoulSource(directory, shipped("soul"), steps=STEPS)


def in_force(home_soul: Path, souls: SoulStore) -> SoulInForce:
    """Return the soul as a process of this home thinks with it."""
    soul = SoulInForce(home_soul, of, souls.newest, partial(setattr, souls, "in_force"))
    souls.pushed = soul.look
    soul.look()
    soul.current()
    return soul


async def test_scale_a_push_is_in_force_with_the_next_news(
    postgres_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A turn keeps the soul that it began with; the next one has what was pushed, and so has a process that starts."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    one, other = PostgresStore(StorePlace(postgres_url)), PostgresStore(StorePlace(postgres_url))
    mine, theirs = tmp_path / "one", tmp_path / "two"
    for directory, text in ((mine, "I am one."), (theirs, "I am two.")):
        (directory / "steps").mkdir(parents=True)
        (directory / "soul.md").write_bytes(text.encode() + b"\r\n")
    try:
        await one.open()
        await other.open()
        soul = in_force(mine, one.leases.souls)
        began_with = soul.current()
        whole = of(theirs).current()
        with caplog.at_level(logging.INFO, "claudius"):
            await other.leases.souls.push(own_files(whole, theirs), whole.sha256)
            before_news = soul.current()
            one.leases.news()
            after = soul.current()
            soul.current()
        said = [record.message for record in caplog.records]
        (mine / "soul.md").write_text("I am two.\r\n", newline="")
        await other.leases.souls.push({}, of(tmp_path / "none").current().sha256)
        await one.leases.renew()
        empty = soul.current()
        newcomer = in_force(tmp_path / "three", other.leases.souls).current()

        assert before_news is began_with
        assert "I am one." in began_with.text("soul.md")
        assert after.sha256 == whole.sha256
        assert one.leases.souls.in_force == empty.sha256 == newcomer.sha256
        assert empty.text("soul.md") == of(tmp_path / "none").current().text("soul.md")
        assert sum("claudius soul push" in line for line in said) == 1
        assert len(list((mine / ".pushed").iterdir())) == 1
    finally:
        await one.close(clean=False)
        await other.close(clean=False)


def pushed(number: int, files: dict[str, str]) -> PushedSoul:
    """Return a push as a store holds it."""
    return PushedSoul(number=number, sha256="0" * 64, host="far", at=NOW, files=files)


def test_scale_a_pushed_file_stays_in_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A person who can write to the store cannot have a file written elsewhere on another machine."""
    names = ("../up.md", "/tmp/up.md", "a/../../up.md", "steps/a/b.md", ".hidden", "", "a\0b", "steps/..")  # noqa: S108 - written nowhere
    place = written(tmp_path / "soul", pushed(1, {"soul.md": "I am.", **dict.fromkeys(names, "no")}))

    found = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert found == [str((place / "soul.md").relative_to(tmp_path))]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * len(names)


def test_scale_a_number_that_is_given_again_is_another_push(tmp_path: Path) -> None:
    """After a restore of the store a number may name other files: they are written beside the first ones."""
    first, second = (written(tmp_path, pushed(1, {"soul.md": text})) for text in ("I am one.", "I am two."))

    assert (first / "soul.md").read_text() == "I am one."
    assert (second / "soul.md").read_text() == "I am two."


def test_scale_a_push_does_not_wait_until_a_look_is_old() -> None:
    """What is read at most every so often is read at once when a push has moved its mark, even by that reading."""
    marks, read = ["a"], iter(["one", "two", "three"])
    soul = lately(lambda: next(read), 60.0, lambda: 0.0, lambda: marks[-1])

    before = soul(), soul()
    marks.append("b")

    assert before == ("one", "one")
    assert (soul(), soul()) == ("two", "two")
