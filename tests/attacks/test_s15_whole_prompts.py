"""S15, noninterference over whole prompts: one person's private words change no byte of what is asked elsewhere.

The `self` words of the audience rule are the soul's own and may change: the words of its bands, and its mood. Nothing
else may, not even which steps are asked, or whether the process is `frustrated`. With the psyche off there are no such
words, and every byte counts.
"""

import asyncio
import json
import re
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudius.home import Home
from claudius.perception import Kind, Perception, private, shared
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.psyche import bands
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import repeated
from minds import Clock

PEOPLE = ("ana", "ben", "dee")
CHANNELS = ("ops", "all")
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory of our own is made there
PHRASES = tomllib.loads(Path(bands.__file__).with_name("phrases.toml").read_text("utf-8"))
OWN_WORDS = {
    *PHRASES["mood"].values(),
    *PHRASES["needs"].values(),
    *[said for both in PHRASES["tilt"].values() for said in both],
}
OPEN = (
    "The loom bridge rusts again near the harbour.",
    "My name is Zoe, and I live in Porto.",
    "Could you remember that I prefer oak?",
    "What did I say about the loom bridge?",
    "I love harbour looms, and Ana knows it.",
)
PRIVATE = (
    *OPEN,
    "My name is Canary, and I live in Lisbon.",
    "I prefer steel, and I love harbour looms.",
    "Could you support the canary harbour project?",
    "The canary loom bridge rusts near the harbour.",
    "I hate you, stupid machine. Shut up, you are useless.",
    "My dad died on Sunday. I feel so lonely.",
)


@dataclass(frozen=True, slots=True)
class Said:
    """Something that a person says somewhere. An empty `channel` means a direct message."""

    person: str
    channel: str
    text: str


IN_CHANNEL = st.builds(Said, st.sampled_from(PEOPLE), st.sampled_from(CHANNELS), st.sampled_from(OPEN))
DIRECT = st.builds(Said, st.sampled_from(PEOPLE), st.just(""), st.sampled_from(PRIVATE))
SCRIPTS = st.lists(IN_CHANNEL | IN_CHANNEL | DIRECT, min_size=4, max_size=14)
COMPANY = st.fixed_dictionaries({channel: st.frozensets(st.sampled_from(PEOPLE), min_size=2) for channel in CHANNELS})


def parrot(request: Request) -> str:
    """Say, think, judge, feel and book everything that was just heard: the worst possible model."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    who = re.findall(r"\((p\w+)\): \d+ message", request.tail)
    judged = {"peer_id": who[0], "trust": 9 if "Canary" in text else 1, "rationale": text} if who else {}
    acts = [{"do": "know", "text": text, "kind": "home" if "live in" in text else "taste", "keys": ["live"]}]
    acts += [{"do": "open", "text": text}] if "loom" in text else []
    return repeated(
        text,
        appraisal="hurtful, strong" if "hate" in text else "nothing",
        acts="\n".join(map(json.dumps, acts)),
        assess_peer=json.dumps(judged),
    )


async def live(
    script: Sequence[Said | None], company: dict[str, frozenset[str]], *, psyche: bool, assesses: bool = True
) -> list[tuple[str, str]]:
    """Play a script, one minute a step. Returns every request, in order: its conversation and its whole text."""
    voice, clock = Scripted(default=parrot), Clock()
    network = RehearsalAdapter()
    network.audiences = {
        f"shared:rehearsal:t:{channel}": tuple(f"rehearsal:t:{one}" for one in sorted(people))
        for channel, people in company.items()
    }
    settings_ = {
        "CLAUDIUS_SOUL_STATE_INTERVAL": "1",
        "CLAUDIUS_USER_MODEL_INTERVAL": "1",
        "CLAUDIUS_PSYCHE_ENABLED": str(psyche).lower(),
        "CLAUDIUS_CORTEX_ENABLED": str(not assesses).lower(),
    }
    with tempfile.TemporaryDirectory(prefix="claudius-s15-", dir=IN_MEMORY) as root:
        home = Home(Path(root))
        home.create()
        async with alive(home, voice, network=network, settings=settings_, clock=clock) as soul:
            for n, said in enumerate(script):
                if said:
                    await say(soul, said, n, clock)
                    await soul.idle()
                clock.forward(minutes=1)
    return [(one.conversation, plain(one, psyche=psyche)) for one in voice.requests]


async def say(soul: Alive, said: Said, n: int, clock: Clock) -> None:
    """Have a person say something. Each step has its own instant and key, whatever else was said."""
    place = f"rehearsal:t:{said.channel}:1" if said.channel else f"rehearsal:t:dm-{said.person}:"
    who = f"rehearsal:t:{said.person}"
    assert soul.network._accept
    await soul.network._accept(
        Perception(
            key=f"{place}#{n}",
            conversation=place,
            audience=shared(place) if said.channel else private(who),
            person=who,
            name=f"{said.person.capitalize()}{'' if said.channel else ' Canary'}",
            text=said.text,
            at=clock() + timedelta(seconds=1),
            position=f"{n:020d}",
            kind=Kind.MENTION if said.channel else Kind.MESSAGE,
        )
    )


def plain(request: Request, *, psyche: bool) -> str:
    """Return a request's text without what is random and, with the psyche on, without the `self` words."""
    whole = "\n".join([request.system, *(f"{one.role}: {one.content}" for one in request.history), request.tail])
    whole = re.sub(
        r"(</?data-)[0-9a-f]{32}>|(?:\b|(?<=\\n))[fm]\d+ ", r"\1>", whole
    )  # an id is counted over all places
    if not psyche:
        return whole
    whole = re.sub(r'^\{"kind":.*\}$', lambda line: own_words_out(line[0]), whole, flags=re.MULTILINE)
    return re.sub(
        r'## (Soul State|Psyche)\n<data->\n\{"kind": "(soul_state"|psyche", "text": "")\}\n</data->\n', "", whole
    )


