"""Fact cases: what people are known by begins, ends and is forgotten, and stands only where it may be shown."""

from datetime import date, datetime, timedelta

from msgspec.structs import replace

from claudius.acts import Act, FactEnded, FactKnown, Forgotten, MatterClosed, MatterOpened, ZoneSet
from claudius.intent import Intent
from claudius.memory.moments import let_go
from claudius.memory.ranking import asked_for
from claudius.memory.store import Store
from claudius.perception import private
from claudius.recollection import Entry, EntryType, Moment, Recollection
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, Ground, awake, case, heard, recalled, thought

WALNUTS = FactKnown(person=ANA, kind="constraint", text="Allergic to walnuts", keys=("cake", "nuts"))


async def told(store: Store, n: int, *acts: Act, at: str = DM, person: str = ANA) -> Intent:
    """Commit a turn that books acts; return it."""
    found = await recalled(store, heard(n=n, at=at, person=person))
    intent = thought(found, "Well.", acts=acts)
    await store.turns.commit(intent)
    return intent


async def look(store: Store, n: int, *, at: str = DM, now: datetime = NOW) -> Recollection:
    """Return what a turn would know, in a conversation where nothing else waits."""
    place = at.replace("D-ana", f"D-ana{n}").replace("1.0", f"{n}.5")
    return await recalled(store, heard(n=n, at=place), now=now)


def known(found: Recollection) -> list[str]:
    """Return the facts that a prompt shows, by id and words."""
    return [f"{one.short} {one.text}".strip() for one in found.known]


@case("M260", "a fact is known once, ends by what takes its place or by its reason, and a number is never given again")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await told(store, 1, WALNUTS, FactKnown(person=ANA, kind="home", text="Lives in Leeds"))
        await told(store, 2, replace(WALNUTS, text="allergic to walnuts."))
        first = (await look(store, 3)).known
        leeds = next(one for one in first if one.kind == "home")
        hull = FactKnown(person=ANA, kind="home", text="Lives in Hull", instead_of=leeds.id)
        await told(store, 4, hull, FactEnded(fact=first[0].id, why="the test was negative"))
        await told(store, 5, FactEnded(fact=leeds.id), FactKnown(person=ANA, kind="taste", text="Likes tea"))
        found = await look(store, 6)
    assert [f"{one.short} {one.text}" for one in first] == ["f1 Allergic to walnuts", "f2 Lives in Leeds"]
    assert known(found) == ["f3 Lives in Hull", "f4 Likes tea"]
    assert {(one.text, one.why) for one in found.ended} == {
        ("Allergic to walnuts", "the test was negative"),
        ("Lives in Leeds", ""),
    }


@case("M265", "the moment of a message that told a fact in force is not let go, and is found by the keys")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for n in range(1, 5):
            found = await recalled(store, heard(f"walnut number {n}", n=n))
            said = Moment(
                turn=found.turn,
                at_s=int(NOW.timestamp()) + n,
                person=ANA,
                conversation=DM,
                audience=private(ANA),
                text=f"walnut number {n}",
                pictures="cake" if n == 1 else "",
            )
            acts = (WALNUTS,) if n == 1 else ()
            await store.turns.commit(thought(found, "Well.", moments=(said,), acts=acts))
        await store.core.write(lambda db: let_go(db, private(ANA), int(NOW.timestamp()) + 9**7, 2))
        kept = await store.moments.remember(heard(n=9), asked_for("walnut"))
        by_key = await store.moments.remember(heard(n=9), asked_for("which cake?"))
    assert [one.text for one in kept.moments.values()] == ["walnut number 4", "walnut number 1"]
    assert list(by_key.hits) == [1]


@case("M261", "a fact of a day that is past is not in force, and is found with its dates")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        spring = FactKnown(person=ANA, kind="constraint", text="Vegetarian", until=date(2025, 3, 14))
        await told(store, 1, spring, replace(spring, text="On antibiotics", until=NOW.date() + timedelta(days=1)))
        now = await look(store, 2, now=NOW + timedelta(days=1))
        later = await look(store, 3, now=NOW + timedelta(days=2))
    assert known(now) == ["f2 On antibiotics"]
    assert known(later) == []
    assert [one.text for one in later.ended] == ["Vegetarian", "On antibiotics"]


