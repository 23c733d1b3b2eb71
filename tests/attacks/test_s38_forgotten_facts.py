"""S38: what a person asks to be forgotten is no one else's to ask for, and an hour later it is found nowhere."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from acted import Acted, acting, acts, block, id_of
from claudius.home import Home
from claudius.memory import search
from claudius.testing.adapter_contract.stage import BEN, CHANNEL
from minds import until

SECRET = "phosphorescent-walnut-crumble-allergy"
SAYS = f"Mind my {SECRET}, please."
KNOW = {"do": "know", "kind": "constraint", "text": f"Has a {SECRET}", "keys": ["pudding", "dessert", "cake"]}
CLOCK = "2026-03-25T09:00:00Z"


async def tables(it: Acted, home: Home, words: str = SECRET) -> set[str]:
    """Return the tables whose rows hold the words, and the files of portraits that do."""
    await it.soul.mind.store.flush()
    asked = {"ids": [], "folders": [], "excerpts": [words], "git": None, "left_out": []}
    places = {"database": str(home.database), "places": [str(home.memory)]}
    found = await asyncio.to_thread(search.run, asked | places, within_s=60.0)
    assert found is not None
    files = {one for one in found["found"] if not one.startswith(str(home.database))}
    return {one["table"] for one in found["rows"]} | files


async def tell(it: Acted) -> None:
    """Tell of it, have it written in the portrait, and talk on."""
    portrait: dict[str, Any] = {"user_model_check": "true", "user_model_update": f"# Ana\n## Health\n- Has a {SECRET}."}
    await it.says(SAYS, acts=acts(KNOW), external_dialogue=f"I know of your {SECRET} now.", **portrait)
    await it.says("What do you know?", external_dialogue=f"You have a {SECRET}.")


async def test_an_hour_later_it_stands_in_no_row_but_the_conversation_s_own(home: Home) -> None:
    """Facts, moments, records, replies, portraits, git and the keys: all but the lines that the person wrote."""
    async with acting(home, "s38", clock=CLOCK) as it:
        await tell(it)
        before = await tables(it, home)
        asked = await it.says(
            "Forget that.", acts=lambda tail: acts({"do": "forget", "fact": id_of(block(tail, "Known"), SECRET)})
        )
        hidden = await it.says("Which pudding shall I make?")
        await it.until(it.now() + timedelta(minutes=65), timedelta(minutes=65))
        await it.says("And a cake?")
        store = it.soul.mind.store  # on a calm machine the question is answered before the clock has done its work
        await until(
            lambda: not (store.facts.next_destroyed() or store.inbox.is_unsaid or store.core.look("unsaid_now"))
        )
        after = await tables(it, home)

    assert {"fact", "moment", "entry"} <= before
    assert SECRET in block(asked, "Known")
    assert SECRET not in block(hidden, "Known") + block(hidden, "Remembered") + block(hidden, "User Model")
    assert after <= {"entry"}


@pytest.mark.parametrize("guess", ["keep f1", "forget 1"])
async def test_nobody_reaches_what_is_somebody_else_s(home: Home, guess: str) -> None:
    """By a command with a guessed number, from a channel that both can see, after the owner of it was shown a list."""
    async with acting(home, f"s38 {guess}", clock=CLOCK) as it:
        await tell(it)
        await it.says(f"!forget {SECRET}")
        await it.says(f"!{guess}", where=CHANNEL, by=BEN)
        guessed = acts({"do": "no_longer", "fact": "f1"}, {"do": "forget", "fact": "f1"})
        await it.says("Forget what you know of Ana.", where=CHANNEL, by=BEN, calls=True, acts=guessed)
        known = it.soul.records().person("Ana Alvarez") or it.soul.records().person("ana")

    assert known is not None
    assert [one.text for one in known.facts] == [KNOW["text"]]


async def test_nothing_said_in_private_ends_what_a_channel_was_told(home: Home) -> None:
    """In private the fact has no number, and a guessed one changes nothing: the channel is told what it was told."""
    told = {"do": "know", "kind": "home", "text": "Lives in Porto", "keys": ["city"]}
    moved = {**told, "text": "Lives in Lisbon", "instead_of": "f1"}
    async with acting(home, "s38 elsewhere", clock=CLOCK, network="slack") as it:
        await it.says("I live in Porto.", where=CHANNEL, calls=True, acts=acts(told))
        before = await it.says("Which city?", where=CHANNEL, calls=True)
        direct = await it.says("Not any more.", acts=acts({"do": "no_longer", "fact": "f1"}))
        await it.says("I moved to Lisbon.", acts=acts(moved))
        after = await it.says("Which city?", where=CHANNEL, calls=True)

    assert "f1 Lives in Porto" in block(before, "Known")
    assert "Lives in Porto" in block(direct, "Known")
    assert "f1 " not in block(direct, "Known")
    assert "f1 Lives in Porto" in block(after, "Known")
    assert "Lisbon" not in after


async def test_what_was_chosen_from_the_list_is_gone_and_what_was_brought_back_stays(home: Home) -> None:
    """Commands alone, without a model: list, choose; hide, keep."""
    async with acting(home, "s38 list", clock=CLOCK) as it:
        await tell(it)
        await it.says("I like tea.", acts=acts({"do": "know", "kind": "taste", "text": "Likes tea", "keys": []}))
        await it.says(
            "Forget the tea.",
            acts=lambda tail: acts({"do": "forget", "fact": id_of(block(tail, "Known"), "Likes tea")}),
        )
        await it.says("!keep f2")
        await it.says(f"!forget {SECRET}")
        calls = len(it.tails())
        await it.says("!forget 1")
        await it.until(it.now() + timedelta(minutes=65), timedelta(minutes=65))
        tail = await it.says("So?")
        known = it.soul.records().person("ana") or it.soul.records().person("Ana Alvarez")

    assert len(it.tails()) == calls + 1
    assert re.findall(r"f\d [\w ]+", block(tail, "Known")) == ["f2 Likes tea"]
    assert known is not None
    assert [one.text for one in known.facts] == ["Likes tea"]


ABROAD = [
    ("Mein Knie schmerzt seit der Operation.", "Operation"),
    ("Mi abuela murió en Valladolid.", "abuela"),
    ("Ho perso le chiavi di casa.", "chiavi"),
    ("Я боюсь собак.", "собак"),
    ("제 동생은 서울에 살아요.", "서울"),
    ("我的猫叫小白。", "小白"),
]
"""A line of somebody's, and the word alone by which they want to have it forgotten."""