def own_words_out(line: str) -> str:
    """Remove the soul's own words from a data line."""
    record: dict[str, Any] = json.loads(line)
    if record.get("kind") == "soul_state":
        record.pop("emotionalState", None)
    if record.get("kind") == "psyche":
        record["text"] = " ".join(one for one in re.findall(r"\S[^.]*\.", record["text"]) if one not in OWN_WORDS)
    return json.dumps(record)


def others(found: list[tuple[str, str]], person: str) -> list[tuple[str, str]]:
    """Return the requests made anywhere but in a person's own direct messages."""
    return [one for one in found if one[0] != f"rehearsal:t:dm-{person}:"]


def differing(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the lines that two runs do not share, with their conversations."""
    sets = [{(place, line) for place, text in run for line in text.splitlines()} for run in (one, other)]
    return sorted(sets[0] ^ sets[1]) or ([] if one == other else [("", "their order, or their number")])


@pytest.mark.parametrize("psyche", [False, True])
@given(SCRIPTS, COMPANY, st.sampled_from(PEOPLE), st.sampled_from([None, *PRIVATE]))
@settings(max_examples=max(12, settings().max_examples // 6))
def test_s15_private_talk_moves_no_byte_of_another_prompt(
    psyche: bool,  # noqa: FBT001 - a parameter of the test
    script: list[Said],
    company: dict[str, frozenset[str]],
    person: str,
    instead: str | None,
) -> None:
    """S15 P: if one person's private words are different or missing, everything asked elsewhere is the same.

    Their first words are not missing: that the soul has met them moves whether it greets them.
    """
    first = next((n for n, one in enumerate(script) if one.person == person), None)
    changed = [
        one
        if one.person != person or one.channel
        else Said(person, "", instead or PRIVATE[0])
        if instead or n == first
        else None
        for n, one in enumerate(script)
    ]

    before, after = (others(asyncio.run(live(one, company, psyche=psyche)), person) for one in (script, changed))

    assert differing(before, after) == []


def test_s15_a_private_quarrel_asks_no_step_in_the_open() -> None:
    """After insults in private, a channel is asked the same steps as without; in private the quarrel is looked at."""
    everyone = {channel: frozenset(PEOPLE) for channel in CHANNELS}
    there = [Said("ana", "ops", OPEN[0]), Said("ana", "all", OPEN[3]), Said("ben", "ops", OPEN[1])]
    quarrel, calm = ([Said("ana", "", text)] * 8 for text in (PRIVATE[9], PRIVATE[8]))

    (*before, (_, own)), after = (
        asyncio.run(live([*one, *there, Said("ana", "", OPEN[0])], everyone, psyche=True)) for one in (quarrel, calm)
    )

    assert differing(others(before, "ana"), others(after, "ana")) == []
    assert '"kind": "psyche"' in own


def test_s15_a_fact_told_in_private_leaves_what_was_told_in_the_open() -> None:
    """In a channel a person lives where they said so in a channel. In private the older place is no longer told."""
    everyone = {channel: frozenset(PEOPLE) for channel in CHANNELS}
    asks = "Where do I live, do you remember?"
    script = [Said("ana", "ops", OPEN[1]), Said("ana", "", PRIVATE[5]), Said("ana", "all", asks), Said("ana", "", asks)]

    *_, (_, in_all), (_, own) = asyncio.run(live(script, everyone, psyche=True))

    assert re.search(r'"kind": "known", "text": ".*Porto', in_all)
    assert "Lisbon" not in in_all
    assert re.search(r'"kind": "known", "text": ".*Lisbon', own)


@pytest.mark.parametrize(
    ("text", "times", "in_open", "in_private"),
    [
        (PRIVATE[5], (18, 6), "assessed trust +1 on", "assessed trust +1 (before +3, +6, +9) on"),
        (OPEN[0], (7, 2), "): 1 message since", "): 9 messages since"),
    ],
    ids=["judged", "counted"],
)
def test_s15_what_is_judged_and_counted_in_private_stands_in_no_other_prompt(
    text: str, times: tuple[int, int], in_open: str, in_private: str
) -> None:
    """A channel is judged by what was judged there, and told the counts made there; the speaker alone is told of all."""
    everyone = {channel: frozenset(PEOPLE) for channel in CHANNELS}
    direct, there = Said("ana", "", text), Said("ana", "ops", OPEN[0])

    found = asyncio.run(live([*[direct] * times[0], *[there] * times[1], direct], everyone, psyche=False))

    (_, in_ops), (_, own) = found[-2:]
    assert in_open in in_ops
    assert in_private in own
    assert "Canary" not in in_ops
