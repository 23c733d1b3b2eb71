"""Consent: who may decide what the soul asks to do, the decision, and the cards that then say so.

A decision is a command, wherever it comes from: a word, a button, a thumb. Of all that come, the first counts.
Source: the tools design, section 5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, get_args

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import ClaudiusError, DeliveryError, DeliveryLater, UsageProblem
from claudius.foreign import unquoted
from claudius.memory.audit import CLI
from claudius.perception import CommandExtra, Perception, Place, given_in
from claudius.prompt import nested_line
from claudius.runtime.adapter import Adapter, shown_name
from claudius.runtime.auditing import origin_of
from claudius.runtime.control import ControlConnection
from claudius.runtime.lanes import Lanes
from claudius.tool import CallState, Grant, Scope, ToolCall, may_remember

log = logging.getLogger(__name__)

Verb = Literal["allow", "talk", "channel", "always", "deny"]
VERBS: tuple[Verb, ...] = get_args(Verb)
TALK = timedelta(hours=24)
"""For how long a consent for a talk holds."""
NOTED = "Noted."
"""The answer to who refuses: the rest is said where it was asked."""
NO_QUESTION = "Nothing waits here for a word of yours."
DECIDED = {
    CallState.REFUSED: "Refused by {}: I leave it.",
    CallState.LAPSED: "Nobody decided in time.",
    CallState.WITHDRAWN: "Taken back.",
}


def verdict(state: CallState, who: str) -> str:
    """Return the line that stands where a question was. Pure."""
    return DECIDED.get(state, "Allowed by {}.").format(who)


class Consents:
    """Decides what waits for consent."""

    def __init__(self, mind: Mind, adapters: Mapping[str, Adapter], lanes: Lanes) -> None:
        """Have `lanes` do what is allowed, and `adapters` show what was decided."""
        self._mind, self._adapters, self._lanes = mind, adapters, lanes
        self._settling: asyncio.Task[None] | None = None

    async def allow(self, perception: Perception, rest: str) -> str:
        """Allow what waits here, once or for the talk."""
        return await self._by_command(perception, rest.removesuffix("talk").strip(), talk=rest.endswith("talk"))

    async def deny(self, perception: Perception, rest: str) -> str:
        """Refuse what waits here."""
        return await self._by_command(perception, rest, talk=None)

    async def tools(self, perception: Perception, _: str) -> str:
        """List what the soul can do, and what waits here."""
        tools = [one for one in self._lanes.hands.tools() if not one.off]
        lines = [f"{one.name}: {one.purpose}" for one in tools] or ["I have no tools."]
        return "\n".join([*lines, *map(_asked, self._waiting_in(given_in(perception)))])

    async def _by_command(self, perception: Perception, name: str, *, talk: bool | None) -> str:
        store, person, where = self._mind.store, perception.person, given_in(perception)
        here = self._waiting_in(where)
        call = store.calls.find(name) if name else here[0] if len(here) == 1 else None
        ids = {person, *await store.people.ids_of(person)}
        if call is None or not (ids & {*call.approvers, call.person} or _channel(call) == Place.of(where).of_channel):
            return "\n".join(["Which one?", *map(_asked, here)]) if here and not name else NO_QUESTION
        if call.state is not CallState.WAITING:
            return await self._decided_before(call)
        receipt = perception.extra.receipt if isinstance(perception.extra, CommandExtra) else ""
        if receipt and store.calls.asked_in(Place.of(where).of_channel, receipt) != call:
            return NO_QUESTION
        if not (perception.is_owner or ids & await self._deciders(call)):
            names = " or ".join([await self._name(one) for one in call.approvers])
            return f"Only {names or 'an owner'} may decide this."
        verb: Verb = "deny" if talk is None else "talk" if talk else "allow"
        return await self._decide(call, verb, person, origin_of(perception))

    async def _deciders(self, call: ToolCall) -> set[str]:
        """Return who may decide a call: those who were named, as far as they can see it now."""
        owners = self._mind.config().owners
        seen = await self._lanes.members.onlookers(call.audience, call.person, owners, anew=True)
        return {*call.approvers} & {*(seen.people or ()), *seen.owners}

    async def by_owner(self, owner: str, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Serve `claudius tools allow|deny`: the owner of this machine decides any call."""
        try:
            verb = next((one for one in VERBS if one == frame.get("verb")), None)
            if verb is None:
                raise UsageProblem(f"a question is decided by one of {', '.join(VERBS)}")
            call = self._mind.store.calls.find(str(frame.get("id")))
            if call is None:
                raise UsageProblem(f"there is no call {frame.get('id')}: `claudius tools pending` lists what waits")
            said = await self._decide(call, verb, owner, CLI)
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": str(error)})
            return
        await connection.send({"event": "decided", "said": said})

    async def _decide(self, call: ToolCall, verb: Verb, by: str, origin: str) -> str:
        """Decide a call, durably, and have its lane know. Returns what is said of it. Raises: StoreError."""
        store, now = self._mind.store, self._mind.clock()
        grant = self._grant(call, verb, by)
        if verb not in ("allow", "deny") and grant is None:
            return "That can be allowed only once."
        decided = await store.calls.decide(call, by, now, allows=verb != "deny", origin=origin, grant=grant)
        if decided is None:
            return await self._decided_before(store.calls.find(call.id) or call)
        self._lanes.wake(call.conversation)
        self.settle()
        return verdict(decided.state, "you") if decided.state is CallState.APPROVED else NOTED

    async def _name(self, person: str) -> str:
        """Return what a person is called: by their network, else as they were heard last."""
        shown = await shown_name(self._adapters.get(person.partition(":")[0]), person)
        return shown or self._mind.store.people.name(person)

    def _grant(self, call: ToolCall, verb: Verb, by: str) -> Grant | None:
        """Return what is remembered with a decision; None if nothing is, or may be."""
        if verb in ("allow", "deny") or verb not in may_remember(call.cls, call.audience):
            return None
        scope: Scope = verb
        now, days = self._mind.clock(), self._mind.config().tools.grant_days
        return Grant(
            id=0, tool=call.tool, pin=call.pin, scope=scope, person=call.person if scope == "talk" else "",
            conversation={"talk": call.conversation, "channel": _channel(call), "always": ""}[scope],
            granted_by=by, granted_at=now, expires_at=now + (TALK if scope == "talk" else timedelta(days=days)),
        )  # fmt: skip

    async def _decided_before(self, call: ToolCall) -> str:
        state = CallState.LAPSED if call.state is CallState.WAITING else call.state  # its time is over
        return f"That is decided: {verdict(state, await self._name(call.allowed_by) if call.allowed_by else '')}"

    def _waiting_in(self, where: str) -> Sequence[ToolCall]:
        """Return what waits in a conversation, else anywhere in its channel."""
        channel = Place.of(where).of_channel
        found = [one for one in self._mind.store.calls.waiting() if _channel(one) == channel]
        return [one for one in found if one.conversation == where] or found

    def settle(self) -> None:
        """Have every post say that its question is decided, in the background; what fails is tried with the next."""
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle(), name="cards")

    async def _settle(self) -> None:
        store = self._mind.store
        for one in store.calls.decided_cards():
            adapter = self._adapters.get(Place.of(one.conversation).network)
            card = replace(one.card, verdict=verdict(one.state, await self._name(one.by) if one.by else ""))
            try:
                if adapter:
                    await adapter.settles(one.conversation, one.receipt, card)
            except (DeliveryLater, OSError, TimeoutError) as error:
                log.info("a card was not settled yet", extra={"error": unquoted(error)})
                continue
            except DeliveryError as error:
                log.warning("a card cannot be settled", extra={"error": unquoted(error)})
            await store.calls.card_settled(one.key)

    async def close(self) -> None:
        """End what runs in the background."""
        if self._settling:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)


def _channel(call: ToolCall) -> str:
    return Place.of(call.conversation).of_channel


def _asked(call: ToolCall) -> str:
    args = nested_line(call.args)
    return f"{call.id}: {call.tool} {args if len(args) <= 200 else args[:200] + ' …'}"
