"""A soul with one tool, in a process of its own that ends by SIGKILL at a named point of a call; for T13.

    python tests/handy.py

reads `HOME FLOW CLASS POINT [POSTGRES_URL]` a line, lives once for each in a fork of its own, and prints how that ended.
FLOW is `direct` (its turn does the call) or `asked` (a person allows it). It says one line, allows what waits, and ends
in good order once nothing is under way. What happened outside of it is in files of HOME, one line each: `effects`,
`posts`, `calls`, `settled`.
"""

import asyncio
import os
import signal
import sys
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
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import JSON, Asks, Card, Runs, ToolCall
from driven import reply
from minds import lent

ANA = "rehearsal:t:ana"
PLACE = "rehearsal:t:D-ana:"
SAID = "It says hello."
UNKNOWN = "I started test.it and do not know whether it happened. Look before you ask me again."
FAILED = "It gave nothing."
_DOING = (
    "while_starting", "before_start", "after_start", "after_effect", "before_end", "after_end", "before_answer", "after_answer",
)  # fmt: skip
POINTS = {
    "direct": _DOING,
    "asked": ("before_asking", "after_asking", "after_post", "before_decide", "after_decide", *_DOING),
}
"""Where a process may be killed, in the order of a call's life; the commits are `asking` and `answer`."""
OPEN = ("after_start", "after_effect", "before_end")
"""The points at which a call is started and its end is not kept."""


def kill_at(point: str) -> Callable[[str], None]:
    """Return what is to be told of each step: at the point the process ends."""

    def at(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def note(path: Path, line: str) -> None:
    """Append a line, durably: what happened in the world."""
    with path.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def around(kind: type, method: str, name: Callable[[Any], str], at: Callable[[str], None]) -> None:
    """Tell `at` before and after each call of a method; `name`: what it is called, by its first argument."""
    original: Callable[..., Awaitable[Any]] = getattr(kind, method)

    async def told(of: Any, first: Any, *words: Any, **more: Any) -> Any:
        """Do it between two points."""
        at(f"before_{name(first)}")
        found = await original(of, first, *words, **more)
        at(f"after_{name(first)}")
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

    async def settles(self, conversation: str, receipt: str, card: Card) -> None:  # noqa: ARG002 - the protocol's
        """Show the verdict."""
        note(self.root / "settled", f"{receipt} {card.verdict}")
        self.at("after_settles")

    async def answer(self, perception: Perception, text: str) -> None:
        """Tell no one."""


async def live(root: Path, flow: str, cls: str, point: str, url: str) -> None:
    """Live once."""
    at = kill_at(point)

    async def run(_: JSON, call: ToolCall) -> str:
        """Leave a line in the world."""
        note(root / "effects", call.id)
        at("after_effect")
        return "hello"

    async def ready() -> None:
        """Have its server run."""
        at("while_starting")

    tool = lent("test.it", cls, run, ready=ready)
    decision = Asks((ANA,)) if flow == "asked" else Runs("test")

    async def decided(*_: object) -> Asks | Runs:
        """Decide as the flow says."""
        return decision

    tool_use._decided = decided  # who may do what is not what is tested here
    for name in ("start", "end", "decide"):
        around(CallStore, name, lambda _, name=name: name, at)
    around(TurnStore, "commit", lambda intent: "asking" if intent.asking else "answer", at)

    def speak(request: Request) -> str:
        """Ask for the tool until it has ended."""
        note(root / "calls", request.purpose)
        for sign, said in (('"hello"', SAID), ('"failed"', FAILED)):
            if sign in request.tail:
                return reply(said)
        return '<tool_use>{"tool": "test.it", "args": {}}</tool_use>'

    store = None
    if url:
        from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

        store = PostgresStore(StorePlace(url), times=LeaseTimes(lease_s=3.0, renew_s=0.5, look_s=0.05))
    network, owner = Network(root=root, at=at), {"CLAUDIUS_OWNERS": ANA}
    async with alive(
        Home(root), Scripted(default=speak), adapter=network, tools=lambda: (tool,), store=store, settings=owner
    ) as soul:
        while not network.is_listening:
            await asyncio.sleep(0.01)
        await network.hear("Do it.", person="ana", conversation=PLACE, key="the line")
        await allowed(soul, network)


async def allowed(soul: Alive, network: Network) -> None:
    """Allow what waits, until the soul has said how the call ended."""
    while True:
        await soul.idle()
        kept = soul.mind.store.calls
        waiting = kept.waiting()
        for call in waiting:
            await network.hear(f"!allow {call.id}", person="ana", conversation=PLACE)
        path = network.root / "posts"
        posts = path.read_text() if path.exists() else ""
        if not waiting and not kept.decided_cards() and any(one in posts for one in (SAID, FAILED, UNKNOWN)):
            break
        await asyncio.sleep(0.02)
    await soul.idle()


def serve() -> None:
    """Live once a line, in a process of its own that starts with everything imported."""
    for line in sys.stdin:
        home, flow, cls, point, url = (*line.split(), "")[:5]
        child = os.fork()
        if not child:
            signal.alarm(90)
            Home(Path(home)).create()
            asyncio.run(live(Path(home), flow, cls, point, url))
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
