"""Run subprocesses, in order, while a conversation is idle; they are cancelled as soon as someone speaks.

One ships: `summarise` folds old turns into the summary ahead of need, so that the next turn is quicker. A turn folds by
itself what has expired; if the model fails, the turns are kept as they are. Source: the process design, section 7.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from string import Template
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.asking import ask_model
from claudius.cognition.commit import commit_whole
from claudius.cognition.conclude.conclusion import conclude_reflection
from claudius.cognition.conclude.transitions import allowed, moved
from claudius.cognition.function_process import Thinker
from claudius.cognition.history import merged, render_summary, rendered
from claudius.cognition.mind import Mind
from claudius.cognition.plan import EngineSettings, compact, gate_settings_of
from claudius.cognition.processes import Transition, find, module_of, process
from claudius.cognition.prompt.assembly import system_text
from claudius.cognition.prompt.function_prompts import fresh
from claudius.cognition.remembering import REHEARSAL
from claudius.cognition.reply.parser import plain_reply
from claudius.cognition.steps import STEPS, read_state, step
from claudius.cognition.turn_state import SUMMARY_CALL, TurnState, recorded, settings_now, silent_turn
from claudius.cognition.working_memory import DEFAULT, WorkingMemory
from claudius.config.schema import Config
from claudius.errors import BadSoul, ProcessError, ProviderError, StaleTurn, StoreError, TooLong
from claudius.foreign import unquoted
from claudius.intent import Intent, StateChange
from claudius.memory.inbox import Pending
from claudius.memory.ranking import stem
from claudius.memory.recall import RecallLimits
from claudius.perception import SELF
from claudius.prompt import Prompt
from claudius.provider import Message, Profile, quiet
from claudius.psyche.events import lexicon
from claudius.psyche.state import kinds
from claudius.recollection import EntryType, PastTurn, ProcessState, Recollection, StateKey, Summary, turn_of
from claudius.shape import unfit_for
from claudius.soul import SoulText

log = logging.getLogger(__name__)

MAX_SECONDS = 300.0
"""The most seconds of one subprocess."""

SUBPROCESSES: dict[str, str] = {"summarise": "claudius.cognition.reflection:summarise"}
"""Built-in subprocesses by name; an owner's own are named in `soul/subprocesses/NAME.md`, by import string."""

Think = Callable[["ReflectionTurn", WorkingMemory], Awaitable[Any]]


class Idle(Struct, frozen=True, kw_only=True):
    """An idle conversation: its last turn, and what that turn knew."""

    intent: Intent
    recollection: Recollection
    pending: Pending
    history_from: int = 1
    """The number of the first past turn that its prompt showed."""


class Subprocess(Struct, frozen=True, kw_only=True):
    """Work that runs on a conversation while it is idle."""

    name: str
    order: int
    every: int = 1
    """It runs after every Nth turn of the conversation in which a person spoke."""
    think: Think | None = None
    work: Callable[[Idle, Mind], Awaitable[None]] | None = None
    """Housekeeping that needs no memory and writes by itself."""
    description: str = ""


def subprocess(order: int, *, every: int = 1) -> Callable[[Think], Subprocess]:
    """Make a subprocess of `async def name(reflection, memory)`; its name is the function's."""

    def made(think: Think) -> Subprocess:
        said = (think.__doc__ or "").strip().partition("\n")[0]
        return Subprocess(
            name=getattr(think, "__name__", "subprocess"), order=order, every=every, think=think, description=said
        )

    return made


class ReflectionTurn(Thinker):
    """The interface of a subprocess: it can think, remember, change the state and plan, but not hear or speak."""

    _folder = "subprocesses"

    def __init__(self, turn: TurnState, name: str, kept: Mapping[str, Any]) -> None:
        super().__init__(turn, name, kept)
        self.state: dict[str, str] = {}
        """The changes to the soul's state, by key."""

    def set_state(self, key: str, value: str) -> None:
        """Change one value of the soul's state. Raises: ValueError for an unknown key or mood."""
        read = read_state(f"{key}: {value}")
        if key not in read:
            raise ValueError(f"{key} = {value!r} is not a state of the soul")
        self.state[key] = read[key]


@cache
def _load(target: str) -> Subprocess:
    module, _, attribute = target.partition(":")
    found = getattr(module_of(module), attribute)
    if not isinstance(found, Subprocess):
        raise ValueError(f"{target} is not a subprocess: decorate it with @subprocess(order)")
    return found


def subprocesses(soul: SoulText) -> tuple[Subprocess, ...]:
    """Return every subprocess, in the order in which they run."""
    known: tuple[Subprocess, ...] | None = soul.derived.get("subprocesses")
    if known is not None:
        return known
    targets = dict(SUBPROCESSES)
    for name, file in soul.files.items():
        if name.startswith("subprocesses/") and (target := file.head.get("python")):
            targets[name.removeprefix("subprocesses/").removesuffix(".md")] = str(target)
    found: list[Subprocess] = []
    for name, target in targets.items():
        try:
            found.append(replace(_load(target), name=name))
        except (ImportError, AttributeError, ValueError) as error:
            log.warning("a subprocess cannot be used", extra={"subprocess": name, "error": unquoted(error)})
    soul.derived["subprocesses"] = known = tuple(sorted(found, key=lambda one: one.order))
    return known


