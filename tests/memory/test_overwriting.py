"""What was deleted leaves the files of a database; what a person uses or may still read waits for another try."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, ClassVar

import psycopg
import pytest

from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.memory.database import StorePlace
from claudius.memory.erasing import RULES
from claudius.memory.erasure import OVERWRITING, Erasures
from claudius.memory.postgres import store as postgres_store
from claudius.memory.postgres.store import PostgresStore
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite import store as sqlite_store
from claudius.perception import Perception
from claudius.providers.scripted import Scripted
from claudius.runtime.commands import commands
from claudius.runtime.forgetting import Forgetting
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from lab.postgres import Server


@pytest.fixture
async def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    """Yield an open store that tries once."""
    monkeypatch.setattr(postgres_store, "WAITS_S", (0.0,))
    made = PostgresStore(StorePlace(postgres_url))
    await made.open()
    yield made
    await made.close(clean=True)


async def test_every_table_has_a_rule(store: PostgresStore, home: Home) -> None:
    """What an erasure does to a table's rows is said of each by name, in both databases, and of no other."""
    home.create()
    file, tables = SqliteStore(home.database), set[str]()
    await file.open()
    for one in (store, file):
        with one.core.beside() as db:
            tables |= {table for table, _, _ in db.tables()}
    await file.close(clean=True)

    assert tables == set(RULES)


