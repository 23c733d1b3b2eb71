"""Rebuild the prompts of kept turns with other texts of the soul, and ask again what it would have said.

`replayed` and `replays` ask no model. `ask` makes one call a turn and keeps nothing of it but its cost, which is booked
under the purpose `replay`. Source: the console design, W28 and W29.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from claudius.config.load import Loaded, load
from claudius.errors import ClaudiusError, ProviderError, TryAgain, UsageProblem
from claudius.failure import failure_of
from claudius.home import Home
from claudius.memory.records import Expired, Records
from claudius.prompt import Prompt
from claudius.reports.conversations import kept_turn
from claudius.reports.life import clock_now, mood_shifts
from claudius.reports.opened import edit, records

if TYPE_CHECKING:
    from claudius.cognition.turn_state import TurnState
    from claudius.intent import Call, Intent
    from claudius.provider import Provider

PURPOSE = "replay"
MOST_TURNS = 200
MOST_ASKED = 24
FEW = 6
"""How many turns are proposed."""
_LOOKED_AT = 2000
"""The newest turns among which those with a prompt are looked for."""
_GUESSED_TOKENS = 300
"""What a reply takes, where the turn kept none."""
_ALOUD = ("external_dialogue", "daimonic_intuition")


class NotAgreed(UsageProblem):
    """Asking again takes more tokens than were agreed to."""

    def __init__(self, turns: int, tokens: int) -> None:
        super().__init__(f"asking {turns} turns again takes about {tokens:,} tokens: agree to as many")
        self.tokens = tokens


class _Replay(Struct, frozen=True):
    """A kept turn, its prompt as it was sent, and as it would be."""

    found: Mapping[str, Any]
    same: Prompt
    other: Prompt
    is_of_this_wording: bool
    rounds: Sequence[tuple[str, Prompt, Prompt]] = ()
    """Of each call after a tool: the hash of what was sent, and its prompt as it was sent and as it would be."""

    @property
    def identical(self) -> bool | None:
        """Whether the kept turn was rebuilt to the bytes that were sent; None if an earlier version worded it."""
        from claudius.cognition.prompt.assembly import prompt_sha256

        is_same = prompt_sha256(self.same) == self.found["prompt_sha256"]
        is_same = is_same and all(sha == prompt_sha256(same) for sha, same, _ in self.rounds)
        return is_same or (False if self.is_of_this_wording else None)

    @property
    def changed(self) -> list[str]:
        """The parts of the prompt that the other texts change."""
        return [part for part in ("system", "history", "tail") if getattr(self.same, part) != getattr(self.other, part)]

    @property
    def tokens(self) -> tuple[int, int]:
        """Estimate what asking again takes: tokens read, and written as many as then."""
        from claudius.provider import CHARS_PER_TOKEN

        chars = len(self.other.system) + len(self.other.tail) + sum(len(one.content) for one in self.other.history)
        return chars // CHARS_PER_TOKEN, self.found["usage"]["output_tokens"] or _GUESSED_TOKENS


def replayed(home: Home, turn: str, soul: str | None = None) -> dict[str, Any]:
    """Rebuild a turn's prompt from what was kept, with the same or another soul.md. Raises: ClaudiusError."""
    from claudius.cognition.prompt.assembly import prompt_sha256

    with records(home) as kept:
        one = _replay(kept, turn, {} if soul is None else {"soul.md": soul})
    every = [(one.found["prompt_sha256"], one.same, one.other), *one.rounds]
    hashes = [{"prompt_sha256": sent, "replayed_prompt_sha256": prompt_sha256(now)} for sent, _, now in every]
    is_same = [row["prompt_sha256"] for row in hashes] == [row["replayed_prompt_sha256"] for row in hashes]
    same, other = [[line for pair in every for line in _text(pair[at])] for at in (1, 2)]
    return {
        "turn": one.found["turn"],
        "identical": is_same or (False if one.is_of_this_wording else None),
        **hashes[0],
        "rounds": hashes[1:],
        "diff": "\n".join(unified_diff(same, other, "kept", "replayed", lineterm="", n=1)),
    }


