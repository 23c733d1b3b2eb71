"""Plan cases: what is planned is heard once, at its time, or lapses."""

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from claudius.acts import PlanCancelled, PlanMade, PlanMoved, ZoneSet
from claudius.intent import Planned, Schedule
from claudius.memory.plans import MOST_OPEN, book_plan
from claudius.memory.store import Store
from claudius.perception import Kind, Origin, internal, private
from contracts.store.ground import ANA, BEN, DM, NOW, Ground, awake, case, exchange, heard, recalled, thought, turn

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
        due = store.plans.next_due()
        at_time = await store.plans.fire_due(NOW + HOUR, 24)
        after = await store.plans.fire_due(NOW + 2 * HOUR, 24)
        (found,) = await store.inbox.unfinished(DM)
    assert (before, at_time, after, due) == ((), (DM,), (), NOW + HOUR)
    assert (found.perception.kind, found.perception.origin) == (Kind.SCHEDULED, Origin.INTERNAL)
    assert found.perception.key.startswith("due:schedule/1:2026-01-05T13:00:00")
    assert (internal(found.perception).process, internal(found.perception).params) == ("guest", params)
    assert not found.perception.owes


@case("P19", "two plans with the same words for one minute of one conversation are one")
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
        here, there = store.plans.open_plans(DM), store.plans.open_plans(f"{DM}2")
    assert (here, there) == (5, 1)  # what has no words is told apart by its key


@case("P2", "one key of a conversation is one plan while it waits, and may be planned anew once it was heard")
async def p2(ground: Ground) -> None:
    """Plan twice, fire, plan again."""
    async with awake(ground) as store:
        await store.plans.plan(plan(1, key="k"))
        await store.plans.plan(plan(1, key="k", at=NOW + 5 * HOUR))
        first = store.plans.next_due()
        await store.plans.fire_due(NOW + HOUR, 24)
        await store.plans.plan(plan(1, key="k", at=NOW + 9 * HOUR))
        again = store.plans.next_due()
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
        full = store.plans.open_plans(DM)
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
        left = store.plans.open_plans(DM)
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
        taken_back = store.plans.next_due()
        await store.plans.plan(plan(2))
        closed = await store.plans.fire_due(NOW + 3 * HOUR, 24)
        await exchange(store, heard(n=2))
        await store.plans.plan(plan(3))
        opened = await store.plans.fire_due(NOW + 4 * HOUR, 24)
    assert (taken_back, closed, opened) == (None, (), (DM,))


BERLIN = "Europe/Berlin"
TOMORROW = datetime.fromisoformat("2026-01-06T08:00:00+00:00")
"""A Tuesday; 9:00 in Berlin."""
CHANNEL, THERE = "slack:T1:C1:", "shared:slack:T1:C1"


def made(text: str = "call the dentist", at: datetime = TOMORROW, **changes: Any) -> PlanMade:
    """Return a reminder for Ana."""
    values: dict[str, Any] = {"kind": "remind", "at": at, "zone": BERLIN, "text": text, "person": ANA}
    return PlanMade(**(values | changes))


async def book(store: Store, *acts: Any, n: int = 1, locale: str = "", **where: Any) -> list[str]:
    """Book acts as the commit of Ana's n-th message does; return their receipts."""
    message = heard(n=n, **where)
    intent = thought(await recalled(store, message), "Good.", locale=locale)
    receipts = [await store.core.write(partial(book_plan, intent=intent, act=act)) for act in acts]
    await store.turns.commit(intent)
    return receipts


async def listed(store: Store, n: int = 99, **where: Any) -> list[tuple[str, str, str]]:
    """Return what the prompt of a message of Ana's would list, with its instant in UTC."""
    known = await recalled(store, heard(n=n, **where))
    return [(one.short, f"{one.at:%Y-%m-%dT%H:%M}", one.text) for one in known.plans]


