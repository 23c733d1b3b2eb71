"""Acceptance of daimons, rows 1 to 9: what is asked, what is kept, who feels it, and how often."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.cognition.craft import Turn, WorkingMemory, external_dialogue, internal_monologue, mental_process
from claudius.errors import Overloaded
from claudius.home import Home
from claudius.memory.whispers import Whisper
from claudius.perception import SELF, private, shared
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.runtime import daimons as asking
from claudius.testing.alive import OWNER, Alive, alive
from driven import REPOSITORY
from lab.loopback.daimon import LINE, DaimonServer, Whispers
from minds import by_tag, minds

HEADING = "## Daimonic Intuition"
DAY = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ON = {"CLAUDIUS_KOTHAR_ENABLED": "1"}
REPLY = "<internal_monologue>{}</internal_monologue><external_dialogue>So it is.</external_dialogue>"


def voice(thought: str = "They are tired.") -> Scripted:
    """Return a model that thinks one thought, and whispers a line when asked in a daimon's name."""
    return Scripted(
        default=lambda request: "The model's line." if request.purpose == "whisper" else REPLY.format(thought)
    )


async def say(soul: Alive, text: str, person: str = "owner", **more: Any) -> None:
    """Say a line and wait for its answer."""
    seen = len(soul.network.visible)
    await soul.network.hear(text, person=person, **more)
    await soul.until_said(seen + 1)


async def keep(soul: Alive, text: str = LINE, sources: tuple[str, ...] = (SELF,), daimon: str = "kothar") -> int:
    """Store a waiting whisper."""
    now = soul.mind.clock()
    made = Whisper(
        daimon=daimon, text=text, transport="offer", sources=sources, at=now, expires_at=now + timedelta(hours=24)
    )
    return await soul.mind.store.whispers.keep_whisper(made)


def turns(mouth: Scripted) -> list[Request]:
    """Return the requests of turns."""
    return [request for request in mouth.requests if request.purpose == "turn"]


def felt(mouth: Scripted) -> list[bool]:
    """Return, for each turn, whether its prompt held an intuition."""
    return [HEADING in request.tail for request in turns(mouth)]


def intuitions(request: Request) -> list[dict[str, str]]:
    """Return the fenced lines of a prompt's intuition."""
    block = request.tail.partition(HEADING)[2].partition("\n## ")[0]
    return [json.loads(line) for line in block.splitlines() if line.startswith("{")]


