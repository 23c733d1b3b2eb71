"""S15 for the ledger and the second mind: private words reach no other audience's prompt or document."""

import asyncio
import json
import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from claudius.home import Home
from claudius.memory.ledger import format_beliefs, format_peers
from claudius.memory.recall import RecallLimits
from claudius.perception import private
from contracts.store.ground import NOW, heard, recalled
from reflecting import Second, answer, minutes, second

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory of our own is made there
PEOPLE = tuple(f"slack:T1:{name}" for name in ("Ana", "Ben", "Dee"))
PLACES = ("slack:T1:ops:1", "slack:T1:all:1")
STEPS = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from((*PLACES, "DM", "DM"))) | st.sampled_from((None,)),
    min_size=4,
    max_size=14,
)


def dm(person: str) -> str:
    """Return a person's direct-message conversation."""
    return f"slack:T1:D-{person.rpartition(':')[2]}:"


def parrot(it: Second) -> str:
    """Answer a cycle with every secret it was shown, in every field it can write: the worst possible model."""
    shown = it.asked()
    known = " ".join(sorted(set(re.findall(r"canary-of-\w+", json.dumps(shown))))) or "nothing"
    said = json.loads(answer(*((one["peer_id"], 1) for one in shown["peers"]), summary=known))
    said["beliefs"] = [{"key": "known", "value": known, "rationale": known}]
    for one in said["assessments"]:
        one["rationale"] = known
    return json.dumps(said)


async def live(script: list[tuple[str, str] | None], secrets: dict[str, str]) -> dict[str, str]:
    """Play a script with cycles in between.

    Returns, per audience, everything that its prompts and documents would hold.
    """
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="claudius-s15-", dir=IN_MEMORY) as root:
        home = Home(Path(root))
        home.create()
        async with second(home, interaction_threshold=1, directives=False) as it:
            it.voice.default = lambda _: parrot(it)
            for place in PLACES:
                await it.store.people.know_members(f"shared:{place.rpartition(':')[0]}", PEOPLE[:2], NOW)
            for step in (*script, None):
                if step is None:
                    before = len(it.voice.requests)
                    records = await it.cortex.look()
                    for request, record in zip(it.voice.requests[before:], records, strict=True):
                        found[record.audience] = found.get(record.audience, "") + request.tail
                    continue
                person, place = step
                is_private = place == "DM"
                text = secrets[person] if is_private else f"said in {place}"
                await it.hear(text, person=person, at=dm(person) if is_private else place)
                it.now += minutes(1)
            for n, person in enumerate(PEOPLE):
                for place in (dm(person), *PLACES):
                    limits = RecallLimits(ttl_hours=72, beliefs=True)
                    asked = heard("?", n=900 + n, person=person, at=place, key=f"{place}#{n}?")
                    known = await recalled(it.store, asked, now=it.now, limits=limits)
                    told = format_peers(known.peers) + format_beliefs(known.beliefs)
                    found[known.audience] = found.get(known.audience, "") + told
                    pending = await it.store.inbox.oldest(place)
                    assert pending
                    await it.store.inbox.withdraw(pending.seq, "was only looked at")
    return found


@given(STEPS)
@settings(max_examples=max(12, settings().max_examples // 25))
def test_s15_a_private_word_reaches_no_other_document_belief_or_rationale(script: list[tuple[str, str] | None]) -> None:
    """This holds in any order of talk and reflection, even if the model repeats everything that it is shown."""
    secrets = {person: f"canary-of-{person.rpartition(':')[2]}" for person in PEOPLE}

    for audience, text in asyncio.run(live(script, secrets)).items():
        for person, secret in secrets.items():
            assert secret not in text or audience == private(person)


def test_s15_a_persons_own_audience_is_shown_the_secret() -> None:
    """The property is not empty: the person's own document, belief and rationale hold the secret."""
    secrets = {person: f"canary-of-{person.rpartition(':')[2]}" for person in PEOPLE}

    found = asyncio.run(live([(PEOPLE[0], "DM"), (PEOPLE[0], PLACES[0]), None, (PEOPLE[0], "DM"), None], secrets))

    own = found[private(PEOPLE[0])]
    assert "- known: canary-of-Ana" in own
    assert "Why: canary-of-Ana" in own
    assert own.count("canary-of-Ana") > 3
    assert "canary" not in found["shared:slack:T1:ops"]