@case("P20", "a plan is booked under a number of its own, with a receipt, and said once, in its own words")
async def p20(ground: Ground) -> None:
    """Book two, fire them, look twice."""
    async with awake(ground) as store:
        told = await book(store, made(), made("water the fern", TOMORROW + HOUR, zone="UTC", kind="promise"))
        shown = await listed(store)
        before = await store.plans.fire_due(TOMORROW - timedelta(seconds=1), 24)
        await store.plans.fire_due(TOMORROW + HOUR, 24)
        again = await store.plans.fire_due(TOMORROW + 2 * HOUR, 24)
        found = [one.perception for one in await store.inbox.unfinished(DM)]
        left = await listed(store)
        with store.core.snapshot() as db:
            states = [row["state"] for row in db.connection.execute("SELECT state FROM due ORDER BY scheduled_for")]
    assert told == [
        "⏰ Tue 6 Jan 2026, 9:00 Europe/Berlin · call the dentist · p1",
        "⏰ Tue 6 Jan 2026, 9:00 UTC · water the fern · p2",
    ]
    assert shown == [("p1", "2026-01-06T08:00", "call the dentist"), ("p2", "2026-01-06T09:00", "water the fern")]
    assert (before, again, left) == ((), (), [])
    due = [one for one in found if one.kind is Kind.SCHEDULED]
    assert [internal(one).what for one in due] == ["call the dentist", "water the fern"]
    assert [internal(one).event for one in due] == ["", "promise_due"]
    assert due[1].text == "water the fern"
    assert due[0].text == "call the dentist (this was due at 2026-01-06 09:00 Europe/Berlin)"
    assert states == ["missed", "said"]


@case("P21", "a repetition comes at its hour on the wall, is told once where it was missed, and ends with its last day")
async def p21(ground: Ground) -> None:
    """Every weekday until Friday of the week after, with four days without power."""
    until, fired = date(2026, 1, 16), list[int]()
    async with awake(ground) as store:
        (told,) = await book(store, made(repeat="weekdays", until=until), locale="de-DE")
        for day in (0, 1, 2, 6, 7, 8, 9, 10, 20):
            now = TOMORROW + timedelta(days=day, hours=1 if day == 6 else 0)
            fired += [day] * len(await store.plans.fire_due(now, 24))
        texts = [one.perception.text for one in await store.inbox.unfinished(DM)]
        left = await listed(store)
    assert told == "⏰ Di. 6 Jan. 2026, 9:00 Europe/Berlin ↻ Mo.–Fr. → Fr. 16 Jan. 2026 · call the dentist · p1"
    assert fired == [0, 1, 2, 6, 7, 8, 9, 10]
    late = [text for text in texts if "due" in text]
    assert late == ["call the dentist (this was due at 2026-01-12 09:00 Europe/Berlin)"]
    assert left == []


@case(
    "P21a", "a repetition whose first hour the clock skips comes at that hour ever after, also when it was moved to it"
)
async def p21a(ground: Ground) -> None:
    """At 2:30 from 29 March on, on which it is said at three."""
    wall, gap = datetime(2026, 3, 29, 2, 30), datetime(2026, 3, 29, 1, tzinfo=UTC)  # noqa: DTZ001 - of a wall
    async with awake(ground) as store:
        await book(store, made(at=gap, wall=wall, repeat="daily"), made("walk", repeat="daily"))
        _, walk = (await recalled(store, heard(n=98))).plans[::-1]
        await book(store, PlanMoved(plan=walk.id, at=gap, wall=wall), n=2)
        before = await listed(store)
        await store.plans.fire_due(gap, 24)
        after = await listed(store)
    assert [at for _, at, _ in before] == ["2026-03-29T01:00"] * 2
    assert [at for _, at, _ in after] == ["2026-03-30T00:30"] * 2


@case("P22a", "a turn that carries out a plan does not plan the same again, as a model that repeats itself would")
async def p22a(ground: Ground) -> None:
    """Once and daily: written again at its own hour it is that plan; ten minutes later it is another."""
    async with awake(ground) as store:
        await book(store, made(), made("walk", repeat="daily"))
        await store.plans.fire_due(TOMORROW, 24)
        told = []
        for one in await store.inbox.unfinished(DM):
            intent = thought(await recalled(store, one.perception, now=TOMORROW + timedelta(seconds=9)), "Now.")
            for at in (TOMORROW, TOMORROW + timedelta(minutes=10)):
                act = made(one.perception.text, at, repeat="daily" if one.perception.text == "walk" else "")
                told.append(await store.core.write(partial(book_plan, intent=intent, act=act)))
            await store.turns.commit(intent)
        left = await listed(store)
    assert [bool(one) for one in told] == [False, True, False, True]
    assert [at for _, at, _ in left] == ["2026-01-06T08:10", "2026-01-06T08:10", "2026-01-07T08:00"]


