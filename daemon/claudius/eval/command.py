"""Prepare an evaluation from what was asked for: suites, voice, judge, soul, and what it may cost."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from claudius.adapters.terminal import own_person
from claudius.compose import PROVIDERS, provider
from claudius.config.load import Loaded, load
from claudius.errors import UsageProblem
from claudius.eval.judging import TIMES, Judge, labelled
from claudius.eval.report import read_outcome
from claudius.eval.run import Run, recorded
from claudius.eval.scenes import Scene, SceneStep, Suite, find, memory_suite, sample
from claudius.eval.voices import Metered, Price, Purse, dearest
from claudius.home import Home, shipped
from claudius.memory.sqlite import SqliteRecords
from claudius.provider import Usage
from claudius.providers.chain import Chain
from claudius.providers.replies import priced
from claudius.recollection import EntryType

TURN = Usage(input_tokens=3_500, output_tokens=400)
JUDGED = Usage(input_tokens=600, output_tokens=10)
"""What one turn and one question to a judge take, for the estimate."""
LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})
FREE = frozenset({"rehearsal", "scripted"})
WHOSE_MODEL = {"anthropic_api": "anthropic", "agent_sdk": "claude", "claude_cli": "claude"}
"""The section of the settings that names a provider's model; `openai` for the others."""


class EvalRequest(Struct, frozen=True, kw_only=True):
    """What the command was asked for."""

    suites: tuple[str, ...] = ()
    provider: str = ""
    judge: str = ""
    most: int = 0
    seed: int = 0
    soul_file: Path | None = None
    recording: Path | None = None
    is_mine: bool = False
    budget_usd: float = 1.0


class Agreed(Protocol):
    """Asks a person whether to go on."""

    def __call__(self, question: str, needs_person: bool) -> None:  # noqa: FBT001 - one word of two
        """Return if they agree, or if nobody is there and nobody is needed. Raises: UsageProblem."""


@asynccontextmanager
async def prepare(asked: EvalRequest, home: Home, env: Mapping[str, str], agreed: Agreed) -> AsyncIterator[Run]:
    """Yield the evaluation, its voices open until the end.

    `agreed` is asked before anything may be spent, and before one's own conversations are used, which needs a person
    who says yes; it raises to refuse.

    Raises: UsageProblem, BadConfiguration, ClaudiusError if a voice cannot be built.
    """
    if asked.recording and asked.provider:
        raise UsageProblem("a recorded run has its voice already: leave out --provider or --replay")
    loaded, purse = load(home, env), Purse(asked.budget_usd)
    suites = [mine(home)] if asked.is_mine else _suites(asked, home)
    if asked.is_mine:
        lines = [step.says for scene in suites[0].scene for step in scene.steps]
        agreed(
            "\n".join((*lines, f"These {len(lines)} lines of yours would be said again, on this machine: use them?")),
            True,
        )
    async with AsyncExitStack() as open_:
        voice: Chain | None = None
        price: Price = free
        if asked.provider:
            voice, price = _voice(asked.provider, loaded, home)
            open_.push_async_callback(voice.aclose)
            _local_if(asked.is_mine, asked.provider, price)
        judge = None
        if asked.judge:
            name, _, model = asked.judge.partition("/")
            judging, judge_price = _voice(name, with_model(loaded, name, model), home)
            open_.push_async_callback(judging.aclose)
            _local_if(asked.is_mine, asked.judge, judge_price)
            if voice and (voice.name, voice.model) == (judging.name, judging.model):
                raise UsageProblem(f"{asked.judge} would judge itself: name another model with --judge")
            directory = shipped("soul") / "eval" / "judge"
            judge = Judge(
                Metered(judging, purse, judge_price),
                (directory / "instruction.md").read_text("utf-8"),
                labelled(directory),
                asked.seed,
                lambda: secrets.token_hex(16),
            )
            judge_cost = judge_price(JUDGED) * questions(suites, len(labelled(directory)))
        else:
            judge_cost = 0.0
        if (voice or judge) and asked.budget_usd > 0:
            most = price(TURN) * turns(suites) + judge_cost
            agreed(f"About ${most:.2f} at the prices known, never more than ${asked.budget_usd:.2f}: go on?", False)
        past = read_outcome(asked.recording) if asked.recording else None
        yield Run(
            suites=suites,
            purse=purse,
            seed=asked.seed,
            voice=voice,
            price=price,
            judge=judge,
            recorded=dict(recorded(past.suites)) if past else None,
            recorded_voice=past.voice if past else "",
            soul=home.soul,
            soul_file=asked.soul_file,
        )


