"""Health: from the networks' own state, the last model call and the store; one list of problems."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.config.schema import ModelSettings
from claudius.config.tables import AlertSettings
from claudius.errors import Overloaded, ProviderError, SpendLimit, TooLong
from claudius.home import Home
from claudius.provider import Request, Resting, VoiceState
from claudius.providers.chain import Chain
from claudius.providers.scripted import Scripted
from claudius.runtime import adapter
from claudius.runtime.adapter import Link
from claudius.runtime.health import EMPTY_BYTES, HealthFacts, Hearing, Kept, Problem, Report, Spending, growth, problems
from claudius.testing.alive import alive
from driven import reply

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WELL = {"terminal": Hearing(), "slack": Hearing(heard_s=3.0)}


def found(**facts: Any) -> tuple[Problem, ...]:
    """Return the problems of a soul that is well but for some facts."""
    return problems(HealthFacts(**{"at": NOW, "networks": WELL, "voice": VoiceState(), **facts}), AlertSettings())


def test_a_soul_that_is_well_has_no_problem() -> None:
    """Nothing heard yet, no model call yet, no budget: all is well."""
    assert found(networks={"slack": Hearing()}) == ()


@pytest.mark.parametrize(
    ("facts", "kind", "fails"),
    [
        ({"networks": {"slack": Hearing(unheard_s=5.0, detail="lost")}}, "network", True),
        ({"voice": VoiceState(last_error="no")}, "voice", True),
        ({"voice": VoiceState(resting=(Resting("api", 60.0, "401"),))}, "voice", True),
        ({"store": "3 MB free"}, "store", True),
        ({"kept": Kept(spending=(Spending("daily", 1.0, 0.79),))}, "", False),
        ({"kept": Kept(spending=(Spending("daily", 1.0, 0.8),))}, "budget", False),
        ({"kept": Kept(spending=(Spending("daily", 1.0, 1.0),))}, "budget", True),
        ({"kept": Kept(spending=(Spending("daily", 0.0, 9.0),))}, "", False),
        ({"kept": Kept(backup_failure="OSError")}, "backup", True),
        ({"apologies": 10}, "", False),
        ({"apologies": 11}, "apologies", False),
        ({"kept": Kept(counts={"inbox": {"dead": 1}, "outbox": {"failed": 2}})}, "given_up", False),
        ({"kept": Kept(disk_days_left=30)}, "", False),
        ({"kept": Kept(disk_days_left=29)}, "disk", False),
        ({"archive": "no route to host"}, "archive", False),
    ],
)
def test_what_is_a_problem_and_what_makes_health_fail(facts: dict[str, Any], kind: str, fails: bool) -> None:  # noqa: FBT001 - pytest hands it over
    """Each condition, at its border."""
    what = found(**facts)
    report = Report(facts=HealthFacts(at=NOW, networks=WELL, voice=VoiceState()), problems=what)

    assert [one.kind for one in what] == ([kind] if kind else [])
    assert report.is_well is not fails
    assert bool(report.document()["reasons"]) is fails


def test_a_network_says_since_when_it_is_not_heard() -> None:
    """The time counts from when it was lost, not from when a person looked."""
    (lost,) = found(networks={"slack": Hearing(unheard_s=90.0)})

    assert lost.since == NOW - timedelta(seconds=90)


def test_how_long_the_disk_lasts_is_known_after_a_day() -> None:
    """Without a turn nothing is known; after a day of turns, the days that are left."""
    size = {"bytes": EMPTY_BYTES + 100_000, "turns": 100, "days": 0.5, "gives_back": True}

    assert growth(size | {"turns": 0}, 1) == (None, None)
    assert growth(size, 1_000_000) == (1000.0, None)
    assert growth(size | {"days": 2.0}, 1_000_000) == (1000.0, 20)


def test_a_network_that_this_process_need_not_hear_is_none_that_it_does_not_hear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who only speaks is connected and misses nothing; who begins to listen is asked how long it is not heard."""
    clock, gaps = [100.0], list[float | None]()
    monkeypatch.setattr(adapter.time, "monotonic", lambda: clock[0])
    link = Link()
    link.on_missed(gaps.append)

    def state() -> tuple[bool, bool, float | None]:
        """Return what can be seen from outside after another minute."""
        clock[0] += 60.0
        return link.connected, link.hears, link.unheard_s()

    link.speaks()
    speaking = state()
    link.listen()
    beginning = state()
    link.up()
    hearing = state()
    link.down("gone")
    lost = state()
    link.up()
    link.speaks()
    silent = state()
    link.listen()
    link.up()

    assert speaking == silent == (True, False, None)
    assert (beginning, hearing, lost) == ((False, False, 60.0), (True, True, None), (False, False, 60.0))
    assert gaps == [None, 60.0, None]
    assert link.reconnects == 1


