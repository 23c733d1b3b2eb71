"""A turn as a programmatic process lives it: it thinks, stages what is to be said and planned, and hears what waits.

Nothing of it happens before the turn is committed. Source: the process design, sections 2, 3, 6 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, TypeVar, overload

from claudius.cognition.answering import Speaking, answers
from claudius.cognition.budget import Stage
from claudius.cognition.hearing import Hearing
from claudius.cognition.processes import Process, sections
from claudius.cognition.processes.process import Interruption
from claudius.cognition.soul_engine.asks import QUERY, SPEECH, THOUGHT, Ask, external_dialogue
from claudius.cognition.soul_engine.in_mind import Scene
from claudius.cognition.staged import Staged, Words, kept_json, schedule
from claudius.cognition.working_memory import Entry, WorkingMemory
from claudius.config import Config
from claudius.perception import Perception
from claudius.recollection import EntryType, ProcessState, Recollection

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

_TYPES = {THOUGHT: EntryType.INTERNAL_MONOLOGUE, SPEECH: EntryType.EXTERNAL_DIALOG}


class Yielded(Exception):
    """The turn stops here for a new perception; what it thought is kept."""

    def __init__(self, memory: WorkingMemory) -> None:
        """Carry what was in mind."""
        super().__init__()
        self.memory = memory


def internal(text: str) -> str:
    """Word a perception that the soul will have of itself. Pure."""
    return text


class Thinker:
    """What every programmatic mind can do: think, plan, keep. A `Turn` speaks too, a `Reflection` does not."""

    def __init__(self, scene: Scene, voice: Speaking, name: str, kept: Mapping[str, Any]) -> None:
        """Think in `scene` with `voice`, under the name of a process or subprocess; `kept` is what it kept."""
        self._scene, self._voice, self._name = scene, voice, name
        self._kept = dict(kept)
        self._asked, self._began_s = 0, monotonic()

    @property
    def recollection(self) -> Recollection:
        """Everything that was recalled."""
        return self._scene.recollection

    @property
    def now(self) -> datetime:
        """The instant of the turn, UTC: the same when it is run again."""
        return self._scene.recollection.now

    @property
    def kept(self) -> Mapping[str, Any]:
        """What was kept here until now."""
        return dict(self._kept)

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._voice.mind.config()

    @property
    def seconds(self) -> float:
        """How long the turn has taken until now."""
        return monotonic() - self._began_s

    @property
    def calls(self) -> int:
        """How many model calls were made."""
        return len(self._staged.calls)

    @property
    def tokens(self) -> int:
        """How many tokens they took, in and out."""
        return self._staged.tokens

    @property
    def _staged(self) -> Staged:
        return self._voice.staged

    def keep(self, **values: Any) -> None:
        """Keep values from turn to turn, JSON alone; None lets one go. Raises: TypeError for what is no JSON."""
        self._kept = {name: one for name, one in (self._kept | kept_json(values)).items() if one is not None}
        self._staged.kept = dict(self._kept)

    def text(self, name: str) -> str:
        """Return what the process's own text says under a heading; empty where it says nothing."""
        return sections(self._scene.soul.files.get(f"processes/{self._name}.md")).get(name, "")

    @overload
    async def think(self, memory: WorkingMemory, ask: Ask[T], /) -> tuple[WorkingMemory, T]: ...
    @overload
    async def think(
        self, memory: WorkingMemory, first: Ask[T], second: Ask[U], /
    ) -> tuple[WorkingMemory, tuple[T, U]]: ...
    @overload
    async def think(
        self, memory: WorkingMemory, first: Ask[T], second: Ask[U], third: Ask[V], /
    ) -> tuple[WorkingMemory, tuple[T, U, V]]: ...
    @overload
    async def think(self, memory: WorkingMemory, /, *asks: Ask[Any]) -> tuple[WorkingMemory, Any]: ...

    async def think(self, memory: WorkingMemory, /, *asks: Ask[Any]) -> tuple[WorkingMemory, Any]:
        """Ask for one value, or for several in one call; return the memory with what is remembered of them.

        The memory passed in is untouched. Raises: Unreadable, ProviderError.
        """
        if not asks:
            raise TypeError("think needs at least one ask")
        await self._before(memory)
        found = await answers(self._voice, self._scene, memory, asks, streams=False)
        return self._remembered(memory, asks, found), found[0] if len(asks) == 1 else tuple(found)

    def schedule(
        self,
        perception: str,
        *,
        process: str = "",
        after: timedelta | None = None,
        at: datetime | None = None,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        asked: bool = False,
    ) -> int:
        """Plan a perception of the soul's own; return its id. It is written with the turn.

        `after` or `at` says when; `process` is borrowed for it; `asked`: the speaker asked for it, so it comes however
        late. Raises: ValueError where it is said twice or not at all, or in local time.
        """
        if (after is None) == (at is None):
            raise ValueError("say after=… or at=…, one of them")
        instant = at or self.now + (after or timedelta(0))
        if instant.tzinfo is None:
            raise ValueError("a due time is an aware instant")
        known, person = self.recollection, self._person()
        made = schedule(
            self._staged,
            perception,
            at=instant,
            conversation=known.conversation,
            key=key,
            process=process,
            params=kept_json(params or {}),
            audience=known.audience,
            person=person,
            asked_by=person if asked else "",
        )
        return made.id

    def cancel(self, schedule_id: int) -> None:
        """Take a plan back."""
        self._staged.schedules[:] = [one for one in self._staged.schedules if one.id != schedule_id]
        self._staged.cancels.append(schedule_id)

    async def recall(self, words: str, *, limit: int = 8) -> list[str]:
        """Search the soul's own memory, as far as it may be shown here; the best lines first."""
        found = await self._voice.mind.store.search(self.recollection.perception, words, limit)
        return [f"{one.name or 'Claudius'}: {one.content}" for one in found]

    async def is_over_budget(self) -> bool:
        """Tell whether the day's money is spent."""
        return await self._voice.mind.stage() is Stage.REFUSING

    async def _before(self, memory: WorkingMemory) -> None:
        """Do what comes before each thought."""

    def _person(self) -> str:
        known = self.recollection
        if known.perceptions:
            return known.perception.person
        return known.speaker.person if known.speaker else ""

    def _remembered(self, memory: WorkingMemory, asks: tuple[Ask[Any], ...], found: list[Any]) -> WorkingMemory:
        for ask, value in zip(asks, found, strict=True):
            if ask.remember is not None:
                memory = memory + self._entry(ask, value, ask.remember(value))
        return memory

    def _entry(self, ask: Ask[Any], value: Any, line: str) -> Entry:
        self._asked += 1
        kind = _TYPES.get(ask.step, EntryType.MENTAL_QUERY)
        metadata: dict[str, Any] = {}
        if kind is EntryType.MENTAL_QUERY:
            metadata = {"query": QUERY, "step": ask.step} | ({"result": value} if isinstance(value, bool) else {})
        return Entry(
            id=f"{self.recollection.turn}+{self._name}+{len(self._staged.calls)}.{self._asked}",
            role="assistant",
            content=str(line),
            entry_type=kind,
            verb=value.verb if isinstance(value, Words) else None,
            metadata=metadata,
            at=self.now,
        )


