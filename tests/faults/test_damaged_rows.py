"""Damaged rows and permanent bugs: whoever is owed an answer gets at least an apology, and every display says why."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from claudius.cognition import hop
from claudius.cognition import turn as turns
from claudius.errors import EXIT_FAILED, DeliveryLater, RowInvalid
from claudius.home import Home
from claudius.intent import Intent, Schedule
from claudius.memory.database import pack
from claudius.memory.erasing import lines_of_others
from claudius.memory.seen import ERASED_SNAPSHOT, KeptTurn
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.perception import Kind, Perception, private
from claudius.providers.scripted import Scripted
from claudius.reports import life
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import Machine, reply
from ear import echo

ANA, BEN = "rehearsal:t:dm-ana:", "rehearsal:t:dm-ben:"
SUMMARY = """
    INSERT INTO summary (conversation, text, sources, upto, nonce, at)
    VALUES ('{ana}', 'We met.', 'no list', 0, '0', '2026-01-01T00:00:00.000000Z')
"""
APOLOGY, GREETING = "not fit to say aloud", "Good to meet you"


def damaged(home: Home, sql: str) -> None:
    """Change rows by hand, as an external tool does."""
    with closing(sqlite3.connect(home.database)) as db, db:
        assert db.execute(sql).rowcount == 1


def one(home: Home, sql: str) -> str:
    """Return the one value of a query."""
    with closing(sqlite3.connect(home.database)) as db:
        return str(db.execute(sql).fetchone()[0])


def dead_and_invalid(home: Home) -> tuple[int, list[str], list[tuple[str, str]]]:
    """Return the dead count of `status`, and the reasons and rows that `doctor` gives."""
    with closing(SqliteRecords(home.database)) as kept:
        counted = kept.counts(datetime.now(UTC))
        return (
            counted["inbox"]["dead"] + counted["outbox"]["failed"],
            [str(row["reason"]) for row in kept.dead()],
            list(kept.invalid()),
        )


async def said(soul: Alive, *, ana: str, ben: str = "") -> list[str]:
    """Have people say something. Returns the answers in each conversation since then, Ana's first."""
    before = len(soul.network.visible)
    await soul.network.hear(ana)
    if ben:
        await soul.network.hear(ben, person="ben")
    await soul.idle()
    seen = soul.network.visible[before:]
    return [one.text for one in sorted(seen, key=lambda one: one.conversation)]


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("UPDATE conversation SET params = '{{\"cut' WHERE conversation = '{ana}'", ("conversation", ANA)),
        ("UPDATE conversation SET process_memory = '[1]' WHERE conversation = '{ana}'", ("conversation", ANA)),
        ("UPDATE conversation SET entered_at = 'soon' WHERE conversation = '{ana}'", ("conversation", ANA)),
        ("UPDATE turn SET shown = '' WHERE conversation = '{ana}'", ("turn", f"{ANA}/1")),
        ("UPDATE entry SET metadata = '{{' WHERE conversation = '{ana}' AND n = 0", ("entry", f"{ANA}/1/0")),
        ("UPDATE entry SET entry_type = 'song' WHERE conversation = '{ana}' AND n = 0", ("entry", f"{ANA}/1/0")),
        ("UPDATE peer_tally SET last_at = '' WHERE peer_id LIKE '%ana'", ("peer_tally", "rehearsal:t:ana/private:rehearsal:t:ana")),
        ("UPDATE peer SET last_day = 'today' WHERE peer_id LIKE '%ana'", ("peer", "rehearsal:t:ana")),
        ("UPDATE peer_tally SET last_day = '' || 1 WHERE peer_id LIKE '%ana'", ("peer_tally", "rehearsal:t:ana/private:rehearsal:t:ana")),
        ("UPDATE peer SET first_in_at = 'soon' WHERE peer_id LIKE '%ana'", ("peer", "rehearsal:t:ana")),
        (SUMMARY, ("summary", ANA)),
    ],
)  # fmt: skip
async def test_a_damaged_row_is_answered_with_an_apology_and_named(home: Home, sql: str, row: tuple[str, str]) -> None:
    """That conversation gets the apology each time, the others get replies, and `doctor` names table and row."""
    async with alive(home, Scripted(default=echo)) as soul:
        await said(soul, ana="hello", ben="hello")
    damaged(home, sql.format(ana=ANA))
    named_before = dead_and_invalid(home)[2]

    async with alive(home, Scripted(default=echo)) as soul:
        first = await said(soul, ana="again", ben="again")
        second = await said(soul, ana="and again", ben="and again")

    assert named_before == [row]
    assert [APOLOGY in line for line in (first[0], second[0])] == [True, True]
    assert (first[1], second[1]) == ("re again", "re and again")
    assert dead_and_invalid(home) == (0, [], [row])


