"""One turn of several processes, or of a function, under way; and the one intent that is made of it.

Source: the process design, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.hearing import Hearing, Superseded
from claudius.cognition.mind import Mind, Show
from claudius.cognition.pipeline import Thinking
from claudius.cognition.processes import Process, find
from claudius.cognition.soul_engine import (
    EngineSettings,
    Kept,
    Plan,
    build_prompt,
    conclude,
    freeze,
    ground,
    private_texts,
    prompt_sha256,
    zones,
)
from claudius.cognition.soul_engine.asks import QUERY, THOUGHT
from claudius.cognition.soul_engine.entries import heard
from claudius.cognition.soul_engine.feeling import joined
from claudius.cognition.soul_engine.in_mind import Drawn, Scene, redraw
from claudius.cognition.soul_engine.ladder import SAID
from claudius.cognition.soul_engine.readers import clean_text
from claudius.cognition.staged import Staged
from claudius.cognition.working_memory import DEFAULT
from claudius.cognition.working_memory import Entry as Line
from claudius.intent import Call, Intent, Thought, Thoughts
from claudius.psyche import Attention
from claudius.recollection import Entry, EntryType, ProcessState, Recollection
from claudius.soul import SoulText


class Opening(Struct, frozen=True, kw_only=True):
    """What a turn begins with."""

    mind: Mind
    soul: SoulText
    settings: EngineSettings
    recollection: Recollection
    paid: Mapping[str, Call]
    show: Show | None
    hearing: Hearing
    folding: tuple[Call, ...] = ()
    """Calls that were made before the turn's own."""
    attention: Attention | None = None


class Chain(Struct):
    """One turn under way, hop by hop."""

    opening: Opening
    recollection: Recollection
    staged: Staged
    state: ProcessState
    """As the next hop finds it."""
    process: Process
    plan: Plan
    first_plan: Plan
    is_guest: bool
    """The process is borrowed, and no transition has made it at home."""
    parts: list[Intent] = field(default_factory=list)
    """What declarative hops came to, but for their speech."""
    thoughts: list[Thoughts] = field(default_factory=list)
    entries: list[Line] = field(default_factory=list)
    """What is remembered of the hops so far, in order."""
    moves: list[dict[str, Any]] = field(default_factory=list)
    hops: list[str] = field(default_factory=list)
    """The processes that ran."""
    drawn: Drawn | None = None
    """The first prompt, where a declarative process made it."""
    has_yielded: bool = False

    @property
    def is_plain(self) -> bool:
        """One declarative process ran, and no other."""
        return len(self.hops) == len(self.parts) == 1

    def scene(self) -> Scene:
        """Return what the next call is asked with."""
        opening = self.opening
        return Scene.of(self.recollection, self.plan, opening.soul, opening.settings)


def ended(chain: Chain) -> Intent:
    """Make one intent of every hop. Raises: Superseded where it yielded and has thought nothing."""
    if chain.has_yielded:
        if not chain.entries:
            raise Superseded
        chain.staged.lines.clear()
    said = _concluded(chain)
    intent = replace(
        said if chain.is_plain else _gathered(chain, said),
        process=chain.process.name,
        next_process=chain.recollection.process if chain.is_guest else chain.state,
        steps=tuple(chain.staged.asked),
        calls=tuple(chain.staged.calls),
        planned=chain.staged.planned(**_participation(chain)),
    )
    if chain.moves:
        hops = {"hops": chain.moves} if len(chain.moves) > 1 else {}
        intent = replace(intent, changes={**intent.changes, "process": chain.moves[-1] | hops})
    if not chain.has_yielded:
        return intent
    own = intent.entries[len(heard(chain.recollection)) :]
    return replace(intent, answers=(), held=intent.answers, entries=own, utterances=(), rung="silent", psyche=None)


def lines_of(part: Intent, chain: Chain) -> list[Line]:
    """Return the entries of a declarative hop as lines of the memory, for the hops after it. Pure."""
    own = part.entries[len(heard(chain.recollection)) :]
    return [
        Line(
            id=f"{part.turn}+{len(chain.hops)}.{n}",
            role="assistant",
            content=entry.content,
            entry_type=entry.entry_type,
            verb=entry.verb,
            metadata=entry.metadata,
            at=entry.at,
        )
        for n, entry in enumerate(own)
    ]


