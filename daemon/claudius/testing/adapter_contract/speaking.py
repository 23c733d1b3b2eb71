"""Speaking: exactly one message a part, a receipt, and the truth where its fate is not known; and the end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from claudius.errors import DeliveryUnknown
from claudius.testing.adapter_contract.ground import PATIENCE_S, Make, answer, case, listening
from claudius.testing.adapter_contract.stage import DM, Stage


@case("A15", "what is said is visible once, word for word; looked for, its receipt is found")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        said = answer(heard, "*here* <I> am & so on")
        receipt = await one.adapter.speak(said)
        found = await one.adapter.find(said, decided_at=datetime.now(UTC))
        other = await one.adapter.find(answer(heard, "never said", n=1, of=2), decided_at=datetime.now(UTC))
    assert [shown.text for shown in await stage.visible()] == ["*here* <I> am & so on"]
    assert receipt
    assert found in (receipt, None)  # a network that shows a key once need not look
    assert other is None


@case("A16", "applied, and the answer lost: it says that it does not know, and finds it", "lost answers")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        await stage.lose_answer(is_applied=True)
        said = answer(heard, "here")
        receipt = await _unknown(one.adapter.speak(said))
        found = await one.adapter.find(said, decided_at=datetime.now(UTC))
    (shown,) = await stage.visible()
    assert receipt in ("", shown.id)
    assert found == shown.id


@case("A17", "never applied: nothing is visible, and nothing is found", "lost answers")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        await stage.lose_answer(is_applied=False)
        said = answer(heard, "here")
        receipt = await _unknown(one.adapter.speak(said))
        found = await one.adapter.find(said, decided_at=datetime.now(UTC))
    seen = [shown.id for shown in await stage.visible()]
    assert (seen, found) == (([receipt], receipt) if receipt else ([], None))  # a library may have asked again


async def _unknown(speaking: object) -> str:
    """Return the receipt; empty where its fate is not known."""
    try:
        return str(await speaking)  # type: ignore[misc] # a coroutine of the adapter's own
    except DeliveryUnknown:
        return ""


@case("A22", "the sign that it thinks comes and goes, and holds nothing up")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        for on in (True, True, False, False):
            await one.adapter.working(heard, on=on)
        await one.adapter.speak(answer(heard, "here"))
    assert [shown.text for shown in await stage.visible()] == ["here"]


@case("A30", "after the end nothing is heard, and no task is left")
async def _(make: Make, stage: Stage) -> None:
    before = asyncio.all_tasks()
    async with listening(make) as one:
        await stage.say(DM, "hello")
        await one.ear.until(1)
    await stage.say(DM, "too late")
    assert [heard.text for heard in one.ear.heard.values()] == ["hello"]
    async with asyncio.timeout(PATIENCE_S):
        while left := {task for task in asyncio.all_tasks() - before if not task.get_name().startswith("Task-")}:
            await asyncio.wait(left, timeout=0.1)  # those of the libraries have no names
