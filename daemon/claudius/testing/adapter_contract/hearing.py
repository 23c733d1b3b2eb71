"""Hearing cases: what people do is reported once, complete, with its place, and never for our own messages."""

from __future__ import annotations

import asyncio

from claudius.errors import StoreFull
from claudius.perception import Kind, MessageExtra, Perception, ReactionExtra, amended_key
from claudius.testing.adapter_contract.ground import Make, answer, case, listening
from claudius.testing.adapter_contract.stage import BEN, CHANNEL, DM, PATIENCE_S, Stage

ODD = "a\u202eb \U0001f469\u200d\U0001f680 e\u0301 &lt; * _ \u05d0\u05d1 end"


@case("A1", "a direct message becomes one complete perception")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
    assert (heard.text, heard.person, heard.kind) == ("hello", stage.own_person, Kind.MESSAGE)
    assert heard.audience == f"private:{stage.own_person}"
    assert heard.conversation.startswith(f"{stage.name}:")
    assert heard.position
    assert heard.owes


@case("A2", "a mention in a channel is heard in its own thread, and what answers it lands there", "threads")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        message = await stage.say(CHANNEL, "hello", calls=True)
        (heard,) = await one.ear.until(1)
        await one.adapter.speak(answer(heard, "here"))
        (shown,) = await stage.until_visible(1)
    assert (heard.kind, heard.text) == (Kind.MENTION, "hello")
    assert (shown.where, shown.thread, shown.text) == (CHANNEL, message, "here")


@case("A4", "what could not be kept comes again, by itself or in the history, and is accepted once", "history")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "first")
        (first,) = await one.ear.until(1)
        one.ear.troubles = [StoreFull("no room")]
        await stage.say(DM, "second")
        async with asyncio.timeout(PATIENCE_S):
            while len(one.ear.heard) < 2:
                await asyncio.sleep(0.01)
                if one.missed.is_set():
                    await one.sweep(first)
    assert sorted(heard.text for heard in one.ear.heard.values()) == ["first", "second"]


@case("A5", "an event that comes twice is one perception", "redelivery")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.double(4)
        await stage.say(DM, "hello")
        await stage.say(CHANNEL, "hello", calls=True)
        await one.ear.until(2)
        await stage.until_told()
    assert len(one.ear.heard) == 2
    assert len(one.ear.told) > 2


@case("A6", "what we say ourselves is never accepted")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        await one.adapter.speak(answer(heard, "said by us"))
        await stage.say_as_us(CHANNEL, "by another hand")
        await stage.say(DM, "last")
        await one.ear.until(2)
        await stage.until_told()
    assert [heard.text for heard in one.ear.heard.values()] == ["hello", "last"]


@case("A9", "an edit tells the new words once; a change that is none tells nothing", "edits")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        message = await stage.say(DM, "one")
        (heard,) = await one.ear.until(1)
        await stage.unfurl(DM, message)
        await stage.edit(DM, message, "two")
        _, edit = await one.ear.until(2)
        await stage.until_told()
    assert (edit.kind, edit.text, edit.owes, amended_key(edit)) == (Kind.EDIT, "two", False, heard.key)
    assert edit.position > heard.position
    assert len(one.ear.heard) == 2


@case("A10", "a deletion tells which message is gone; of several, each", "deletes")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        messages = [await stage.say(DM, f"m{n}") for n in range(3)]
        said = await one.ear.until(3)
        await stage.delete(DM, messages[:1])
        await stage.delete(DM, messages[1:])
        gone = (await one.ear.until(6))[3:]
    assert {heard.kind for heard in gone} == {Kind.DELETE}
    assert sorted(amended_key(heard) for heard in gone) == sorted(heard.key for heard in said)
    assert not any(heard.text or heard.owes for heard in gone)


@case("A11", "a sign on what we said is heard, on and off; on what others said it is nothing", "reactions")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        message = await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        receipt = await one.adapter.speak(answer(heard, "here"))
        (shown,) = await stage.until_visible(1)
        await stage.react(DM, message, "👎")
        await stage.react(DM, shown.id, "👍")
        await one.ear.until(2)
        await stage.until_told()
        on = [one for one in one.ear.heard.values() if one.kind is Kind.REACTION]
        one.ear.heard.clear()
        await stage.react(DM, shown.id, "👍", is_on=False)
        (off,) = await one.ear.until(1)
    signs = [(sign.emoji, sign.is_on, sign.receipt) for sign in map(_reaction, on)]
    assert signs == [("👍", True, receipt)]
    assert (_reaction(off).is_on, off.position > on[0].position) == (False, True)


def _reaction(perception: Perception) -> ReactionExtra:
    assert isinstance(perception.extra, ReactionExtra)
    return perception.extra


@case("A12", "a file is named with its size, and fetched from the network; what is too large is refused", "files")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.upload(DM, "notes.txt", b"some words", "text/plain", text="look")
        (heard,) = await one.ear.until(1)
        assert isinstance(heard.extra, MessageExtra)
        (file,) = heard.extra.files
        fetched = await one.adapter.fetch(file, 100)
        try:
            await one.adapter.fetch(file, 5)
        except ValueError:
            pass
        else:
            raise AssertionError("more was read than was asked for")
        try:
            await one.adapter.fetch({**file, "url": "http://169.254.169.254/notes.txt"}, 100)
        except OSError:
            pass
        else:
            raise AssertionError("it was fetched from elsewhere")
    assert (fetched.content, file["bytes"]) == (b"some words", 10)
    assert "notes.txt" in heard.text


@case("A13", "what comes in another order has positions in the order in which it was said")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.hold()
        for n in range(5):
            await stage.say(DM, f"m{n}")
        await stage.release()
        heard = await one.ear.until(5)
    assert [each.text for each in sorted(heard, key=lambda each: each.position)] == [f"m{n}" for n in range(5)]


@case("A14", "a text comes in as people see it")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, ODD)
        (heard,) = await one.ear.until(1)
    assert heard.text == stage.seen(ODD)


@case("A24", "a message in a gap is found, and looked for again it is nothing new", "history")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "before")
        (before,) = await one.ear.until(1)
        await stage.say(DM, "in the gap", deliver=False)
        await one.sweep(before)
        await one.sweep(before)
    assert [heard.text for heard in one.ear.heard.values()] == ["before", "in the gap"]


@case("A28", "while one message takes its time to be kept, other conversations are heard")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        one.ear.slow = lambda perception: 0.5 if perception.text == "slow" else 0.0
        await stage.say(DM, "slow")
        await stage.say(CHANNEL, "quick", calls=True, by=BEN)
        (first,) = await one.ear.until(1)
        await one.ear.until(2)
    assert first.text == "quick"
