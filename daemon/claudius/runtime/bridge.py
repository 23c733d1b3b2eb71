"""The session bridge: a session of an owner's own thinks, in place of the model, what is owed in lent conversations.

The turn stays the turn: it asks `LentVoice`, a provider, which parks the prompt until `say` brings the reply. So a
reply passes the same parser, ladder, gate and outbox, and is said once. A loan is kept in a file of the home until it
ends: a process that was killed has its successor lend again what waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, Struct, to_builtins
from msgspec.json import encode
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.turn import Turned
from claudius.decoding import decoder
from claudius.errors import ClaudiusError
from claudius.home import write_private
from claudius.memory.audit import CLI, AuditEntry
from claudius.memory.inbox import Pending
from claudius.memory.people import UNNAMED
from claudius.perception import Origin, Perception, private
from claudius.provider import Delta, Done, Event, ModelLimits, Provider, Request, Slot, Wrapped, estimate
from claudius.runtime.access import Membership
from claudius.runtime.adapter import Adapter
from claudius.runtime.control import ControlConnection

NAME: Final = "bridge"
IDLE_S = 600.0
"""After so long without `next`, all is given back."""
MOST_WAIT_S, COMMIT_S = 300.0, 8.0
"""How long `next` may wait for something to be owed; and `say` for its turn to end."""
BESIDE = "summary"
"""The call of a turn that answers nobody: the soul's own model makes it."""


class Loan(Struct, frozen=True, kw_only=True):
    """What is lent, to whom."""

    name: str
    """How people are told of it."""
    session: str
    """The session of Claude Code that asked for it; empty = somebody typed the command."""
    conversation: str
    """The one conversation that is lent; empty = every one that an owner may see."""
    is_mine: bool
    """Whether only conversations of the owner's alone are lent."""
    since: datetime


class Parked(Struct, eq=False):
    """A prompt that waits for its reply."""

    id: str
    """The turn, and from its second call on the number of the call, so that no late reply is taken for another."""
    turn: str
    perception: Perception
    request: Request
    reply: asyncio.Future[str]
    deadline: asyncio.TimerHandle | None = None
    """When the soul's own model takes the turn, however often `next` and `say` are called for others."""
    shown: int = 0
    """How often a session was given it."""


class LentVoice(Wrapped):
    """The provider of one lent turn: whoever asks `next` for it."""

    name = NAME

    def __init__(
        self, inner: Provider, bridge: Bridge, loan: Loan, pending: Pending, tell: Callable[[], Awaitable[None]]
    ) -> None:
        """Ask for the turn of `pending`; `inner` makes its calls beside. `tell` tells people who thinks."""
        super().__init__(inner)
        self._bridge, self._loan, self._pending, self._tell = bridge, loan, pending, tell
        self._made, self.model = len(pending.calls), loan.name

    async def limits(self) -> ModelLimits:
        """Return what a session can take: as much as a large model."""
        return ModelLimits()

    def patience_s(self, request: Request) -> float:  # noqa: ARG002 - the signature of every provider
        """Return that the wait is the bridge's own."""
        return 0.0

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply once a session has said it. Raises: ProviderError, of the model's own calls."""
        if request.purpose == BESIDE:
            async for event in self.inner.complete(request):
                yield event
            return
        self._made += 1
        await self._tell()
        text = await self._bridge.answer(self._loan, self._pending, self._made, request)
        yield Delta(text)
        usage = replace(estimate(request, text), cost_usd=0.0)
        yield Done(text=text, usage=usage, provider=NAME, model=self.model)


