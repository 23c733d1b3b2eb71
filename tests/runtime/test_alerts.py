"""Alerts: told once, again when it grows, and when it is mended; quiet hours hold but for what is urgent."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from claudius.config.tables import AlertSettings
from claudius.errors import DeliveryLater
from claudius.home import Home
from claudius.perception import private
from claudius.providers.scripted import Scripted
from claudius.runtime import alerts
from claudius.runtime.alerts import Alerts, ToldAlert, decide
from claudius.runtime.health import Problem
from claudius.runtime.process_resources import Clock, Disk, ProcessResources
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from lab.loopback.listening import listen

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
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


@pytest.mark.parametrize("kind", ["voice", "budget", "backup", "apologies", "given_up"])
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
    monkeypatch.setattr(alerts, "DEAF_S", 0.0)
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