async def test_bytes_beside_the_rows_of_a_file_are_gone_once_it_is_written_anew(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving a row between pages leaves a copy that `secure_delete` misses. Who reads the log holds its end up."""
    monkeypatch.setattr(sqlite_store, "WAITS_S", (0.0,))
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    db = store.core.writer._database.connection
    db.execute("CREATE TABLE line (id INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT")
    db.execute("BEGIN")
    for number in range(6000):
        words = f"{'ben' if number % 4 else 'ana-canary'} {number} " + "x" * (number * 37 % 300)
        db.execute("INSERT INTO line VALUES (?, ?)", (number * 7919 % 6007, words))
    db.execute("DELETE FROM line WHERE words LIKE 'ana-canary%'")
    db.execute("COMMIT")

    def held() -> bool:
        """Return whether a file of the database holds the word."""
        return any(b"ana-canary" in path.read_bytes() for path in home.state.glob("claudius.db*"))

    before = held()
    with closing(sqlite3.connect(home.database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM line").fetchone()
        in_use = await store.erasure.overwrite()
    left = await store.erasure.overwrite()
    after, kept = held(), db.execute("SELECT count(*) FROM line").fetchone()[0]
    sound = db.execute("PRAGMA integrity_check").fetchone()[0]
    await store.close(clean=False)

    assert (before, after) == (True, False)
    assert (len(in_use), left) == (1, ())
    assert (kept, sound) == (4500, "ok")


async def test_a_file_that_cannot_be_written_anew_is_left_for_another_try(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no room for the new file, nothing counts as damaged: it is said, and tried again."""
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    with monkeypatch.context() as full:
        full.setattr(
            sqlite_store,
            "vacuum",
            lambda db: db.executescript("PRAGMA max_page_count=1; CREATE TABLE t AS SELECT zeroblob(9000000)"),
        )
        left = await store.erasure.overwrite()
    assert "could not be written anew" in left[0]
    assert await store.erasure.overwrite() == ()
    await store.close(clean=True)


async def test_a_large_file_is_written_anew_in_the_quiet_hour_and_a_second_line_says_so(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then nothing is verified, also after a restart; the line is kept until it was given. Or all is at once."""
    monkeypatch.setattr(sqlite_store, "QUICK_BYTES", 0)
    person, lines = "rehearsal:t:ana", list[tuple[str, Any]]()

    async def erased(soul: Alive, *, at_once: bool) -> dict[str, Any]:
        """Have a person talk and be erased by a process that answers others."""
        monkeypatch.setattr(soul.server._forgetting, "_is_daemon", True)
        monkeypatch.setattr(soul.server._commands, "tell", lambda _, *told: lines.append(told))
        heard = await soul.network.hear("a heron nests in my attic", person="ana")
        await soul.idle()
        return await soul.server._forgetting.forget(person, soul.mind.clock(), "owner", at_once=at_once, asked=heard)

    async with alive(home, Scripted()) as soul:
        now = await erased(soul, at_once=True)
        soul.server._forgetting.was_told(person)
        unkept = Erasures(home.state).kept()
        await erased(soul, at_once=False)
        soul.server._forgetting.was_told(person)
        with monkeypatch.context() as broken:
            broken.setattr("claudius.memory.erasure.LEDGER", "")  # a directory, to which nothing can be written
            with pytest.raises(ClaudiusError):
                await erased(soul, at_once=False)
        refused = len(Erasures(home.state).waiting())
        later = await erased(soul, at_once=False)
        soul.server._forgetting.was_told(person)
        planned = dict(soul.mind.store.plans.jobs())[OVERWRITING].next_due
    async with alive(home, Scripted()) as soul:
        monkeypatch.setattr(soul.server._commands, "tell", lambda _, *told: lines.append(told))
        waiting = len(Erasures(home.state).kept())
        outcome = [await soul.server._forgetting.overwrite() for _ in range(2)]
        untold = [(one.is_told, (one.receipt or {})["verified"]) for one in Erasures(home.state).kept()]
        lines[0][1]()

    assert (now["verified"], now["later"], unkept) == (True, None, [])
    assert (later["verified"], later["left"]) == (False, [])
    assert later["later"] == planned.isoformat(timespec="seconds").replace("+00:00", "Z")
    assert (refused, waiting) == (1, 1)
    assert outcome == ["what was erased is overwritten", "nobody was erased since the last time"]
    assert untold == [(False, True)]
    assert [line.endswith("and call it verified.") for line, _ in lines] == [True]
    assert Erasures(home.state).kept() == []
    assert not [one for one in home.root.rglob("*") if one.is_file() and b"rehearsal:t:ana" in one.read_bytes()]


@pytest.mark.parametrize("between", ["a second one died before it was recorded", "a move to another store"])
async def test_a_second_line_is_told_whatever_comes_between(
    home: Home, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    """What waits for a quiet hour is overwritten and told of; of a file that a move has set aside, too."""
    monkeypatch.setattr(sqlite_store, "QUICK_BYTES", 0)
    person, lines = "rehearsal:t:ana", list[str]()

    class Died(BaseException):
        """The process ends here."""

    def _die(*_: object) -> int:
        raise Died

    async with alive(home, Scripted()) as soul:
        forgetting, at = soul.server._forgetting, soul.mind.clock()
        monkeypatch.setattr(forgetting, "_is_daemon", True)
        heard = await soul.network.hear("a heron nests in my attic", person="ana")
        await soul.idle()
        await forgetting.forget(person, at, "owner", asked=heard)
        forgetting.was_told(person)
        again = await soul.network.hear("and in my cellar", person="ana")
        await soul.idle()
        if "died" in between:
            with monkeypatch.context() as dying:
                dying.setattr(Erasures, "begin", _die)
                with pytest.raises(Died):
                    await forgetting.forget(person, at, "owner", asked=again)
    async with alive(home, Scripted()) as soul:
        monkeypatch.setattr(soul.server._commands, "tell", lambda _, text, *__: lines.append(text))
        forgetting = soul.server._forgetting
        monkeypatch.setattr(forgetting, "_kind", "server" if "move" in between else "file")
        monkeypatch.setattr(forgetting, "_is_daemon", True)
        await forgetting.resume(at, "owner")
        outcome = await forgetting.overwrite()

    assert outcome == "what was erased is overwritten"
    assert [line.endswith("and call it verified.") for line in lines] == [True]


class Away(RehearsalAdapter):
    """A network that is away for the first two answers."""

    answers: ClassVar[list[str]] = []

    async def answer(self, _: Perception, text: str) -> None:
        """Take it, once the network is back."""
        self.answers.append(text)
        if len(self.answers) < 3:
            raise OSError("away")


async def test_a_line_that_must_be_told_is_tried_again_while_the_network_is_away(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that could not tell it tries again by itself, with growing waits."""
    monkeypatch.setattr(commands, "AGAIN_S", 0.01)
    network, told = Away(), asyncio.Event()
    async with alive(home, Scripted(), network=network) as soul:
        heard = await network.hear("a heron nests in my attic", person="ana")
        soul.server._commands.tell(heard, "It is overwritten now.", told.set)
        await asyncio.wait_for(told.wait(), 20)

    assert network.answers == ["It is overwritten now."] * 3


async def test_nothing_is_rewritten_that_nobody_asked_for(store: PostgresStore) -> None:
    """The job of each night finds nothing to do."""
    assert not await store.erasure.is_to_be_overwritten()


@pytest.mark.parametrize(
    "holds", ["LOCK TABLE person IN ACCESS SHARE MODE", "SELECT 1"], ids=["a table that is read", "an old snapshot"]
)
async def test_what_somebody_still_reads_is_left_for_another_try(
    store: PostgresStore, postgres_url: str, holds: str
) -> None:
    """The work that is due stays on record until every table was rewritten without its deleted rows."""
    with psycopg.connect(postgres_url, autocommit=True) as made, psycopg.connect(postgres_url) as other:
        made.execute(
            "INSERT INTO person (person, name, is_bot, first_at, last_at) VALUES ('x:t:tom', 'Tom', 0, '', '')"
        )
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute(holds)
        other.execute("SELECT 1")
        made.execute("DELETE FROM person")
        await store.erasure.overwrite_later()
        left = await store.erasure.overwrite()
        other.rollback()
        waits = await store.erasure.is_to_be_overwritten()
        again = await store.erasure.overwrite()

    assert "person" in left
    assert (waits, again) == (True, ())
    assert not await store.erasure.is_to_be_overwritten()


async def test_what_is_erased_while_tables_are_rewritten_is_overwritten_after_that(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that ends in the middle of the work is not taken for one that the work has covered."""
    begun, go_on, rewritten = asyncio.Event(), threading.Event(), postgres_store._rewritten
    loop = asyncio.get_running_loop()

    def slowly(*words: object) -> object:
        """Wait in the middle."""
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(60)
        return rewritten(*words)  # type: ignore[arg-type]  # as it was given

    await store.erasure.overwrite_later()
    monkeypatch.setattr(postgres_store, "_rewritten", slowly)
    working = asyncio.create_task(store.erasure.overwrite())
    await begun.wait()
    await store.erasure.overwrite_later()
    go_on.set()
    first, waits = await working, await store.erasure.is_to_be_overwritten()
    second = await store.erasure.overwrite()

    assert (first, waits, second) == ((), True, ())
    assert not await store.erasure.is_to_be_overwritten()


async def test_a_user_who_does_not_own_the_database_is_told_what_stays(
    postgres_server: Server, postgres_url: str
) -> None:
    """The server's statistics are the database owner's: the receipt names them, and all else is rewritten."""
    schema = postgres_url.rpartition("%3D")[2]
    with psycopg.connect(postgres_server.url, autocommit=True) as made:
        made.execute("CREATE ROLE tenant LOGIN")
        made.execute(f'ALTER SCHEMA "{schema}" OWNER TO tenant'.encode())
    store = PostgresStore(StorePlace(postgres_url.replace("claudius@", "tenant@")))
    await store.open()
    await store.erasure.overwrite_later()
    left, beyond = await store.erasure.overwrite(), await store.erasure.beyond()
    await store.close(clean=True)
    with psycopg.connect(postgres_server.url, autocommit=True) as made:
        made.execute("REASSIGN OWNED BY tenant TO CURRENT_USER")
        made.execute("DROP ROLE tenant")

    assert left == ()
    assert any("statistics" in one.kind for one in beyond)


async def test_the_receipt_names_the_hour_that_is_planned_though_the_job_came_meanwhile(
    store: PostgresStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet hour that begins during an erasure overwrites only half of it: the rest waits for the one that is named."""
    night = datetime(2099, 3, 2, 21, tzinfo=UTC)
    copy_anew = Forgetting._copy_anew

    async def meanwhile(self: Forgetting, *words: Any) -> Any:
        """Have the job of the night run, and be planned for the next one."""
        await store.erasure.overwrite()
        await store.plans.arm({OVERWRITING: night})
        return await copy_anew(self, *words)

    async with alive(home, Scripted(), store=store) as soul:
        await soul.network.hear("a heron nests in my attic", person="ana")
        await soul.idle()
        with monkeypatch.context() as patched:
            patched.setattr(Forgetting, "_copy_anew", meanwhile)
            patched.setattr(soul.server._forgetting, "_is_daemon", True)  # who is alone overwrites at once
            receipt = await soul.server._forgetting.forget("rehearsal:t:ana", soul.mind.clock(), "owner")
        planned = dict(store.plans.jobs())[OVERWRITING].next_due
        waits = await store.erasure.is_to_be_overwritten()

    assert planned < night
    assert receipt["later"] == planned.isoformat(timespec="seconds").replace("+00:00", "Z")
    assert waits
