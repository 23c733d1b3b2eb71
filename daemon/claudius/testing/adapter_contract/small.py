"""The stages of the small networks: a terminal, and the shipped in-memory network. They support fewer actions."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from claudius.adapters.terminal import TerminalAdapter, own_person
from claudius.runtime.adapter import Adapter
from claudius.runtime.control import ControlConnection
from claudius.testing.adapter_contract.ground import PATIENCE_S
from claudius.testing.adapter_contract.stage import ANA, CHANNEL, DM, Shown, Trouble
from claudius.testing.rehearsal_adapter import RehearsalAdapter


class Small:
    """No-ops for the actions that neither supports; cases that need one declare it and are skipped."""

    can: frozenset[str] = frozenset()

    def seen(self, text: str) -> str:
        """Return the text unchanged: nothing is encoded."""
        return text

    async def say_as_us(self, where: str, text: str) -> None:
        """Do nothing: no other sender shares our name here."""

    async def double(self, events: int) -> None:
        """Do nothing: no event comes twice."""

    async def lose_answer(self, *, is_applied: bool) -> None:
        """Do nothing: no answer is lost."""

    async def edit(self, where: str, message: str, text: str, *, thread: str = "", calls: bool = False) -> None:
        """Do nothing: messages cannot be changed."""

    async def unfurl(self, where: str, message: str, *, thread: str = "") -> None:
        """Do nothing: links do not unfurl."""

    async def delete(self, where: str, messages: Sequence[str], *, thread: str = "") -> None:
        """Do nothing: messages cannot be deleted."""

    async def react(
        self, where: str, message: str, emoji: str, *, by: str = ANA, thread: str = "", is_on: bool = True
    ) -> None:
        """Do nothing: there are no reactions."""

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
        """Raise NotImplementedError: there are no files."""
        raise NotImplementedError(name)

    async def begin_thread(self, message: str) -> str:
        """Raise NotImplementedError: there are no threads."""
        raise NotImplementedError(message)

    async def refuse_history(self) -> None:
        """Do nothing: there is no history."""

    async def meet(self, who: str) -> None:
        """Do nothing: nobody else can join."""

    async def hold(self) -> None:
        """Do nothing: every event is delivered as it happens."""

    async def release(self) -> None:
        """Do nothing: no event is held."""

    async def trouble(self, what: Trouble) -> None:
        """Do nothing: no trouble can be caused."""

    async def command(self, where: str, word: str) -> None:
        """Do nothing: there are no commands."""

    async def told(self) -> list[str]:
        """Return no answers: there are no commands."""
        return []

    async def is_quiet(self) -> bool:
        """Whether nobody is notified, which always holds."""
        return True

    async def visible(self) -> list[Shown]:
        """Return what was shown."""
        raise NotImplementedError

    async def until_visible(self, count: int) -> list[Shown]:
        """Wait until this many messages are visible."""
        async with asyncio.timeout(PATIENCE_S):
            while len(await self.visible()) < count:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)
        return await self.visible()

    async def until_told(self) -> None:
        """Return at once: every event is delivered as it happens."""


@dataclass
class TerminalStage(Small):
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
class RehearsalStage(Small):
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