@pytest.mark.parametrize(
    ("table", "column"), [("turn_record", "kept"), ("psyche_trace", "moved"), ("turn_record", "flags")]
)
async def test_only_a_record_that_cannot_be_read_is_named(home: Home, table: str, column: str) -> None:
    """In an intact home `doctor` names no row. Of the stored turn records it names the damaged ones."""
    async with alive(home, Scripted(default=echo)) as soul:
        await said(soul, ana="hello")
        await said(soul, ana="again")
    sound = dead_and_invalid(home)[2]
    value = "'{'" if column == "flags" else f"substr({column}, 1, length({column}) - 3)"
    damaged(home, f"UPDATE {table} SET {column} = {value} WHERE id = 1")  # noqa: S608 - a test's own words

    assert sound == []
    assert dead_and_invalid(home)[2] == [(table, "1")]


async def test_damaged_records_still_expire_and_are_erased(home: Home) -> None:
    """A damaged record stops neither the expiry of records nor the erasure of a person who spoke in company."""
    async with alive(home, Scripted(default=echo)) as soul:
        await said(soul, ana="hello")
        damaged(home, "UPDATE turn_record SET kept = x'01ff'")
        later = datetime.now(UTC) + timedelta(days=400)
        gone = await soul.mind.store.turns.expire_records(later, later, 10)

    assert gone == 1
    assert lines_of_others(b"\x01\xff", ()) == pack(KeptTurn(snapshot=ERASED_SNAPSHOT))


async def test_a_damaged_row_is_told_from_a_store_that_failed(home: Home) -> None:
    """Nothing is retried that cannot succeed, and after the repair messages are answered as before."""
    async with alive(home, voice := Scripted(default=echo)) as soul:
        await said(soul, ana="hello")
        damaged(home, "UPDATE conversation SET params = '{'")
        line = (await said(soul, ana="again"))[0]
        tries = one(home, "SELECT max(attempts) FROM inbox")
        damaged(home, "UPDATE conversation SET params = '{}'")
        after = await said(soul, ana="and now")

    assert APOLOGY in line
    assert (tries, len(voice.requests)) == ("1", 2)
    assert after == ["re and now"]


async def test_a_message_whose_own_row_is_damaged_is_dead_and_counted(home: Home) -> None:
    """Not even an apology can be made for it: `status` counts it, `doctor` names it, and the next one is answered."""
    store, network = SqliteStore(home.database), RehearsalAdapter()
    await store.start("ended", datetime.now(UTC))

    async def keep(heard: Perception) -> bool:
        """Accept it in a process that ends before any turn."""
        return (await store.inbox.accept((heard,), heard.at))[0]

    network._accept = keep
    await network.hear("lost")
    await network.hear("found")
    await store.close(clean=True)
    damaged(home, 'UPDATE inbox SET payload = \'{"key": "cut\' WHERE seq = 1')

    async with alive(home, Scripted(default=echo)) as soul:
        await soul.idle()
        seen = [one.text for one in soul.network.visible]

    dead, reasons, rows = dead_and_invalid(home)
    assert seen == ["re found"]
    assert (dead, rows) == (1, [("inbox", "1")])
    assert reasons[0].startswith("inbox 1 cannot be read: ")


async def test_a_reply_whose_row_is_damaged_is_dead_and_holds_up_nothing(home: Home) -> None:
    """An unreadable part cannot be said: it is given up with its reason, and the next reply is said."""
    async with alive(home, Scripted(default=echo)) as soul:
        soul.network.faults.append((DeliveryLater(0.5), False))
        await soul.network.hear("m")
        async with asyncio.timeout(20):
            while one(home, "SELECT count(*) FROM outbox WHERE state = 'pending'") == "0":
                await asyncio.sleep(0)
        damaged(home, "UPDATE outbox SET answers = '\"' WHERE state = 'pending'")
        await soul.network.hear("next")
        await soul.idle()
        seen = [visible.text for visible in soul.network.visible if visible.conversation == ANA]

    dead, reasons, _ = dead_and_invalid(home)
    assert seen == ["re next"]
    assert dead == 2  # the heard message and the planned reply
    assert all(reason.startswith("outbox ") for reason in reasons)


async def test_a_damaged_overheard_message_blocks_nobody(home: Home) -> None:
    """A message that is owed nothing also fails permanently. A person who calls the soul after it gets the apology."""
    place = "rehearsal:t:ops:1"
    async with alive(home, Scripted(default=echo)) as soul:
        await soul.network.hear("hello", conversation=place, is_shared=True)
        await soul.idle()
        damaged(home, "UPDATE conversation SET params = '{'")
        await soul.network.hear("chatter", conversation=place, is_shared=True, kind=Kind.JOIN)
        await soul.network.hear("Claudius?", conversation=place, is_shared=True)
        await soul.idle()
        seen = [visible.text for visible in soul.network.visible]

    assert seen[0] == "re hello"
    assert len(seen) == 2
    assert APOLOGY in seen[1]