def replays(home: Home, turns: Sequence[str] = (), files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Rebuild the prompts of turns, by default the newest 200 that have one, with other texts of the soul.

    Each row: `turn at person conversation process heard said identical changed tokens cost_usd chosen`; `identical`
    compares the turn's own texts, `changed` names the parts of the prompt that the files change, `tokens` is what
    asking it again takes, and `chosen` says why it is among the few that are proposed for that: it is the last of its
    `process` or with its `person`, or moved the `mood`; empty for the others.

    Raises: ClaudiusError, BadSoul.
    """
    with records(home) as kept:
        if turns:
            found = [_replay(kept, turn, files or {}) for turn in turns[:MOST_TURNS]]
        else:
            found = [*islice(_newest(kept, files or {}), MOST_TURNS)]
    chosen = _chosen(home, found) if not turns else {}
    return {"turns": [_row(home, one) | {"chosen": chosen.get(one.found["turn"], [])} for one in found]}


def _newest(kept: Records, files: Mapping[str, str]) -> Iterator[_Replay]:
    for turn in kept.newest_turns(_LOOKED_AT):
        try:
            yield _replay(kept, turn, files)
        except NoPrompt:
            continue


class NoPrompt(ClaudiusError):
    """A turn has no prompt that could be rebuilt."""


def _replay(kept: Records, turn: str, files: Mapping[str, str]) -> _Replay:
    from claudius.cognition.prompt.snapshot import TextErased, is_of_this_wording, rebuild, thaw, with_files
    from claudius.cognition.prompt.snapshot import rounds as rounds_of
    from claudius.intent import USED

    found = kept_turn(kept, turn)
    if found["expired_at"]:
        raise _gone(turn, found["expired_at"])
    if not found["snapshot"]:
        raise NoPrompt(f"turn {turn}: no model was asked, so there is no prompt to rebuild")
    try:
        snapshot = found["snapshot"]
        same, entries = rebuild(snapshot, kept), kept.own_entries(turn)
        _, _, settings, own = thaw(snapshot, kept)
        soul = with_files(own, files) if files else own
        other = rebuild(snapshot, kept, soul) if files else same
        sent = [call["prompt_sha256"] for call in found["calls"] if call["purpose"] == USED]
        now, then = (rounds_of(snapshot, first, entries, kept, whose) for first, whose in ((same, own), (other, soul)))
        rounds = [*zip(sent, now, then, strict=False)]
    except Expired as expired:
        raise _gone(turn, expired.at) from None
    except TextErased:
        raise NoPrompt(f"turn {turn}: what its prompt was built from was erased") from None
    return _Replay(found, same, other, is_of_this_wording(settings), rounds)


def _gone(turn: str, at: str) -> NoPrompt:
    return NoPrompt(f"turn {turn}: what its prompt was built from was deleted on {at[:10]} (memory.records_days)")


def _text(prompt: Prompt) -> list[str]:
    history = "\n".join(f"[{message.role}]\n{message.content}" for message in prompt.history)
    return f"[system]\n{prompt.system}\n{history}\n[tail]\n{prompt.tail}".splitlines()


def _row(home: Home, one: _Replay) -> dict[str, Any]:
    found = one.found
    read, written = one.tokens
    return {
        **{name: found[name] for name in ("turn", "at", "person", "conversation", "process")},
        "heard": found["perception"].get("text") or found["perception"].get("preview"),
        "said": found["utterance"],
        "identical": one.identical,
        "changed": one.changed,
        "tokens": read + written,
        "cost_usd": _cost(home, found["provider"] or "", found["model"] or "", read, written),
    }


def _cost(home: Home, provider: str, model: str, read: int, written: int) -> float | None:
    from claudius.provider import Usage
    from claudius.providers.replies import priced

    if provider in ("rehearsal", "scripted"):
        return 0.0
    where = load(home, os.environ).config.openai.base_url if provider == "openai_compat" else "anthropic"
    return priced(Usage(input_tokens=read, output_tokens=written), model, where).cost_usd


def _chosen(home: Home, found: Sequence[_Replay]) -> dict[str, list[str]]:
    """Return the turns to propose, with the reasons: the last of each process and person, those that moved it most."""
    if not found:
        return {}
    rows = [one.found for one in found if one.found["utterance"]]
    shifts = mood_shifts(home, datetime.fromisoformat(found[-1].found["at"]) - timedelta(seconds=1), clock_now())
    reasons: dict[str, list[str]] = {}
    for key in ("process", "person"):
        newest = {row[key]: row["turn"] for row in reversed(rows) if row[key]}
        for turn in newest.values():
            reasons.setdefault(turn, []).append(key)
    for row in sorted(rows, key=lambda row: -abs(shifts.get(row["turn"], 0.0)))[:FEW]:
        reasons.setdefault(row["turn"], []).append("mood")
    first = sorted(reasons, key=lambda turn: (-len(reasons[turn]), -abs(shifts.get(turn, 0.0))))[:FEW]
    return {turn: reasons[turn] for turn in first}


class _NothingKept:
    """Stands where a turn's store does, and keeps nothing."""

    @property
    def turns(self) -> _NothingKept:
        """Itself: of a store, one call uses this alone."""
        return self

    def keep_call(self, turn: str, call: Call) -> None:
        """Keep nothing."""

    def call_failed(self, conversation: str) -> None:
        """Nothing was booked."""


def estimate(home: Home, turns: Sequence[str], files: Mapping[str, str]) -> int:
    """Return how many tokens asking these turns again takes, about. Raises: ClaudiusError."""
    if not 0 < len(turns) <= MOST_ASKED:
        raise UsageProblem(f"name 1 to {MOST_ASKED} turns to ask again")
    return sum(row["tokens"] for row in replays(home, turns, files)["turns"])


async def agreed(home: Home, turns: Sequence[str], files: Mapping[str, str], agreed_tokens: int) -> None:
    """Return if turns may be asked again. Raises: NotAgreed, TryAgain if the budget has no room, ClaudiusError."""
    tokens = await asyncio.to_thread(estimate, home, turns, files)
    if agreed_tokens < tokens:
        raise NotAgreed(len(turns), tokens)
    await asyncio.to_thread(_check_budget, home)


def _check_budget(home: Home) -> None:
    from claudius.cognition.mind import Stage, caps, day_start, tightest

    today = day_start(datetime.now(UTC))
    with records(home) as kept:
        held = caps(load(home, os.environ).config.budget, *map(kept.spent_since, (today, today.replace(day=1))))
    if tightest(held).stage is not Stage.OPEN:
        raise TryAgain("the budget has no room for asking again: `claudius usage`")


async def ask(
    home: Home, turns: Sequence[str], files: Mapping[str, str], agreed_tokens: int
) -> AsyncGenerator[dict[str, Any], None]:
    """Ask the voice that speaks each turn's prompt again, with other texts of the soul; yield a row a turn.

    `{"turn", "at", "person", "heard", "said", "would_say", "thought", "would_think", "verb", "would_verb", "rung",
    "would_rung", "flags", "provider", "model", "tokens", "cost_usd", "error"}`. One call a turn, no repair. Nothing is
    kept but the cost. Raises: NotAgreed, TryAgain if the budget has no room, ClaudiusError if there is no voice.
    """
    from claudius.compose import provider

    await agreed(home, turns, files, agreed_tokens)
    loaded = load(home, os.environ)
    voice = await asyncio.to_thread(provider, loaded, home)
    try:
        for turn in turns:
            yield await _again(home, loaded, voice, turn, files)
    finally:
        await voice.aclose()


async def _again(home: Home, loaded: Loaded, voice: Provider, turn: str, files: Mapping[str, str]) -> dict[str, Any]:
    one, state = await asyncio.to_thread(_state, home, loaded, voice, turn, files)
    found, spoken = one.found, None
    row = {
        **{name: found[name] for name in ("turn", "at", "person")},
        "heard": found["perception"].get("text") or found["perception"].get("preview"),
        "said": found["utterance"],
        "thought": _thoughts(found["thoughts"]),
        "verb": found["verb"],
        "rung": found["rung"],
    }
    error = None
    try:
        spoken = await _asked(state, one.other)
    except ProviderError as problem:
        error = failure_of(problem).told
    calls = state.calls
    if calls:
        await asyncio.to_thread(_book, home, turn, calls[0])
    usage = calls[0].usage if calls else None
    return row | {
        "would_say": "\n\n".join(one.body for one in spoken.utterances) if spoken else None,
        "would_think": _thoughts([asdict(one) for one in spoken.thoughts]) if spoken else [],
        "would_verb": spoken.verb if spoken else None,
        "would_rung": spoken.rung if spoken else None,
        "flags": list(spoken.flags) if spoken else [],
        "provider": calls[0].provider if calls else voice.name,
        "model": calls[0].model if calls else voice.model,
        "tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens
        if usage
        else 0,
        "cost_usd": usage.cost_usd if usage else None,
        "error": error,
    }


def _thoughts(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in ("step", "verb", "content")}
        for row in rows
        if row["step"].endswith("monologue") and row["content"]
    ]


