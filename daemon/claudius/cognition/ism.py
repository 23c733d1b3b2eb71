"""The implicit semantic machine: with a goal and a playbook, the soul chooses among a few actions until it is done.

It is off by default, because a loop costs two or more calls where a turn costs one. `problem_solving` uses it.
Source: seed 003; the process design, section 9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.asks import Ask, cognitive_step, external_dialogue, internal_monologue, readable
from claudius.cognition.function_process import Asked, Turn
from claudius.cognition.processes import Interruption, Outcome, Transition, mental_process
from claudius.cognition.prompt.function_prompts import REMEMBERED
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.working_memory import MemoryEntry, WorkingMemory
from claudius.errors import ProcessError, ToolError, Unreadable

MAX_CALLS, MAX_TOKENS, MAX_SECONDS = 12, 20_000, 120.0
"""What one turn may take in which the soul chooses its own steps."""
DONE = "DONE"
CHOSEN, SAID_CHARS = 3, 200
"""The most actions in one choice; the most characters of a reasoning or outcome in the trail."""


class End(StrEnum):
    """The reason why a machine ended."""

    DONE = "done"
    ENDED = "ended"
    TRANSITION = "transition"
    LIMIT = "limit"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    UNREADABLE = "unreadable"


class Continue(Struct, frozen=True):
    """What an action returns to continue the loop, with the memory it leaves."""

    memory: WorkingMemory


Do = Callable[[Turn, WorkingMemory], Awaitable["Continue | Outcome"]]


class Action(Struct, frozen=True):
    """One thing that the soul may choose to do."""

    name: str
    description: str
    """One line, shown to the model that chooses."""
    do: Do


def action(description: str) -> Callable[[Do], Action]:
    """Make an action of `async def name(turn, memory)`; its name is the function's."""

    def made(do: Do) -> Action:
        return Action(getattr(do, "__name__", "action"), description, do)

    return made


class IsmResult(Struct, frozen=True):
    """The result of a machine. Its memory does not contain the playbook or the trail."""

    memory: WorkingMemory
    reason: End
    transition: Transition | None = None

    @property
    def outcome(self) -> Outcome:
        """What a process returns if it has nothing to add."""
        return self.transition or self.memory


class ActionChoice(msgspec.Struct, frozen=True):
    """The model's choice of actions."""

    actions: tuple[str, ...]
    reasoning: str = ""


@cognitive_step("action_choice")
def action_choice(actions: Sequence[Action]) -> Ask[ActionChoice]:
    """Choose what to do next, from a closed list."""
    names = [one.name for one in actions]
    told = "; ".join(f"{one.name}: {one.description.rstrip('.')}" for one in actions)

    def check(choice: ActionChoice) -> str | None:
        strange = [name for name in choice.actions if name not in (*names, DONE)]
        if strange:
            return f"{strange[0]} is none of {', '.join(names)}, DONE"
        return None if 1 <= len(choice.actions) <= CHOSEN else f"choose one to {CHOSEN} actions"

    return Ask(slots={"actions": told}, schema=ActionChoice, remember=None, check=check)


async def run_ism(
    turn: Turn, memory: WorkingMemory, goal: str, playbook: str, actions: Sequence[Action], max_loops: int | None = None
) -> IsmResult:
    """Let the soul choose and act until the goal is met, an action ends the loop, or a limit is reached.

    `why` tells how often it chose, and what ended it. Raises: ProcessError for an action that returns anything but
    `Continue`, a memory or a `Transition`.
    """
    machine, end = _Machine(turn, memory, goal, playbook, actions), None
    while end is None:
        if machine.loops == (max_loops or turn.config.ism.max_loops):
            end = IsmResult(machine.memory, End.LIMIT)
        elif await turn.look():
            end = IsmResult(machine.memory, End.INTERRUPTED)
        elif await _is_spent(turn):
            end = IsmResult(machine.memory, End.BUDGET)
        else:
            end = await machine.loop()
    turn.note("ism", {"loops": machine.loops, "reason": end.reason})
    return end


async def _is_spent(turn: Turn) -> bool:
    is_spent = turn.calls >= MAX_CALLS or turn.tokens >= MAX_TOKENS or turn.seconds >= MAX_SECONDS
    return is_spent or await turn.is_over_budget()


