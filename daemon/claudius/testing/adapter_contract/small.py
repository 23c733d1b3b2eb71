"""The stages of the small networks: a terminal, and the shipped in-memory network. They support fewer actions."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from claudius.adapters.terminal import TerminalAdapter, own_person
from claudius.runtime.adapter import Adapter
from claudius.runtime.control import ControlConnection
from claudius.testing.adapter_contract.stage import ANA, CHANNEL, DM, Shown, Stage
from claudius.testing.rehearsal_adapter import RehearsalAdapter


@dataclass
class TerminalStage(Stage):
    """People at terminals, each with a connection of their own. `make` returns the adapter that they talk to."""

    name: str = "terminal"
    own_person: str = field(default_factory=own_person)
    _adapter: TerminalAdapter | None = None
    _open: dict[str, ControlConnection] = field(default_factory=dict)
    _behind: list[ControlConnection] = field(default_factory=list)
    """The adapter's ends of the connections."""
    _shown: list[Shown] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def make(self) -> Adapter:
        """Create an adapter; people speak to it from now on."""
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
        """Type a line; outside the direct conversation, in a conversation of the person's own."""
        line = str(uuid4())
        with suppress(ConnectionError):
            await (await self._at(where, by)).send({"op": "say", "id": line, "text": text})
        return line

    async def visible(self) -> list[Shown]:
        """Return what the terminals showed."""
        return list(self._shown)

    async def close(self) -> None:
        """Close the connections."""
        for connection in (*self._open.values(), *self._behind):
            await connection.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _at(self, where: str, by: str) -> ControlConnection:
        if where not in self._open:
            assert self._adapter is not None
            ours, theirs = socket.socketpair()
            hello = {"conversation": "" if where == DM else by, "as": "" if by == ANA else by}
            self._open[where] = ControlConnection(*await asyncio.open_connection(sock=ours))
            server = ControlConnection(*await asyncio.open_connection(sock=theirs))
            self._behind.append(server)
            self._tasks += [
                asyncio.create_task(self._adapter.chat(server, hello)),
                asyncio.create_task(self._watch(where, self._open[where])),
            ]
        return self._open[where]

    async def _watch(self, where: str, connection: ControlConnection) -> None:
        with suppress(ConnectionError):
            while (frame := await connection.receive()) is not None:
                if frame.get("event") == "speech":
                    self._shown.append(Shown(where, "", frame["body"], f"shown:{frame['key']}"))
                    await connection.send({"op": "shown", "key": frame["key"]})


@dataclass
class RehearsalStage(Stage):
    """The in-memory network, tested as a third-party adapter would be."""

    name: str = "rehearsal"
    own_person: str = "rehearsal:t:ana"
    _adapter: RehearsalAdapter | None = None
    _tasks: set[asyncio.Task[object]] = field(default_factory=set)

    def make(self) -> Adapter:
        """Create an adapter; people speak to it from now on."""
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
        """Say something, without waiting until it is stored."""
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
        """Return what people see."""
        seen = self._adapter.visible if self._adapter else ()
        return [Shown(DM if ":dm-" in one.conversation else CHANNEL, "", one.text, f"r:{one.key}") for one in seen]

    async def close(self) -> None:
        """Wait until everything that was said is heard."""
        await asyncio.gather(*self._tasks)
