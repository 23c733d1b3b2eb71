"""Two processes hear for one soul: what one is told of who may talk, how often and where, the other keeps as well."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from claudius.errors import OverBudget, Overloaded
from claudius.perception import EditExtra, Kind, Perception, Standing, private
from claudius.provider import Event, Request, Usage
from claudius.providers.scripted import Line, Scripted
from claudius.reports.session import ask
from claudius.runtime.alerts import Alerts
from claudius.runtime.health import Problem
from claudius.testing.alive import Alive
from workers import START, World, echo

RATE = {"CLAUDIUS_BUDGET_PERSON_PER_MINUTE": "2"}


async def test_scale_w6_one_apology_whoever_hears(postgres_url: str, tmp_path: Path) -> None:
    """A person who writes to two listeners in turn gets one apology, and is then refused by both."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, settings=RATE) for _ in range(2)]
        for n in range(3):
            await world.offer(souls[n % 2], world.post(0, n))
        await world.until_visible(3)
        for soul in souls:
            with pytest.raises(OverBudget):
                await world.offer(soul, world.post(0, 9))

    assert world.calls() == 2
    assert sum("allowed to spend" in one.text for one in world.visible) == 1


async def until_mode(souls: Sequence[Alive], mode: str) -> None:
    """Wait until every process knows this mode of the first conversation."""
    async with asyncio.timeout(20):
        while {one.mind.store.people.access("", "rehearsal:t:dm-p0")[1] for one in souls} != {mode}:
            await asyncio.sleep(0.01)


