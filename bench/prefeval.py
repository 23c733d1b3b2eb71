"""PrefEval, a public set of preferences: does one that was said in passing stand before the soul when it matters?

    bench/prefeval.py PATH [--keys FILE] [--draw N] [--json]

PATH is a checkout of the set, which its owner has: it is CC BY-NC 4.0, and never shipped. In each life one person
says twenty preferences of all topics among 300 other lines (the set's own); 21 days later each preference's question is
asked in a conversation of its own, to a provider that keeps the prompt. The figure is the share of preferences that
stood there. The model keeps each as a fact (`know`), without keys; with `--keys FILE`, an object of preference → search
words, only what is in it is asked for, and kept with these keys. Whoever writes them may see the preferences alone:
`--draw N` prints N of them, the same ones each time. Source: Zhao et al., "Do LLMs Recognize Your Preferences?", 2025.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from claudius.acts import TEXT_CHARS
from claudius.errors import UsageProblem
from locomo import LATER, Life, living

ONE_LIFE, OTHERS, SAID_CHARS = 20, 300, 500
"""Preferences and other lines of one life, and the most characters of such a line."""
PACE = timedelta(minutes=7)
PERSON, PLACE = "slack:T1:U1", "slack:T1:D1:"
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Pair(Struct, frozen=True):
    """What somebody prefers, and a later question that a good answer to must heed it."""

    preference: str
    question: str


class PreferenceFigure(Struct, frozen=True):
    """How many preferences were asked for, and the share that stood in their question's prompt."""

    asked: int
    stood: float


def read(path: Path) -> tuple[list[list[Pair]], list[str]]:
    """Return the pairs of each life, and the other lines. Raises: UsageProblem."""
    data = path / "benchmark_dataset"
    try:
        topics = [json.loads(one.read_bytes()) for one in sorted((data / "explicit_preference").glob("*.json"))]
        talks = json.loads((data / "filtered_inter_turns.json").read_bytes())
        pairs = [Pair(one["preference"].strip(), one["question"].strip()) for topic in topics for one in topic]
        said = [one["content"][:SAID_CHARS] for talk in talks for one in talk["conversation"] if one["role"] == "user"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageProblem(f"{path}: {error}: give a checkout of the set") from error
    if not pairs:
        raise UsageProblem(f"{path}: no preferences in {data}: give a checkout of the set")
    random.Random(1000).shuffle(pairs)
    return [pairs[at : at + ONE_LIFE] for at in range(0, len(pairs), ONE_LIFE)], said[:OTHERS]


def drawn(lives: Sequence[Sequence[Pair]], most: int) -> list[Pair]:
    """Return the same `most` pairs each time. Pure."""
    return random.Random(1000).sample([one for life in lives for one in life], most)


async def lived(life: Life, pairs: Sequence[Pair], others: Sequence[str], keys: Mapping[str, Sequence[str]]) -> None:
    """Say each preference once, spread evenly among the other lines; the model keeps it as a fact with its keys."""
    facts, at = {one.preference: keys.get(one.preference, ()) for one in pairs}, BEGAN
    for text in _mixed([one.preference for one in pairs], others):
        at += PACE
        if text in facts:
            fact = {"do": "know", "text": text[:TEXT_CHARS], "kind": "taste", "keys": list(facts[text])}
            life.voice.acts = json.dumps(fact, ensure_ascii=False)
        await life.hear(PERSON, text, at, PLACE, name="Ada")
        life.voice.acts = "none"


def _mixed(some: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    step = max(1, len(others) // max(1, len(some)))
    for number, text in enumerate(some):
        yield from others[number * step : (number + 1) * step]
        yield text
    yield from others[len(some) * step :]


async def measured(root: Path, path: Path, keys: Mapping[str, Sequence[str]]) -> PreferenceFigure:
    """Live every life below `root`, or with keys only those that hold one of them, and ask what has keys."""
    lives, others = read(path)
    stood: list[bool] = []
    for number, pairs in enumerate(lives):
        wanted = [one for one in pairs if one.preference in keys or not keys]
        if not wanted:
            continue
        async with living(root / str(number)) as life:
            await lived(life, pairs, others, keys)
            for one in wanted:
                await life.ask(PERSON, one.question, life.times[0] + LATER, name="Ada")
                shown = life.voice.tail.rpartition('{"kind":"message"')[0]  # not the question itself
                stood.append(json.dumps(one.preference[:200], ensure_ascii=False)[1:-1] in shown)
                life.times[0] -= LATER
    return PreferenceFigure(asked=len(stood), stood=round(sum(stood) / len(stood), 3) if stood else 0.0)


def main() -> None:
    """Print the figure of a checkout of the set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a checkout of the set")
    parser.add_argument("--keys", type=Path, help="a JSON object: preference → search words")
    parser.add_argument("--draw", type=int, metavar="N", help="print N preferences, and measure nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    if given.draw:
        print(json.dumps([one.preference for one in drawn(read(given.path)[0], given.draw)], indent=1))
        return
    keys = json.loads(given.keys.read_bytes()) if given.keys else {}
    with tempfile.TemporaryDirectory(prefix="claudius-eval-") as root:
        found = asyncio.run(measured(Path(root), given.path, keys))
    print(
        json.dumps({"asked": found.asked, "stood": found.stood})
        if given.json
        else f"{found.stood:.3f} of {found.asked} preferences stood in their question's prompt, 21 days later"
    )


if __name__ == "__main__":
    main()
