"""Simulation 1: are the second mind's rationales worth more than a turn's notes? By recorded answers, offline.

A rater counts the distinct facts of the timeline that a rationale names: dates, counts, names of requests. With a real
model at hand the same rater reads its answers; here it reads answers recorded for twenty histories.
"""

import json
import re
from dataclasses import dataclass

from claudius.cognition.steps import Reading, step
from claudius.cortex.asking import parse
from claudius.cortex.reflect import assessments
from claudius.home import Home
from claudius.intent import Thought
from lab.sample import PERSON, person, recollection
from reflecting import answer, document, second

REQUESTS = (
    "the footbridge", "the paint", "the invoice", "the survey", "the report", "the logs", "the tender", "the map",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class History:
    """One peer's recorded story, and what each way of judging said about it."""

    count: int
    days: int
    requests: tuple[str, ...]
    inline: str
    reflective: str


def histories() -> list[History]:
    """Return twenty recorded histories: what a turn could see of them, and what a whole timeline shows."""
    found = []
    for n in range(20):
        wanted = tuple(REQUESTS[(n + k) % len(REQUESTS)] for k in range(2 + n % 3))
        inline = (
            f"Polite just now about {wanted[-1]}." if n % 4 else f"Good exchange about {wanted[-1]} and {wanted[0]}."
        )
        reflective = f"{3 + n} messages since 2026-01-{5 + n:02d}: asked for {', '.join(wanted)}; each was answered."
        if n == 13:
            reflective = "Seems fine."
        found.append(History(3 + n, 5 + n, wanted, inline, reflective))
    return found


def facts(rationale: str, history: History) -> int:
    """Count the distinct facts of a history that a rationale names."""
    named = {name for name in history.requests if name in rationale}
    dates = set(re.findall(r"\d{4}-\d\d-\d\d", rationale))
    counts = {number for number in re.findall(r"\b\d+\b", rationale) if number == str(history.count)}
    return len(named) + len(dates) + len(counts)


def inline(history: History) -> str:
    """Pass a recorded answer through `assess_peer`. Returns the rationale that would be recorded."""
    said = json.dumps({"peer_id": PERSON, "trust": 2, "rationale": history.inline})
    reading = Reading(
        thoughts={"assess_peer": (Thought(step="assess_peer", content=said),)},
        recollection=recollection(),
        person=person(),
        asked=frozenset({"assess_peer"}),
        seen=False,
        model_bytes=8192,
        shrink_floor=0.6,
    )
    proposal = step("assess_peer").effect(reading).proposal
    assert proposal
    return proposal.rationale


def reflective(history: History) -> str:
    """Pass a recorded answer through a cycle's reader. Returns the rationale that would be recorded."""
    said = json.loads(answer((PERSON, 2)))
    said["assessments"][0]["rationale"] = history.reflective
    (proposal,) = assessments(parse(json.dumps(said)), document(PERSON), {}, 3)
    return proposal.rationale


def test_simulation_01_the_whole_timeline_says_more() -> None:
    """Simulation 1: over twenty recorded histories the cycle's rationale cites at least as many facts in 70 % or more.

    This tests the rater and both ways of recording. A person who attaches a real model can rate its own answers.
    """
    better = [facts(reflective(one), one) >= facts(inline(one), one) for one in histories()]

    assert sum(better) >= 0.7 * len(better)
    assert not all(better), "a rater that always gives one result proves nothing"


async def test_simulation_01_what_the_facts_are_stands_in_the_document(home: Home) -> None:
    """What the rater counts can be known: a cycle shows the model the dates, counts and requests."""
    async with second(home) as it:
        for text in ("Where is the footbridge?", "And the paint?", "Thanks.", "The invoice, please.", "Good."):
            await it.hear(text)
        await it.cortex.look()

    (shown,) = it.asked()["peers"]
    assert [line["at"][:10] for line in shown["timeline"]] == ["2026-01-05"] * 5
    assert "the invoice" in json.dumps(shown).lower()
