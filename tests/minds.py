"""Helpers of the tests of mental processes: a soul with a test's own processes, a provider that answers by tag."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

from claudius.cognition import processes
from claudius.cognition.craft import Turn, WorkingMemory, external_dialogue, internal_monologue
from claudius.cognition.processes import Process, mental_process
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import Runner, Tool, ToolClass

DM = "rehearsal:t:dm-ana:"
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SMALL_TALK = (
    "The soup at the corner was pea with mint.",
    "My bus took the long way round the harbour.",
    "They painted the shelter by the library green.",
    "A pigeon rode along for two stops.",
    "Tomorrow the canteen does pumpkin with ginger.",
    "Our driver whistled something by Schubert.",
    "The ticket machine swallowed a coin.",
    "I like barley in it, and plenty of pepper.",
    "Line nine has those old wooden benches.",
    "Somebody left an umbrella shaped like a duck.",
    "The kettle at work leaks onto the tiles.",
    "Rain again, and the windows were steamed up.",
    "A child counted every lamp along the quay.",
    "Leeks were cheap, so it is leek and potato.",
)


class Clock:
    """A clock that a test sets, for the wall and for the machine's own time."""

    def __init__(self, at: datetime = START) -> None:
        self.now = self.began = at

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def running(self) -> float:
        """Return how long the machine has been running."""
        return (self.now - self.began).total_seconds()

    def forward(self, **by: float) -> None:
        """Advance the clock."""
        self.now += timedelta(**by)


class Wall:
    """A clock that a test moves: `passes` moves the machine's time as well; setting `now` changes only the clock."""

    def __init__(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)
        self.lived = 0.0

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def running(self) -> float:
        """Return how long the machine has run."""
        return self.lived

    def passes(self, **by: float) -> None:
        """Advance the clock."""
        self.now += timedelta(**by)
        self.lived += timedelta(**by).total_seconds()


def wanted(request: Request) -> list[str]:
    """Return the tags that a request asks for, in order."""
    line = request.tail.rpartition("## This Turn\n")[2].partition("\n")[0]
    tags = line.removeprefix("Write in this order: ").rstrip(".")
    return [tag for part in tags.split(";") for tag in part.replace("if true:", "").replace(",", " ").split()]


def heard(request: Request) -> list[str]:
    """Return the texts of the messages that a request is about."""
    text = "\n".join([*(one.content for one in request.history[-2:]), request.tail])
    block = text.rpartition("## Current Message\n")[2]
    lines = [line for line in block.splitlines() if line.startswith('{"kind"')]
    return [json.loads(line)["text"] for line in lines if json.loads(line)["kind"] != "draft"]


LANDS = {
    "useless": "hurtful, strong",
    "brilliant": "kindness, strong",
    "worried": "worry, strong",
    **dict.fromkeys(("died", "I lost my", "broke up"), "grief, strong"),
}
"""How the lines of these tests land on an obedient model, by a word of theirs."""


def lands(request: Request) -> str:
    """Appraise what was said last."""
    heard = [one.content for one in request.history if one.role == "user"][-1:]
    said = "".join([*heard, request.tail]).rpartition('"kind":"message"')[2]
    return next((kind for word, kind in LANDS.items() if word in said), "nothing")


def by_tag(**sections: str | Callable[[Request], str]) -> Callable[[Request], str]:
    """Answer each requested tag with its text, as a simple provider would; a callable is called for each request."""

    def reply(request: Request) -> str:
        given = {"internal_monologue": "It was asked.", "appraisal": lands, "acts": "none"}
        given |= {"external_dialogue": "So it is.", **sections}
        parts = []
        for tag in wanted(request):
            text = given.get(tag, "false")
            parts.append(f"<{tag}>{text(request) if callable(text) else text}</{tag}>")
        return "\n".join(parts)

    return reply


@contextmanager
def registered(**made: Process | ModuleType) -> Iterator[None]:
    """Register the test's own processes in PROCESSES; they replace those of the same name until the block ends."""
    module = ModuleType("minds_of_a_test")
    before = dict(processes.PROCESSES)
    sys.modules[module.__name__] = module
    for name, one in made.items():
        if isinstance(one, ModuleType):
            sys.modules[f"{module.__name__}.{name}"] = one
            processes.PROCESSES[name] = f"{module.__name__}.{name}"
        else:
            setattr(module, name, one)
            processes.PROCESSES[name] = f"{module.__name__}:{name}"
    _forget()
    try:
        yield
    finally:
        processes.PROCESSES.clear()
        processes.PROCESSES.update(before)
        for name in [name for name in sys.modules if name.partition(".")[0] == module.__name__]:
            del sys.modules[name]
        _forget()


def _forget() -> None:
    processes.process.cache_clear()


def declarative(**options: Any) -> ModuleType:
    """Return a module in the form of a declarative process."""
    module = ModuleType("declarative")
    module.__doc__ = "a process of a test."
    values: dict[str, Any] = {"COGNITIVE_STEPS": ("internal_monologue", "external_dialogue")}
    for name, value in (values | options).items():
        setattr(module, name, value)
    return module


@asynccontextmanager
async def minds(
    home: Home,
    voice: Scripted,
    *,
    clock: Callable[[], datetime] | None = None,
    settings: Mapping[str, str] | None = None,
    clean: bool = True,
    network: RehearsalAdapter | None = None,
    **made: Process | ModuleType,
) -> AsyncIterator[Alive]:
    """Start a soul with the shipped processes and those of the test."""
    with registered(**made):
        async with alive(home, voice, clock=clock, settings=settings, clean=clean, network=network) as soul:
            yield soul


def lent(name: str, cls: str, run: Runner, *args: str, **rest: Any) -> Tool:
    """Return a tool whose arguments are texts, all of them needed."""
    texts = {one: {"type": "string"} for one in args}
    schema = {"type": "object", "properties": texts, "required": [*args], "additionalProperties": False}
    return Tool(name=name, purpose="Does it.", cls=ToolClass(cls), schema=schema, run=run, **rest)


async def say(soul: Alive, *lines: str, **where: Any) -> list[str]:
    """Say lines one after the other, waiting for an answer to each; return every reply so far."""
    for line in lines:
        answered = sum(one.is_complete for one in soul.network.visible)
        await soul.network.hear(line, **where)
        await soul.network.until_visible(answered + 1)
    await soul.idle()
    return [one.text for one in soul.network.visible]


async def answer(soul: Alive, line: str, **where: Any) -> str:
    """Say one line and return its answer."""
    return (await say(soul, line, **where))[-1]


async def thinking(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
    """Think once and then answer: two calls of a function."""
    memory, _ = await turn.think(memory, internal_monologue())
    memory, line = await turn.think(memory, external_dialogue())
    turn.say(line)
    return memory


def both(run: Any, **options: Any) -> dict[str, Any]:
    """Replace the entry processes with a function."""
    made = mental_process(**options)(run)
    return {"greeting": made, "main_process": made}


async def converse(soul: Alive, *lines: str) -> list[str]:
    """Say lines one after the other, waiting for an answer to each; return every reply so far."""
    for line in lines:
        answered = len(soul.network.visible)
        await soul.network.hear(line)
        await soul.network.until_visible(answered + 1)
    return [one.text for one in soul.network.visible]


async def until(holds: Callable[[], object], within_s: float = 30.0) -> None:
    """Poll until `holds()` is true. Raises: TimeoutError."""
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.002)


def standing(soul: Alive, conversation: str = DM) -> dict[str, Any]:
    """Return the state of a conversation, including its entries."""
    return dict(soul.records().conversation(conversation) or {})
