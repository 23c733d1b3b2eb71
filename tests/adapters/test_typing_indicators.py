"""A reaction in place of a reply: added once to the message it answers, or replaced by a line if it is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

from both import Side
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from claudius.testing.alive import Alive
from lab.stages.discord import DiscordStage

BY_SIGN = {"CLAUDIUS_PSYCHE_ACKNOWLEDGE": "emoji"}
NAMES = {"+1": "👍"}


async def signs(side: Side) -> list[tuple[str, str]]:
    """Return each of our reactions: the message that it is on, and the emoji."""
    found = []
    for entry in await side.stage.world.trace():  # type: ignore[attr-defined] - both have one
        if (entry.by, entry.kind) == ("app", "react") and entry.text != "eyes":
            on = entry.message if isinstance(side.stage, DiscordStage) else entry.ts
            found.append((on, NAMES.get(entry.text, entry.text)))
    return found


async def until_signs(side: Side, count: int) -> list[tuple[str, str]]:
    """Wait for `count` reactions."""
    async with asyncio.timeout(20):
        while len(await signs(side)) < count:
            await asyncio.sleep(0.01)
    return await signs(side)


def spoken(soul: Alive) -> list[tuple[str, str]]:
    """Return what memory holds as said: the verb and the words."""
    with closing(sqlite3.connect(soul.home.database)) as kept:
        return kept.execute(
            "SELECT verb, content FROM entry WHERE entry_type = 'externalDialog' AND NOT unsaid"
        ).fetchall()


async def test_thanks_are_answered_with_a_reaction(side: Side, home: Home) -> None:
    """If the owner wants it, one reaction on the message is the answer, in a thread too, without a post or a call."""
    voice = Scripted(default="<external_dialogue>hello</external_dialogue>")
    async with side.wake(home, voice, **BY_SIGN) as soul:
        thread = await side.stage.say(CHANNEL, "please tell me what tide tables are for", calls=True)
        await side.stage.until_visible(1)
        await soul.idle()
        asked = len(voice.requests)
        direct = await side.stage.say(DM, "thanks!")
        within = await side.stage.say(CHANNEL, "thank you!", thread=thread)
        put = await until_signs(side, 2)
        await soul.idle()

    assert sorted(put) == sorted([(direct, "👍"), (within, "👍")])
    assert len(await side.stage.visible()) == 1
    assert len(voice.requests) == asked
    assert spoken(soul)[1:] == [("nodded", "👍")] * 2


async def test_a_refused_reaction_becomes_a_line(side: Side, home: Home) -> None:
    """Psyche, section 7: the line is posted once, from the same outbox row, and memory holds what was said."""
    world = side.stage.world  # type: ignore[attr-defined] - both have one
    if isinstance(side.stage, DiscordStage):
        await world.fault("create_reaction", "status", status=403)
    else:
        await world.fault("reactions.add", "error", error="missing_scope", where={"name": "+1"})
    async with side.wake(home, Scripted(), **BY_SIGN) as soul:
        await side.stage.say(DM, "thanks!")
        (shown,) = await side.stage.until_visible(1)
        await soul.idle()

    assert spoken(soul) == [("acknowledged", shown.text)]
    assert await signs(side) == []


async def test_a_reaction_whose_receipt_is_lost_appears_once(side: Side, home: Home) -> None:
    """It is added again: a reaction added twice is one reaction, and nothing is posted besides."""
    world = side.stage.world  # type: ignore[attr-defined] - both have one
    if isinstance(side.stage, DiscordStage):
        await world.fault("create_reaction", "reset", is_applied=True)
    else:
        await world.fault("reactions.add", "reset", is_applied=True, where={"name": "+1"})
    async with side.wake(home, Scripted(), **BY_SIGN) as soul:
        message = await side.stage.say(DM, "thanks!")
        await until_signs(side, 1)
        await soul.idle()

    assert {on for on, _ in await signs(side)} == {message}
    assert await side.stage.visible() == []
    assert spoken(soul) == [("nodded", "👍")]