@case("P22", "a repetition keeps its number and its place among what waits")
async def p22(ground: Ground) -> None:
    """Fire the first, list, cancel, book another."""
    async with awake(ground) as store:
        await book(store, made(repeat="daily"))
        await store.plans.fire_due(TOMORROW, 24)
        after = await listed(store)
        plan_id = (await recalled(store, heard(n=98))).plans[0].id
        told = await book(store, PlanCancelled(plans=(plan_id,)), PlanCancelled(plans=(plan_id,)), made("other"), n=2)
        gone = await store.plans.fire_due(TOMORROW + timedelta(days=5), 24)
        texts = [one.perception.text for one in await store.inbox.unfinished(DM)]
    assert after == [("p1", "2026-01-07T08:00", "call the dentist")]
    assert told[:2] == ["✖ p1", "✖ p1 ∅"]
    assert told[2].endswith("· other · p2")
    assert gone == (DM,)
    assert [text for text in texts if text.startswith("call")] == ["call the dentist"]


@case("P23", "a plan is moved to another hour, rhythm or zone; one that is gone says so")
async def p23(ground: Ground) -> None:
    """Move the hour of a series, the zone alone, the rhythm alone: the next one is on a day of the new rhythm."""
    async with awake(ground) as store:
        await book(store, made(repeat="daily"))
        (one,) = (await recalled(store, heard(n=98))).plans
        told = await book(
            store,
            PlanMoved(plan=one.id, at=TOMORROW + HOUR),
            PlanMoved(plan=one.id, zone="Asia/Tokyo"),
            PlanMoved(plan=one.id, repeat="wed,thu"),
            PlanMoved(plan=one.id, zone="Europe/Berlin", repeat="sat"),
            PlanMoved(plan=one.id, repeat=""),
            PlanMoved(plan=12345, at=TOMORROW),
            n=2,
        )
        await store.plans.fire_due(TOMORROW + timedelta(days=5), 24)
        (late,) = await book(store, PlanMoved(plan=one.id, at=TOMORROW + timedelta(days=6)), n=3)
    assert told == [
        "⏰ Tue 6 Jan 2026, 10:00 Europe/Berlin ↻ 1 d · call the dentist · p1",
        "⏰ Tue 6 Jan 2026, 10:00 Asia/Tokyo ↻ 1 d · call the dentist · p1",
        "⏰ Wed 7 Jan 2026, 10:00 Asia/Tokyo ↻ Wed, Thu · call the dentist · p1",
        "⏰ Sat 10 Jan 2026, 10:00 Europe/Berlin ↻ Sat · call the dentist · p1",
        "⏰ Sat 10 Jan 2026, 10:00 Europe/Berlin · call the dentist · p1",
        "✖ ∅",
    ]
    assert late == "✖ p1 ∅"


@case("P24", "the same words for the same minute of one conversation are one plan, and its receipt says which")
async def p24(ground: Ground) -> None:
    """Ask twice, then for another minute."""
    async with awake(ground) as store:
        first = await book(store, made(), made("Call the  dentist!", at=TOMORROW + timedelta(seconds=20)))
        second = await book(store, made(at=TOMORROW + timedelta(minutes=1)), n=2)
        shown = await listed(store)
    assert first[0] == first[1]
    assert second == ["⏰ Tue 6 Jan 2026, 9:01 Europe/Berlin · call the dentist · p2"]
    assert [short for short, *_ in shown] == ["p1", "p2"]


@case("P25", "numbers count for each person and audience; a channel's receipt says whose it is, and lists only theirs")
async def p25(ground: Ground) -> None:
    """Ana and Ben in one channel, Ana in private."""
    async with awake(ground) as store:
        await book(store, made("alone"))
        mine = await book(store, made("stand up"), n=2, at=CHANNEL)
        theirs = await book(store, made("stand up", person=BEN), n=3, person=BEN, at=CHANNEL)
        here = await listed(store, at=CHANNEL)
        in_private = await listed(store)
    assert mine[0].endswith("· stand up · p1, Ana")
    assert theirs[0].endswith("· stand up · p1, Ben")
    assert (here[0][2], in_private[0][2]) == ("stand up", "alone")
    assert (len(here), len(in_private)) == (1, 1)