@pytest.mark.parametrize(
    "name",
    [
        *(f"cognition.{one}" for one in ("turn._recalled", "turn.route", "turn.attend_to", "hop.plan", "hop.conclude")),
        "runtime.access.Membership.look",
    ],
)
async def test_a_lasting_bug_ends_in_an_apology_each_time(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever breaks a turn, its apology does not depend on it."""

    def broken(*_: object, **__: object) -> object:
        """Always fail."""
        raise RuntimeError("a bug")

    monkeypatch.setattr(f"claudius.{name}", broken)
    async with alive(home, Scripted(default=echo)) as soul:
        lines = [*await said(soul, ana="one"), *await said(soul, ana="two")]

    assert len(lines) == 2
    assert GREETING in lines[0] or APOLOGY in lines[0]  # that they are strangers may be what cannot be read
    assert APOLOGY in lines[1]


async def test_a_turn_that_owes_a_reply_and_has_none_is_not_settled_in_silence(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn without a line counts as failed if a reply is owed."""
    concluded = hop.conclude

    def silent(*args: Any) -> Intent:
        """Omit the dialogue."""
        return replace(concluded(*args), utterances=())

    monkeypatch.setattr(hop, "conclude", silent)
    async with alive(home, Scripted(default=echo)) as soul:
        lines = await said(soul, ana="one")

    assert len(lines) == 1
    assert GREETING in lines[0]


async def test_a_message_without_even_an_apology_is_dead_and_counted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is owed an answer counts as settled: `status` counts it, and `doctor` says why."""

    async def broken(*_: object) -> object:
        """Always fail."""
        raise RuntimeError("a bug")

    monkeypatch.setattr(turns, "route", broken)
    monkeypatch.setattr("claudius.runtime.lanes.apologise", broken)
    async with alive(home, Scripted(default=echo)) as soul:
        lines = await said(soul, ana="one")

    dead, reasons, _ = dead_and_invalid(home)
    assert lines == []
    assert (dead, reasons) == (1, ["no apology (unreadable) could be made: RuntimeError"])


async def test_a_plan_with_a_damaged_row_is_still_heard(home: Home) -> None:
    """The requested reminder comes, without the process that can no longer be read, and the clock goes on."""
    async with alive(home, Scripted(default=echo)) as soul:
        await said(soul, ana="hello")
        at = datetime.now(UTC) + timedelta(hours=1)
        asked = Schedule(
            id=1,
            conversation=ANA,
            at=at,
            text="the oven",
            process="reminder",
            audience=private("rehearsal:t:ana"),
            person="rehearsal:t:ana",
            asked_by="rehearsal:t:ana",
        )
        await soul.mind.store.plans.plan(asked)
        damaged(home, "UPDATE due SET params = '{'")
        fired = await soul.mind.store.plans.fire_due(at + timedelta(minutes=1), 72.0)

    heard = one(home, "SELECT payload FROM inbox WHERE kind = 'scheduled'")
    assert fired == (ANA,)
    assert "the oven" in heard
    assert dead_and_invalid(home)[2] == [("due", "1")]


def test_the_owner_sees_which_row_is_damaged_and_everyone_else_is_answered(machine: Machine) -> None:
    """As a user: a row is damaged by hand while the daemon is awake, and is named while it is awake and asleep."""
    with machine.daemon():
        machine.ok("chat", "--once", "hello", "--conversation", "first")
        damaged(Home(machine.home), "UPDATE conversation SET params = '{\"' WHERE conversation LIKE '%first%'")
        ran = machine.run("chat", "--once", "again", "--conversation", "first", "--json")
        other = machine.ok("chat", "--once", "hello", "--conversation", "second", "--json")
        awake = machine.run("doctor", "--json")
        status = machine.ok("status", "--json").json
    asleep = machine.run("doctor", "--json")

    named = [
        [check["detail"] for check in ran.json["checks"] if check["name"] == "row" and not check["ok"]]
        for ran in (awake, asleep)
    ]
    assert (ran.code, ran.json["apology"]) == (75, "unreadable")
    assert "apology" not in other.json
    assert status["inbox"] == {"pending": 0, "dead": 0}
    assert [len(lines) for lines in named] == [1, 1]
    assert all(lines[0].startswith("conversation ") and "first" in lines[0] for lines in named)
    assert awake.code == asleep.code == 1


def test_a_damaged_record_is_told_in_one_line(machine: Machine) -> None:
    """A command or a document that needs a damaged record names its row, without a traceback of our code."""
    machine.scripted(reply("One."), reply("Two."))
    first = machine.ok("chat", "--once", "one", "--json").json["turn"]
    second = machine.ok("chat", "--once", "two", "--json").json["turn"]
    damaged(Home(machine.home), "UPDATE turn_record SET kept = x'01ff' WHERE id = 1")
    damaged(Home(machine.home), "UPDATE psyche_trace SET moved = x'01ff' WHERE id = 1")

    told = [machine.run(*one) for one in (("why", first), ("replay", first), ("replay", second))]
    with pytest.raises(RowInvalid, match="cannot be read"):
        life.life(Home(machine.home), (now := life.clock_now()) - timedelta(days=1), now)

    assert [(ran.code, ran.stderr.count("\n")) for ran in told] == [(EXIT_FAILED, 1)] * 3
    assert all("cannot be read" in ran.stderr for ran in told)
