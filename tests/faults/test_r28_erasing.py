"""R28: an erasure while others talk, and kill -9 during one: others lose nothing, and the erasure finishes."""

import asyncio
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from claudius.cognition.prompt.snapshot import rebuild
from claudius.errors import StoreFull
from claudius.home import Home
from claudius.memory import search
from claudius.memory.audit import AuditStore
from claudius.memory.database import Core, Database, Writer
from claudius.memory.erasure import Erasures
from claudius.memory.seen import ERASED
from claudius.memory.sqlite import SqliteRecords
from claudius.providers.scripted import Scripted
from claudius.runtime.commands.about import About
from claudius.runtime.forgetting import THEMSELF
from claudius.testing.alive import Alive, alive
from driven import CLAUDIUS, Machine, reply, until

ANA, BEN = "rehearsal:t:ana", "rehearsal:t:ben"
HALL = "rehearsal:t:hall:"
SECRET = "номер моего шкафа семь четыре один"
MODEL = f"## Persona\nAna, who said: {SECRET}."
OTHERS = "Good morning from me, the other one, all the same"
POINTS = 6

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


async def talked(soul: Alive, turns: int) -> None:
    """Have two people talk in one place and alone. One of them tells a secret that is written down."""
    for number in range(turns):
        await soul.network.hear(f"{number}: {SECRET}", person="ana", conversation=HALL, is_shared=True)
        await soul.network.hear(f"{number}: {OTHERS}", person="ben", conversation=HALL, is_shared=True)
        await soul.network.hear(f"{number}: alone I say {SECRET}", person="ana")
        await soul.network.hear(f"{number}: alone, {OTHERS}", person="ben")
        await soul.idle()


def learning() -> Scripted:
    """Return a model that writes a portrait of whoever speaks first, and answers."""
    learns = reply("I keep it.", user_model_check="true", user_model_update=MODEL, model_change_note="a secret")
    return Scripted([learns], default=reply("So it is."))


def others(records: SqliteRecords, home: Home) -> list[str]:
    """Return every remaining turn that can be shown and rebuilt. Raises: LookupError if one cannot and was not erased.

    What was thought with her lines in sight is erased with them.
    """
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
        turns = [turn for (turn,) in kept.execute("SELECT turn FROM turn ORDER BY at")]
    whole = []
    for turn in turns:
        found = records.turn(turn) or {}
        assert bool(found["thoughts"]) == (found["snapshot"] != ERASED)
        if found["thoughts"]:
            rebuild(found["snapshot"], records)
            whole.append(turn)
    return whole


