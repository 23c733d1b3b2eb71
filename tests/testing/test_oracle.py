"""The oracle is tested too: it accepts what is right, and names each rule that is broken."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from contracts.store.ground import NOW
from ear import echo
from lab.oracle import Posted, Visible, World, judge

DM = "rehearsal:t:dm-ana:"


async def talked(home: Home) -> World:
    """Have three messages said and answered; return what the network knows of them."""
    async with alive(home, Scripted(default=echo)) as soul:
        heard = [await soul.network.hear(f"m{number}") for number in range(3)]
        await soul.until_said(3)
        return World(
            posted=[Posted(key=one.key, conversation=one.conversation, position=one.position) for one in heard],
            visible=[
                Visible(conversation=one.conversation, text=one.text, key=one.key) for one in soul.network.visible
            ],
        )


async def test_what_is_right_is_not_named(home: Home) -> None:
    """A conversation that went well breaks no rule."""
    assert judge(await talked(home), home) == []


def lost(world: World) -> World:
    """Remove a visible reply."""
    return replace(world, visible=world.visible[1:])


def elsewhere(world: World) -> World:
    """Move a reply to another conversation."""
    return replace(world, visible=[replace(world.visible[0], conversation="rehearsal:t:ops:1"), *world.visible[1:]])


def swapped(world: World) -> World:
    """Swap two visible parts."""
    return replace(world, visible=[world.visible[0], world.visible[0], *world.visible[1:]])


def unknown(world: World) -> World:
    """Add a visible message that no turn said."""
    return replace(world, visible=[*world.visible, Visible(conversation=DM, text="?", key="nobody's")])


def unasked(world: World) -> World:
    """Let a reply answer a message that no one sent."""
    return replace(world, posted=world.posted[1:])


@pytest.mark.parametrize(
    ("broken", "rule"), [(lost, "O1"), (elsewhere, "O2"), (swapped, "O4"), (unknown, "O5"), (unasked, "O5")]
)
async def test_what_a_network_shows_wrong_is_named(home: Home, broken: Callable[[World], World], rule: str) -> None:
    """Each difference between what was said and what was visible breaks its rule."""
    found = judge(broken(await talked(home)), home)

    assert [one for one in found if one.startswith(rule)]


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        ("UPDATE entry SET content = 'else' WHERE entry_type = 'externalDialog'", "O6"),
        ("UPDATE inbox SET state = 'pending' WHERE seq = 1", "O10"),
        ("UPDATE inbox SET position = '9' || position WHERE seq = 1", "O3"),
        (
            "UPDATE inbox SET owes = 1, turn = 'nobody', key = 'k' WHERE seq = 1",
            "O1: k was owed an answer, and was settled",
        ),
        ("UPDATE outbox SET answers = (SELECT answers FROM outbox WHERE seq = 2) WHERE seq = 1", "O1"),
    ],
)
async def test_what_memory_holds_wrong_is_named(home: Home, damage: str, rule: str) -> None:
    """A row that differs from what happened is found."""
    world = await talked(home)
    with closing(sqlite3.connect(home.database)) as database, database:
        database.execute(damage)

    assert [one for one in judge(world, home) if one.startswith(rule)]


async def test_a_version_by_the_owner_that_no_hand_wrote_is_named(home: Home) -> None:
    """O11: the owner's versions of a text match the edits by hand, no more and no fewer; the state is no exception."""
    async with alive(home, Scripted(default=echo)) as soul:
        for text in ("by hand", "else", "by hand"):
            await soul.mind.store.documents.set_model("rehearsal:t:ana", "self", text, "edited by hand", "owner", NOW)
        await soul.mind.store.documents.set_state("currentTopic", "rust", "self", NOW)
    world = World(posted=(), visible=(), by_hand=("by hand", "else", "by hand", "unseen"), head={})
    of_state = [line for line in judge(world, home) if line.startswith("O11")]
    of_all = [line for line in judge(replace(world, by_hand=("by hand", "else")), home) if line.startswith("O11")]

    assert [line.split()[1] for line in of_state] == ["the"]
    assert [line.split()[1] for line in of_all] == ["rehearsal:t:ana", "the"]