def mine(home: Home) -> Suite:
    """Return the owner's own conversations as scenes: what they said, with the checks that fit any line.

    Raises: StoreError, UsageProblem if they have said nothing yet.
    """
    records, scenes = SqliteRecords(home.database), []
    try:
        for number, row in enumerate(records.conversations(), 1):
            kept = (records.conversation(row["conversation"]) or {}).get("entries", ())
            said = [
                one for one in kept if one["entry_type"] == EntryType.USER_MESSAGE and one["person"] == own_person()
            ]
            steps = tuple(SceneStep(says=one["content"], style=True) for one in said)
            scenes += (
                [Scene(id=f"conversation-{number}", steps=steps, leaks=("thought", "system", "markers"))]
                if said
                else []
            )
    finally:
        records.close()
    if not scenes:
        raise UsageProblem("you have said nothing to the soul yet: `claudius chat`")
    return Suite(name="mine", about="The owner's own conversations, said again", scene=tuple(scenes))


def _local_if(is_mine: bool, name: str, price: Price) -> None:  # noqa: FBT001 - the one thing it asks
    if is_mine and price is not free:
        raise UsageProblem(f"--mine stays on this machine, and {name} is elsewhere: name a local provider, or none")


def free(usage: Usage) -> float:
    """Return what tokens cost on this machine. Pure."""
    del usage
    return 0.0


def turns(suites: Sequence[Suite]) -> int:
    """Return how many messages the scenes hold, those of rivals included. Pure."""
    return sum((2 if one.prefer else 1) * sum(bool(step.says) for step in one.steps) for s in suites for one in s.scene)


def questions(suites: Sequence[Suite], pairs: int) -> int:
    """Return how many questions a judge is asked in all. Pure."""
    judged = sum(
        bool(one.judge) + bool(one.prefer) + sum(bool(step.judge) for step in one.steps)
        for s in suites
        for one in s.scene
    )
    return pairs + TIMES * judged


def with_model(loaded: Loaded, name: str, model: str) -> Loaded:
    """Return the settings with another model for one provider. Pure."""
    if not model:
        return loaded
    section = WHOSE_MODEL.get(name, "openai")
    theirs = replace(getattr(loaded.config, section), model=model)
    return replace(loaded, config=replace(loaded.config, **{section: theirs}))


def _voice(name: str, loaded: Loaded, home: Home) -> tuple[Chain, Price]:
    """Build a provider, and what its tokens cost. Raises: UsageProblem, ClaudiusError."""
    if name not in PROVIDERS and "." not in name:
        raise UsageProblem(f"there is no provider {name!r}: there are {', '.join(PROVIDERS)}")
    chain = provider(loaded, home, [name])
    where = loaded.config.openai.base_url if name == "openai_compat" else "anthropic"
    if name in FREE or (name == "openai_compat" and (urlsplit(where).hostname or "") in LOCAL):
        return chain, free

    def price(usage: Usage) -> float:
        known = priced(usage, chain.model, where).cost_usd
        return dearest(usage) if known is None else known

    return chain, price


def _suites(asked: EvalRequest, home: Home) -> list[Suite]:
    own = shipped("soul") / "eval"
    found = find([home.soul / "eval", own], asked.suites, [memory_suite(own / "memory", asked.seed)])
    return [sample(one, asked.most, asked.seed) for one in found]
