"""Plan cases: what is planned is heard once, at its time, or lapses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from claudius.intent import WHAT, Planned, Schedule
from claudius.memory.plans import MOST_OPEN
from claudius.perception import Kind, Origin, internal, private
from contracts.store.ground import (
    ANA,
    BEN,
    DM,
    NOW,
    Ground,
    awake,
    case,
    exchange,
    heard,
    turn,
)

HOUR = timedelta(hours=1)


def plan(n: int = 1, **changes: Any) -> Schedule:
    """Return the n-th plan, due in n hours."""
    values: dict[str, Any] = {
        "id": n,
        "conversation": DM,
        "at": NOW + n * HOUR,
        "text": f"plan {n}",
        "audience": private(ANA),
    }
    return Schedule(**(values | changes))


@case("P1", "a plan is heard once, at its time, as a perception of the soul's own, with its process and params")
async def p1(ground: Ground) -> None:
    """Fire before, at, and after the planned time."""
    params = {"a": [1, {"b": None}]}
    async with awake(ground) as store:
        await turn(store, heard(), "Hi.", planned=Planned(schedules=(plan(process="guest", params=params),)))
        before = await store.plans.fire_due(NOW + HOUR - timedelta(seconds=1), 24)
        due = await store.plans.next_due()
        at_time = await store.plans.fire_due(NOW + HOUR, 24)
        after = await store.plans.fire_due(NOW + 2 * HOUR, 24)
        (found,) = await store.inbox.unfinished(DM)
    assert (before, at_time, after, due) == ((), (DM,), (), NOW + HOUR)
    assert (found.perception.kind, found.perception.origin) == (Kind.SCHEDULED, Origin.INTERNAL)
    assert found.perception.key.startswith("due:schedule/1:2026-01-05T13:00:00")
    assert (internal(found.perception).process, internal(found.perception).params) == ("guest", params)
    assert not found.perception.owes


@case("P19", "two plans with the same words for one minute of one conversation are one, and a promise joins it")
async def p19(ground: Ground) -> None:
    """Plan the same words at once, half a minute later, a minute later, elsewhere, and other words."""
    at = NOW + HOUR
    async with awake(ground) as store:
        for n, (after, changes) in enumerate(
            [(0, {}), (30, {}), (60, {}), (0, {"conversation": f"{DM}2"}), (0, {"text": "other"}), (0, {"text": ""})]
            * 2,
            1,
        ):
            made = {"at": at + timedelta(seconds=after), "text": "water the fern", "key": str(n), **changes}
            await store.plans.plan(plan(n, **made))
        here, there = await store.plans.open_plans(DM), await store.plans.open_plans(f"{DM}2")
    assert (here, there) == (5, 1)  # what has no words is told apart by its key


@case("P14", "what waits for a person in a place is what they asked for there and in its threads, in its own words")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        asked: dict[str, Any] = {"asked_by": ANA, "person": ANA}
        await store.plans.plan(plan(3, conversation=f"{DM}7", params={WHAT: "oil the chain"}, **asked))
        await store.plans.plan(plan(2, **asked))
        await store.plans.plan(plan(1, params={WHAT: "what I am up to"}, person=ANA))
        await store.plans.plan(plan(4, params={WHAT: "another's"}, asked_by=BEN, person=BEN))
        here, there = await store.plans.waiting(DM, ANA), await store.plans.waiting(f"{DM}7", ANA)
    assert [(one.id, one.what) for one in here] == [(2, ""), (3, "oil the chain")]
    assert [one.id for one in there] == [3]


@case("P2", "one key of a conversation is one plan while it waits, and may be planned anew once it was heard")
async def p2(ground: Ground) -> None:
    """Plan twice, fire, plan again."""
    async with awake(ground) as store:
        await store.plans.plan(plan(1, key="k"))
        await store.plans.plan(plan(1, key="k", at=NOW + 5 * HOUR))
        first = await store.plans.next_due()
        await store.plans.fire_due(NOW + HOUR, 24)
        await store.plans.plan(plan(1, key="k", at=NOW + 9 * HOUR))
        again = await store.plans.next_due()
    assert (first, again) == (NOW + HOUR, NOW + 9 * HOUR)


@case("P12", "a conversation has a hundred open plans at most; the next is refused and told in the turn's changes")
async def p12(ground: Ground) -> None:
    """Fill one conversation; plan once more, from a turn and outside any; make room, plan again."""
    async with awake(ground) as store:
        for n in range(1, MOST_OPEN + 1):
            await store.plans.plan(plan(n, key="first" if n == 1 else None))
        await store.plans.plan(plan(500))
        refused = Planned(schedules=(plan(501), plan(502)))
        await turn(store, heard(), "Hi.", planned=refused, changes={"mood": "as before"})
        full = await store.plans.open_plans(DM)
        again_same = plan(1, key="first", at=NOW)
        await turn(store, heard(n=2), "Hi.", planned=Planned(schedules=(again_same,)))
        await store.plans.plan(plan(503, conversation="slack:T1:D-ben:"))
        await turn(store, heard(n=3), "Hi.", planned=Planned(cancels=(1,), schedules=(plan(504),)))
        kept = (
            await store.plans.cancel(504),
            await store.plans.cancel(503),
            await store.plans.cancel(500),
            await store.plans.cancel(501),
        )
        left = await store.plans.open_plans(DM)
    assert (full, kept, left) == (MOST_OPEN, (True, True, False, False), MOST_OPEN - 1)


@case("P3", "a plan can be taken back until it is heard; what there is not cannot")
async def p3(ground: Ground) -> None:
    """Cancel one, cancel it again, cancel what was already heard."""
    async with awake(ground) as store:
        await store.plans.plan(plan(1))
        await store.plans.plan(plan(2))
        taken_back, again = await store.plans.cancel(1), await store.plans.cancel(1)
        await store.plans.fire_due(NOW + 2 * HOUR, 24)
        heard_already = await store.plans.cancel(2)
    assert (taken_back, again, heard_already) == (True, False, False)


@case("P4", "past the grace a plan of the soul's own lapses; one that was asked for is heard, and says when it was due")
async def p4(ground: Ground) -> None:
    """Look three days late, after a restart."""
    async with awake(ground) as store:
        await store.plans.plan(plan(1))
        await store.plans.plan(plan(2, asked_by=ANA))
    async with awake(ground, "boot-2") as store:
        fired = await store.plans.fire_due(NOW + timedelta(days=3), 24)
        found = await store.inbox.unfinished(DM)
    assert fired == (DM,)
    assert [one.perception.text for one in found] == ["plan 2 (this was due at 2026-01-05 14:00 UTC)"]


@case("P13", "a plan that was made in answering somebody is heard as such, owes nothing, and lapses as the soul's own")
async def p13(ground: Ground) -> None:
    """Fire one in time and one too late."""
    async with awake(ground) as store:
        await store.plans.plan(plan(1, in_answer=True))
        await store.plans.plan(plan(2))
        await store.plans.fire_due(NOW + 2 * HOUR, 24)
        found = await store.inbox.unfinished(DM)
        await store.plans.plan(plan(3, in_answer=True))
        late = await store.plans.fire_due(NOW + timedelta(days=3), 24)
    marks = [(internal(one.perception).in_answer, one.perception.owes) for one in found]
    assert (marks, late) == ([(True, False), (False, False)], ())


@case("P5", "what is due stands behind everything that waits in its conversation")
async def p5(ground: Ground) -> None:
    """Leave two messages waiting, and fire."""
    async with awake(ground) as store:
        await store.inbox.accept((heard("a", n=1), heard("b", n=2)), NOW)
        await store.plans.plan(plan(1))
        await store.plans.fire_due(NOW + HOUR, 24)
        found = await store.inbox.unfinished(DM)
    assert [one.perception.text for one in found] == ["a", "b", "plan 1"]


@case("P9", "a closed conversation has no plans, and hears none until the soul has answered there again")
async def p9(ground: Ground) -> None:
    """Close, plan, look; answer, plan, look."""
    async with awake(ground) as store:
        await store.plans.plan(plan(1))
        await exchange(store, heard(n=1), planned=Planned(closes=True))
        taken_back = await store.plans.next_due()
        await store.plans.plan(plan(2))
        closed = await store.plans.fire_due(NOW + 3 * HOUR, 24)
        await exchange(store, heard(n=2))
        await store.plans.plan(plan(3))
        opened = await store.plans.fire_due(NOW + 4 * HOUR, 24)
    assert (taken_back, closed, opened) == (None, (), (DM,))
