"""D5: the bridge lends owed turns to a session of an owner's: each is said once, whoever says it, and nothing leaks."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from claudius.claude_code.hooks import Hook
from claudius.home import Home
from claudius.perception import DeleteExtra, EditExtra, Kind
from claudius.providers.scripted import Scripted
from claudius.reports.session import ask
from claudius.testing.alive import Alive, alive
from driven import reply
from minds import by_tag

MODELS, SECRET = (
    "So says the model.",
    "The owner dreams of a red door in a wall of seven hundred grey stones, every night.",
)
MINE, ANAS, ROOM, ELSEWHERE = (f"rehearsal:t:{place}:" for place in ("dm-owner", "dm-ana", "C1", "C2"))

SETTINGS = {"CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0", "CLAUDIUS_OWNERS": "rehearsal:t:owner,rehearsal:t:ben"}


@asynccontextmanager
async def lending(home: Home, **on: Any) -> AsyncIterator[tuple[Alive, Scripted]]:
    """Yield a soul that has lent what `on` says, and its own model."""
    voice = Scripted(default=by_tag(external_dialogue=MODELS, internal_monologue=SECRET))
    async with alive(home, voice, settings=SETTINGS) as soul:
        soul.network.audiences |= {
            f"shared:{ROOM[:-1]}": ("rehearsal:t:ana", "rehearsal:t:owner"),
            f"shared:{ELSEWHERE[:-1]}": ("rehearsal:t:ana", "rehearsal:t:ben"),
        }
        assert (await bridge(home, "on", session="s-1", **on))["name"] == "owner"
        yield soul, voice


async def bridge(home: Home, do: str, **more: Any) -> dict[str, Any]:
    """Do what `claudius bridge` does."""
    return await ask(home, "bridge", do=do, **more) or {}


async def owed(home: Home) -> dict[str, Any]:
    """Wait for what is owed next."""
    return await bridge(home, "next", wait_s=20.0)


async def said(soul: Alive, *expected: str) -> None:
    """Check what people see, in order, once all of it is there and nothing is left to do."""
    await soul.until_said(len(expected))
    assert [one.text for one in soul.network.visible] == list(expected)


async def test_a_session_answers_once_what_is_owed(home: Home) -> None:
    """`next` gives the whole prompt, to two sessions if two ask; the first `say` is said, the second refused."""
    async with lending(home) as (soul, voice):
        await soul.network.hear("Is the kiln ready?", person="owner")
        first, second = await owed(home), await owed(home)
        told = await bridge(home, "say", turn=first["turn"], text=reply("It cools."))
        late = await bridge(home, "say", turn=second["turn"], text=reply("It burns."))
        await said(soul, "It cools.")
        audit = [one["act"] for one in soul.records().audit("", 9)]
        why = soul.records().turn(first["turn"])

    assert (first["turn"], first["conversation"], second["shown"]) == (second["turn"], MINE, 2)
    assert "Is the kiln ready?" in first["prompt"]["tail"]
    assert first["prompt"]["system"].startswith("# Claudius")
    assert (told["event"], told["text"], late["event"]) == ("said", "It cools.", "error")
    assert voice.requests == []
    assert soul.network.held == [(MINE, "with owner at the bench")]
    assert audit == ["bridge"] * 3
    assert why["provider"] == "bridge"


PLACES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("one's own", {}, {"person": "owner"}, True),
    ("another's", {}, {"person": "ana"}, False),
    ("another's, named", {"conversation": ANAS}, {"person": "ana"}, False),
    ("another owner's", {"mine": True}, {"person": "ben"}, False),
    ("a room with the owner", {}, {"conversation": ROOM, "is_shared": True}, True),
    ("a room with another owner", {}, {"conversation": ELSEWHERE, "is_shared": True}, False),
    ("a room, of one's own alone", {"mine": True}, {"conversation": ROOM, "is_shared": True}, False),
    ("one that was not named", {"conversation": ROOM}, {"person": "owner"}, False),
]


@pytest.mark.parametrize(("on", "heard", "is_lent"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES])
async def test_only_what_an_owner_may_see_is_lent(
    home: Home, on: dict[str, Any], heard: dict[str, Any], *, is_lent: bool
) -> None:
    """What another has of their own, an owner too, or a room without this one, the model answers; no session sees it."""
    async with lending(home, **on) as (soul, _):
        await soul.network.hear("Hello!", **heard)
        if is_lent:
            await bridge(home, "say", turn=(await owed(home))["turn"], text=reply("From the bench."))
        await said(soul, "From the bench." if is_lent else MODELS)
        assert (await bridge(home, "next"))["turn"] is None


async def test_a_linked_account_is_ones_own(home: Home) -> None:
    """Another account's direct message is lent from when it is linked with the owner of this machine."""
    async with lending(home, mine=True) as (soul, _):
        await soul.network.hear("Hello!", person="ben")
        await soul.network.until_visible(1)
        await soul.network.hear("Hello!", person="owner")
        await bridge(home, "say", turn=(await owed(home))["turn"], text=reply("From the bench."))
        await soul.idle()
        await soul.mind.store.people.link("rehearsal:t:owner", "rehearsal:t:ben")
        await soul.network.hear("It is me.", person="ben")
        await bridge(home, "say", turn=(await owed(home))["turn"], text=reply("So it is."))
        await said(soul, MODELS, "From the bench.", "So it is.")