@case("M208", "a fact is shown only where the audience rule lets what was told there stand")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.people.know_members("shared:slack:T1:ops", (ANA, BEN), NOW)
        await told(store, 1, WALNUTS)
        await told(store, 2, FactKnown(person=ANA, kind="work", text="A nurse"), at=OPS)
        here, there = await look(store, 3), await look(store, 4, at=OPS)
        damage = "UPDATE fact SET since = 'soon' WHERE kind = 'constraint'"
        await store.core.write(lambda db: db.connection.execute(damage).rowcount)
        beside = await look(store, 5, at=OPS)
    assert known(here) == ["f1 Allergic to walnuts", "A nurse"]  # without a number: nothing said here ends it there
    assert known(there) == known(beside) == ["f1 A nurse"]  # no gap tells that more is known, nor that it is damaged


@case("M299", "what somebody may not have stands there for whoever asks in a conversation that they have part in")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.people.know_members("shared:slack:T1:ops", (ANA, BEN), NOW)
        await told(store, 1, WALNUTS, FactKnown(person=ANA, kind="work", text="A nurse"), at=OPS)
        found = await recalled(store, heard(n=2, at=OPS, person=BEN))
    assert known(found) == ["Allergic to walnuts"]  # her work does not bear on what he says


@case("M262", "nobody ends or hides what is somebody else's, whatever number is guessed")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await told(store, 1, WALNUTS, MatterOpened(person=ANA, text="a house"))
        mine = await look(store, 2)
        fact, matter = mine.known[0].id, mine.matters[0].id
        guesses = (FactEnded(fact=fact), Forgotten(fact=fact), Forgotten(matter=matter), MatterClosed(matter=matter))
        await told(store, 3, *guesses, at="slack:T1:D-ben:", person=BEN)
        found = await look(store, 4)
    assert (found.known, found.matters) == (mine.known, mine.matters)


@case("M263", "what is asked to be forgotten is in no prompt and in no list at once")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await told(store, 1, WALNUTS, MatterOpened(person=ANA, text="a house"))
        mine = await look(store, 2)
        await told(store, 3, Forgotten(fact=mine.known[0].id), Forgotten(matter=mine.matters[0].id))
        found, document = await look(store, 4), await store.people.known_of(ANA, NOW)
    assert (found.known, found.ended, found.matters) == ((), (), ())
    assert (document.facts, document.open) == ((), ())


@case("M264", "a matter stands from its day on and when it comes up; the ninth takes the place of the oldest undated")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        day = NOW.date()
        dated = [MatterOpened(person=ANA, text=f"day {n}", when=day + timedelta(days=n)) for n in (-20, -3, -1, 5, 9)]
        await told(store, 1, *dated)
        await told(store, 2, *[MatterOpened(person=ANA, text=f"someday {n}") for n in range(3)])
        every = [one.text for one in (await store.people.known_of(ANA, NOW)).open]
        await told(store, 3, MatterOpened(person=ANA, text="the ninth", when=day))
        found = await look(store, 4)
        elsewhere = await recalled(store, heard(n=4, at=OPS))
        gone = await look(store, 5, now=NOW + timedelta(days=41))
        left = [one.text for one in (await store.people.known_of(ANA, NOW + timedelta(days=41))).open]
    assert len(every) == 8
    assert [one.text for one in found.matters] == ["the ninth", "day -1", "day -3"]
    assert (found.dated, elsewhere.dated, gone.matters) == (6, 0, ())
    assert left == ["someday 1", "someday 2"]


