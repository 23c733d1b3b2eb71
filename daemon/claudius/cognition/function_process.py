"""Provide the API that a process function sees: think, say, schedule, keep values and look for new perceptions.

Nothing a function does takes effect before its turn is committed. Source: the process design, sections 2, 3, 6 and 8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, TypeVar, overload

from claudius.cognition.acts import ACTS, ReadActs, RefusedAct, read_act
from claudius.cognition.asking import answers, keep_acts, known_to
from claudius.cognition.asks import QUERY, SPEECH, THOUGHT, Ask, acts, external_dialogue
from claudius.cognition.mind import Stage
from claudius.cognition.proactive import PROCESS as PROACTIVE
from claudius.cognition.processes import Interruption, sections
from claudius.cognition.prompt.rounds import used_entries
from claudius.cognition.tool_use import ending_line, given, has_ended, used
from claudius.cognition.turn_state import TurnState, Words, kept_json
from claudius.cognition.working_memory import MemoryEntry, Role, WorkingMemory
from claudius.config.schema import Config
from claudius.perception import Cause, Perception, cause_of
from claudius.recollection import EntryType, Recollection

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

_TYPES = {THOUGHT: EntryType.INTERNAL_MONOLOGUE, SPEECH: EntryType.EXTERNAL_DIALOG}


class TurnEnded(Exception):
    """Raised to end the turn with the memory that it has so far."""

    def __init__(self, memory: WorkingMemory) -> None:
        super().__init__()
        self.memory = memory


class Yielded(TurnEnded):
    """Raised to stop the turn for a new perception; its thoughts are kept."""


class Asked(TurnEnded):
    """Raised to end the turn with the question for a tool, or with the line that says what became of it."""


def internal(text: str) -> str:
    """Word an internal perception, in the soul's own voice. Pure."""
    return text


class Thinker:
    """What every programmatic mind can do: think, schedule, keep. A `Turn` also speaks; a `Reflection` does not."""

    _folder = "processes"
    """The soul's folder that holds its text."""

    def __init__(self, state: TurnState, name: str, kept: Mapping[str, Any]) -> None:
        """Think within a turn for a process or subprocess called `name`; `kept` holds its earlier values."""
        self._state, self._name = state, name
        self.source = state.source()
        """What every call of this thinker is built from."""
        self._kept = dict(kept)
        self._asked, self._began_s = 0, monotonic()

    @property
    def recollection(self) -> Recollection:
        """Everything that was recalled."""
        return self._state.recollection

    @property
    def now(self) -> datetime:
        """The instant of the turn, UTC; the same in a re-run."""
        return self._state.recollection.now

    @property
    def kept(self) -> Mapping[str, Any]:
        """The values kept so far by this process."""
        return dict(self._kept)

    @property
    def config(self) -> Config:
        """The current settings."""
        return self._state.config

    @property
    def seconds(self) -> float:
        """How long the turn has taken so far."""
        return monotonic() - self._began_s

    @property
    def calls(self) -> int:
        """The number of model calls made."""
        return len(self._state.calls)

    @property
    def tokens(self) -> int:
        """The number of input and output tokens used, without what came from the provider's cache."""
        return self._state.tokens

    def keep(self, **values: Any) -> None:
        """Keep JSON values from turn to turn; None removes one. Raises: TypeError for a value that is not JSON."""
        self._kept = {name: one for name, one in (self._kept | kept_json(values)).items() if one is not None}
        self._state.kept = dict(self._kept)

    def note(self, name: str, value: object) -> None:
        """Have `why` tell a JSON value among the changes of the turn."""
        self._state.noted[name] = value

    def text(self, name: str) -> str:
        """Return the section under a heading of its own text; empty if there is none."""
        return sections(self._state.soul.files.get(f"{self._folder}/{self._name}.md")).get(name, "")

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
        """Ask for one value, or for several in one call. Returns a memory with the remembered lines, and the value(s).

        The memory passed in is unchanged. Raises: Unreadable, ProviderError.
        """
        if not asks:
            raise TypeError("think needs at least one ask")
        await self._before(memory)
        found = await answers(self._state, self.source, memory, asks)
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
        """Schedule an internal perception and return its id. It is written when the turn commits.

        `after` or `at` says when; `process` is borrowed for it; `asked`: the speaker asked for it, so it comes however
        late and is owed a line. A schedule made while answering somebody may speak when due; any other, and any for the
        process `proactive`, must pass the proactive rules. Raises: ValueError if the time is given twice, not at all,
        or without a time zone.
        """
        if (after is None) == (at is None):
            raise ValueError("say after=… or at=…, one of them")
        instant = at or self.now + (after or timedelta(0))
        if instant.tzinfo is None:
            raise ValueError("a due time is an aware instant")
        known = self.recollection
        speaker = known.speaker.person if known.speaker else ""
        person = known.perception.person if known.perceptions else speaker
        causes = [cause_of(one, known.participation, known.now) for one in known.perceptions]
        made = self._state.schedule(
            perception,
            at=instant,
            key=key,
            process=process,
            params=kept_json(params or {}),
            audience=known.audience,
            person=person,
            asked_by=person if asked else "",
            in_answer=process != PROACTIVE and Cause.ANSWERS in causes,
        )
        return made.id

    def cancel(self, schedule_id: int) -> None:
        """Cancel a schedule."""
        self._state.schedules[:] = [one for one in self._state.schedules if one.id != schedule_id]
        self._state.cancels.append(schedule_id)

    async def recall(self, words: str, *, limit: int = 8) -> list[str]:
        """Search the soul's memory, limited to what may be shown here. Best lines first."""
        found = self._state.mind.store.moments.search(self.recollection.perception, words, limit)
        return [f"{one.name or 'Claudius'}: {one.text}" for one in found]

    async def is_over_budget(self) -> bool:
        """Return whether a budget is spent."""
        return self._state.mind.stage(self.recollection.perception) is Stage.REFUSING

    async def _before(self, memory: WorkingMemory) -> None:
        """Run the checks that precede each thought."""

    def _remembered(self, memory: WorkingMemory, asks: tuple[Ask[Any], ...], found: list[Any]) -> WorkingMemory:
        for ask, value in zip(asks, found, strict=True):
            if ask.remember is not None:
                memory = memory + self._entry(ask, value, ask.remember(value))
        return memory

    def _entry(self, ask: Ask[Any], value: Any, line: str) -> MemoryEntry:
        self._asked += 1
        kind = _TYPES.get(ask.step, EntryType.MENTAL_QUERY)
        metadata: dict[str, Any] = {}
        if kind is EntryType.MENTAL_QUERY:
            query = ACTS if ask.step == ACTS else QUERY
            metadata = {"query": query, "step": ask.step} | ({"result": value} if isinstance(value, bool) else {})
        return MemoryEntry(
            id=f"{self.recollection.turn}+{self._name}+{len(self._state.calls)}.{self._asked}",
            role="assistant",
            content=str(line),
            entry_type=kind,
            verb=value.verb if isinstance(value, Words) else None,
            metadata=metadata,
            at=self.now,
        )


