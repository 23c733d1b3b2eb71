"""What is done while a conversation is idle: subprocesses, in order, given up whole as soon as someone speaks.

Source: the process design, section 7.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.answering import Speaking
from claudius.cognition.commit import commit
from claudius.cognition.facade import Thinker
from claudius.cognition.importing import module_of
from claudius.cognition.mind import Mind
from claudius.cognition.processes import find, process
from claudius.cognition.processes.process import Process, Transition
from claudius.cognition.soul_engine import EngineSettings, Kept, Plan, build_prompt, compact, freeze, prompt_sha256
from claudius.cognition.soul_engine.conclusion import conclude_reflection
from claudius.cognition.soul_engine.in_mind import Scene, fresh, redraw
from claudius.cognition.soul_engine.moving import allowed, moved
from claudius.cognition.soul_engine.readers import clean_text, read_state
from claudius.cognition.staged import Staged
from claudius.cognition.working_memory import DEFAULT, WorkingMemory
from claudius.errors import ProcessError, StaleTurn, StoreError
from claudius.intent import Intent, StateChange
from claudius.memory.store import Pending, RecallLimits, turn_of
from claudius.perception import SELF
from claudius.recollection import Entry, EntryType, Recollection, StateKey
from claudius.soul import SoulText

log = logging.getLogger("claudius.reflection")

SUBPROCESSES: dict[str, str] = {
    "summarise": "claudius.cognition.subprocesses.summarise:summarise",
}
"""Subprocesses by name; an owner's own stand in `soul/subprocesses/NAME.md`, by import string."""

Think = Callable[["Reflection", WorkingMemory], Awaitable[Any]]


class Idle(Struct, frozen=True, kw_only=True):
    """A conversation that has nothing to do: its last turn, and what that turn knew."""

    intent: Intent
    recollection: Recollection
    pending: Pending


class Subprocess(Struct, frozen=True, kw_only=True):
    """Something that is thought about a conversation while it is idle."""

    name: str
    order: int
    every: int = 1
    """It runs after each so-manieth turn of the conversation."""
    think: Think | None = None
    work: Callable[[Idle, Mind], Awaitable[None]] | None = None
    """Of the soul's own housekeeping: it needs no memory, and writes by itself."""
    description: str = ""


def subprocess(order: int, *, every: int = 1) -> Callable[[Think], Subprocess]:
    """Make a subprocess of `async def name(reflection, memory)`; its name is the function's."""

    def made(think: Think) -> Subprocess:
        said = (think.__doc__ or "").strip().partition("\n")[0]
        return Subprocess(
            name=getattr(think, "__name__", "subprocess"), order=order, every=every, think=think, description=said
        )

    return made


class Reflection(Thinker):
    """What a subprocess is given: it can think, remember, change the state, plan; it hears and says nothing."""

    def __init__(self, scene: Scene, speaking: Speaking, name: str, kept: Mapping[str, Any]) -> None:
        """Reflect in `scene`, under the subprocess's name."""
        super().__init__(scene, speaking, name, kept)
        self.state: dict[str, str] = {}
        """What of the soul's state is to change, by key."""

    def set_state(self, key: str, value: str) -> None:
        """Change one value of the soul's state. Raises: ValueError for a key or mood that there is not."""
        read = read_state(f"{key}: {value}")
        if key not in read:
            raise ValueError(f"{key} = {value!r} is no state of the soul's")
        self.state[key] = read[key]

    def text(self, name: str) -> str:
        """Return what the subprocess's own text says under a heading."""
        from claudius.cognition.processes import sections  # noqa: PLC0415 - beside its only use

        return sections(self._scene.soul.files.get(f"subprocesses/{self._name}.md")).get(name, "")


@cache
def _load(target: str) -> Subprocess:
    module, _, attribute = target.partition(":")
    found = getattr(module_of(module), attribute)
    if not isinstance(found, Subprocess):
        raise ValueError(f"{target} is no subprocess: decorate it with @subprocess(order)")
    return found


def subprocesses(soul: SoulText) -> tuple[Subprocess, ...]:
    """Return every subprocess, in the order in which they run."""
    if "subprocesses" not in soul.derived:
        soul.derived["subprocesses"] = _subprocesses(soul)
    found: tuple[Subprocess, ...] = soul.derived["subprocesses"]
    return found


def _subprocesses(soul: SoulText) -> tuple[Subprocess, ...]:
    targets = dict(SUBPROCESSES)
    for name, file in soul.files.items():
        if name.startswith("subprocesses/") and (target := file.head.get("python")):
            targets[name.removeprefix("subprocesses/").removesuffix(".md")] = str(target)
    found: list[Subprocess] = []
    for name, target in targets.items():
        try:
            found.append(replace(_load(target), name=name))
        except (ImportError, AttributeError, ValueError) as error:
            log.warning("a subprocess cannot be used", extra={"subprocess": name, "error": str(error)})
    return tuple(sorted(found, key=lambda one: one.order))


