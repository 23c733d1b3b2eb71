"""P6: billed-equivalent input tokens a turn over a conversation of 200 turns, and what is still known at its end.

The real client library talks to the loopback model, whose own cache accounting is counted. One minute passes between
two turns. A write counts 1.25 (5 minutes) or 2 (an hour), a read 0.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import script
from anchors.naive import common, input_tokens, tokens, whole
from claudius.config.load import load
from claudius.home import Home
from claudius.providers import anthropic_api
from claudius.testing.model_calls import Call
from command import Bench, alone
from figures import Beside, Figure, bound, within
from lab.loopback.model import ModelServer
from lab.loopback.prompt_cache import Counted, PromptCache
from obedient import ABOUT_ME, Obedient
from ours import Soul
from sides import peer_python, side

HERE = Path(__file__).resolve().parent
TURNS = 200
FACTS = 20
PAUSE = timedelta(minutes=1)
NAIVE = bound("P6.naive")
KNOWN = bound("P6.known")
ANCESTOR = bound("P6.claudicle")
WRITE, READ = 1.25, 0.1


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a conversation."""

    calls: Sequence[Call]
    """Every call of the model, including summaries."""
    turns: Sequence[Call]
    messages: Sequence[str]
    replies: Sequence[str]
    known: float
    """Of all facts at all turns after they were told, the share that stood in the prompt."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Run the conversation once, because nothing here depends on time."""
    told = asyncio.run(conversed(bench.home("ours"), TURNS))
    billed = sum(billed_equivalent(call.counted) for call in told.calls if call.counted) / TURNS
    shared = [_shared(one, other) for one, other in pairwise(told.turns)]
    tails = [tokens(call.tail) - tokens(message) for call, message in zip(told.turns, told.messages, strict=True)]
    static = tokens(told.turns[0].system)
    naive = input_tokens(told.turns[0].system, told.messages, told.replies, round(sum(tails) / TURNS))
    read = sum(call.counted.read for call in told.calls if call.counted)
    everything = sum(_all(call.counted) for call in told.calls if call.counted)
    yield Figure(
        id="P6",
        name=f"billed-equivalent tokens a turn, {TURNS} turns",
        unit="tokens",
        is_counted=True,
        samples=[billed],
        beside=(
            Beside(name="naive", bound=NAIVE, samples=[sum(naive) / TURNS]),
            bench.peer("claudicle", ANCESTOR, lambda path: _ancestor(bench, path, told)),
        ),
        note=(
            f"static {static}, tail without the message {sum(tails) / TURNS:.0f} a turn (budget 450), "
            f"{100 * read / everything:.0f} % of the input read from the cache, "
            f"{len(told.calls) - len(told.turns)} summaries included"
        ),
    )
    tail = [sum(tails) / TURNS]
    name, beside = "tail without the message", (within("P6.tail", 1),)
    yield Figure(id="P6", name=name, unit="tokens", samples=tail, beside=beside, is_counted=True)
    name, beside = "share of a request that the one before began with", (within("P6.shared", 1),)
    mean = [sum(shared) / len(shared)]
    yield Figure(id="P6", name=name, unit="share", samples=mean, beside=beside, is_counted=True)
    yield Figure(
        id="P6",
        name=f"{FACTS} planted facts still in the prompt",
        unit="share",
        is_counted=True,
        samples=[told.known],
        beside=(Beside(name="naive", bound=KNOWN, samples=[1.0], compare="points"),),
        note="a stand-in model that learns and summarises as it is told; half are of the person, half of the talk",
    )


def billed_equivalent(counted: Counted) -> float:
    """Return one call's input tokens weighted by their price. Pure."""
    written = WRITE * counted.write_5m + 2 * counted.write_1h
    return counted.input_tokens + READ * counted.read + written


def _shared(one: Call, other: Call) -> float:
    """Return the share of the second request that the first one began with. Pure."""
    before, after = whole(one.body), whole(other.body)
    return common(before, after) / len(after)


def _all(counted: Counted) -> int:
    return counted.input_tokens + counted.read + counted.write_5m + counted.write_1h


async def conversed(root: Path, number_of_turns: int) -> Told:
    """Have the whole conversation, of so many turns, with a model that does as it is told."""
    now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
    minutes, obedient, messages = 0, Obedient(), []

    def clock() -> datetime:
        return now + minutes * PAUSE

    cache = PromptCache(clock=lambda: clock().timestamp())
    async with ModelServer(default=obedient, cache=cache) as server:
        home = Home(root / "soul")
        home.create()
        loaded = load(home, {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": server.url})
        soul = Soul(home.root, anthropic_api.build(loaded, home), clock=clock)
        await soul.open()
        turns, kept, told = [], 0, 0
        for number in range(1, number_of_turns + 1):
            minutes += 1
            messages.append(_message(number))
            before = len(server.asked)
            await soul.turn(text=messages[-1])
            turns.append(next(call for call in server.asked[before:] if "## This Turn" in call.tail))
            known, all_told = _known(turns[-1], number)
            kept, told = kept + known, told + all_told
        await soul.close()
        await soul.mind.provider.aclose()
        return Told(server.asked, turns, messages, obedient.replies, kept / told)


def _fact(number: int) -> str:
    """Return the code of a turn's fact: one every third turn, until all are told. Pure."""
    return f"{7919 * number % 100_000:05d}" if number % 3 == 1 and number <= 3 * FACTS else ""


def _message(number: int) -> str:
    said, fact = script.message(number), _fact(number)
    if not fact:
        return said
    words = f"{ABOUT_ME}my locker's code is {fact}." if number % 2 else f"We settled on hinge {fact}."
    return f"{said[: script.MESSAGE_CHARS - len(words) - 1].rpartition(' ')[0]}. {words}"


def _known(call: Call, number: int) -> tuple[int, int]:
    """Count the facts of earlier turns that stand in a prompt, and all of them."""
    seen = "\n".join(text for _, text in call.messages)
    facts = [fact for earlier in range(1, number) if (fact := _fact(earlier))]
    return sum(fact in seen for fact in facts), len(facts)


def _ancestor(bench: Bench, path: Path, told: Told) -> Beside:
    """Return the cost of the ancestor's resumed transcript: each prompt and reply is appended and cached."""
    with ExitStack() as stack:
        driver = stack.enter_context(
            side(HERE / "anchors" / "claudicle.py", bench.home("claudicle"), peer_python(path))
        )
        version = driver.ask("begin", path=str(path), rows=0)
        prompts = driver.ask("prompts", messages=list(told.messages))
    billed, transcript, new = 0.0, 0.0, 0.0
    for prompt, reply in zip(prompts, told.replies, strict=True):
        new += prompt / 4
        billed += READ * transcript + WRITE * new
        transcript, new = transcript + new, len(reply) / 4
    return Beside(name="claudicle", version=version, bound=ANCESTOR, samples=[billed / len(prompts)])


if __name__ == "__main__":
    alone(__file__)
