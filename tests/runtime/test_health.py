"""Health, one list of problems; alerts: told once, again when it grows, and when it is mended; quiet hours hold."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from claudius.config.schema import ModelSettings
from claudius.config.tables import AlertSettings
from claudius.errors import DeliveryLater, Overloaded, ProviderError, SpendLimit, TooLong
from claudius.home import Home
from claudius.perception import private
from claudius.provider import Request, Resting, VoiceState
from claudius.providers.chain import Chain
from claudius.providers.scripted import Scripted
from claudius.runtime import adapter, alerts
from claudius.runtime.adapter import Link
from claudius.runtime.alerts import Alerts, ToldAlert, decide
from claudius.runtime.health import EMPTY_BYTES, HealthFacts, Hearing, Kept, Problem, Report, Spending, growth, problems
from claudius.runtime.process_resources import Clock, Disk, ProcessResources
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import reply
from lab.loopback.listening import listen

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
        ({"withheld": {"G5": "T1"}}, "withheld", False),
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


SETTINGS = AlertSettings()
OWNERS = {"CLAUDIUS_OWNERS": "rehearsal:t:ana,other:t:ana", "CLAUDIUS_CLOCK_QUIET": "00:00-00:00"}


def problem(kind: Any, *, since_s: float = 0.0, subject: str = "", grade: int = 0) -> Problem:
    """Return a problem that began so many seconds ago."""
    since = NOW - timedelta(seconds=since_s)
    return Problem(kind=kind, subject=subject, detail="it is so", fix="do this", since=since, grade=grade)


def told(
    *found: Problem, before: tuple[ToldAlert, ...] = (), is_silent: bool = False
) -> tuple[list[str], tuple[ToldAlert, ...]]:
    """Return the state and kind of each alert, and what is told from now on."""
    after, alerts = decide(before, found, NOW, is_silent=is_silent)
    return [f"{one.state} {one.kind}" for one in alerts], after


@pytest.mark.parametrize(
    ("kind", "since_s", "is_told"),
    [
        ("network", 119.0, False),
        ("network", 120.0, True),
        ("voice", 29.0, False),
        ("voice", 30.0, True),
        ("store", 0.0, True),
        ("budget", 0.0, True),
        ("backup", 0.0, True),
        ("disk", 0.0, True),
    ],
)
def test_a_problem_is_told_after_its_time(kind: str, since_s: float, is_told: bool) -> None:  # noqa: FBT001 - pytest hands it over
    """A network may be deaf for two minutes, and a model fail for 30 s, before anybody is told; the rest is told at once."""
    assert bool(told(problem(kind, since_s=since_s))[0]) is is_told


def test_a_problem_is_told_once_and_its_end_once() -> None:
    """What stands is not repeated; what is over is said once."""
    first, known = told(problem("voice", since_s=60))
    again, known = told(problem("voice", since_s=90), before=known)
    over, known = told(before=known)
    then, _ = told(before=known)

    assert (first, again, over, then) == (["firing voice"], [], ["resolved voice"], [])


def test_a_problem_that_grows_is_told_again() -> None:
    """80 % of a budget is told, then 100 %; its end is one line. So are dead rows, each time there are more."""
    near, known = told(problem("budget", subject="daily", grade=80))
    still, known = told(problem("budget", subject="daily", grade=80), before=known)
    spent, known = told(problem("budget", subject="daily", grade=100), before=known)
    over, _ = told(before=known)

    assert (near, still, spent, over) == (["firing budget"], [], ["firing budget"], ["resolved budget"])


@pytest.mark.parametrize("kind", ["network", "store", "disk"])
def test_what_is_urgent_is_told_in_quiet_hours(kind: str) -> None:
    """A deaf network and a full disk do not wait for the morning, nor does their end."""
    began, known = told(problem(kind, since_s=600), is_silent=True)
    ended, _ = told(before=known, is_silent=True)

    assert (began, ended) == ([f"firing {kind}"], [f"resolved {kind}"])


@pytest.mark.parametrize("kind", ["voice", "budget", "backup", "apologies", "given_up", "withheld"])
def test_the_rest_waits_for_the_morning(kind: str) -> None:
    """In quiet hours nothing else is told, nor its end; what is over by the morning was never a matter."""
    at_night, none_known = told(problem(kind, since_s=600), is_silent=True)
    _, known = told(problem(kind, since_s=600))
    ended_at_night, known = told(before=known, is_silent=True)
    in_the_morning, _ = told(before=known)

    assert (at_night, none_known, ended_at_night, in_the_morning) == ([], (), [], [f"resolved {kind}"])


class Hook:
    """A webhook that answers as it is told, then with 200."""

    def __init__(self, *statuses: int) -> None:
        """Answer first with these statuses."""
        self.statuses, self.got = list(statuses), list[dict[str, Any]]()
        self.runners: list[web.AppRunner] = []

    async def __aenter__(self) -> str:
        """Listen; return the URL."""
        app = web.Application()
        app.router.add_post("/", self._take)
        return f"http://127.0.0.1:{await listen(app, '127.0.0.1', 0, self.runners)}/"

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        for runner in self.runners:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.got.append(json.loads(await request.read()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)


def alerts_of(soul: Alive, *adapters: RehearsalAdapter) -> Alerts:
    """Return the alerts of a soul, which the test has look."""
    return Alerts(soul.mind, soul.server.health, {one.name: one for one in adapters}, soul.home)


async def test_an_owner_is_told_on_a_network_that_still_hears(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """With linked accounts on two networks, one line arrives: on the network that is heard."""
    other = RehearsalAdapter(name="other")
    monkeypatch.setitem(alerts.PATIENCE, "network", timedelta())
    async with alive(home, Scripted(), settings=OWNERS, beside=(other,)) as soul:
        here = await soul.network.hear("hello")
        there = {"person": "other:t:ana", "conversation": "other:t:dm-ana:", "audience": private("other:t:ana")}
        assert other._accept
        await other._accept(replace(here, key="other:1", **there))
        await soul.idle()
        await soul.mind.store.people.link("rehearsal:t:ana", "other:t:ana")
        soul.network.link.down("gone")
        said = len(soul.network.visible), len(other.visible)
        await alerts_of(soul, soul.network, other).look()

    assert len(soul.network.visible) == said[0]
    assert [one.conversation for one in other.visible[said[1] :]] == ["other:t:dm-ana:"]
    assert "rehearsal: does not hear: gone" in other.visible[-1].text


async def test_an_owner_is_told_once_of_a_secret_that_was_about_to_be_said(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """By the turn that the log names, too, and without the secret."""
    async with alive(home, Scripted(default=reply("It is AKIAIOSFODNN7EXAMPLE.")), settings=OWNERS) as soul:
        for count, text in enumerate(("What is the key?", "Again?"), 1):
            await soul.network.hear(text)
            await soul.until_said(count)
        told = alerts_of(soul, soul.network)
        await told.look()
        await told.look()
        shown = [one.text for one in soul.network.visible]

    named = {vars(one)["turn"] for one in caplog.records if one.message == "a reply was withheld"}
    (alert,) = [one for one in shown if "secret: I was about to say one" in one]
    assert alert.partition(", in turn ")[2].partition(".")[0] in named
    assert not [one for one in shown if "AKIA" in one]


class Deferring(RehearsalAdapter):
    """A network that takes a line at the second try."""

    tries = 0

    async def tell(self, person: str, text: str) -> None:
        """Refuse the first line for now."""
        self.tries += 1
        if self.tries == 1:
            raise DeliveryLater(1.0)
        await super().tell(person, text)


async def test_what_did_not_arrive_is_told_again_and_what_arrived_is_not(home: Home) -> None:
    """A webhook with trouble of its own, and a network that says later, are asked again; each then has it once."""
    network, hook = Deferring(), Hook(503)
    async with hook as url:
        settings = OWNERS | {"CLAUDIUS_ALERTS_WEBHOOK": url, "CLAUDIUS_BUDGET_DAILY_USD": "1"}
        needed_mb = [1000]
        disk = Disk(home, lambda: needed_mb[0], free_mb=lambda: 100)
        disk.look()
        resources = ProcessResources(clock=Clock(lambda: NOW), disk=disk)
        async with alive(home, Scripted(), settings=settings, network=network, resources=resources) as soul:
            alerts = alerts_of(soul, network)
            for _ in range(4):
                await alerts.look()
            restarted = alerts_of(soul, network)
            await restarted.look()
            needed_mb[0] = 0
            disk.look()
            await restarted.look()

    assert [one["state"] for one in hook.got] == ["firing", "firing", "resolved"]  # the first was refused
    assert [one.text.partition(":")[0] for one in network.visible][1:] == ["Mended"]
    assert len(network.visible) == 2