class Turn(Thinker):
    """One turn of a mental process."""

    def __init__(
        self, scene: Scene, voice: Speaking, process: Process, state: ProcessState, hearing: Hearing, *, streams: bool
    ) -> None:
        """Run `process` in `scene`, from `state`, with an ear for what else is heard."""
        super().__init__(scene, voice, process.name, state.process_memory)
        self._process, self._state, self._hearing, self._streams = process, state, hearing, streams

    @property
    def perception(self) -> Perception:
        """What is answered; its author is the speaker."""
        return self.recollection.perception

    @property
    def params(self) -> Mapping[str, Any]:
        """What the transition to this process, or the plan that borrowed it, gave it."""
        return self._state.params

    @property
    def feeling(self) -> Mapping[str, str]:
        """How the soul feels now, in words: mood, energy, wants, toward …; empty where the psyche is off."""
        return dict(self._scene.plan.felt.record)

    @property
    def invocation_count(self) -> int:
        """How many turns the process has run here since it was entered; 0 = this is its first."""
        return self._state.invocation_count

    @property
    def previous_process(self) -> str | None:
        """The last process here that was another."""
        return self._state.previous_process

    @property
    def pending(self) -> tuple[Perception, ...]:
        """What else waits in this conversation, oldest first, without what this turn answers."""
        return self._hearing.pending

    @property
    def interrupted(self) -> bool:
        """Something was heard here since the turn began."""
        return self._hearing.has_arrived

    @property
    def must_stop(self) -> bool:
        """The turn is to end at its next thought, because something was heard that it yields to."""
        return self.interrupted and self._process.interruption is Interruption.YIELD and not self._staged.streamed

    async def look(self) -> bool:
        """Look again at what waits; tell whether something was heard since the turn began."""
        return await self._hearing.look()

    def say(self, line: str) -> None:
        """Stage a line; it is heard after the commit, every line of the turn in one utterance."""
        if line.strip():
            self._staged.lines.append(line if isinstance(line, Words) else Words.of(line))

    async def speak(self, memory: WorkingMemory, ask: Ask[str] | None = None) -> tuple[WorkingMemory, str]:
        """Think a line and stage it; where the adapter streams, it is shown while it is thought."""
        asks = (ask or external_dialogue(),)
        await self._before(memory)
        may_stream = self._streams and not self._staged.lines
        found = await answers(self._voice, self._scene, memory, asks, streams=may_stream)
        self.say(found[0])
        return self._remembered(memory, asks, found), found[0]

    def close(self) -> None:
        """End what is planned here and what waits, until someone addresses the soul here again."""
        self._staged.closes = True

    async def _before(self, memory: WorkingMemory) -> None:
        await self._hearing.look()
        if self.must_stop:
            raise Yielded(memory)