async def test_a_word_alone_finds_what_holds_it_whatever_its_language(home: Home) -> None:
    """A single word tells no language, so its letters are looked for as well as its stem."""
    async with acting(home, "s38 abroad", clock=CLOCK, network="slack") as it:
        for line, _ in ABROAD:
            await it.says(line)
        listed = []
        for _, word in ABROAD:
            await it.says(f"!forget {word}")
            listed.append([one.text for one in await it.side.stage.world.visible()][-1])  # type: ignore[attr-defined] # each has a world

    assert [
        line for (line, _), shown in zip(ABROAD, listed, strict=True) if f"1. 2026-03-25: “{line}”" not in shown
    ] == []


async def test_what_was_told_in_a_channel_and_what_has_ended_can_be_taken_back_in_private(home: Home) -> None:
    """Neither has a number that a model may use there; a list by words holds both."""
    told = {"do": "know", "kind": "work", "text": "Arbeitet in der Kuckucksuhrenfabrik", "keys": ["Beruf"]}
    ends = lambda tail: acts({"do": "no_longer", "fact": id_of(block(tail, "Known"), told["text"])})  # noqa: E731 - one use
    async with acting(home, "s38 ended", clock=CLOCK, network="slack") as it:
        await it.says("Ich bin in der Kuckucksuhrenfabrik.", where=CHANNEL, calls=True, acts=acts(told))
        await it.says("Nicht mehr.", where=CHANNEL, calls=True, acts=ends)
        await it.says("!forget Kuckucksuhrenfabrik")
        await it.says("!forget 1")
        found = await tables(it, home, "Kuckucksuhrenfabrik")

    assert found <= {"entry"}
