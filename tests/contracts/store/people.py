"""People cases: who sees what, by the audience rule; ids that are linked are one person, and can be separated again."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from claudius.acts import FactKnown
from claudius.errors import StaleTurn, StoreError
from claudius.intent import WHAT, ModelVersion, Planned, Schedule, StateChange
from claudius.memory.database import parse_strings
from claudius.memory.store import Store
from claudius.perception import SELF, Kind, Origin, Perception, private, shared
from claudius.recollection import Shown, Summary
from contracts.store.ground import (
    ANA,
    BEN,
    DEE,
    DM,
    NOW,
    OPS,
    OZ,
    Ground,
    awake,
    case,
    exchange,
    heard,
    recalled,
    thought,
)
from contracts.store.inbox import mention, owed, said

CHANNELS: Mapping[str, tuple[str, ...]] = {"ops": (ANA, BEN), "all": (ANA, BEN, OZ), "ext": (ANA, BEN, DEE)}


TERMINAL = "terminal:local:main:main"


TOM, ADA = "terminal:local:tom", "terminal:local:as-ada"


PLACES: Mapping[str, Perception] = {
    "DM Ana": heard(at="slack:T1:D-ana:", person=ANA),
    "DM Ben": heard(at="slack:T1:D-ben:", person=BEN),
    "#ops": heard(at="slack:T1:ops:1", person=ANA),
    "#all": heard(at="slack:T1:all:1", person=ANA),
    "#ext": heard(at="slack:T1:ext:1", person=ANA),
    "DM Oz": heard(at="slack:T1:D-oz:", person=OZ),
    "terminal": heard(at="terminal:local:main:oz", person="terminal:local:oz", is_owner=True),
}


LEARNED_SHOWN_IN: Mapping[str, frozenset[str]] = {
    "DM Ana": frozenset({"DM Ana", "terminal"}),
    "#ops": frozenset({"DM Ana", "DM Ben", "#ops", "terminal"}),
    "#all": frozenset({"DM Ana", "DM Ben", "#ops", "#all", "DM Oz", "terminal"}),
    "#ext": frozenset({"DM Ana", "DM Ben", "#ops", "#ext", "terminal"}),
    "terminal": frozenset({"terminal"}),
    "self": frozenset(PLACES),
}
"""The worked example of the security design, section 5, row by row."""


async def _know(store: Store) -> None:
    for channel, members in CHANNELS.items():
        await store.people.know_members(f"shared:slack:T1:{channel}", members, NOW)


def _audience(place: str) -> str:
    return SELF if place == SELF else PLACES[place].audience


@case("M70", "soul state is recalled where the worked example of the audience rule says, and nowhere else")
async def _(ground: Ground) -> None:
    for source, allowed in LEARNED_SHOWN_IN.items():
        async with awake(ground, f"boot for {source}") as store:
            await _know(store)
            for other in LEARNED_SHOWN_IN:
                await store.documents.set_state("currentTopic", "", _audience(other), NOW)
            await store.documents.set_state("currentTopic", f"from {source}", _audience(source), NOW)
            for place, perception in PLACES.items():
                found = await recalled(store, perception)
                assert bool(found.state) == (place in allowed), f"{source} in {place}"


@case("M71", "portraits of the speaker are recalled where the rule admits them, the writable one first")
async def _(ground: Ground) -> None:
    learned = ["DM Ana", "#ops", "#all", "#ext"]
    async with awake(ground) as store:
        await _know(store)
        for place in learned:
            await store.documents.set_model(ANA, _audience(place), f"of {place}", "note", "owner", NOW)
        for place in learned:
            found = await recalled(store, PLACES[place])
            assert found.speaker is not None
            assert found.speaker.models[0].audience == found.audience == _audience(place)
            expected = {f"of {source}" for source in learned if place in LEARNED_SHOWN_IN[source]}
            assert {model.markdown for model in found.speaker.models} == expected


@case("M85", "what a plan is for is recalled as for a message of that person's, by the audience of the plan")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        await exchange(store, heard("Hello", extra={"zone": "Asia/Tokyo"}))
        learned = ("DM Ana", "#all", "#ext")
        for place in learned:
            await store.documents.set_model(ANA, _audience(place), f"of {place}", "note", "owner", NOW)
        await store.documents.set_model(BEN, private(BEN), "of Ben alone", "note", "owner", NOW)
        due: dict[str, Any] = {"kind": Kind.SCHEDULED, "origin": Origin.INTERNAL, "owes": False, "name": ""}
        for place in ("DM Ana", "#ops"):
            found = await recalled(store, heard("It is time.", n=90, at=PLACES[place].conversation, **due))
            assert found.speaker is None
            assert found.listener is not None
            assert (found.listener.person, found.listener.name, found.listener.zone) == (ANA, "Ana", "Asia/Tokyo")
            seen = {f"of {source}" for source in learned if place in LEARNED_SHOWN_IN[source]}
            assert {model.markdown for model in found.listener.models if model.version} == seen
        nobody = await recalled(store, heard("", n=99, at=":::", audience=SELF, **due))
        assert nobody.listener is None


@case(
    "M86",
    "who somebody is, is told as far as it may be shown there: a name, facts in force, plans, a mood of their own",
)
async def _(ground: Ground) -> None:
    ops = "shared:slack:T1:ops"
    async with awake(ground) as store:
        await _know(store)
        acts = (
            FactKnown(person=ANA, kind="name", text="Annabel"),
            FactKnown(person=ANA, kind="home", text="Lives in Leeds"),
        )
        vegan = FactKnown(person=ANA, kind="other", text="Vegan")
        await exchange(store, replace(PLACES["#ops"], key="vegan"), acts=(vegan,))
        due: dict[str, Any] = {"conversation": DM, "at": NOW, "text": "Say: x", "person": ANA}
        mine = Schedule(id=1, audience=private(ANA), params={WHAT: "water the fern"}, **due)
        blank = Schedule(id=2, audience=private(ANA), key="k", **due)
        await exchange(store, heard("Hello", n=7), acts=acts, planned=Planned(schedules=(mine, blank)))
        await store.documents.set_state("emotionalState", "frustrated", ops, NOW)
        alone, aloud = await store.people.known_of(ANA, NOW), store.people.known_in(PLACES["#ops"])
        await store.documents.set_state("emotionalState", "sardonic", private(ANA), NOW)
        moved, here = await store.people.known_of(ANA, NOW), store.people.known_in(PLACES["#ops"])
        speakers = [(await recalled(store, PLACES[place])).speaker for place in ("DM Ana", "#ops")]
    assert (alone.name, aloud.name) == ("Annabel", "Ana")
    assert [(one.id, one.text) for one in alone.facts] == [("f2", "Lives in Leeds"), ("f1", "Annabel"), ("f1", "Vegan")]
    assert [(one.id, one.text) for one in aloud.facts] == [("f1", "Vegan")]
    assert ([one.what for one in alone.plans], aloud.plans) == (["water the fern"], ())
    assert (alone.mood, aloud.mood, moved.mood, here.mood) == ("", "", "sardonic", "")
    assert [one and one.name for one in speakers] == ["Annabel", "Ana"]


@case("M72", "members that are not known hide everything but the place itself")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        await store.people.know_members("shared:slack:T1:ops", None, NOW)
        await store.documents.set_state("currentTopic", "of all", "shared:slack:T1:all", NOW)
        assert (await recalled(store, PLACES["#ops"])).state == ()
        await store.documents.set_state("currentTopic", "of ops", "shared:slack:T1:ops", NOW)
        assert [one.value for one in (await recalled(store, PLACES["#ops"])).state] == ["of ops"]
        assert [one.value for one in (await recalled(store, PLACES["DM Ana"])).state] == ["of all"]


@case("M73", "whoever leaves a place loses what it learned, whoever joins gains it")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        await store.documents.set_state("currentTopic", "of ops", "shared:slack:T1:ops", NOW)
        assert (await recalled(store, PLACES["DM Ana"])).state
        assert not (await recalled(store, PLACES["DM Oz"])).state
        await store.people.know_members("shared:slack:T1:ops", (BEN, OZ), NOW)
        assert not (await recalled(store, PLACES["DM Ana"])).state
        assert (await recalled(store, PLACES["DM Oz"])).state


@case(
    "M208", "where nobody lists the members, a place is shown to those who are known to see it, and shows nothing else"
)
async def _(ground: Ground) -> None:
    ops = "shared:slack:T1:ops"
    async with awake(ground) as store:
        await _know(store)
        await store.people.know_members(ops, None, NOW)
        await store.documents.set_state("currentTopic", "of ops", ops, NOW)
        await store.documents.set_state("currentProject", "of Ana", private(ANA), NOW)
        await store.people.know_sight(ANA, [ops, "shared:slack:T1:all", "shared:slack:T1:nowhere"])
        (sight,) = store.people.sight(ANA)
        shown = [len((await recalled(store, PLACES[place])).state) for place in ("DM Ana", "DM Ben", "#ops")]
        await store.people.know_members(ops, None, NOW)
        still = store.people.sight(ANA)[0].seen
        await store.people.know_sight(BEN, [ops])
        await store.people.know_members("shared:slack:T1:all", (ANA, BEN), NOW)
        among_both = (await recalled(store, PLACES["#all"])).state
        await store.people.know_sight(ANA, [])
        (blind,) = store.people.sight(ANA)
        hidden = (await recalled(store, PLACES["DM Ana"])).state
    assert sight.unlisted == (ops,)
    assert sight.seen == still == frozenset({ops})
    assert set(sight.listed) == {_audience("#all"), _audience("#ext")} == set(blind.listed)
    assert shown == [2, 0, 1]
    assert blind.seen == frozenset()
    assert among_both == ()  # neither was asked whether both can still see it
    assert [one.value for one in hidden] == ["of Ana"]


@case("M84", "whoever speaks in a place can see it, whatever its list of members says")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.people.know_members("shared:slack:T1:ops", (ANA,), NOW)
        await store.documents.set_state("currentTopic", "of Ana", private(ANA), NOW)
        assert (await recalled(store, heard(n=1, at="slack:T1:ops:1", person=ANA))).state
        found = await recalled(store, heard(n=1, at="slack:T1:ops:2", person=BEN))
    assert found.state == ()


@case("M74", "a summary is recalled only where all its sources may be shown")
async def _(ground: Ground) -> None:
    sources = (private(ANA), "shared:slack:T1:ops")
    async with awake(ground) as store:
        await _know(store)
        for place in ("DM Ana", "#ops"):
            folded = Summary(text="mixed", sources=sources, upto=0, nonce="s")
            await exchange(store, PLACES[place], summary=folded)
        again = {
            place: await recalled(store, heard(n=2, at=PLACES[place].conversation)) for place in ("DM Ana", "#ops")
        }
    assert again["DM Ana"].summary is not None
    assert again["#ops"].summary is None


@case("M75", "at a terminal that another has spoken in, the two are one audience, and neither's private past is shown")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard("tom alone", n=1, at=TERMINAL, person=TOM, is_owner=True))
        await exchange(store, heard("ada joins", n=2, at=TERMINAL, person=ADA))
        tom = await recalled(store, heard("tom again", n=3, at=TERMINAL, person=TOM, is_owner=True))
        elsewhere = await recalled(store, heard(n=1, at="terminal:local:main:other", person=ADA))
    assert [past.entries[0].content for past in tom.past] == ["ada joins"]
    assert tom.audience.startswith("shared:terminal:local:main")
    assert elsewhere.audience == private(ADA)


@case("M76", "what was learned at a shared terminal is shown to each who spoke there, not to others")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await exchange(store, heard(n=1, at=TERMINAL, person=TOM))
        joined = await exchange(store, heard(n=2, at=TERMINAL, person=ADA))
        await store.documents.set_state("currentTopic", "together", joined.audience, NOW)
        ada = await recalled(store, heard(n=1, at="terminal:local:main:ada", person=ADA))
        eve = await recalled(store, heard(n=1, at="terminal:local:main:eve", person="terminal:local:as-eve"))
    assert [one.value for one in ada.state] == ["together"]
    assert eve.state == ()


@case("M77", "the owner alone at the terminal sees all; together with another he sees what both may")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        await store.documents.set_state("currentTopic", "of Ana", private(ANA), NOW)
        alone = heard(n=1, at=TERMINAL, person=TOM, is_owner=True)
        assert [one.value for one in (await recalled(store, alone)).state] == ["of Ana"]
        await exchange(store, alone)
        await exchange(store, heard(n=2, at=TERMINAL, person=ADA))
        assert not (await recalled(store, heard(n=3, at=TERMINAL, person=TOM, is_owner=True))).state


@case("M78", "ids that are linked are one person: one portrait, one count, one private audience")
async def _(ground: Ground) -> None:
    other = "discord:1:Ana"
    async with awake(ground) as store:
        await exchange(store, heard(n=1, person=ANA), model=_model(ANA, private(ANA), "of Slack"))
        there = "discord:1:D-ana:"
        await exchange(store, heard(n=1, at=there, person=other), model=_model(other, private(other), "of Discord"))
        await store.people.link(ANA, other)
        found = await recalled(store, heard(n=2, at=there, person=other))
    assert found.speaker is not None
    assert found.speaker.person == ANA
    assert found.speaker.turns_here == 1
    assert [(m.audience, m.markdown) for m in found.speaker.models] == [
        (private(other), "of Discord"),
        (private(ANA), "of Slack"),
    ]


@case("M79", "linking a third id, in whatever order, leaves one person; linking twice or a stranger is refused")
async def _(ground: Ground) -> None:
    ids = [f"net{n}:w:ana" for n in range(3)]
    async with awake(ground) as store:
        for n, one in enumerate(ids):
            await exchange(store, heard(n=1, at=f"net{n}:w:D-{n}:", person=one))
        await store.people.link(ids[1], ids[2])
        await store.people.link(ids[0], ids[1])
        for pair in ((ids[0], ids[2]), (ids[0], ids[0]), (ids[0], "nobody:w:x")):
            assert not await _is_linked(store, *pair), pair
        found = [await recalled(store, heard(n=2, at=f"net{n}:w:D-{n}:", person=one)) for n, one in enumerate(ids)]
    assert {one.speaker.person for one in found if one.speaker} == {ids[0]}


@case("M80", "two portraits of one audience become one when their persons do, and nothing of either is lost")
async def _(ground: Ground) -> None:
    ops, other = shared("slack:T1:ops:1"), "slack:T1:Ana2"
    async with awake(ground) as store:
        await store.people.know_members(ops, (ANA, other), NOW)
        await exchange(store, heard(n=1, at="slack:T1:ops:1", person=ANA), model=_model(ANA, ops, "## Persona\nMaker."))
        second = "## Persona\nDigger.\n\n## Worldview\nDry."
        await exchange(store, heard(n=2, at="slack:T1:ops:1", person=other), model=_model(other, ops, second))
        await store.people.link(ANA, other)
        found = await recalled(store, heard(n=3, at="slack:T1:ops:1", person=other))
    assert found.speaker is not None
    (model,) = found.speaker.models
    assert model.version == 2
    assert all(word in model.markdown for word in ("Maker.", "Digger.", "Dry."))
    assert model.markdown.count("## Persona") == 1


@case("M81", "the audiences that are handed on are those that all who hear the answer can see")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        for place in ("DM Ana", "DM Ben", "#ext"):
            await store.documents.set_model(ANA, _audience(place), "text", "note", "owner", NOW)
        found, of_ana = [parse_strings((await recalled(store, PLACES[at])).shown_from) for at in ("#ops", "DM Ana")]
    assert set(found) == {SELF, _audience("#ops"), _audience("#all"), _audience("#ext")}
    assert set(of_ana) == {private(ANA), *found}


@case("M82", "a person's portraits are not another's, whatever their names")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        await exchange(store, PLACES["#ops"], model=_model(ANA, _audience("#ops"), "of Ana"))
        found = await recalled(store, heard(n=2, at="slack:T1:ops:1", person=BEN, name="Ana"))
    assert found.speaker is not None
    assert [model.version for model in found.speaker.models] == [0]


async def _is_linked(store: Store, person: str, other: str) -> bool:
    try:
        await store.people.link(person, other)
    except StoreError:
        return False
    return True


def _model(person: str, audience: str, markdown: str) -> ModelVersion:
    return ModelVersion(person=person, audience=audience, version=1, markdown=markdown, note="note")


@case("M83", "a state word and a portrait of one turn carry the labels that the turn gave them")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await _know(store)
        change = StateChange(key="currentTopic", value="secret", audience=private(ANA))
        await exchange(store, PLACES["DM Ana"], state=(change,), model=_model(ANA, private(ANA), "secret"))
        for place in ("#ops", "#all", "#ext", "DM Ben", "DM Oz"):
            found = await recalled(store, heard(n=5, at=PLACES[place].conversation, person=PLACES[place].person))
            assert "secret" not in repr(found)


@case("M208", "unlinked, each id has its own places' portraits again, in prompts, in export and in erasure")
async def _(ground: Ground) -> None:
    other, there = "discord:@me:7", "discord:@me:D-ana:"
    ours, theirs = (heard("of bees", n=1, person=ANA), heard("of owls", n=1, at=there, person=other))
    async with awake(ground) as store:
        await exchange(store, ours, model=_model(ANA, private(ANA), "keeps bees"))
        await exchange(store, theirs, model=_model(other, private(other), "keeps owls"))
        await store.people.link(ANA, other)
        while_linked = await recalled(store, heard("of owls again", n=2, at=there, person=other))
        assert while_linked.speaker is not None
        assert len(while_linked.speaker.models) == 2
        changed = ModelVersion(person=ANA, audience=private(other), version=2, markdown="keeps many owls", note="more")
        shown = tuple(
            Shown(person=one.person, audience=one.audience, version=one.version, text=one.markdown, writable=False)
            for one in while_linked.speaker.models
        )
        await store.turns.commit(thought(while_linked, "Hi.", model=changed, shown=shown))
        assert sorted(await store.people.unlink(other, NOW, "person")) == sorted((ANA, other))
        last = store.documents.unarchived(100)[-1]
        assert (last.document.person, last.note, last.author) == (other, "unlinked", "person")
        for person, at, words in ((ANA, DM, "keeps bees"), (other, there, "keeps many owls")):
            found = await recalled(store, heard(n=3, at=at, person=person))
            assert found.speaker is not None
            assert "nonce" not in {turn.nonce for turn in found.past}  # no session that saw both goes on
            assert [(one.person, one.markdown) for one in found.speaker.models] == [(person, words)]
            assert found.speaker.turns_here == (2 if person == other else 1)
            texts = [one.text for turn in found.past for one in turn.shown]
            assert texts == (["keeps owls"] if person == other else [])
            assert [one.markdown for one in (await store.people.known_of(person, NOW)).models] == [words]
            said = repr(store.people.said_by(person))
            assert ("owls" in said, "bees" in said) == (person == other, person == ANA)
        assert list(await store.people.ids_of(other)) == [other]
        await store.erasure.erase(await store.people.ids_of(ANA))
        kept = store.people.said_by(other)["messages"]
        assert [line["content"] for line in kept] == ["of owls", "Hi.", "of owls again", "Hi."]
        assert not (await store.people.known_of(ANA, NOW)).models
        assert [one.markdown for one in (await store.people.known_of(other, NOW)).models] == ["keeps many owls"]


@case("M209", "unlinked, two portraits that were made one are each as before, and what was made of both is gone")
async def _(ground: Ground) -> None:
    ops, other = shared("slack:T1:ops:1"), "slack:T1:Ana2"
    async with awake(ground) as store:
        await store.people.know_members(ops, (ANA, other), NOW)
        await exchange(store, heard(n=1, at="slack:T1:ops:1", person=ANA), model=_model(ANA, ops, "Maker."))
        await exchange(store, heard(n=2, at="slack:T1:ops:1", person=other), model=_model(other, ops, "Digger."))
        await store.people.link(ANA, other)
        await store.documents.set_model(ANA, ops, "Maker and digger.", "more of both", "owner", NOW)
        await store.people.unlink(ANA, NOW)
        for person, words in ((ANA, "Maker."), (other, "Digger.")):
            (model,) = (await store.people.known_of(person, NOW, ops)).models
            assert model.markdown == words
        waiting = store.documents.unarchived(100)
        assert not [one for one in waiting if "Maker" in one.markdown and "igger" in one.markdown]
        assert {one.document.person for one in waiting} == {ANA, other}


@case("M210", "who is linked with nobody cannot be unlinked; three ids are all apart, and may be linked again")
async def _(ground: Ground) -> None:
    ids = [f"net{n}:w:ana" for n in range(3)]
    async with awake(ground) as store:
        for n, one in enumerate(ids):
            at = f"net{n}:w:D-{n}:"
            await exchange(store, heard(n=1, at=at, person=one), model=_model(one, private(one), f"of {n}"))
        assert not await _is_unlinked(store, ids[0])
        await store.people.link(ids[1], ids[2])
        await store.people.link(ids[0], ids[1])
        assert sorted(await store.people.unlink(ids[2], NOW)) == ids
        assert not await _is_unlinked(store, ids[1])
        for n, one in enumerate(ids):
            assert [model.markdown for model in (await store.people.known_of(one, NOW)).models] == [f"of {n}"]
        await store.people.link(ids[2], ids[0])
        assert len((await store.people.known_of(ids[0], NOW)).models) == 2
        await store.people.unlink(ids[0], NOW)
        assert [model.markdown for model in (await store.people.known_of(ids[0], NOW)).models] == ["of 0"]


@case("M211", "a turn that was begun while ids were linked is not committed once they are apart")
async def _(ground: Ground) -> None:
    other, there = "discord:@me:7", "discord:@me:D-ana:"
    async with awake(ground) as store:
        await exchange(store, heard(n=1, person=ANA), model=_model(ANA, private(ANA), "keeps bees"))
        await exchange(store, heard(n=1, at=there, person=other))
        await store.people.link(ANA, other)
        begun = await recalled(store, heard(n=2, at=there, person=other))
        await store.people.unlink(ANA, NOW)
        try:
            await store.turns.commit(thought(begun, "You keep bees."))
        except StaleTurn:
            return
    raise AssertionError("it was committed")


async def _is_unlinked(store: Store, person: str) -> bool:
    try:
        await store.people.unlink(person, NOW)
    except StoreError:
        return False
    return True


@case("M15", "the newest zone that a network tells of a person is known; a message that tells none unlearns none")
async def _(ground: Ground) -> None:
    found = []
    async with awake(ground) as store:
        found.append(store.people.zone(ANA))
        for n, extra in enumerate(({"zone": "Asia/Tokyo"}, {}, {"zone": "Europe/Rome"}), 1):
            await store.inbox.accept((heard(n=n, extra=extra),), NOW)
            found.append(store.people.zone(ANA))
    assert found == ["", "Asia/Tokyo", "Asia/Tokyo", "Europe/Rome"]


@case("T10", "to be quiet and not quiet again opens no thread; a mention does, and what was said before stays let be")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.people.hush(OPS, said(1).position, NOW)
        await store.people.hush(OPS, said(2).position, NOW, on=False)
        assert await store.inbox.accept((said(3, person=BEN), said(4, person=DEE)), NOW) == (False, False)
        assert await owed(store, mention(5), said(6)) == [True, True]
        await store.people.hush(OPS, said(7).position, NOW)
        assert await store.inbox.accept((said(8),), NOW) == (False,)
        await store.people.hush(OPS, said(9).position, NOW, on=False)
        assert await store.inbox.accept((said(8),), NOW) == (False,)
        assert await owed(store, said(10)) == [True]
