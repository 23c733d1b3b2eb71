"""On Slack and on Discord alike: first messages, pieces, threads joined late, reactions in place of a reply, retraction."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from both import SIDES, Side
from case_rows import Row, rows
from claudius.home import Home, shipped
from claudius.providers.scripted import Scripted
from claudius.runtime.adapter import Adapter
from claudius.testing.adapter_contract.stage import BEN, CHANNEL, DM
from claudius.testing.alive import Alive
from ear import echo
from lab.stages.discord import DiscordStage

LINE = (shipped("soul") / "processes/greeting.md").read_text("utf-8").partition("## first_message\n")[2].strip()


def introducing(make: Callable[[], Adapter]) -> Adapter:
    """Create an adapter as it ships."""
    made: Any = make()
    del made.introduces
    return made  # type: ignore[no-any-return] # what was made


MUST = {"three things that it can and one that it cannot, once"}


@pytest.mark.parametrize("network", sorted(SIDES))
@pytest.mark.parametrize("row", rows("newcomer", "any", only="first-dm"))
async def test_the_first_direct_message_is_answered_with_what_it_can(row: Row, network: str, home: Home) -> None:
    """In a channel nobody is told; directly once, whoever was met in a channel too, and not after a restart."""
    assert set(row.right["must"]) == MUST
    async with SIDES[network]() as shy:
        side = replace(shy, make=partial(introducing, shy.make))
        for says in ([(CHANNEL, "are you there?"), (DM, row.input["says"][0]), (DM, "and again")], [(DM, "once more")]):
            async with side.wake(home, Scripted(default=echo)) as soul:
                for place, text in says:
                    before = len(await side.stage.visible())
                    await side.stage.say(place, text, calls=place == CHANNEL)
                    await soul.until_said(before + 1, side.stage)
        said = [one.text for one in await side.stage.visible()]

    assert LINE.startswith("Three things I can do")
    assert "One I cannot" in LINE
    assert [LINE in one for one in said] == [False, True, False, False]
    assert said[1].startswith("re hi")


def lines(home: Home) -> list[str]:
    """Return what people said, as it is kept."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
        return [
            row[0]
            for row in kept.execute("SELECT content FROM entry WHERE entry_type = 'userMessage' ORDER BY number, n")
        ]


async def test_pieces_of_a_sentence_are_answered_once_and_each_can_be_deleted(side: Side, home: Home) -> None:
    """Two pieces in a direct message get one reply; once the first is deleted, its words are in no later prompt."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice, CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY="direct") as soul:
        first = await side.stage.say(DM, "my quokka")
        await side.stage.say(DM, "which pump did we order?")
        await soul.until_said(1, side.stage)
        together = lines(home)
        await side.stage.delete(DM, [first])
        await side.stage.until_told()
        await soul.idle()
        await side.stage.say(DM, "And when does it come?")
        await soul.until_said(2, side.stage)

    assert together == ["my quokka", "which pump did we order?"]
    assert len(await side.stage.visible()) == 2
    assert "quokka" in voice.requests[0].tail
    assert "quokka" not in str(voice.requests[-1])
    assert "which pump did we order?" in str(voice.requests[-1])
    assert lines(home)[:2] == ["", "which pump did we order?"]


async def begun(side: Side) -> str:
    """Have people begin a thread without the soul. Returns its id."""
    return await side.stage.begin_thread(await side.stage.say(CHANNEL, "shall we move the launch?"))


async def test_earlier_messages_of_a_thread_are_overheard_and_owed_nothing(side: Side, home: Home) -> None:
    """The first message is included.

    There is one reply and one call, and one more read after a time without listening.
    """
    voice = Scripted(default=echo)
    async with side.wake(home, voice, CLAUDIUS_RUNTIME_FOLLOW="mention") as soul:
        thread = await begun(side)
        await side.stage.say(CHANNEL, "tuesday is too early", thread=thread, by=BEN)
        await side.stage.until_told()
        await soul.idle()
        assert voice.requests == []
        await side.stage.say(CHANNEL, "what do you think?", thread=thread, calls=True)
        await soul.until_said(1, side.stage)
        await side.stage.say(CHANNEL, "so wednesday", thread=thread, by=BEN)
        await side.stage.until_told()
    async with side.wake(home, voice, CLAUDIUS_RUNTIME_FOLLOW="mention") as soul:
        await side.stage.say(CHANNEL, "agreed?", thread=thread, calls=True)
        shown = await soul.until_said(2, side.stage)

    assert [one.text for one in shown] == ["re what do you think?", "re agreed?"]
    first, second = ("".join(one.content for one in request.history) for request in voice.requests)
    assert first.index("shall we move the launch?") < first.index("tuesday is too early")
    assert first.count('"kind":"message"') == 2
    assert "so wednesday" in second
    assert second.count("tuesday") == 1


async def test_a_thread_that_cannot_be_read_holds_nothing_up(side: Side, home: Home) -> None:
    """The soul answers without knowing the thread."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        thread = await begun(side)
        await side.stage.refuse_history()
        await side.stage.say(CHANNEL, "what do you think?", thread=thread, calls=True)
        (shown,) = await soul.until_said(1, side.stage)

    assert shown.text == "re what do you think?"


async def taken_down(side: Side) -> int:
    """Count our deleted posts."""
    kind = "delete"
    return sum(one.by == "app" and one.kind == kind for one in await side.stage.world.trace())  # type: ignore[attr-defined] - both have one


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_reply_goes_with_its_message_where_the_owner_wants_it(side: Side, home: Home, wanted: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Chat, section 6: our reply stays unless `delete_replies` is set, and other posts stay in any case."""
    method = "delete_message" if isinstance(side.stage, DiscordStage) else "chat.delete"
    async with side.wake(home, Scripted(default=echo), CLAUDIUS_RUNTIME_DELETE_REPLIES=str(int(wanted))) as soul:
        message = await side.stage.say(DM, "one")
        await side.stage.say(DM, "two")
        mention = await side.stage.say(CHANNEL, "three", calls=True)
        await soul.until_said(3, side.stage)
        await side.stage.delete(DM, [message])
        await side.stage.delete(CHANNEL, [mention])
        if wanted:
            await side.stage.world.until_called(method, 2)  # type: ignore[attr-defined] - as above
        await side.stage.until_told()
        await asyncio.sleep(0)

    assert await taken_down(side) == (2 if wanted else 0)


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
        await soul.until_said(1, side.stage)
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
        (shown,) = await soul.until_said(1, side.stage)

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