def test_d01_off_is_absent() -> None:
    """1: with both switches off, ten turns import nothing of daimons, query nothing about them and add no job."""
    script = """
import asyncio, sys, tempfile, pathlib, sqlite3
from claudius.home import Home
from claudius.memory import database as connection
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive

asked = []
for name in ("run", "one", "all", "value", "values", "change"):
    real = getattr(connection.Database, name)
    def wrapped(self, query, /, _real=real, **values):
        asked.append(self.queries[query])
        return _real(self, query, **values)
    setattr(connection.Database, name, wrapped)

async def main():
    home = Home(pathlib.Path(tempfile.mkdtemp()) / "h")
    home.create()
    mouth = Scripted()
    async with alive(home, mouth, keeps_clock=True) as soul:
        await soul.server._services.look(soul.mind.clock())
        for n in range(10):
            await soul.network.hear(f"line {n}")
            await soul.network.until_visible(n + 1)
        await soul.idle()
        jobs = [row["job"] for row in soul.records().jobs()]
    print(len(mouth.requests), any("Daimonic" in request.tail for request in mouth.requests))
    print([job for job in jobs if "whisper" in job])
    print([sql for sql in asked if "whisper" in sql or "daimon" in sql])
    print([name for name in sys.modules if "daimonic" in name or name in (
        "claudius.runtime.daimons", "claudius.runtime.daimons", "claudius.runtime.http_api", "aiohttp")])

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=REPOSITORY)

    assert ran.stdout.splitlines() == ["10 False", "[]", "[]", "[]"], ran.stderr


async def test_d02_what_leaves_is_exactly_the_request(home: Home) -> None:
    """2: token, method, path; mood, topic, project, two hundred characters of thought and a count; nothing more."""
    mouth = voice("x" * 300)
    async with DaimonServer() as kothar, alive(home, mouth, settings=kothar.environment()) as soul:
        await say(soul, "My bridge rusts, says Beatrix.")
        await soul.mind.store.documents.set_state("currentTopic", "rust", private(OWNER), soul.mind.clock())
        found = await soul.services._daimons.get().now("kothar")

    (asked,) = kothar.heard
    assert (found.whisper, found.transport, found.stored) == (LINE, "http", True)
    assert (asked.method, asked.path) == ("POST", "/api/whisper")
    assert asked.headers["Authorization"] == "Bearer token-of-the-daimon"
    assert asked.body == {
        "source": "claudius",
        "context": {
            "soul_state": {"emotionalState": "neutral", "currentTopic": "rust", "currentProject": ""},
            "recent_monologue": "x" * 200,
            "interaction_count": 1,
        },
    }


async def test_d03_a_whisper_is_felt_once(home: Home) -> None:
    """3: the next prompt has it under its heading as one fenced line, not in the system part; the one after has not."""
    mouth = voice()
    async with alive(home, mouth, settings=ON) as soul:
        await keep(soul)
        await say(soul, "Hello.")
        await say(soul, "And now?")
        first = soul.records().conversation("rehearsal:t:dm-owner:")["entries"][0]["turn"]
        why = soul.records().turn(first)

    assert felt(mouth) == [True, False]
    assert intuitions(turns(mouth)[0]) == [{"kind": "intuition", "text": f"Kothar whispers: {LINE}"}]
    assert LINE not in turns(mouth)[0].system
    assert not any(LINE in one.content for one in turns(mouth)[1].history)
    assert [one["content"] for one in why["thoughts"] if one["step"] == "daimonic_intuition"] == [LINE]


async def test_d04_a_turn_that_fails_does_not_burn_it(home: Home) -> None:
    """4: killed before the commit, the retry feels it again, in another process too; after the commit no one does."""
    mouth = Scripted([Overloaded("busy", provider="scripted"), REPLY.format("ok"), REPLY.format("ok")])
    async with alive(home, mouth, settings=ON, clean=False) as soul:
        await keep(soul)
        gone = asyncio.Event()
        object.__setattr__(soul.mind.store.turns, "commit", lambda _: gone.wait())
        await soul.network.hear("Hello.", person="owner")
        async with asyncio.timeout(20):
            while len(turns(mouth)) < 2:
                await asyncio.sleep(0.002)
    again = voice()
    async with alive(home, again, settings=ON) as soul:
        await soul.network.until_visible(1)
        await say(soul, "And now?")
        first = soul.records().conversation("rehearsal:t:dm-owner:")["entries"][0]["turn"]
        tail = [tuple(row) for row in soul.records()._db.connection.execute("SELECT state, used_turn FROM whisper")]
        why = soul.records().turn(first)

    assert felt(mouth) == [True, True]
    assert felt(again)[-1] is False
    assert tail == [("used", first)]
    assert "daimonic_intuition" in [one["step"] for one in why["thoughts"]]


async def test_d05_two_conversations_and_one_whisper(home: Home) -> None:
    """5: of two prompts built at the same moment, exactly one holds it."""
    mouth = Scripted(default=lambda _: REPLY.format("ok"))
    async with alive(home, mouth, settings=ON) as soul:
        await keep(soul)
        await asyncio.gather(*(soul.network.hear("Hello.", person=who) for who in ("ana", "ben")))
        await soul.until_said(2)

    assert sorted(felt(mouth)) == [False, True]


async def test_a_function_feels_it_once_it_thinks(home: Home) -> None:
    """In a function process a thought holds the whisper and uses it up. A function that only speaks leaves it."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Think only when told to."""
        if "think" in turn.perception.text:
            memory, _ = await turn.think(memory, internal_monologue())
        memory, line = await turn.think(memory, external_dialogue())
        turn.say(line)
        return memory

    made = mental_process()(talk)
    mouth = Scripted(default=by_tag(external_dialogue="So it is."))
    async with minds(home, mouth, settings=ON, greeting=made, main_process=made) as soul:
        await keep(soul)
        for text in ("only speak", "think first", "think again"):
            await say(soul, text)
        used = [tuple(row) for row in soul.records()._db.connection.execute("SELECT state FROM whisper")]

    assert [HEADING in whole(request) for request in mouth.requests] == [False, True, True, False, False]
    assert used == [("used",)]


def whole(request: Request) -> str:
    """Return everything on the user's side of a request."""
    return "".join(message.content for message in request.history[-2:]) + request.tail