@case("P26", "a zone that was told is the person's from now on; plans keep theirs, and the receipt says so once")
async def p26(ground: Ground) -> None:
    """Set it with a plan waiting in another zone."""
    async with awake(ground) as store:
        await book(store, made())
        told = await book(store, ZoneSet(person=ANA, zone="Asia/Tokyo"), n=2)
        known = await recalled(store, heard(n=98))
        zone = store.people.zone(ANA)
    assert told == ["◷ Asia/Tokyo · p1 Europe/Berlin"]
    assert known.speaker is not None
    assert (known.speaker.zone, zone) == ("Asia/Tokyo", "Asia/Tokyo")


@case("P27", "what finds no room is not booked, and its receipt shows it")
async def p27(ground: Ground) -> None:
    """Book the hundred and first."""
    async with awake(ground) as store:
        for n in range(1, MOST_OPEN + 1):
            await store.plans.plan(plan(n))
        told = await book(store, made())
        shown = await listed(store)
    assert (told, shown) == (["⏰ ∅ · call the dentist"], [])


@case("P14", "what waits for a person is what was booked for them where the same people read, soonest first")
async def _(ground: Ground) -> None:
    """Ask in a thread of the channel, and in private; move one from outside any turn."""
    async with awake(ground) as store:
        await book(store, made("oil the chain"), made("air the tyres", TOMORROW - HOUR), at=CHANNEL)
        await book(store, made("alone"), n=2)
        await book(store, made("another's", person=BEN), n=3, at=CHANNEL, person=BEN)
        there = store.plans.waiting(heard(at=f"{CHANNEL}7"))
        moved = (await store.plans.move(there[0].id, TOMORROW + HOUR), await store.plans.move(5, TOMORROW))
        after = store.plans.waiting(heard(at=f"{CHANNEL}7"))
        in_private = store.plans.waiting(heard())
    assert [one.text for one in there] == ["air the tyres", "oil the chain"]
    assert [one.text for one in after] == ["oil the chain", "air the tyres"]
    assert (moved, [one.text for one in in_private]) == ((True, False), ["alone"])


@case("P28", "ids that become one person have no number twice in one audience, and none is given again after either")
async def _(ground: Ground) -> None:
    """Ana and Ben each have a p1 in a channel; they are linked, and unlinked."""
    async with awake(ground) as store:
        await book(store, made("hers"), at=CHANNEL)
        await book(store, made("his", person=BEN), n=2, at=CHANNEL, person=BEN)
        await store.people.link(ANA, BEN)
        linked = await listed(store, n=3, at=CHANNEL)
        await store.people.unlink(ANA, NOW)
        again = await book(store, made("new", person=BEN), n=4, at=CHANNEL, person=BEN)
    assert sorted(short for short, *_ in linked) == ["p1", "p2"]
    assert sorted(text for *_, text in linked) == ["hers", "his"]
    assert again[0].endswith("· new · p3, Ben")


@case("P29", "what a person asked for is in their export, and goes with them, with their numbers and their zone")
async def _(ground: Ground) -> None:
    """Ask for oneself and for another; export, and forget."""
    async with awake(ground) as store:
        await book(store, made("mine"), ZoneSet(person=ANA, zone="Asia/Tokyo"), at=CHANNEL)
        await book(store, made("for Ben", person=BEN), n=2, at=CHANNEL)
        await book(store, made("Ben's own", person=BEN), n=3, at=CHANNEL, person=BEN)
        kept = [one["text"] for one in store.people.said_by(ANA)["plans"]]
        await store.erasure.erase([ANA])
        left = store.plans.waiting(heard(at=CHANNEL, person=BEN))
        counted = await store.core.write(lambda db: db.value("number_next", person=ANA, audience=THERE, letter="p"))
        zone = store.people.zone(ANA)
    assert sorted(kept) == ["for Ben", "mine"]
    assert [one.text for one in left] == ["Ben's own"]
    assert (counted, zone) == (1, "")


@case("P30", "a promise that is put off keeps its number, its zone and its place among what waits")
async def _(ground: Ground) -> None:
    """Fire it, and plan it for the morning in its stead."""
    async with awake(ground) as store:
        await book(store, made("send it", kind="promise"))
        (one,) = store.plans.waiting(heard())
        await store.plans.fire_due(TOMORROW, 24)
        between = store.plans.waiting(heard())
        later = plan(9, at=TOMORROW + 5 * HOUR, text="send it", person=ANA, asked_by=ANA, instead_of=one.id)
        await store.plans.plan(replace(later, made_as="promise"))
        (waits,) = store.plans.waiting(heard())
    assert between == ()
    assert waits == replace(one, id=9, at=TOMORROW + 5 * HOUR)