def _state(
    home: Home, loaded: Loaded, voice: Provider, turn: str, files: Mapping[str, str]
) -> tuple[_Replay, TurnState]:
    """Return a turn's prompts, and the state of a turn that asks one of them and keeps nothing."""
    from claudius.cognition.mind import Mind
    from claudius.cognition.prompt.snapshot import thaw, with_files
    from claudius.cognition.turn_state import TurnState
    from claudius.memory.store import Store

    with records(home) as kept:
        one = _replay(kept, turn, files)
        recollection, plan, settings, own = thaw(one.found["snapshot"], kept)
    soul = with_files(own, files)
    mind = Mind(
        store=cast("Store", _NothingKept()),
        provider=voice,
        soul=lambda: soul,
        config=lambda: loaded.config,
        clock=lambda: datetime.now(UTC),
        nonce=lambda: token_hex(16),
        secrets=tuple(secret.reveal() for secret in loaded.secrets.values()),
    )
    return one, TurnState(
        mind=mind, soul=soul, config=loaded.config, settings=settings, recollection=recollection, plan=plan
    )


async def _asked(state: TurnState, prompt: Prompt) -> Intent:
    """Ask one prompt, and conclude what would be said from the reply, as a turn does. Raises: ProviderError."""
    from claudius.cognition.asking import ask_model, decided_by, thoughts_of
    from claudius.cognition.conclude.conclusion import conclude
    from claudius.cognition.prompt.assembly import form_of

    plan = state.plan
    reply = await ask_model(
        state, prompt, PURPOSE, steps=plan.asked, form=form_of(plan, state.soul, state.settings), keep_session=False
    )
    found = thoughts_of(state, reply, decided_by(state, reply, (None,)))
    return conclude(plan, state.recollection, found, state.soul, state.settings, state.rules, None)


def _book(home: Home, turn: str, call: Call) -> None:
    """Record what a call cost, and nothing else of it."""

    async def book(store: Any) -> None:
        store.turns.book(f"{PURPOSE}:{turn}:{token_hex(4)}", replace(call, n=0, response=""), datetime.now(UTC))
        await store.flush()

    edit(home, book)