ANSWERS = [
    (Whispers(status=401), "model", "it refused our token"),
    (Whispers(status=403), "model", "it refused our token"),
    (Whispers(status=503, headers={"Retry-After": "30"}), "model", "it dreams"),
    (Whispers(status=204), None, ""),
    (Whispers(body={"whisper": "  "}), None, ""),
    (Whispers(hangs=True), "model", ""),
    (Whispers(body=b"x" * 9000), "model", "longer"),
    (Whispers(body=b"x" * 1_000_000), "model", "longer"),
    (Whispers(body=["a", "list"]), "model", "no whisper"),
    (Whispers(body={"whisper": 7}), "model", "no whisper"),
    (Whispers(body=b"<html>hi</html>"), "model", "no JSON"),
    (Whispers(body=b"[" * 8000), "model", "no JSON"),
    (Whispers(status=302, headers={"Location": "http://127.0.0.1:1/"}), "model", "302"),
]


@pytest.mark.parametrize(("answer", "then", "detail"), ANSWERS, ids=lambda one: str(one)[:28])
async def test_d06_what_goes_wrong_harms_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, answer: Whispers, then: str | None, detail: str
) -> None:
    """6: as in the table, the model replaces it or there is silence. No redirect is followed, and no turn waits."""
    mouth = voice()
    monkeypatch.setattr(asking, "HTTP_S", 0.3)
    async with DaimonServer([answer]) as kothar:
        settings = kothar.environment() | {"CLAUDIUS_KOTHAR_GROQ_ENABLED": "1"}
        async with alive(home, mouth, settings=settings) as soul:
            await say(soul, "Hello.")
            found = await soul.services._daimons.get().now("kothar")
            standing = soul.mind.store.whispers.standing("kothar", soul.mind.clock())

    assert len(kothar.heard) == 1
    assert (found.transport if found.stored else None) == then
    assert found.whisper == ("The model's line." if then else "")
    assert detail in standing.reason
    assert [request.purpose for request in mouth.requests] == (["turn", "whisper"] if then else ["turn"])


async def test_d06_http_rests_after_three_failures(home: Home) -> None:
    """6: after three failures in a row it rests for an hour. A changed address, or that hour, ends the rest."""
    now = [DAY]

    def clock() -> datetime:
        """Return the time."""
        return now[0]

    kothar = DaimonServer([Whispers(status=500)])
    async with kothar, alive(home, voice(), settings=kothar.environment(), clock=clock) as soul:
        asking = soul.services._daimons.get()
        for _ in range(5):
            await asking.now("kothar")
        rested = len(kothar.heard)
        now[0] += timedelta(hours=1, seconds=1)
        await asking.now("kothar")

    assert (rested, len(kothar.heard)) == (3, 4)


async def test_d06_a_model_whispers_on_its_own_character(home: Home) -> None:
    """5 of the design: its own soul.md and the whisper's rules are the system part, and its input is fenced data."""
    mouth = voice()
    settings = {"CLAUDIUS_DAIMON_URANIA_GROQ_ENABLED": "1", "CLAUDIUS_DAIMON_URANIA_TEMPERATURE": "0.5"}
    (home.soul / "daimons").mkdir()
    (home.soul / "daimons" / "urania.md").write_text("# Urania\nYou count stars.\n", "utf-8")
    async with alive(home, mouth, settings=settings) as soul:
        await say(soul, "Hello.")
        found = await soul.services._daimons.get().now("urania")
        await say(soul, "And now?")

    (asked,) = [request for request in mouth.requests if request.purpose == "whisper"]
    assert (found.transport, found.stored) == ("model", True)
    assert asked.system.startswith("# Urania\nYou count stars.")
    assert "one line, under 40 words" in asked.system
    assert (asked.temperature, asked.max_tokens, asked.history) == (0.5, 150, ())
    assert asked.tail.startswith("<data-")
    assert "They are tired." in asked.tail
    assert intuitions(turns(mouth)[1])[0]["text"] == "Urania whispers: The model's line."


async def test_d08_a_guests_private_thought_does_not_leave(home: Home) -> None:
    """8: after another's direct message only mood and count leave, unless `share_private` is set."""
    async with DaimonServer() as kothar, alive(home, voice("CANARY of Ana"), settings=kothar.environment()) as soul:
        await say(soul, "Hello.", person="ana")
        await soul.mind.store.documents.set_state(
            "currentTopic", "CANARY", private("rehearsal:t:ana"), soul.mind.clock()
        )
        await soul.services._daimons.get().now("kothar")
        sources = soul.records()._db.all("whispers_active")[0]["sources"]

    assert "CANARY" not in json.dumps(kothar.heard[0].body)
    assert kothar.heard[0].body["context"]["interaction_count"] == 1
    assert json.loads(sources) == [SELF]