@case("M269", "a matter whose day has come is a cause to write first where it was told, once")
async def _(ground: Ground) -> None:
    day = NOW.date()
    async with awake(ground) as store:
        talk = MatterOpened(person=ANA, text="the interview", when=day)
        await told(store, 1, talk, replace(talk, text="the flat", when=day + timedelta(days=3)))
        nowhere = store.facts.due(ANA, "shared:slack:T1:ops", NOW)
        before = store.facts.due(ANA, private(ANA), NOW - timedelta(days=1))
        due = store.facts.due(ANA, private(ANA), NOW)
        assert due is not None
        await store.facts.raised(due.id, NOW)
        again = store.facts.due(ANA, private(ANA), NOW)
        tomorrow = replace(talk, text="the exam", when=day + timedelta(days=1))
        await told(store, 2, tomorrow, ZoneSet(person=ANA, zone="Etc/GMT-14"))
        assert store.facts.due(ANA, private(ANA), NOW)  # where she is, its day has come
    assert (nowhere, before, due.text, again) == (None, None, "the interview", None)


CAKE = "I'm allergic to walnuts, so no cake."
ACT = '{"do": "know", "text": "Allergic to walnuts", "kind": "constraint", "keys": ["cake", "nuts"]}'


async def cake(store: Store) -> Recollection:
    """Tell of an allergy in a turn that keeps its message and its acts; return what the next turn would know."""
    found = await recalled(store, heard(CAKE, n=1))
    said = Moment(
        turn=found.turn,
        at_s=int(NOW.timestamp()),
        person=ANA,
        conversation=DM,
        audience=private(ANA),
        text=CAKE,
        pictures="cake nuts",
    )
    intent = thought(found, "Then no walnuts for you.", moments=(said,), acts=(WALNUTS,))
    line = Entry(entry_type=EntryType.MENTAL_QUERY, content=ACT, at=found.now, metadata={"query": "acts"})
    await store.turns.commit(replace(intent, entries=(*intent.entries, line)))
    await told(store, 2, FactKnown(person=ANA, kind="taste", text="Likes tea"))
    return await look(store, 3)


def lines(found: Recollection) -> str:
    """Return all that a conversation's history holds."""
    return "\n".join([entry.content for turn in found.past for entry in turn.entries])


@case("M266", "an hour after it was asked for, a fact is destroyed with its message and what was written from it")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        fact = (await cake(store)).known[0].id
        await told(store, 4, Forgotten(fact=fact))
        asked = store.facts.next_destroyed()
        await store.facts.destroy(NOW + timedelta(minutes=60))
    async with awake(ground, "two") as store:  # an hour is an hour, whatever process it ends in
        before = await store.moments.remember(heard(n=9), asked_for("walnuts"))
        await store.facts.destroy(NOW + timedelta(minutes=65))
        await store.inbox.undo()
        after = await store.moments.remember(heard(n=9), asked_for("walnuts cake nuts"))
        history, old = await recalled(store, heard(n=5)), store.facts.next_destroyed()
        document = await store.people.known_of(ANA, NOW)
    assert asked == NOW + timedelta(minutes=64)
    assert [one.text for one in before.moments.values()] == [CAKE]
    assert (after.moments, old) == ({}, None)
    assert [one.text for one in document.facts] == ["Likes tea"]
    assert lines(history).lower().count("walnuts") == 1  # the message itself stays where it was said
    assert CAKE in lines(history)


@case("M267", "what was asked to be forgotten can be brought back within the hour, by nobody else")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        fact = (await cake(store)).known[0].id
        await told(store, 4, Forgotten(fact=fact))
        nobody = await store.facts.keep(BEN, private(ANA), "f1")
        back = await store.facts.keep(ANA, private(ANA), "F1")
        await store.facts.destroy(NOW + timedelta(days=1))
        found = await look(store, 5)
    assert (nobody, back) == (None, "Allergic to walnuts")
    assert known(found) == ["f1 Allergic to walnuts", "f2 Likes tea"]


@case("M268", "what is kept with some words is listed for whom it is about alone, and what they choose is destroyed")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await cake(store)
        of_ben = store.facts.of_theirs(BEN, "walnuts", NOW, "")
        found = store.facts.of_theirs(ANA, "the cake", NOW, "")
        gone = await store.facts.delete(found[:1])
        await store.inbox.undo()
        left = store.facts.of_theirs(ANA, "walnuts", NOW, "")
    assert of_ben == []
    assert [(one.kind, one.text) for one in found] == [("fact", "Allergic to walnuts"), ("moment", CAKE)]
    assert (gone, left) == (1, [])