class Turn(Thinker):
    """One turn of a mental process."""

    def __init__(self, state: TurnState) -> None:
        super().__init__(state, state.process.name, state.process_state.process_memory)
        self._hearing = state.surface.hearing

    @property
    def perception(self) -> Perception:
        """The perception to answer; its author is the speaker."""
        return self.recollection.perception

    @property
    def params(self) -> Mapping[str, Any]:
        """The params given by the transition to this process, or by the schedule that borrowed it."""
        return self._state.process_state.params

    @property
    def feeling(self) -> Mapping[str, str]:
        """How the soul feels now, in words: mood, energy, wants, toward …; empty if the psyche is off."""
        return dict(self._state.plan.felt.record)

    @property
    def invocation_count(self) -> int:
        """How many turns the process has run here since it was entered; 0 = this is the first."""
        return self._state.process_state.invocation_count

    @property
    def previous_process(self) -> str | None:
        """The last different process in this conversation."""
        return self._state.process_state.previous_process

    @property
    def pending(self) -> tuple[Perception, ...]:
        """The other perceptions waiting in this conversation, oldest first, without those that this turn answers."""
        return self._hearing.pending

    @property
    def interrupted(self) -> bool:
        """Whether a new perception arrived here since the turn began."""
        return self._hearing.arrived.is_set()

    @property
    def must_stop(self) -> bool:
        """Whether the turn must end at its next thought, because it yields to a new perception."""
        return self.interrupted and self._state.process.interruption is Interruption.YIELD and not self._state.streamed

    async def look(self) -> bool:
        """Check for new perceptions. Returns whether one arrived since the turn began."""
        return await self._hearing.look()

    def say(self, line: str) -> None:
        """Stage a line. All lines of the turn are sent as one utterance after the commit."""
        if line.strip():
            self._state.lines.append(line if isinstance(line, Words) else Words.of(line))

    async def speak(
        self, memory: WorkingMemory, ask: Ask[str] | None = None, *, does: bool = False
    ) -> tuple[WorkingMemory, str]:
        """Ask for a line and stage it; if the adapter streams, it is shown while it arrives.

        `does`: ask in the same call what is to be done beyond the words: plans, facts, matters, a zone.
        """
        asks: tuple[Ask[Any], ...] = (*((acts(),) if does else ()), ask or external_dialogue())
        await self._before(memory)
        found = await answers(self._state, self.source, memory, asks, streams=True)
        self.say(found[-1])
        return self._remembered(memory, asks, found), found[-1]

    def act(self, memory: WorkingMemory, do: str, **arguments: Any) -> WorkingMemory:
        """Do one act beyond the words, such as `turn.act(memory, "remind", at="2026-11-27T09:00", text="call")`.

        It is checked like one that a model writes, and booked with the turn. Raises: ValueError with the reason.
        """
        done = read_act(do, known_to(self._state), **arguments)
        if isinstance(done, RefusedAct):
            raise ValueError(f"{do}: {done.reason}")
        written = json.dumps({"do": do, **arguments}, ensure_ascii=False, default=str)
        found = ReadActs(written=written, done=(done,))
        keep_acts(self._state, found)
        return memory + self._entry(acts(), found, written)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that may be used here, by this speaker, now, as a prompt names them."""
        return self._state.settings.tools

    async def use(self, memory: WorkingMemory, name: str, /, **args: Any) -> tuple[WorkingMemory, str]:
        """Use a tool. Returns a memory with what was asked and what it gave, and that.

        Raises: ToolUnknown, ToolRefused, ToolFailed, ToolTimedOut; Asked, which ends the turn, where somebody must
        allow it, or where it goes on by itself.
        """
        await self._before(memory)
        done = await used(self._state, name, args)
        count = len(self._state.used)
        for n, entry in enumerate(used_entries(done, self.now)):
            role: Role = "user" if entry.entry_type is EntryType.TOOL_RESULT else "assistant"
            memory = memory + MemoryEntry.of(entry, f"{self.recollection.turn}+{self._name}+tool{count}.{n}", role)
        if has_ended(self._state):
            self.say(Words.of(ending_line(self._state)))
            raise Asked(memory)
        return memory, given(done)

    def close(self) -> None:
        """Drop this conversation's schedules and waiting perceptions until someone addresses the soul here again."""
        self._state.closes = True

    async def _before(self, memory: WorkingMemory) -> None:
        await self._hearing.look()
        if self.must_stop:
            raise Yielded(memory)
