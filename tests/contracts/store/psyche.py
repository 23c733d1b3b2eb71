"""Psyche cases: the numbers are folded with the turn, once, on the current state."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from claudius.memory.recall import RecallLimits
from claudius.memory.store import Store
from claudius.perception import SELF
from claudius.psyche.change import Change, Event
from claudius.psyche.personality import Kernel
from claudius.psyche.state import Axes, Stimulus
from claudius.psyche_types import Appraisal, Arc, Psyche
from claudius.recollection import Recollection
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, Ground, awake, case, exchange, heard, recalled, thought

FEELING = RecallLimits(ttl_hours=72, psyche=True)


KIND = Stimulus(axes=Axes(0.7, 0.4, 0.7, 0.6, 0.4), tone=0.7)


CRUEL = Stimulus(axes=Axes(-0.8, -0.4, -0.8, -0.5, -0.3), tone=-0.8)


def change(recollection: Recollection, stimulus: Stimulus = KIND, **more: Any) -> Change:
    """Return how a message changes the numbers."""
    event = Event(
        at_s=recollection.now.timestamp(),
        kind="message",
        address="dm",
        person=recollection.speaker.person if recollection.speaker else "",
        name="Ana",
        stimulus=stimulus,
        importance=0.5,
        birth=more.pop("birth", None),
        matches=more.pop("matches", ()),
    )
    return Change(
        turn=recollection.turn, audience=recollection.audience, event=event, compiled=Kernel(), outcome="think", **more
    )


async def feel(
    store: Store, n: int, stimulus: Stimulus = KIND, *, at: str = DM, person: str = ANA, **more: Any
) -> None:
    """Run a turn that changes the numbers."""
    found = await recalled(store, heard(n=n, at=at, person=person), limits=FEELING)
    await store.turns.commit(thought(found, psyche=change(found, stimulus, **more)))


async def felt(store: Store, n: int, *, at: str = DM, person: str = ANA) -> Psyche:
    """Return the psyche as the n-th message's turn sees it."""
    found = await recalled(store, heard(n=n, at=at, person=person), limits=FEELING)
    assert found.psyche is not None
    return found.psyche


@case("M200", "numbers are read where they are asked for, and never else; before the first turn there are none")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        plain = await recalled(store, heard(n=1))
        new = await felt(store, 1)
    assert plain.psyche is None
    assert new == Psyche()


@case("M201", "a turn's change of the numbers is in its one commit, and comes back whole")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await feel(store, 1)
    async with awake(ground, "boot-2") as store:
        found = await felt(store, 2)
    assert found.version == 1
    assert found.numbers is not None
    assert found.numbers.valence > 0.1
    assert [edge.person for edge in found.edges] == [ANA]
    assert found.edges[0].warmth > 0


@case("M202", "a second commit of a turn moves no number")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        found = await recalled(store, heard(n=1), limits=FEELING)
        intent = thought(found, psyche=change(found))
        await store.turns.commit(intent)
        once = await felt(store, 2)
        await store.turns.commit(intent)
        again = await felt(store, 2)
    assert again == once


@case("M203", "two turns side by side both count, each folded on the state as it is when it is written")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        mine = await recalled(store, heard(n=1), limits=FEELING)
        theirs = await recalled(store, heard(n=1, at=OPS, person=BEN), limits=FEELING)
        first, second = change(mine), change(theirs, CRUEL)
        await store.turns.commit(thought(mine, psyche=first))
        await store.turns.commit(thought(theirs, psyche=second))
        found = await felt(store, 2)
    folded = first.fold(Psyche())
    expected = second.fold(Psyche(numbers=folded.numbers, edges=folded.edges)).numbers
    assert found.numbers == expected
    assert found.version == 2


@case("M204", "what others' words went into is shown only where the audience rule lets it stand")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.people.know_members("shared:slack:T1:ops", (ANA, BEN), NOW)
        first = await recalled(store, heard(n=1), limits=FEELING)
        arc = Arc(arc="a", label="secret bridge", stems=("bridge",), at_s=NOW.timestamp(), sources=(first.audience,))
        own = replace(arc, arc="b", label="common", sources=(SELF,))
        took = (Appraisal(person=ANA, kind="hurtful"),)
        await store.turns.commit(thought(first, psyche=change(first, birth=arc), appraisals=took))
        await feel(store, 2, birth=own)
        there, here = await felt(store, 1, at=OPS, person=ANA), await felt(store, 3)
    assert [one.label for one in there.arcs] == ["common"]
    assert there.appraisals == ()
    assert sorted(one.label for one in here.arcs) == ["common", "secret bridge"]
    assert [(one.person, one.kind, one.strength) for one in here.appraisals] == [(ANA, "hurtful", "clear")]
    assert there.numbers == here.numbers


@case("M207", "a turn without a change of the numbers leaves them as they are")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await feel(store, 1)
        before = await felt(store, 2)
        await exchange(store, heard(n=2))
        after = await felt(store, 3)
    assert after == before


@case("M212", "outside a turn the psyche stands as the last commit left it, and whoever was long silent is found")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        before = store.psyche.standing()
        await feel(store, 1)
        standing = store.psyche.standing()
        absent = store.psyche.absent(NOW - timedelta(days=1), NOW + timedelta(days=1), 5)
        long_ago = store.psyche.absent(NOW - timedelta(days=9), NOW - timedelta(days=8), 5)

    assert before.numbers is None
    assert standing.numbers is not None
    assert [one.person for one in absent] == [ANA]
    assert long_ago == []