async def test_a_reply_passes_the_same_ladder_and_gate(home: Home) -> None:
    """What is no speech is asked again, under another name; a private thought that a session repeats is not said."""
    async with lending(home) as (soul, voice):
        await bridge(home, "off")
        await soul.network.hear("What do I dream of?", person="owner")
        await said(soul, MODELS)
        await bridge(home, "on", session="s-1")
        await soul.network.hear("And what did you think?", person="owner")
        turn = (await owed(home))["turn"]
        again = await bridge(home, "say", turn=turn, text="<internal_monologue>Hm.</internal_monologue>")
        late = await bridge(home, "say", turn=turn, text=reply("Too late."))
        told = await bridge(home, "say", turn=(await owed(home))["turn"], text=reply(f"I thought: {SECRET}"))
        await soul.until_said(2)

    assert (again["event"], again["turn"], late["event"]) == ("asked again", f"{turn}.2", "error")
    assert told["rung"] == "fixed"
    assert "red door" not in soul.network.visible[1].text + told["text"]
    assert len(voice.requests) == 1


async def test_a_process_that_was_killed_goes_on_with_its_loan(home: Home) -> None:
    """What waited is lent again by the next one, to the same session, for what its time leaves; a stop, or its end, ends it."""
    async with lending(home, mine=True):
        kept = home.lent.read_bytes()
    async with alive(home, Scripted(), settings=SETTINGS) as soul:
        nothing = await bridge(home, "next")
    home.lent.write_bytes(kept)
    assert await asyncio.to_thread(Hook(home, {}).run, "SessionEnd", {"session_id": "s-2"}) == ""
    os.utime(home.lent, (asked_at := time.time() // 1 - 300, asked_at))
    async with alive(home, Scripted(), settings=SETTINGS) as soul:
        assert home.lent.stat().st_mtime == asked_at
        await soul.network.hear("Hello?", person="owner")
        answered = await bridge(home, "say", turn=(await owed(home))["turn"], text=reply("It cools."))
        other = await bridge(home, "on", session="s-2")

    home.lent.write_bytes(kept)
    await asyncio.to_thread(Hook(home, {}).run, "SessionEnd", {"session_id": "s-1"})
    assert (nothing["event"], answered["text"], other["event"]) == ("error", "It cools.", "error")
    assert not home.lent.exists()
    for odd in (b"[]", b"{}", b"{"):
        home.lent.write_bytes(odd)
        assert not home.end_loan("s-1")


async def test_a_loan_ends_with_whom_it_names(home: Home) -> None:
    """Somebody whose conversation is lent is forgotten: it is lent no more, and no file names it."""
    async with lending(home, conversation=ANAS) as (soul, _):
        await soul.network.hear("My cat is called Miso.", person="ana")
        await soul.idle()
        kept = home.lent.read_text()
        assert await ask(home, "forget", person="rehearsal:t:ana")
        left = [one.name for one in home.run.iterdir() if one.is_file() and ANAS in one.read_text(errors="replace")]

    assert (ANAS in kept, left) == (True, [])


ENDS = ["off", "the session ends", "nobody asks"]


@pytest.mark.parametrize("end", ENDS)
async def test_all_is_given_back_in_order(home: Home, end: str) -> None:
    """Whatever ends the loan, the model answers what waits, in order; a late reply is refused, nothing is said twice."""
    async with lending(home) as (soul, _):
        for text in ("One.", "Two."):
            await soul.network.hear(text, person="owner")
        turn = (await owed(home))["turn"]
        if end == "nobody asks":
            soul.server._lanes.bridge.idle_s = 0.0
            await bridge(home, "next")
        elif end == "the session ends":
            assert await asyncio.to_thread(Hook(home, {}).run, "SessionEnd", {"session_id": "s-2"}) == ""
            assert (await owed(home))["turn"] == turn
            await asyncio.to_thread(Hook(home, {}).run, "SessionEnd", {"session_id": "s-1"})
        else:
            await bridge(home, "off")
        await said(soul, MODELS, MODELS)
        late = await bridge(home, "say", turn=turn, text=reply("Too late."))
        nothing = await bridge(home, "next")

    assert (late["event"], nothing["event"]) == ("error", "error")


async def test_what_changes_meanwhile_is_asked_anew(home: Home) -> None:
    """`!stop` takes a turn from the bench: it is apologised for once, and its late reply is refused."""
    async with lending(home) as (soul, _):
        await soul.network.hear("Tell me all.", person="owner")
        turn = (await owed(home))["turn"]
        await soul.network.hear("!stop", person="owner")
        await soul.network.until_visible(1)
        late = await bridge(home, "say", turn=turn, text=reply("All of it."))
        await soul.idle()
        (seen,) = soul.network.visible

    assert late["event"] == "error"
    assert "Stopped" in seen.text


async def test_a_prompt_that_is_skipped_is_given_back(home: Home) -> None:
    """The model takes a turn that a session was shown and leaves, however often it asks; till then nobody waits for it."""
    async with lending(home) as (soul, _):
        soul.server._lanes.bridge.idle_s = 1.0
        await soul.network.hear("Skipped.", person="owner")
        turn = (await owed(home))["turn"]
        await soul.server._mind.slot.quiet()
        while (await bridge(home, "next"))["turn"]:
            await asyncio.sleep(0.05)
        await said(soul, MODELS)
        late = await bridge(home, "say", turn=turn, text=reply("Too late."))

    assert late["event"] == "error"


@pytest.mark.parametrize("change", ["less is lent", "the owner leaves"])
async def test_what_is_not_lent_any_more_is_not_shown(home: Home, change: str) -> None:
    """What waits is not shown once the same session lends less, or once the owner does not see the place any more."""
    async with lending(home) as (soul, _):
        await soul.network.hear("Who is here?", conversation=ROOM, is_shared=True)
        turn = (await owed(home))["turn"]
        if change == "less is lent":
            await bridge(home, "on", session="s-1", mine=True)
        else:
            soul.network.audiences[f"shared:{ROOM[:-1]}"] = ("rehearsal:t:ana",)
            soul.server._lanes.members.forget(f"shared:{ROOM[:-1]}")
        following = await bridge(home, "next")
        late = await bridge(home, "say", turn=turn, text=reply("Too late."))
        await said(soul, MODELS)

    assert (following["turn"], late["event"]) == (None, "error")


async def test_one_session_has_it_at_a_time(home: Home) -> None:
    """A second session is refused until the first gives it back; `status` says who is at the bench."""
    async with lending(home):
        second = await bridge(home, "on", session="s-2")
        again = await bridge(home, "on", session="s-1", mine=True)
        others = await bridge(home, "off", session="s-2")
        status = (await ask(home, "status") or {})["bridge"]

    assert (second["event"], again["event"], others["was_lent"]) == ("error", "lent", False)
    assert (status["name"], status["is_mine"], status["waiting"]) == ("owner", True, 0)


@pytest.mark.parametrize("then", ["not shown", "said", "edited", "deleted", "!stop", "parked"])
async def test_an_erasure_names_where_the_words_went(home: Home, then: str) -> None:
    """Whoever spoke in a prompt that a session was shown is told of its transcript, whatever became of the turn."""
    async with lending(home) as (soul, _):
        if then == "not shown":
            await bridge(home, "off")
        heard = await soul.network.hear("My cat is called Miso.", conversation=ROOM, is_shared=True)
        if then != "not shown":
            turn = (await owed(home))["turn"]
        if then == "said":
            await bridge(home, "say", turn=turn, text=reply("Miso!"))
        elif then in ("edited", "deleted"):
            kind, extra = (Kind.EDIT, EditExtra) if then == "edited" else (Kind.DELETE, DeleteExtra)
            change = replace(heard, key="x", position=f"{heard.position}1", owes=False, extra=extra(of=heard.key))
            await soul.network._accept(replace(change, kind=kind, text="Miso, I said." if then == "edited" else ""))
        elif then == "!stop":
            await soul.network.hear("!stop", conversation=ROOM, is_shared=True)
            await soul.network.until_visible(1)
        if then != "parked":
            await bridge(home, "off")
            await soul.idle()
        receipt = (await ask(home, "forget", person="rehearsal:t:ana") or {})["receipt"]
        await bridge(home, "off")

    assert any("claudius bridge" in one for one in receipt["not_ours"]) is (then != "not shown")