class _Machine(Struct):
    """One run of a machine: what it knows, and how far it has come."""

    turn: Turn
    memory: WorkingMemory
    goal: str
    playbook: str
    actions: Sequence[Action]
    loops: int = 0
    trail: tuple[str, ...] = ()

    async def loop(self) -> IsmResult | None:
        """Choose once, and act. Returns the end, if this was it."""
        self.loops += 1
        try:
            _, choice = await self.turn.think(self._asked(), action_choice(self.actions))
        except Unreadable:
            return IsmResult(self.memory, End.UNREADABLE)
        if DONE in choice.actions:
            return IsmResult(self.memory, End.DONE)
        for name in choice.actions:
            chosen = next(one for one in self.actions if one.name == name)
            try:
                outcome: Any = await chosen.do(self.turn, self.memory)
            except Asked as asked:
                return IsmResult(asked.memory, End.ENDED)
            if isinstance(outcome, Transition):
                left = outcome.memory or self.memory
                return IsmResult(left, End.TRANSITION, replace(outcome, memory=left))
            if isinstance(outcome, WorkingMemory):
                return IsmResult(outcome, End.ENDED)
            if not isinstance(outcome, Continue):
                raise ProcessError(f"action {name}", f"returned a {type(outcome).__name__}")
            self.trail = (*self.trail, _told(self.loops, name, choice, self.memory, outcome.memory))
            self.memory = outcome.memory
        return None

    def _asked(self) -> WorkingMemory:
        """Return the memory for the question what to do next; it is dropped after it."""
        lines = [("goal", self.goal), ("playbook", self.playbook)]
        notes = [MemoryEntry(id=f"ism/{name}", role="system", content=text) for name, text in lines if text]
        walked = [MemoryEntry(id=f"ism/trail/{n}", role="user", content=line) for n, line in enumerate(self.trail)]
        asked = self.memory.with_region("playbook", *notes)
        return asked.with_region("trail", *walked) if walked else asked


def _told(loop: int, name: str, choice: ActionChoice, before: WorkingMemory, after: WorkingMemory) -> str:
    known = {entry.id for entry in before.entries}
    came = "; ".join(entry.content for entry in after.entries if entry.id not in known)
    outcome = " ".join(came.split())[:SAID_CHARS] or "nothing new"
    return f"{loop}. chose {readable(choice.actions)} because {choice.reasoning[:SAID_CHARS]} · {name}: {outcome}"


@action("Think about what is really being asked, and what would settle it.")
async def think(turn: Turn, memory: WorkingMemory) -> Continue:
    """Think in private."""
    memory, _ = await turn.think(
        memory, internal_monologue("What is the question behind it, and what would settle it?")
    )
    return Continue(memory)


@action("Search your own memory for what was said about it before.")
async def recall(turn: Turn, memory: WorkingMemory) -> Continue:
    """Look for what was said of it, as far as it may be shown here."""
    found = await turn.recall(turn.perception.text)
    line = "\n".join(found) or "Nothing of it comes back."
    return Continue(memory.note(line, region=REMEMBERED, role="user"))


class ToolWish(msgspec.Struct, frozen=True):
    """The model's request for a tool."""

    tool: str
    args: dict[str, Any] = {}


@cognitive_step(TOOL_USE)
def tool_use(tools: Sequence[str]) -> Ask[ToolWish]:
    """Choose one of the tools that may be used here, and its arguments."""
    return Ask(slots={"instruction": f"Tools here: {', '.join(tools)}."}, schema=ToolWish, remember=None)


@action("Use one of your tools: find out or work out what you do not know.")
async def research(turn: Turn, memory: WorkingMemory) -> Continue:
    """Use a tool; a question for consent ends the machine, and what came of it continues it."""
    try:
        _, wish = await turn.think(memory, tool_use(turn.tools))
        memory, _ = await turn.use(memory, wish.tool, **wish.args)
    except (ToolError, Unreadable) as error:
        memory = memory.note(error.message, region="research", role="user")
    return Continue(memory)


@action("Say aloud what you have found, or ask the one question that an answer hangs on; then wait for the reply.")
async def respond(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
    """Speak, and wait."""
    memory, _ = await turn.speak(memory, external_dialogue(), does=True)
    return memory


@action("Stop treating it as a problem: it is solved, it was none, or it is beyond you. Say so.")
async def hand_over(turn: Turn, memory: WorkingMemory) -> Transition:
    """Go back to ordinary talk, at once."""
    del turn
    return Transition(memory, "main_process", execute_now=True)


@mental_process(
    interruption=Interruption.YIELD, linger=timedelta(hours=8), may_execute_now=True, next=("main_process",)
)
async def problem_solving(turn: Turn, memory: WorkingMemory) -> Outcome:
    """Let the soul choose its own way to an answer."""
    actions = (think, recall, *((research,) if turn.tools else ()), respond, hand_over)
    end = await run_ism(turn, memory, turn.text("goal"), turn.text("playbook"), actions)
    stay = end.transition or end.reason in (End.INTERRUPTED, End.ENDED)
    return end.outcome if stay else Transition(end.memory, "main_process")
