"""The stages of the small networks: a terminal, and the shipped network in memory. They can do less than chat can."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from claudius.adapters.terminal import TerminalAdapter
from claudius.adapters.terminal_identity import own_person
from claudius.runtime.adapter import Adapter
from claudius.runtime.control import Connection
from claudius.testing.adapter_contract.ground import PATIENCE_S
from claudius.testing.adapter_contract.stage import ANA, CHANNEL, DM, Shown, Trouble
from claudius.testing.rehearsal_adapter import RehearsalAdapter


class Small:
    """What none of them can do; a case that needs it says so, and is not run."""

    can: frozenset[str] = frozenset()

    def seen(self, text: str) -> str:
        """Encode nothing."""
        return text

    async def say_as_us(self, where: str, text: str) -> None:
        """Nobody else speaks for us here."""

    async def double(self, events: int) -> None:
        """Bring nothing twice."""

    async def lose_answer(self, *, is_applied: bool) -> None:
        """Lose no answer."""

    async def edit(self, where: str, message: str, text: str, *, thread: str = "", calls: bool = False) -> None:
        """Nothing can be changed."""

    async def unfurl(self, where: str, message: str, *, thread: str = "") -> None:
        """Nothing unfolds."""

    async def delete(self, where: str, messages: Sequence[str], *, thread: str = "") -> None:
        """Nothing can be taken down."""

    async def react(
        self, where: str, message: str, emoji: str, *, by: str = ANA, thread: str = "", is_on: bool = True
    ) -> None:
        """There are no signs."""

    async def upload(
        self,
        where: str,
        name: str,
        content: bytes,
        mimetype: str,
        *,
        text: str = "",
        calls: bool = False,
    ) -> str:
        """There are no files."""
        raise NotImplementedError(name)

    async def begin_thread(self, message: str) -> str:
        """There are no threads."""
        raise NotImplementedError(message)

    async def refuse_history(self) -> None:
        """There is no history."""

    async def meet(self, who: str) -> None:
        """Nobody else comes."""

    async def hold(self) -> None:
        """Everything is told as it is said."""

    async def release(self) -> None:
        """Nothing is held."""

    async def trouble(self, what: Trouble) -> None:
        """No harm is done."""

    async def command(self, where: str, word: str) -> None:
        """There are no commands."""

    async def told(self) -> list[str]:
        """There are no commands."""
        return []

    async def is_quiet(self) -> bool:
        """Nobody is notified."""
        return True

    async def visible(self) -> list[Shown]:
        """Give what was shown."""
        raise NotImplementedError

    async def until_visible(self, count: int) -> list[Shown]:
        """Wait for so many."""
        async with asyncio.timeout(PATIENCE_S):
            while len(await self.visible()) < count:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)
        return await self.visible()

    async def until_told(self) -> None:
        """Everything is told as it is said."""


@dataclass
class TerminalStage(Small):
    """People at terminals: each sits at a connection of their own. `make` gives the adapter that they talk to."""

    name: str = "terminal"
    own_person: str = field(default_factory=own_person)
    _adapter: TerminalAdapter | None = None
    _open: dict[str, Connection] = field(default_factory=dict)
    _behind: list[Connection] = field(default_factory=list)
    """The adapter's ends."""
    _shown: list[Shown] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def make(self) -> Adapter:
        """Make an adapter; whoever speaks from now on speaks to it."""
        self._adapter = TerminalAdapter(lambda: datetime.now(UTC))
        return self._adapter

    async def say(
        self,
        where: str,
        text: str,
        *,
        by: str = ANA,
        thread: str = "",  # noqa: ARG002 - the stage's signature
        calls: bool = False,  # noqa: ARG002 - as above
        deliver: bool = True,  # noqa: ARG002 - as above
    ) -> str:
        """Type a line, in a conversation of one's own where it is not the direct one."""
        line = str(uuid4())
        with suppress(ConnectionError):
            await (await self._at(where, by)).send({"op": "say", "id": line, "text": text})
        return line

    async def visible(self) -> list[Shown]:
        """Give what the terminals showed."""
        return list(self._shown)

    async def close(self) -> None:
        """Hang up."""
        for connection in (*self._open.values(), *self._behind):
            await connection.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _at(self, where: str, by: str) -> Connection:
        if where not in self._open:
            assert self._adapter is not None
            ours, theirs = socket.socketpair()
            hello = {"conversation": "" if where == DM else by, "as": "" if by == ANA else by}
            self._open[where] = Connection(*await asyncio.open_connection(sock=ours))
            server = Connection(*await asyncio.open_connection(sock=theirs))
            self._behind.append(server)
            self._tasks += [
                asyncio.create_task(self._adapter.chat(server, hello)),
                asyncio.create_task(self._watch(where, self._open[where])),
            ]
        return self._open[where]

    async def _watch(self, where: str, connection: Connection) -> None:
        with suppress(ConnectionError):
            while (frame := await connection.receive()) is not None:
                if frame.get("event") == "speech":
                    self._shown.append(Shown(where, "", frame["body"], f"shown:{frame['key']}"))
                    await connection.send({"op": "shown", "key": frame["key"]})


@dataclass
class RehearsalStage(Small):
    """The network in memory, as a stranger's adapter would be tested."""

    name: str = "rehearsal"
    own_person: str = "rehearsal:t:ana"
    _adapter: RehearsalAdapter | None = None
    _tasks: set[asyncio.Task[object]] = field(default_factory=set)

    def make(self) -> Adapter:
        """Make an adapter; whoever speaks from now on speaks to it."""
        self._adapter = RehearsalAdapter()
        return self._adapter

    async def say(
        self,
        where: str,
        text: str,
        *,
        by: str = ANA,
        thread: str = "",  # noqa: ARG002 - the stage's signature
        calls: bool = False,  # noqa: ARG002 - as above
        deliver: bool = True,  # noqa: ARG002 - as above
    ) -> str:
        """Say something; whoever says it does not wait until it is kept."""
        assert self._adapter is not None
        key = f"rehearsal:{uuid4()}"
        town = "" if where == DM else "rehearsal:t:town:"
        if self._adapter.is_listening:
            said = self._adapter.hear(text, person=by, key=key, conversation=town, is_shared=bool(town))
            task: asyncio.Task[object] = asyncio.create_task(said)
            self._tasks.add(task)
            await asyncio.sleep(0)
        return key

    async def visible(self) -> list[Shown]:
        """Give what people see."""
        seen = self._adapter.visible if self._adapter else ()
        return [Shown(DM if ":dm-" in one.conversation else CHANNEL, "", one.text, f"r:{one.key}") for one in seen]

    async def close(self) -> None:
        """Let everything that was said be heard."""
        await asyncio.gather(*self._tasks)
