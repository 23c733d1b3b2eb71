"""P8: model calls for each message, and dollars per 1,000 messages, over a scripted year.

Some people come back now and then, each for a talk. Some messages need no thought, some replies need a repair, talks
are folded while they last, and the second mind reflects once in each half hour in which somebody spoke. The real client
library talks to the loopback model, whose cache accounting gives the price.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import script
from anchors.naive import input_tokens, tokens
from claudius.config.load import load
from claudius.home import Home
from claudius.perception import private
from claudius.providers import anthropic_api
from claudius.testing.model_calls import Call
from command import Bench, alone
from cost import Terms
from figures import Beside, Figure, bound
from lab.loopback.model import ModelServer
from lab.loopback.prompt_cache import PromptCache
from obedient import ABOUT_ME, Obedient
from ours import Soul
from p06_tokens import billed_equivalent

PEOPLE, VISITS, QUICK_VISITS = 12, 120, 30
TALK = 5, 30
"""Messages of one talk, at least and at most."""
SEED = 11
TRIVIAL, BROKEN, TELLS = 0.08, 0.02, 0.1
"""Shares: messages that need no thought, replies that need a repair, messages about oneself."""
CYCLE_IN, CYCLE_OUT = 2250, 400
"""Tokens of one cycle of the second mind, all uncached. Source: the performance design, section 5."""
SPLIT = 3
CALLS = bound("P8.calls")
COST = bound("P8.cost")
THANKS = "Thanks!"


@dataclass(slots=True)
class Fallible(Obedient):
    """A model that does as told, except that a reply now and then omits the dialogue; if asked again, it does."""

    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    repairs: int = 0

    def __call__(self, call: Call) -> str:
        """Answer one call."""
        if '"kind":"draft"' in call.tail:
            self.repairs += 1
            return f'<external_dialogue verb="said">\n{script.spoken(self.asked)}\n</external_dialogue>'
        text = Obedient.__call__(self, call)
        if "## This Turn" in call.tail and self.chance.random() < BROKEN:
            return text.partition("<external_dialogue")[0]
        return text


@dataclass(slots=True)
class Year:
    """What was said in a year, and what the model was asked for it."""

    calls: Sequence[Call] = ()
    static: str = ""
    said: dict[str, list[str]] = field(default_factory=dict)
    """What each person said, in order."""
    thought: int = 0
    repairs: int = 0
    cycles: set[tuple[str, int]] = field(default_factory=set)
    """Half hours in which somebody spoke, each with the speakers."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Run through the year once, because nothing here depends on time."""
    year = asyncio.run(_live(bench.home("ours"), QUICK_VISITS if bench.is_quick else VISITS))
    said = sum(map(len, year.said.values()))
    summaries = len(year.calls) - year.thought - year.repairs
    terms = Terms()
    paid = sum(billed_equivalent(call.counted) for call in year.calls if call.counted) * terms.input_usd
    paid += sum(_output(call) for call in year.calls) * terms.output_usd
    paid += len(year.cycles) * (CYCLE_IN * terms.input_usd + CYCLE_OUT * terms.output_usd)
    naive = 0.0
    for messages in year.said.values():
        replies = [script.spoken(number) for number in range(len(messages))]
        naive += SPLIT * sum(input_tokens(year.static, messages, replies, terms.dynamic)) * terms.input_usd
        naive += len(messages) * terms.reply * terms.output_usd
    of_what = f"{said} messages of {PEOPLE} people in a year, {said - year.thought} of them without a thought"
    spent = f"{summaries} foldings, {year.repairs} repairs, {len(year.cycles)} looks of the second mind"
    yield Figure(
        id="P8",
        name="model calls for each message",
        unit="calls",
        is_counted=True,
        samples=[(len(year.calls) + len(year.cycles)) / said],
        beside=(Beside(name="one call", bound=CALLS, samples=[1.0]),),
        note=f"{of_what}; {spent}",
    )
    yield Figure(
        id="P8",
        name="dollars per 1,000 messages",
        unit="$",
        is_counted=True,
        samples=[1000 * paid / 1e6 / said],
        beside=(Beside(name=f"{SPLIT} calls, uncached", bound=COST, samples=[1000 * naive / 1e6 / said]),),
        note="the whole history is sent again in each of the three; only the words said aloud stand in it",
    )


def _output(call: Call) -> int:
    return tokens("".join(call.reply.pieces())) if call.reply else 0


async def _live(root: Path, visits: int) -> Year:
    chance, fallible, year = random.Random(SEED), Fallible(), Year()
    now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def clock() -> datetime:
        return now

    async with ModelServer(default=fallible, cache=PromptCache(clock=lambda: clock().timestamp())) as server:
        home = Home(root / "soul")
        home.create()
        loaded = load(home, {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": server.url})
        soul = Soul(home.root, anthropic_api.build(loaded, home), clock=clock)
        await soul.open()
        for _ in range(visits):
            now += timedelta(days=365 / visits * chance.uniform(0.5, 1.5))
            person = f"terminal:local:{chance.randrange(PEOPLE)}"
            for _ in range(chance.randint(*TALK)):
                now += timedelta(seconds=chance.choice((30, 60, 180)))
                text = _said(chance, fallible.asked + 1)
                year.said.setdefault(person, []).append(text)
                year.cycles.add((person, int(now.timestamp() // 1800)))
                await soul.turn(f"terminal:local:{person}:", person, audience=private(person), text=text)
        await soul.close()
        await soul.mind.provider.aclose()
        year.calls, year.repairs, year.thought = server.asked, fallible.repairs, fallible.asked
        year.static = server.asked[0].system
        return year


def _said(chance: random.Random, number: int) -> str:
    share = chance.random()
    if share < TRIVIAL:
        return THANKS
    said = script.message(number)
    if share > 1 - TELLS:
        words = f"{ABOUT_ME}my locker's code is {chance.randrange(10_000, 100_000)}."
        return f"{said[: script.MESSAGE_CHARS - len(words) - 1].rpartition(' ')[0]}. {words}"
    return said


if __name__ == "__main__":
    alone(__file__)
