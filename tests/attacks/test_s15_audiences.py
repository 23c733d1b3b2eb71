"""S15: what one person told in private never reaches or changes a recollection for an audience with another person."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from claudius.home import Home
from claudius.intent import ModelVersion, StateChange
from claudius.memory.seeing import Seeing
from claudius.memory.sqlite import SqliteStore
from claudius.perception import Perception, members_of, private
from claudius.recollection import Recollection, Summary
from contracts.store.ground import NOW, exchange, heard, recalled

PEOPLE = tuple(f"slack:T1:{name}" for name in ("Ana", "Ben", "Dee"))
CHANNELS = ("ops", "all")
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory of our own is made there
"""The directory where thousands of homes are made and deleted. Nothing there needs to outlive a crash."""
TERMINAL = "terminal:local:main:desk"
TERMINAL_PEOPLE = ("terminal:local:tom", "terminal:local:as-ada")


@dataclass(frozen=True, slots=True)
class Say:
    """A person says something somewhere, and the soul learns everything it can from it."""

    person: str
    place: str


@dataclass(frozen=True, slots=True)
class Members:
    """A channel's members change, or become unknown."""

    channel: str
    people: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Sees:
    """A network that lists no members reports what one person sees."""

    person: str
    channels: frozenset[str]


def dm(person: str) -> str:
    """Return a person's direct-message conversation."""
    return f"slack:T1:D-{person.rpartition(':')[2]}:"


PLACES = [*(f"slack:T1:{name}:1" for name in CHANNELS), "DM", "DM"]

at_slack = st.builds(Say, person=st.sampled_from(PEOPLE), place=st.sampled_from(PLACES))
at_the_desk = st.builds(Say, person=st.sampled_from(TERMINAL_PEOPLE), place=st.just(TERMINAL))
members = st.builds(
    Members, channel=st.sampled_from(CHANNELS), people=st.none() | st.frozensets(st.sampled_from(PEOPLE), min_size=1)
)
sees = st.builds(Sees, person=st.sampled_from(PEOPLE), channels=st.frozensets(st.sampled_from(CHANNELS)))
SCRIPTS = st.lists(at_slack | at_the_desk | members | sees, min_size=3, max_size=12)


def words(place: str, audience: str, person: str, secrets: Mapping[str, str]) -> str:
    """Return what is said: in private the person's own secret, elsewhere something that everybody there hears."""
    return secrets[person] if audience == private(person) else f"heard in {place}"


async def act(store: SqliteStore, n: int, say: Say, secrets: Mapping[str, str]) -> None:
    """Take one turn that keeps its words as message, thought, portrait, state and summary."""
    place = dm(say.person) if say.place == "DM" else say.place
    first = heard("", n=n, person=say.person, at=place)
    before = await recalled(store, first)
    text = words(place, before.audience, say.person, secrets)
    mine = before.speaker.models[0] if before.speaker else None
    assert mine is not None
    model = ModelVersion(person=mine.person, audience=mine.audience, version=mine.version + 1, markdown=text, note=text)
    state = (StateChange(key="currentTopic", value=text, audience=before.audience),)
    sources = {before.audience, *(before.summary.sources if before.summary else ())}
    folded = Summary(text=text, sources=tuple(sorted(sources)), upto=max(0, before.turns - 2), nonce="s")
    said = heard(text, n=n, person=say.person, at=place, key=f"{place}#{n}/said")
    pending = await store.inbox.oldest(place)
    assert pending is not None
    await store.inbox.withdraw(pending.seq, "was only looked at")
    await exchange(store, said, text, model=model, state=state, summary=folded)


Looked = tuple[Recollection, frozenset[str] | None]
"""What a turn recalls, and who hears its answer; None = nobody knows."""


async def live(script: Sequence[Say | Members | Sees], secrets: Mapping[str, str]) -> dict[str, Looked]:
    """Play a script in a fresh home. Returns what each place and speaker would be shown next, and who would hear."""
    with tempfile.TemporaryDirectory(prefix="claudius-s15-", dir=IN_MEMORY) as root:
        home = Home(Path(root))
        home.create()
        store = SqliteStore(home.database)
        await store.start("boot", NOW)
        for n, step in enumerate(script):
            if isinstance(step, Members):
                await store.people.know_members(
                    f"shared:slack:T1:{step.channel}", None if step.people is None else sorted(step.people), NOW
                )
            elif isinstance(step, Sees):
                await store.people.know_sight(step.person, [f"shared:slack:T1:{one}" for one in sorted(step.channels)])
            else:
                await act(store, n, step, secrets)
        found = {str(one.key): await _look(store, one) for one in _questions()}
        await store.close(clean=True)
    return found


async def _look(store: SqliteStore, one: Perception) -> Looked:
    found = await recalled(store, one)
    with store.core.snapshot() as db:
        seeing = Seeing(db, one)
        seeing._learn(found.audience)
        hears = members_of(found.audience, seeing._members)
    pending = await store.inbox.oldest(one.conversation)
    assert pending is not None
    await store.inbox.withdraw(pending.seq, "was only looked at")
    return found, hears


def _questions() -> list[Perception]:
    slack = [
        (person, place) for person in PEOPLE for place in (dm(person), *(f"slack:T1:{name}:1" for name in CHANNELS))
    ]
    desk = [(person, TERMINAL) for person in TERMINAL_PEOPLE]
    return [heard("?", n=900 + n, person=person, at=place) for n, (person, place) in enumerate([*slack, *desk])]


@given(SCRIPTS)
@settings(max_examples=max(25, settings().max_examples // 10))
def test_s15_a_private_word_is_recalled_for_nobody_else(script: list[Say | Members | Sees]) -> None:
    """Over random people, channels, joins and leaves, only recollections for its own audience hold a secret."""
    secrets = {person: f"canary-{n}" for n, person in enumerate((*PEOPLE, *TERMINAL_PEOPLE))}

    for found, hears in asyncio.run(live(script, secrets)).values():
        shown = {person for person, secret in secrets.items() if secret in repr(found)}
        assert shown <= {person for person in secrets if hears == frozenset({person})}


@given(SCRIPTS, st.sampled_from(PEOPLE))
@settings(max_examples=max(15, settings().max_examples // 20))
def test_s15_a_private_word_moves_nothing_that_others_are_given(
    script: list[Say | Members | Sees], person: str
) -> None:
    """Noninterference: other words in one person's private conversation change no byte of what others are shown."""
    secrets = {one: f"secret of {one}" for one in (*PEOPLE, *TERMINAL_PEOPLE)}

    one, other = (
        {key: repr(found) for key, (found, hears) in seen.items() if hears != {person}}
        for seen in (
            asyncio.run(live(script, secrets)),
            asyncio.run(live(script, secrets | {person: "something else entirely"})),
        )
    )

    assert one == other