def subprocess_problems(soul: SoulText) -> list[BadSoul]:
    """List the owner's subprocesses that cannot be used."""
    found: list[BadSoul] = []
    for name, file in soul.files.items():
        target, where = file.head.get("python"), str(file.source)
        if not name.startswith("subprocesses/"):
            continue
        if not target:
            found.append(BadSoul(where, 1, "no head names its python", "write `python = 'module:function'`"))
            continue
        try:
            think = _load(str(target)).think
        except (ImportError, AttributeError, ValueError) as error:
            found.append(BadSoul(where, 1, f"its head: python: {error}", "install that module with Claudius"))
            continue
        if think and (problem := unfit_for(think, 2)):
            detail = f"its head: python: the function cannot be called with (reflection, memory): {problem}"
            found.append(BadSoul(where, 1, detail, "docs/your-own-soul.md shows one"))
    return found


def load_minds(soul: SoulText, config: Config) -> None:
    """Load what a first turn needs besides its model: the word lists, the steps, the processes, the subprocesses."""
    gate_settings_of(soul, config)
    lexicon()
    kinds()
    stem("bridges", "english")
    for name in STEPS:
        step(name)
    process("main_process")
    subprocesses(soul)


async def reflect(idle: Idle, mind: Mind) -> None:
    """Run the subprocesses of an idle conversation, in order; one that raises does not stop the next.

    Raises: StoreError. Cancelling leaves nothing half-done: each subprocess commits once, at its end.
    """
    number = idle.recollection.spoken + 1 if idle.recollection.speaker else None
    for one in subprocesses(mind.soul()):
        is_its_turn = one.every == 1 or (number is not None and number % one.every == 0)
        if not is_its_turn:
            continue
        await quiet(mind.provider)
        try:
            async with asyncio.timeout(MAX_SECONDS):
                await (one.work(idle, mind) if one.work else _think(one, idle, mind))
        except StaleTurn:
            log.info("a subprocess came too late", extra={"subprocess": one.name, "turn": idle.intent.turn})
        except StoreError:
            raise
        except Exception:  # it may be the owner's own code, and the next subprocess has its turn all the same
            log.exception("a subprocess failed", extra={"subprocess": one.name, "turn": idle.intent.turn})


async def _think(one: Subprocess, idle: Idle, mind: Mind) -> None:
    if one.think is None:
        return
    pending = replace(idle.pending, turn=turn_of(f"{idle.intent.turn}/{one.name}"))
    limits = RecallLimits(ttl_hours=mind.config().memory.ttl_hours, aged_at=mind.aged_at())
    known = await mind.store.turns.recall(pending, nonce=mind.nonce(), now=mind.clock(), limits=limits)
    recollection = replace(known, perceptions=())  # the conversation as it is now, including its last turn
    turn = await silent_turn(one.name, recollection, mind)
    reflection = ReflectionTurn(turn, one.name, mind.store.turns.kept(recollection.conversation, one.name))
    outcome = await one.think(reflection, reflection.source.base)
    intent = _ended(one, reflection, turn, outcome)
    if intent is not None:
        await commit_whole(intent, recollection, mind)


def _ended(one: Subprocess, reflection: ReflectionTurn, turn: TurnState, outcome: object) -> Intent | None:
    """Return the intent of a subprocess; None if it changes nothing. Raises: ProcessError."""
    source, known = reflection.source, turn.recollection
    transition = outcome if isinstance(outcome, Transition) else None
    if transition and transition.execute_now:
        raise ProcessError(f"subprocess {one.name}", "a subprocess cannot execute_now: nothing was heard")
    left = transition.memory or source.base if transition else outcome
    if left is not None and not isinstance(left, WorkingMemory):
        raise ProcessError(
            f"subprocess {one.name}", f"returned a {type(outcome).__name__}: return the memory, or a Transition"
        )
    entries = tuple(
        line.stored(known.now)
        for line in (fresh(left, source.base) if left else ())
        if line.entry_type and line.entry_type is not EntryType.EXTERNAL_DIALOG and line.region == DEFAULT
    )
    planned = turn.planned(**({"kept": {one.name: turn.kept}} if turn.kept is not None else {}))
    now_at_home = _home(turn, transition)
    if not (entries or reflection.state or planned or now_at_home):
        return None
    state = tuple(
        StateChange(key=key, value=value, audience=SELF if key == StateKey.EMOTIONAL_STATE else known.audience)
        for key, value in reflection.state.items()
    )
    intent = conclude_reflection(known, turn.plan, entries, {"outcome": "reflect", "reason": "idle"})
    return replace(
        recorded(turn, intent),
        next_process=now_at_home or known.process,
        state=state,
        changes={"subprocess": one.name, **({"soul_state": dict(reflection.state)} if state else {})},
        steps=tuple(turn.asked),
        planned=planned,
    )


