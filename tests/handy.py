"""A soul with one tool, in a process of its own that ends by SIGKILL at a named point of a call; for T13.

    python tests/handy.py HOME FLOW CLASS POINT [POSTGRES_URL]

FLOW is `direct` (its turn does the call) or `asked` (somebody allows it). It says one line, allows what waits, and ends
in good order once nothing is under way. What happened outside of it is in files of HOME, one line each: `effects`,
`posts`, `calls`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from claudius.cognition import tool_use
from claudius.home import Home
from claudius.intent import Utterance
from claudius.memory.calls import CallStore
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.memory.turns import TurnStore
from claudius.perception import Perception
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import JSON, Asks, Caller, Runs, Tool, ToolClass
from driven import reply

ANA = "rehearsal:t:ana"
PLACE = "rehearsal:t:D-ana:"
SAID = "It says hello."
UNKNOWN = "I started test.it and do not know whether it happened. Look before you ask me again."
POINTS = {
    "direct": ("before_start_1", "after_start_1", "after_effect_1", "before_end_1", "after_end_1", "before_commit_1",
               "after_commit_1"),
    "asked": ("before_commit_1", "after_commit_1", "after_post_1", "before_decide_1", "after_decide_1", "before_start_1",
              "after_start_1", "after_effect_1", "before_end_1", "after_end_1", "before_commit_2", "after_commit_2"),
}  # fmt: skip
"""Where a process may be killed, in the order of a call's life."""


def kill_at(point: str) -> Callable[[str], None]:
    """Return what is to be told of each step: at the n-th `NAME` of `NAME_n` the process ends."""
    met: Counter[str] = Counter()

    def at(name: str) -> None:
        met[name] += 1
        if point == f"{name}_{met[name]}":
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def note(path: Path, line: str) -> None:
    """Append a line, durably: what happened in the world."""
    with path.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def around(kind: type, method: str, name: str, at: Callable[[str], None]) -> None:
    """Tell `at` before and after each call of a method."""
    original: Callable[..., Awaitable[Any]] = getattr(kind, method)

    async def told(*words: Any, **more: Any) -> Any:
        """Do it between two points."""
        at(f"before_{name}")
        found = await original(*words, **more)
        at(f"after_{name}")
        return found

    setattr(kind, method, told)


@dataclass(slots=True)
class Network(RehearsalAdapter):
    """A network whose posts outlive the process."""

    root: Path = Path()
    at: Callable[[str], None] = lambda _: None

    async def speak(self, utterance: Utterance) -> str:
        """Post a part."""
        note(self.root / "posts", f"{utterance.key} {' '.join(utterance.body.split())}")
        self.at("after_post")
        return f"r:{utterance.key}"

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:  # noqa: ARG002 - the protocol's
        """Find a part among the posts."""
        path = self.root / "posts"
        posts = path.read_text().splitlines() if path.exists() else []
        return f"r:{utterance.key}" if any(one.startswith(utterance.key) for one in posts) else None

    async def answer(self, perception: Perception, text: str) -> None:
        """Tell nobody."""


async def live(root: Path, flow: str, cls: str, point: str, url: str) -> None:
    """Live once."""
    at = kill_at(point)

    async def run(_: JSON, caller: Caller) -> str:
        """Leave a line in the world."""
        note(root / "effects", caller.call)
        at("after_effect")
        return "hello"

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tool = Tool(name="test.it", purpose="Does it.", cls=ToolClass(cls), schema=schema, run=run)
    decision = Asks((ANA,)) if flow == "asked" else Runs("test")

    async def decided(*_: object) -> Asks | Runs:
        """Decide as the flow says."""
        return decision

    tool_use._decided = decided  # who may do what is not what is tested here
    around(CallStore, "start", "start", at)
    around(CallStore, "end", "end", at)
    around(CallStore, "decide", "decide", at)
    around(TurnStore, "commit", "commit", at)

    def speak(request: Request) -> str:
        """Ask for the tool until its result is there."""
        note(root / "calls", request.purpose)
        is_told = "hello" in request.tail
        return reply(SAID) if is_told else '<tool_use>{"tool": "test.it", "args": {}}</tool_use>'

    store = None
    if url:
        from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

        store = PostgresStore(StorePlace(url), times=LeaseTimes(lease_s=4.0, renew_s=1.0, look_s=0.05))
    network, owner = Network(root=root, at=at), {"CLAUDIUS_OWNERS": ANA}
    async with alive(
        Home(root), Scripted(default=speak), adapter=network, tools=lambda: (tool,), store=store, settings=owner
    ) as soul:
        while not network.is_listening:
            await asyncio.sleep(0.01)
        await network.hear("Do it.", person="ana", conversation=PLACE, key="the line")
        kept = soul.mind.store.calls
        while True:
            await soul.idle()
            waiting = kept.waiting()
            for call in waiting:
                await network.hear(f"!allow {call.id}", person="ana", conversation=PLACE)
            posts = (root / "posts").read_text() if (root / "posts").exists() else ""
            if not waiting and (SAID in posts or UNKNOWN in posts):
                break
            await asyncio.sleep(0.02)
        await soul.idle()


if __name__ == "__main__":
    home, flow, cls, point, url = (*sys.argv[1:5], (*sys.argv, "")[5])
    Home(Path(home)).create()
    asyncio.run(live(Path(home), flow, cls, point, url))