def _gathered(chain: Chain, said: Intent) -> Intent:
    """Join what several hops came to with what is said in the end."""
    own = tuple(_kept(line, chain.recollection) for line in chain.entries if _is_kept(line))
    spoken = tuple(one for one in said.entries if one.entry_type is EntryType.EXTERNAL_DIALOG)
    changes: dict[str, Any] = {}
    for part in chain.parts:
        changes |= part.changes
    return replace(
        said,
        entries=(*heard(chain.recollection), *own, *spoken),
        thoughts=(*_thoughts(chain), *said.thoughts),
        state=tuple(dict.fromkeys((*said.state, *(one for part in chain.parts for one in part.state)))),
        psyche=joined(said.psyche, [part.psyche for part in chain.parts]),
        model=next((part.model for part in reversed(chain.parts) if part.model), None),
        changes=changes,
        flags=tuple(dict.fromkeys([*said.flags, *(flag for part in chain.parts for flag in part.flags)])),
    )


def _concluded(chain: Chain) -> Intent:
    """Conclude what is said; the turn of one declarative process is concluded as every other."""
    opening, lines = chain.opening, chain.staged.lines
    thoughts = Thoughts(
        thoughts=(),
        speech="\n\n".join(lines),
        verb=lines[-1].verb if lines else SAID,
        rung=lines[-1].rung if lines else "silent",
        flags=tuple(dict.fromkeys(flag for line in lines for flag in line.flags)),
        streamed=chain.staged.streamed,
        truncated=any(line.truncated for line in lines),
    )
    if chain.is_plain:
        whole = chain.thoughts[0]
        thoughts = whole if chain.staged.lines else replace(whole, speech="", streamed="")
    thoughts = replace(thoughts, calls=tuple(chain.staged.calls))
    zone = thinking(chain).zones
    return conclude(chain.plan, chain.recollection, thoughts, opening.soul, opening.settings, zone, _record(chain))


def thinking(chain: Chain) -> Thinking:
    """Return what a declarative hop thinks with. Pure."""
    opening, known = chain.opening, chain.recollection
    own = chain.staged.own
    stands = ground(chain.plan, known, opening.soul, opening.settings, private_texts(known, own))
    return Thinking(
        mind=opening.mind,
        plan=chain.plan,
        prompt=build_prompt(chain.plan, known, opening.soul, opening.settings),
        prompt_sha256="",
        recollection=known,
        soul=opening.soul,
        settings=opening.settings,
        ground=stands,
        zones=zones(stands, known, opening.soul, opening.mind.secrets),
        paid=opening.paid,
        show=None if chain.process.may_execute_now or chain.staged.lines else opening.show,
        calls=tuple(chain.staged.calls),
        own=own,
    )


def _record(chain: Chain) -> Kept:
    opening, first = chain.opening, chain.staged.first
    sketch = chain.drawn or (first.drawn if first else None)
    scene = Scene.of(chain.recollection, chain.first_plan, opening.soul, opening.settings)
    prompt = (
        redraw(scene, sketch)
        if sketch
        else build_prompt(chain.first_plan, chain.recollection, opening.soul, opening.settings)
    )
    snapshot, blobs = freeze(chain.recollection, chain.first_plan, opening.settings, opening.soul, sketch)
    return Kept(
        prompt_sha256=prompt_sha256(prompt),
        snapshot=snapshot,
        blobs=blobs,
        attention={
            "outcome": "think",
            "reason": "owed" if chain.plan.owes else "asked by the soul itself",
            **(opening.attention.told if opening.attention else {}),
        },
        psyche=opening.attention,
    )


def _participation(chain: Chain) -> dict[str, Any]:
    """Say how the conversation is heard from now on, where the process that comes home, or leaves, declares it."""
    soul, was = chain.opening.soul, chain.recollection.process.process
    now = participation(chain.state.process, soul)
    return {} if not chain.moves or now == participation(was, soul) else {"participation": now}


def participation(process: str, soul: SoulText) -> str:
    """Return how a process wants its conversation to be heard; empty where it says nothing. Pure."""
    found = find(process, soul) if process else None
    return found.participation.value if found and found.participation else ""


def _is_kept(line: Line) -> bool:
    return line.entry_type not in (None, EntryType.EXTERNAL_DIALOG) and line.region == DEFAULT


def _kept(line: Line, recollection: Recollection) -> Entry:
    return Entry(
        entry_type=line.entry_type or EntryType.MENTAL_QUERY,
        content=clean_text(line.content),
        at=line.at or recollection.now,
        verb=line.verb,
        metadata=dict(line.metadata),
    )


def _thoughts(chain: Chain) -> tuple[Thought, ...]:
    return tuple(
        Thought(
            step=THOUGHT
            if line.entry_type is EntryType.INTERNAL_MONOLOGUE
            else str(line.metadata.get("step") or line.metadata.get("query") or QUERY),
            content=line.content,
            verb=line.verb,
        )
        for line in chain.entries
        if _is_kept(line)
    )