def held(home: Home, word: str) -> list[str]:
    """Return each file of a home that holds a word."""
    found = [path for path in home.root.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
    return [str(path.relative_to(home.root)) for path in found]


async def test_r28_others_are_answered_while_one_is_erased(home: Home) -> None:
    """Turns are committed between the erasure's transactions, and what belongs to others and the owner stays."""
    (home.backups / "old").mkdir(parents=True)
    (home.backups / "old" / "mine.db").write_text("the owner's")

    async with alive(home, learning(), archives=True) as soul:
        (home.backups / "quarantine-20260101T000000.000000Z").mkdir()
        (home.backups / "quarantine-20260101T000000.000000Z" / "claudius.db").write_text(SECRET)
        await talked(soul, 8)
        said = len(soul.network.visible)
        erasing = asyncio.create_task(soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner"))
        meanwhile = 0
        while not erasing.done():
            await soul.network.hear(f"meanwhile {meanwhile}", person="ben", conversation=HALL, is_shared=True)
            await soul.idle()
            meanwhile += not erasing.done()
        receipt = erasing.result()
        answered = len(soul.network.visible) - said
        records = soul.records()
        turns = others(records, home)
        prompts = [str(rebuild((records.turn(turn) or {})["snapshot"], records)) for turn in turns]
        records.close()

    assert receipt["verified"] is True
    assert receipt["left"] == []
    assert receipt["kept"] == ["backups/old"]
    assert receipt["backups"] == 1
    assert (home.backups / "old" / "mine.db").read_text() == "the owner's"
    assert meanwhile > 3
    assert answered >= meanwhile
    assert len(turns) >= 8
    assert any(OTHERS in prompt for prompt in prompts)
    assert not any(SECRET in prompt for prompt in prompts)
    assert held(home, SECRET) == held(home, ANA) == []


async def test_r28_a_small_transaction_changes_few_rows(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: no transaction of an erasure changes more than a page of rows, whatever the total."""
    changed: list[int] = []
    run_together = Writer._run_together

    def counting(self: Writer, batch: list[Any]) -> bool:
        """Count the rows that a transaction changes."""
        before = self._database.connection.total_changes
        done = run_together(self, batch)
        changed.append(self._database.connection.total_changes - before)
        return done

    async with alive(home, learning()) as soul:
        await talked(soul, 40)
        monkeypatch.setattr(Writer, "_run_together", counting)
        receipt = await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")

    assert receipt["verified"] is True
    assert len(changed) > 20
    assert max(changed) < 700


async def test_b11_leftovers_in_any_script_are_found(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leftovers of a person who writes no ASCII letter are found, and a search that was killed verifies nothing.

    Neither erasure is repeated at the next start: it would erase what they have said since.
    """
    async with alive(home, learning()) as soul:
        await talked(soul, 2)
        (home.logs / "claudius.log.1").write_text(f"somebody said {SECRET}\n", "utf-8")
        left = await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")
        (home.logs / "claudius.log.1").unlink()
        unfinished = Erasures(home.state).unfinished()
        monkeypatch.setattr(search, "run", lambda asked, within_s: None)  # noqa: ARG005 - as where it is killed
        await soul.network.hear("and again I say the same", person="ana")
        await soul.idle()
        killed = await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")

    assert (left["verified"], left["left"]) == (False, ["logs/claudius.log.1"])
    assert not unfinished
    assert (killed["verified"], killed["left"]) == (False, ["the search did not come to its end"])


async def test_c13_a_second_forget_me_within_a_day_waits(home: Home) -> None:
    """A person who asks in chat is told until when. A day later, or if the owner says so, it is done again."""
    now = datetime(2026, 1, 5, 9, tzinfo=UTC)
    async with alive(home, learning(), clock=lambda: now) as soul:
        about = About(soul.mind, soul.server._forgetting)
        told = []
        for _ in range(2):
            heard = await soul.network.hear(f"I say {SECRET}", person="ana")
            await soul.idle()
            told += [await about.forget(heard, "me"), await about.forget(heard, "me yes")]
        by_owner = await soul.server._forgetting.forget(ANA, now, "owner")
        now += timedelta(days=1)
        heard = await soul.network.hear(f"I say {SECRET}", person="ana")
        await soul.idle()
        again = await about.forget(heard, "me")

    assert told[0].endswith("forget me yes")
    assert told[1].startswith("You are forgotten.")
    assert told[2] == told[3]
    assert told[2].endswith("I can do it again from 2026-01-06 09:00 UTC on.")
    assert by_owner["verified"] is True
    assert again.endswith("forget me yes")


def _is_done(ledger: Erasures) -> bool:
    return not ledger.unfinished()


async def test_r28_a_short_portrait_in_an_older_record_is_erased(home: Home) -> None:
    """Older versions stored whole portraits in the records of everyone who saw them, and a short one goes too."""
    short = "Cat: Mitzi-741."
    shown = {"person": ANA, "audience": f"private:{ANA}", "version": 1, "text": short}
    past = json.dumps({"turn": "0123456789abcdef", "number": 1, "entries": [], "shown": [shown]}, separators=(",", ":"))
    models = {"person": ANA, "name": "ana", "models": [{"person": ANA, "version": 1, "markdown": short}]}
    snapshot = json.dumps({"recollection": {"others": [models], "speaker": {"person": BEN, "name": "ben"}}})
    async with alive(home, learning()) as soul:
        await talked(soul, 1)
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute("INSERT INTO blob (sha256, content) VALUES ('past', ?)", (past.encode(),))
        db.execute(
            "UPDATE turn_record SET snapshot = ? WHERE id = (SELECT record FROM turn WHERE person = ?)",
            (snapshot.encode(), BEN),
        )

    async with alive(home, Scripted(default=reply("So it is."))) as soul:
        receipt = await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")

    assert receipt["verified"]
    assert held(home, short) == held(home, '"ana"') == []
    assert held(home, '"ben"')


async def test_r28_a_damaged_record_does_not_block_an_erasure_and_is_named(home: Home) -> None:
    """A record that cannot be unpacked cannot be searched: the receipt names it, and everything else is done."""
    async with alive(home, learning()) as soul:
        await talked(soul, 2)
    with closing(sqlite3.connect(home.database)) as db, db:
        number = db.execute("SELECT max(record) FROM turn WHERE person = ?", (BEN,)).fetchone()[0]
        db.execute("UPDATE turn_record SET kept = substr(kept, 1, 20) WHERE id = ?", (number,))

    async with alive(home, Scripted(default=reply("So it is."))) as soul:
        receipt = await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")
    async with alive(home, Scripted(default=reply("So it is."))) as soul:
        await soul.network.hear("still there?", person="ben")
        await soul.idle()
        seen = [one.text for one in soul.network.visible]

    assert receipt["verified"] is False
    assert [one for one in receipt["left"] if "backups" not in one] == [
        f"state/claudius.db: turn_record {number} (could not be read)"
    ]
    assert seen[-1] == "So it is."
    assert not [one for one in (*held(home, SECRET), *held(home, ANA)) if not one.startswith("state/erasing-")]


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("after", [1, 4, 9, 16])
async def test_r28_what_is_cut_off_anywhere_is_carried_on(
    home: Home, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """After any number of transactions the process stops: the next start finishes, and knows what to search for."""
    count = 0
    write: Callable[..., Awaitable[object]] = Core.write

    async def dying(self: Core, run: Callable[[Database], object]) -> object:
        """Fail after this many writes, as a killed process does."""
        nonlocal count
        count += 1
        if count > after:
            raise _Killed
        return await write(self, run)

    async with alive(home, learning()) as soul:
        await talked(soul, 4)
        with monkeypatch.context() as context:
            context.setattr(Core, "write", dying)
            with pytest.raises(_Killed):
                await soul.server._forgetting.forget(ANA, soul.mind.clock(), "owner")
    async with alive(home, Scripted(default=reply("So it is."))) as soul:
        async with asyncio.timeout(60):
            while Erasures(home.state).unfinished():
                await asyncio.sleep(0.02)
        await soul.network.hear("still there?", person="ben")
        await soul.idle()
        records = soul.records()
        turns = others(records, home)
        broken = records.integrity()
        acts = records.audit("", 9)
        records.close()

    assert held(home, SECRET) == held(home, ANA) == []
    assert len(turns) == 5
    assert not broken
    assert [(one["act"], one["target"][:7]) for one in acts] == [("forget", "erased:")] * len(acts)
    assert acts


async def test_r28_an_erasure_that_is_refused_is_not_carried_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the audit log cannot be written nothing is erased, not at the next start either, and asking again is free."""

    async def full(*_: object) -> None:
        """Fail as on a full disk."""
        raise StoreFull("no space left")

    async with alive(home, learning()) as soul:
        await talked(soul, 1)
        with monkeypatch.context() as context:
            context.setattr(AuditStore, "note", full)
            with pytest.raises(StoreFull):
                await soul.server._forgetting.forget(ANA, soul.mind.clock(), THEMSELF)
        waits = await soul.server._forgetting.waits_until(ANA, soul.mind.clock())
    async with alive(home, Scripted(default=reply("So it is."))) as soul:
        await soul.network.hear("still there?", person="ben")
        await soul.idle()

    assert waits is None
    assert not Erasures(home.state).unfinished()
    assert held(home, SECRET) == ["state/claudius.db"]


@needs_strace
def test_r28_kill_9_in_the_middle_of_an_erasure(tmp_path: Path) -> None:
    """Killed at several of its durable writes: the next daemon finishes it, and everything of others is intact."""
    first = Machine(tmp_path / "first")
    for number in range(2):
        first.scripted(
            reply(
                "I keep it.", user_model_check="true", user_model_update=MODEL, model_change_note=f"a secret, {number}"
            )
        )
        first.ok("chat", "--once", f"{number}: {SECRET}", "--as", "ana", "--conversation", "hall")
        first.scripted(reply("So it is."))
        first.ok("chat", "--once", f"{number}: {OTHERS}", "--as", "ben", "--conversation", "hall")
    deaths = 0
    for place in range(POINTS):
        shutil.copytree(first.root, tmp_path / f"m{place}", symlinks=True)
        machine = Machine(tmp_path / f"m{place}")
        machine.scripted(reply("So it is."))
        argv = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]
        argv += ["-e", f"inject=fdatasync:signal=KILL:when={4 + 6 * place}", str(CLAUDIUS), "users", "forget"]
        ended = subprocess.run(
            [*argv, "terminal:local:as-ana", "--yes"],
            env=machine.environment(), cwd=machine.user, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        deaths += ended.returncode != 0
        ledger = Erasures(machine.home / "state")
        with machine.daemon() as pid:
            until(pid, partial(_is_done, ledger))
            begun = bool(ledger.erased_at())
            machine.ok("chat", "--once", "Still there?", "--as", "ben", "--conversation", "hall")
        kept = machine.ok("conversations", "show", "terminal:local:main:hall", "--json").json["entries"]
        secret, named = [held(Home(machine.home), word) for word in (SECRET, "terminal:local:as-ana")]
        assert secret + [one for one in named if "erasing-" not in one] == [] or not begun  # it waits for a lock
        assert f"1: {OTHERS}" in [entry["content"] for entry in kept]
        assert machine.ok("doctor").code == 0
    assert deaths >= POINTS // 2