async def test_d08_where_it_is_shared_the_whisper_stays_there(home: Home) -> None:
    """8, 9: a whisper made from a thought belongs to that audience: it is felt there, and by no one else."""
    mouth = voice("CANARY of Ana")
    async with DaimonServer() as kothar:
        settings = kothar.environment() | {"CLAUDIUS_KOTHAR_SHARE_PRIVATE": "1"}
        async with alive(home, mouth, settings=settings) as soul:
            await say(soul, "Hello.", person="ana")
            await soul.services._daimons.get().now("kothar")
            await say(soul, "Hello.", person="ben")
            await say(soul, "And now?", person="ana")

    assert "CANARY" in kothar.heard[0].body["context"]["recent_monologue"]
    assert felt(mouth) == [False, False, True]


async def test_d09_no_whisper_crosses_the_audience_rule(home: Home) -> None:
    """9: learned in one channel, it is in no prompt of another channel, nor of a person outside the first."""
    mouth, here = voice(), "rehearsal:t:c1:"
    async with alive(home, mouth, settings=ON) as soul:
        await keep(soul, sources=(shared(here),))
        await say(soul, "Hello.", person="ana", conversation="rehearsal:t:c2:", is_shared=True)
        await say(soul, "Hello.", person="ben")
        await say(soul, "Hello.", person="ana", conversation=here, is_shared=True)

    assert felt(mouth) == [False, False, True]


async def test_two_daimons_are_felt_the_oldest_first_and_a_newer_line_replaces_an_older(home: Home) -> None:
    """There is one line a daimon and two at most.

    A daimon's newer line replaces the older, and expired lines are gone.
    """
    mouth, now = voice(), [DAY]
    settings = ON | {f"CLAUDIUS_DAIMON_{name}_ENABLED": "1" for name in ("A", "B")}

    def clock() -> datetime:
        """Return the time."""
        return now[0]

    def running() -> float:
        """Return how long the machine has been running."""
        return (now[0] - DAY).total_seconds()

    async with alive(home, mouth, settings=settings, clock=clock, running=running) as soul:
        for daimon, line in (("a", "old a"), ("kothar", "old k"), ("b", "one b"), ("kothar", "new k")):
            await keep(soul, line, daimon=daimon)
        await say(soul, "Hello.")
        await say(soul, "Again.")
        await keep(soul, "late")
        now[0] += timedelta(hours=25)
        await say(soul, "Tomorrow.")

    shown = [[one["text"] for one in intuitions(request)] for request in turns(mouth)]
    assert shown == [["A whispers: old a", "B whispers: one b"], ["Kothar whispers: new k"], []]


@pytest.mark.parametrize("where", ["everywhere", "here"])
async def test_a_daimon_that_is_muted_is_not_felt(home: Home, where: str) -> None:
    """Its rows stay. If only one conversation muted it, it is still felt in another."""
    mouth = voice()
    async with alive(home, mouth, settings=ON) as soul:
        await keep(soul)
        await soul.mind.store.whispers.set_mode("kothar", "off", "rehearsal:t:dm-ana:" if where == "here" else "")
        await say(soul, "Hello.", person="ana")
        await say(soul, "Hello.", person="ben")

    assert felt(mouth) == ([False, True] if where == "here" else [False, False])


async def test_who_is_forgotten_leaves_no_whisper_behind(home: Home) -> None:
    """What a daimon made from one person's private talk is erased with them, and what it made from no one's stays."""
    async with alive(home, voice(), settings=ON) as soul:
        await say(soul, "Hello.", person="ana")
        await keep(soul, "CANARY", sources=(private("rehearsal:t:ana"),))
        await keep(soul, "They wait.")
        await soul.mind.store.whispers.set_mode("kothar", "off", "rehearsal:t:dm-ana:")
        await soul.mind.store.erasure.erase(["rehearsal:t:ana"])
        rows = [tuple(row) for row in soul.records()._db.connection.execute("SELECT text FROM whisper")]
        modes = tuple(soul.records()._db.connection.execute("SELECT count(*) FROM daimon_mode").fetchone())

    assert rows == [("They wait.",)]
    assert modes == (0,)