class Bridge:
    """What one process lends."""

    def __init__(
        self,
        mind: Mind,
        members: Membership,
        break_off: Callable[[str, str], None],
        owner: Callable[[], str],
        idle_s: float = IDLE_S,
    ) -> None:
        """Lend turns of `mind`; `members` knows who sees a place, `break_off` has a turn begin anew."""
        self._mind, self._members, self._break_off, self._owner, self.idle_s = mind, members, break_off, owner, idle_s
        self.loan: Loan | None = None
        """What is lent now."""
        self._parked: dict[str, Parked] = {}
        self._given_back: set[str] = set()
        """The turns that no session answered in time: they are not lent again."""
        self.ends: dict[str, asyncio.Future[dict[str, Any]]] = {}
        """By turn: what whoever said its reply waits to be told."""
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._file: Path | None = None

    def resume(self, file: Path) -> None:
        """Keep loans in `file` from now on, and go on with that of a process that was killed, if it is fresh."""
        self._file = file
        with suppress(OSError, DecodeError):
            left_s = self.idle_s - abs(time.time() - file.stat().st_mtime)  # which only its session makes longer
            if left_s > 0:
                self.loan = decoder(Loan).decode(file.read_bytes())
                self._timer = asyncio.get_running_loop().call_later(left_s, self.close)

    async def lent(self, pending: Pending, mind: Mind, adapter: Adapter | None) -> Mind:
        """Return the mind of a turn: if it is owed and lent, one whose provider is the session. Raises: StoreError."""
        loan, perception = self.loan, pending.perception
        is_owed = any(one.owes and one.origin is Origin.EXTERNAL for one in pending.perceptions)
        is_lent = loan is not None and is_owed and pending.turn not in self._given_back
        if loan is None or not is_lent or not await self._may_see(loan, perception):
            return mind
        line = mind.soul().steps["external_dialogue"].line("bench", who=loan.name)

        async def tell() -> None:
            if adapter:
                await adapter.hold(perception, line)

        # with a slot of its own, for what is thought beside the turns asks a server that this turn does not need
        return replace(mind, provider=LentVoice(mind.provider, self, loan, pending, tell), slot=Slot())

    async def _may_see(self, loan: Loan, perception: Perception) -> bool:
        """Return whether the owner can see all that a prompt for this conversation may show, and lent it.

        The owner is this machine's user. Another id in `owners` may be another human: only a linked one is theirs.
        """
        is_private = perception.audience.startswith(private(""))
        if loan.conversation not in ("", perception.conversation) or (loan.is_mine and not is_private):
            return False
        ids = [one.person for one in self._mind.store.people.sight(self._owner())]
        seen = await self._members.onlookers(perception.audience, perception.person, ids, anew=False)
        if seen.people is None:
            return False
        return seen.people.issubset(ids) if is_private else not seen.people.isdisjoint(ids)

    async def answer(self, loan: Loan, pending: Pending, number: int, request: Request) -> str:
        """Park a prompt until its reply is said; if the loan has ended, the turn begins anew instead."""
        turn, loop = pending.turn, asyncio.get_running_loop()
        name = turn if number == 1 else f"{turn}.{number}"
        parked = Parked(name, turn, pending.perception, request, loop.create_future())
        if self.loan is not loan:
            self._break_off(pending.perception.conversation, turn)
        else:
            self._parked[name] = parked
            parked.deadline = loop.call_later(self.idle_s, self._give_back, parked)
            self._changed.set()
            self._end(turn, {"event": "asked again", "turn": name})
        try:
            return await parked.reply
        finally:
            if parked.deadline:
                parked.deadline.cancel()
            self._parked.pop(name, None)

    def _give_back(self, parked: Parked) -> None:
        """Have the soul's own model take one turn."""
        if not parked.reply.done():
            self._given_back.add(parked.turn)
            self._break(parked)

    def _break(self, parked: Parked) -> None:
        """Have a turn that waits begin anew; from now on nobody is shown its prompt."""
        self._parked.pop(parked.id, None)
        self._break_off(parked.perception.conversation, parked.turn)

    def over(self, turn: str, turned: Turned | None) -> None:
        """Tell whoever said a reply what became of its turn; None = it was not committed."""
        if turned is None:
            self._end(turn, {"event": "refused", "message": f"{turn} was not committed: ask `next` again"})
            return
        intent = turned.intent
        said = "\n\n".join([one.body for one in intent.utterances])
        self._end(turn, {"event": "said", "turn": turn, "text": said, "rung": intent.rung, "flags": list(intent.flags)})

    def _end(self, turn: str, told: dict[str, Any]) -> None:
        end = self.ends.pop(turn, None)
        if end and not end.done():
            end.set_result(told)

    def close(self) -> None:
        """Give everything back: turns that wait begin anew, in the order of their lanes, with the soul's own model."""
        self.loan = None
        if self._file:
            with suppress(OSError):
                self._file.unlink()
        self._given_back.clear()
        if self._timer:
            self._timer.cancel()
        for parked in list(self._parked.values()):
            if not parked.reply.done():
                self._break(parked)
        self._changed.set()

    async def forget(self, conversation: str) -> None:
        """End a loan of this conversation, or of all: its session saw what is erased, and its file names who it is."""
        if self.loan and self.loan.conversation in ("", conversation):
            self.close()

    def _is_alive(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._file:
            with suppress(OSError):
                write_private(self._file, encode(self.loan).decode())
        self._timer = asyncio.get_running_loop().call_later(self.idle_s, self.close)

    def status(self) -> dict[str, Any] | None:
        """Return what is lent, and how many prompts wait; None = nothing is."""
        return {**to_builtins(self.loan), "waiting": len(self._parked)} if self.loan else None

    async def serve(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        """Serve `claudius bridge`, which only the user of this machine can run."""
        does = {"on": self._on, "off": self._off, "next": self._next, "say": self._say}.get(str(asked.get("do")))
        try:
            await connection.send(await does(asked) if does else {"event": "error", "message": "no such deed"})
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})

    async def _on(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        session, owner = str(asked.get("session") or ""), self._owner()
        await self._note(str(asked.get("conversation") or ""))  # first, for two sessions may ask at once
        if self.loan and not (session and session == self.loan.session):
            raise ClaudiusError(f"lent already, to {self.loan.name}: `claudius bridge off` takes it back")
        self.close()  # what waits is asked anew, for less may be lent now
        known = self._mind.store.people.name(owner)
        self.loan = Loan(
            name=owner.rpartition(":")[2].capitalize() if known == UNNAMED else known,
            session=session,
            conversation=str(asked.get("conversation") or ""),
            is_mine=bool(asked.get("mine")),
            since=self._mind.clock(),
        )
        self._is_alive()
        return {"event": "lent", **to_builtins(self.loan)}

    async def _off(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        session = str(asked.get("session") or "")
        was_lent = self.loan is not None and session in ("", self.loan.session)
        if was_lent:
            self.close()
        return {"event": "given back", "was_lent": was_lent}

    async def _next(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        until = asyncio.get_running_loop().time() + min(MOST_WAIT_S, self.idle_s / 2, float(asked.get("wait_s") or 0))
        while True:
            if self.loan is None:
                raise ClaudiusError("nothing is lent: `claudius bridge on` lends it")
            self._is_alive()
            waiting = [one for one in self._parked.values() if not one.reply.done()]
            if waiting:
                if given := await self._given(self.loan, min(waiting, key=lambda one: one.shown)):
                    return given
                continue
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return {"event": "next", "turn": None}

    async def _given(self, loan: Loan, parked: Parked) -> dict[str, Any] | None:
        """Return the prompt; None if it is not to be shown any more, because the owner left the place, for instance."""
        parked.shown += 1
        if parked.shown == 1 and parked.deadline:
            parked.deadline.cancel()
            parked.deadline = asyncio.get_running_loop().call_later(self.idle_s, self._give_back, parked)
        conversation = parked.perception.conversation
        await self._members.look(parked.perception)
        if not await self._may_see(loan, parked.perception):
            self._give_back(parked)
            return None
        # before it is shown, so that an erasure can say where the words went, even of a turn that is never committed
        await self._note(parked.turn, conversation)
        if self._parked.get(parked.id) is not parked or parked.reply.done():
            return None
        request = parked.request
        return {
            "event": "next",
            "turn": parked.id,
            "conversation": conversation,
            "purpose": request.purpose,
            "shown": parked.shown,
            "images": len(request.images),
            "prompt": {"system": request.system, "history": to_builtins(request.history), "tail": request.tail},
        }

    async def _say(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        name, text = str(asked.get("turn")), asked.get("text")
        parked = self._parked.get(name)
        if parked is None or parked.reply.done():
            raise ClaudiusError(f"{name} waits for no reply: it was answered, changed, or given back")
        if not isinstance(text, str) or not text.strip():
            raise ClaudiusError("a reply has words, on stdin")
        self._is_alive()
        end: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.ends[parked.turn] = end
        parked.reply.set_result(text)
        try:
            async with asyncio.timeout(COMMIT_S):
                return await end
        except TimeoutError:
            return {"event": "taken", "turn": name}

    async def _note(self, target: str, origin: str = CLI) -> None:
        entry = AuditEntry(who=self._owner(), act=NAME, target=target, origin=origin)
        await self._mind.store.audit.note(entry, self._mind.clock())