async def reflect(idle: Idle, mind: Mind) -> None:
    """Run the subprocesses of an idle conversation, in order; one that raises does not stop the next.

    Raises: StoreError. Cancelled, it leaves nothing half-done: each commits whole, at its end.
    """
    seconds = mind.config().subprocess.max_seconds
    for one in subprocesses(mind.soul()):
        if (idle.recollection.turns + 1) % one.every:
            continue
        try:
            async with asyncio.timeout(seconds):
                await (one.work(idle, mind) if one.work else _think(one, idle, mind))
        except StaleTurn:
            log.info("a subprocess came too late", extra={"subprocess": one.name, "turn": idle.intent.turn})
        except StoreError:
            raise
        except Exception:
            log.exception("a subprocess failed", extra={"subprocess": one.name, "turn": idle.intent.turn})


async def _think(one: Subprocess, idle: Idle, mind: Mind) -> None:
    if one.think is None:
        return
    soul, settings = mind.soul(), EngineSettings.of(mind.config())
    recollection = await _recall(one, idle, mind)
    planned = Plan(
        process=one.name,
        asked=(),
        conditional={},
        shown=(),
        owes=False,
        history_from=compact(recollection.past, settings),
    )
    scene = Scene.of(recollection, planned, soul, settings)
    staged = Staged(turn=recollection.turn)
    kept = await mind.store.kept(recollection.conversation, one.name)
    reflection = Reflection(scene, Speaking(mind=mind, staged=staged), one.name, kept)
    outcome = await one.think(reflection, scene.base)
    intent = _ended(one, scene, reflection, staged, outcome)
    if intent is not None:
        await _whole(commit(intent, recollection, mind, is_turn=False))


async def _whole(committing: Coroutine[Any, Any, Intent]) -> None:
    """Let a commit end that has begun, whoever speaks: the next turn is not to find it half under way."""
    doing = asyncio.ensure_future(committing)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise


async def _recall(one: Subprocess, idle: Idle, mind: Mind) -> Recollection:
    """Recall the conversation as it stands now, its last turn included."""
    turn = turn_of(f"{idle.intent.turn}/{one.name}")
    pending = replace(idle.pending, turn=turn)
    limits = RecallLimits(ttl_hours=mind.config().memory.ttl_hours, aged_at=mind.aged_at())
    known = await mind.store.recall(pending, nonce=mind.nonce(), now=mind.clock(), limits=limits)
    return replace(known, perceptions=())


def _ended(one: Subprocess, scene: Scene, reflection: Reflection, staged: Staged, outcome: object) -> Intent | None:
    """Return what a subprocess changes; None where it changes nothing. Raises: ProcessError."""
    transition = outcome if isinstance(outcome, Transition) else None
    if transition and transition.execute_now:
        raise ProcessError(f"subprocess {one.name}", "a subprocess cannot execute_now: nothing was heard")
    left = transition.memory or scene.base if transition else outcome
    if left is not None and not isinstance(left, WorkingMemory):
        raise ProcessError(
            f"subprocess {one.name}", f"returned a {type(outcome).__name__}: return the memory, or a Transition"
        )
    entries = tuple(
        Entry(
            entry_type=line.entry_type,
            content=clean_text(line.content),
            at=scene.recollection.now,
            verb=line.verb,
            metadata=dict(line.metadata),
        )
        for line in (fresh(left, scene.base) if left else ())
        if line.entry_type and line.entry_type is not EntryType.EXTERNAL_DIALOG and line.region == DEFAULT
    )
    planned = staged.planned(**({"kept": {one.name: staged.kept}} if staged.kept is not None else {}))
    known = scene.recollection
    now_at_home = _home(scene, transition)
    if not (entries or reflection.state or planned or now_at_home):
        return None
    state = tuple(
        StateChange(key=key, value=value, audience=SELF if key == StateKey.EMOTIONAL_STATE else known.audience)
        for key, value in reflection.state.items()
    )
    intent = conclude_reflection(known, scene.plan, entries, _record(scene, staged))
    return replace(
        intent,
        next_process=now_at_home or known.process,
        state=state,
        changes={"subprocess": one.name, **({"soul_state": dict(reflection.state)} if state else {})},
        steps=tuple(staged.asked),
        calls=tuple(staged.calls),
        planned=planned,
    )


def _home(scene: Scene, transition: Transition | None) -> Any:
    """Return the state that a subprocess's transition leads to; None where it names none that may be."""
    if transition is None:
        return None
    before = scene.recollection.process
    ran = find(before.process, scene.soul) or process("main_process")
    granted = allowed(_anywhere(ran), transition, scene.soul, autonomous=scene.settings.autonomous)
    return moved(before, before.process, granted, scene.recollection.now) if granted else None


def _anywhere(ran: Process) -> Process:
    return replace(ran, next=None)


def _record(scene: Scene, staged: Staged) -> Kept:
    known, first = scene.recollection, staged.first
    sketch = first.drawn if first else None
    prompt = redraw(scene, sketch) if sketch else build_prompt(scene.plan, known, scene.soul, scene.settings)
    snapshot, blobs = freeze(known, scene.plan, scene.settings, scene.soul, sketch)
    return Kept(
        prompt_sha256=prompt_sha256(prompt),
        snapshot=snapshot,
        blobs=blobs,
        attention={"outcome": "reflect", "reason": "idle"},
    )
