"""Admission cases: what an adapter reports of a speaker and a place is enough for the soul to admit or refuse them."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claudius.config.schema import Config
from claudius.perception import Following, Kind, Perception
from claudius.runtime.access import EVERYWHERE, admit
from claudius.testing.adapter_contract.ground import Make, answer, case, listening
from claudius.testing.adapter_contract.stage import BOT, CHANNEL, DM, PATIENCE_S, STRANGER, Stage


def _admitted(perception: Perception, *, bots: tuple[str, ...] = ()) -> Perception | None:
    """Return a perception as a soul that is open to every server admits it; None if it is refused."""
    config = Config()
    opened = replace(config.discord, guilds=(EVERYWHERE,))
    return admit(perception, replace(config, discord=opened, bots=replace(config.bots, allow=bots)))


@case("A3", "in a thread that was called the talk goes on; in the channel beside it nothing is owed", "threads")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(CHANNEL, "hello", calls=True)
        (called,) = await one.ear.until(1)
        await one.adapter.speak(answer(called, "here"))
        (shown,) = await stage.until_visible(1)
        await stage.say(CHANNEL, "go on", thread=shown.thread)
        await stage.say(CHANNEL, "beside it")
        await one.ear.until(3)
    within, beside = (_admitted(each) for each in list(one.ear.heard.values())[1:])
    assert within
    assert (within.conversation, within.owes) == (called.conversation, True)
    assert beside
    assert (beside.owes, beside.following) == (False, Following.DROPPED)


@case("A7", "another bot is told as one: refused, unless it is allowed", "strangers")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.meet(BOT)
        await stage.say(CHANNEL, "beep", by=BOT, calls=True)
        (heard,) = await one.ear.until(1)
    assert heard.is_bot
    assert _admitted(heard) is None
    assert _admitted(heard, bots=(heard.person,))


@case("A8", "one who is no member here is not let in", "strangers")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.meet(STRANGER)
        await stage.say(CHANNEL, "let me in", by=STRANGER, calls=True)
        await stage.until_told()
        await stage.say(DM, "hello")
        async with asyncio.timeout(PATIENCE_S):
            while stage.own_person not in {each.person for each in one.ear.heard.values()}:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.01)
    assert {each.person for each in one.ear.heard.values() if _admitted(each)} == {stage.own_person}


@case("A29", "a command carries who gave it, by the network's word, and is answered to that one alone", "commands")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.command(CHANNEL, "whoami")
        (heard,) = await one.ear.until(1)
        await one.adapter.answer(heard, "you are you")
    assert (heard.kind, heard.text, heard.person, heard.owes) == (Kind.COMMAND, "whoami", stage.own_person, False)
    assert heard.audience == f"private:{stage.own_person}"
    assert [text for text in await stage.told() if text] == ["you are you"]
    assert await stage.visible() == []