async def test_scale_w5_f15_a_place_that_one_process_silenced_is_silent_for_all(
    postgres_url: str, tmp_path: Path
) -> None:
    """F15: whichever process carries `/ensoul off` out, the next message that any hears there is only remembered."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack) for _ in range(2)]
        for n, soul in enumerate(souls):
            await world.offer(soul, world.post(0, n))
        await world.until_visible(2)
        await world.offer(souls[0], replace(world.post(0, 2), text="!ensoul off"))
        await until_mode(souls, "off")
        for n, soul in enumerate(souls):
            await world.offer(soul, replace(world.post(0, 3 + n), text="hush"))
        await world.offer(souls[1], replace(world.post(0, 5), text="!ensoul on"))
        await until_mode(souls, "on")
        await world.offer(souls[0], world.post(0, 6))
        await world.until_visible(3)

    assert not [one for one in world.visible if "hush" in one.text]
    assert world.visible[-1].text == "re 0/6"


async def test_scale_w5_an_edit_that_another_process_heard_first_is_answered(postgres_url: str, tmp_path: Path) -> None:
    """The edit came to one socket, the message a moment later to the other: the new words are answered."""
    world = World(postgres_url, tmp_path)
    message = world.post(0, 0)
    edit = replace(
        message, key="edit", text="0/0 mended", position=message.position + "1", kind=Kind.EDIT, owes=False,
        extra=EditExtra(of=message.key),
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        one, other = [await world.worker(stack) for _ in range(2)]
        await world.offer(one, edit)
        await world.offer(other, message)
        await world.until_visible(1)

    assert [one.text for one in world.visible] == ["re 0/0 mended"]


async def test_scale_w5_a_code_is_approved_and_taken_back_at_any_process(postgres_url: str, tmp_path: Path) -> None:
    """What one process offered another lists and approves; the first hears the stranger then, until one revokes."""
    world = World(postgres_url, tmp_path)
    eve = "discord:@me:7"
    stranger = Perception(
        key="e0", conversation="discord:@me:70:", audience=private(eve), person=eve, name="Eve", text="Let me in",
        at=START, position="1", standing=Standing.OUTSIDER,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        one, other = [await world.worker(stack) for _ in range(2)]
        assert one.network._accept
        heard = [await one.network._accept(stranger)]
        listed = await ask(other.home, "pairing_list")
        approved = await ask(other.home, "pairing_approve", code=listed["open"][0]["code"])
        heard.append(await one.network._accept(replace(stranger, key="e1", position="2")))
        await ask(one.home, "pairing_revoke", person=eve)
        assert other.network._accept
        heard.append(await other.network._accept(replace(stranger, key="e2", position="3")))
        after = await ask(one.home, "pairing_list")

    assert approved["event"] == "paired"
    assert heard == [False, True, False]
    assert [row["person"] for row in listed["open"]] == [eve]
    assert after["paired"] == []


class Ill:
    """A health that a test sets."""

    def __init__(self, soul: Alive) -> None:
        """Be well, as this soul is."""
        self._soul, self.problems = soul, tuple[Problem, ...]()

    async def look(self) -> Any:
        """Return what is wrong."""
        found = await self._soul.server.health.look()
        return SimpleNamespace(facts=found.facts, problems=self.problems)


async def test_scale_w6_an_owner_is_told_once_for_the_soul(postgres_url: str, tmp_path: Path) -> None:
    """Two processes find the same: one tells it, and the last one to be well says that it is over."""
    world, told = World(postgres_url, tmp_path), list[int]()
    owner = {"CLAUDIUS_OWNERS": "rehearsal:t:ana", "CLAUDIUS_CLOCK_QUIET": "00:00-00:00"}
    near, spent = (Problem(kind="budget", subject="daily", detail="so", fix="do", grade=n) for n in (80, 100))
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, settings=owner) for _ in range(2)]
        ills = [Ill(soul) for soul in souls]
        alerts = [
            Alerts(soul.mind, ill, {"rehearsal": soul.network}, soul.home)  # type: ignore[arg-type] # all it needs
            for soul, ill in zip(souls, ills, strict=True)
        ]
        for found in [(near, near), (near, spent), (spent, spent), (spent, None), (None, None), (near, None)]:
            for ill, alert, one in zip(ills, alerts, found, strict=True):
                ill.problems = (one,) if one else ()
                await alert.look()
            told.append(len(world.visible))

    assert told == [1, 2, 2, 2, 3, 4]
    assert [one.text.partition(":")[0] for one in world.visible][2] == "Mended"


@pytest.mark.parametrize("setting", ["DAILY_USD", "MONTHLY_USD"])
async def test_scale_w6_a_cap_is_passed_by_one_call_at_most(
    postgres_url: str, tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight people write at once to two processes: together they spend what is left, and the others get the apology."""
    world, gate, speak = World(postgres_url, tmp_path), asyncio.Event(), Scripted._speak

    async def slowly(self: Scripted, said: Line, request: Request) -> AsyncIterator[Event]:
        """Answer once the test allows it."""
        await gate.wait()
        async for event in speak(self, said, request):
            yield event

    monkeypatch.setattr(Scripted, "_speak", slowly)
    gate.set()
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, settings={f"CLAUDIUS_BUDGET_{setting}": "1"}) for _ in range(2)]
        for voice in world.voices:
            voice.default = lambda request: Line(deltas=(echo(request),), usage=Usage(cost_usd=0.4))
        await world.offer(souls[0], world.post(0, 0))
        await world.until_visible(1)
        gate.clear()
        for n in range(1, 9):
            await world.offer(souls[n % 2], world.post(n, 0))
        await world.until_visible(7)
        gate.set()
        await world.until_visible(9)

    assert world.calls() == 3
    assert sum("allowed to spend" in one.text for one in world.visible) == 6


async def test_scale_w6_a_call_that_failed_counts_no_longer(postgres_url: str, tmp_path: Path) -> None:
    """While one conversation waits for its next try, another may spend what the failed call had booked."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, settings={"CLAUDIUS_BUDGET_DAILY_USD": "0.7"}) for _ in range(2)]
        for voice in world.voices:
            voice.default = unless_busy
        await world.offer(souls[0], world.post(0, 0))
        await world.until_visible(1)
        await world.offer(souls[0], world.post(1, 0))
        async with asyncio.timeout(20):
            while not await waits(souls[0], world.said[1].conversation):
                await asyncio.sleep(0.01)
        await world.offer(souls[1], world.post(2, 0))
        await world.until_visible(2)

    assert world.visible[1].text == "re 2/0"


def unless_busy(request: Request) -> Line:
    """Fail the second person's call for a minute, and answer everybody else's for 0.4 dollars."""
    said = echo(request)
    return (
        Line(fault=Overloaded("busy", after_s=60.0))
        if "re 1/0" in said
        else Line(deltas=(said,), usage=Usage(cost_usd=0.4))
    )


async def waits(soul: Alive, conversation: str) -> bool:
    """Return whether a conversation's message waits for its next try."""
    pending = await soul.mind.store.inbox.oldest(conversation)
    return bool(pending and pending.not_before)