def _home(turn: TurnState, transition: Transition | None) -> ProcessState | None:
    """Return the process state that a transition leads to; None if there is no allowed one."""
    if transition is None:
        return None
    before = turn.recollection.process
    ran = find(before.process, turn.soul) or process("main_process")
    granted = allowed(replace(ran, next=None), transition, turn.soul, autonomous=turn.settings.autonomous)
    return moved(before, before.process, granted, turn.recollection.now) if granted else None


KEYS, MOST_KEYS = "keys", 12
"""What begins the last line of a diary, and how many words it may hold."""
ROOM = 0.85
"""The share of the history budget from which old turns are folded in advance."""


async def fold_expired(turn: TurnState) -> None:
    """Summarise expired turns when a conversation resumes; if the model fails, the old summary stays."""
    known = turn.recollection
    summary = await _summarise(turn, known.expired, _history(known, known.expired, turn.settings.profile), is_over=True)
    turn.recollection = replace(known, summary=summary or known.summary, expired=())


async def fold_for_room(idle: Idle, mind: Mind) -> None:
    """Fold the oldest turns of an idle conversation: those that its last prompt, or the next one, has no room for."""
    recollection, past = idle.recollection, idle.recollection.past
    settings = await settings_now(mind, recollection, EngineSettings.of(mind.config()))
    first = max(compact(past, settings, share=ROOM), idle.history_from)
    leaving = [turn for turn in past if turn.number < first]
    if not leaving:
        return
    is_whole = idle.history_from <= past[0].number  # then the same history as in the last turn is in the cache
    await _fold(recollection, leaving, _history(recollection, past if is_whole else leaving, settings.profile), mind)


async def fold_whole(recollection: Recollection, mind: Mind) -> bool:
    """Fold all expired turns of an idle conversation. Returns False if nothing was folded."""
    if not recollection.expired:
        return False
    settings = await settings_now(mind, recollection, EngineSettings.of(mind.config()))
    history = _history(recollection, recollection.expired, settings.profile)
    return await _fold(recollection, recollection.expired, history, mind, is_over=True)


async def _fold(
    recollection: Recollection,
    turns: Sequence[PastTurn],
    history: tuple[Message, ...],
    mind: Mind,
    *,
    is_over: bool = False,
) -> bool:
    """Summarise turns of an idle conversation and store the summary. Returns False if there is none."""
    turn = await silent_turn("", recollection, mind)
    summary = await _summarise(turn, turns, history, is_over=is_over)
    if summary or turn.calls:
        await mind.store.turns.fold(
            recollection.conversation, recollection.turn, summary, tuple(turn.calls), mind.clock()
        )
    return summary is not None


async def _summarise(
    turn: TurnState, turns: Sequence[PastTurn], history: tuple[Message, ...], *, is_over: bool
) -> Summary | None:
    """Ask for a summary of turns: of a talk that is over it is the soul's diary, with keys, and a memory of its own."""
    known, settings, diary = turn.recollection, turn.settings, turn.soul.text("summary.md")
    text = diary if is_over else str(turn.soul.files["summary.md"].head.get("room", diary))
    instruction = Template(text).safe_substitute(chars=settings.summary_chars)
    prompt = Prompt(system_text(turn.soul, settings), history, instruction.strip(), len(history))
    try:
        reply = await ask_model(turn, prompt, "summary", number=SUMMARY_CALL)
    except ProviderError as error:
        if isinstance(error, TooLong) and (half := turns[: len(turns) // 2]):
            return await _summarise(turn, half, _history(known, half, settings.profile), is_over=is_over)
        log.warning("nothing was folded", extra={"turn": known.turn, "error": unquoted(error)})
        return None
    text, keys = _divided(plain_reply(reply.text).strip())
    text = text[: settings.summary_chars].strip()
    if not text:
        return None
    sources = {known.audience, *(known.summary.sources if known.summary else ())}
    return Summary(
        text=text,
        sources=tuple(sorted(sources)),
        upto=turns[-1].number,
        nonce=turn.mind.nonce(),
        keys=keys,
        is_diary=is_over and REHEARSAL not in [call.provider for call in turn.calls],
    )


def _divided(text: str) -> tuple[str, tuple[str, ...]]:
    """Divide a diary from the line of its keys. Pure."""
    body, _, last = text.rpartition("\n")
    label, _, keys = last.partition(":")
    if label.strip(" *_#").casefold() != KEYS:
        return text, ()
    return body, tuple(list(filter(None, [one.strip(" .*_") for one in keys.split(",")]))[:MOST_KEYS])


def _history(recollection: Recollection, turns: Sequence[PastTurn], profile: Profile) -> tuple[Message, ...]:
    before = [render_summary(recollection.summary)] if recollection.summary else []
    messages = merged([*before, *(message for turn in turns for message in rendered(turn, profile).messages)])
    return (Message("user", "…"), *messages) if messages and messages[0].role == "assistant" else messages


summarise = Subprocess(name="summarise", order=0, work=fold_for_room, description="Fold old turns into the summary.")