def test_a_network_that_misses_messages_is_deaf_until_one_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as deaf from the first missed message on, until an event arrives or no more are missed for a while."""
    clock = [0.0]
    monkeypatch.setattr(adapter.time, "monotonic", lambda: clock[0])
    link, seen = Link(), []
    link.up()
    for then, act in (
        (10.0, link.deaf),
        (40.0, link.deaf),
        (50.0, link.heard),
        (60.0, link.deaf),
        (151.0, lambda: None),
    ):
        clock[0] = then
        act()
        seen.append(link.unheard_s())
    link.down("gone")
    clock[0] = 161.0

    assert seen == [0.0, 30.0, None, 0.0, None]
    assert link.unheard_s() == 10.0


async def test_the_last_attempt_says_whether_there_is_a_voice() -> None:
    """A failure counts until a reply; a prompt that was too long says nothing of the provider."""
    voice = Scripted([Overloaded("busy"), reply("Yes."), TooLong("long"), SpendLimit("no money")])
    chain = Chain([voice], ModelSettings(retries=0))
    states = [chain.state()]
    for _ in range(4):
        await _ask(chain)
        states.append(chain.state())

    assert [(one.is_well, one.last_error) for one in states[:4]] == [
        (True, ""),
        (False, "scripted: busy"),
        (True, ""),
        (True, ""),
    ]
    assert [one.name for one in states[4].resting] == ["scripted"]


async def _ask(chain: Chain) -> None:
    try:
        async for _ in chain.complete(Request(system="s", history=(), tail="t", max_tokens=9)):
            pass
    except ProviderError:
        return


async def test_a_writer_that_hangs_is_a_store_that_does_not_write(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is queued has to be written within two seconds."""

    async def never() -> None:
        """Hang."""
        await asyncio.Event().wait()

    async with alive(home, Scripted()) as soul:
        with monkeypatch.context() as patch:
            patch.setattr(soul.mind.store, "flush", never)
            patch.setattr("claudius.runtime.health.WRITES_S", 0.01)
            report = await soul.server.health.look(0.0)

    assert not report.is_well
    assert "was not written" in report.facts.store


async def test_whoever_stops_waits_for_what_reads_beside_the_store(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that is stopped at once closes its connection after the thread that reads on it (SIGSEGV)."""
    reads, gate, ended, loop = asyncio.Event(), threading.Event(), list[str](), asyncio.get_running_loop()

    def slow(*_: object) -> None:
        """Read for as long as the gate is shut."""
        loop.call_soon_threadsafe(reads.set)
        gate.wait()
        ended.append("read")

    async with alive(home, Scripted()) as soul:
        monkeypatch.setattr("claudius.runtime.health.read", slow)
        looking = asyncio.create_task(soul.server.health.look(0.0))
        await reads.wait()
        looking.cancel()
        loop.call_soon(gate.set)
        await asyncio.wait([looking])
        ended.append("cancelled")

    assert ended == ["read", "cancelled"]
