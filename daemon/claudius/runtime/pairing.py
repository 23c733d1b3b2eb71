"""Pairing: a stranger who writes to the soul directly gets a one-time code, and is let in when the owner approves it.

Source: the security design, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from claudius.errors import ClaudiusError
from claudius.memory.audit import AuditEntry
from claudius.memory.codes import OpenCode
from claudius.memory.store import Store
from claudius.perception import Perception, Place, Standing
from claudius.runtime.control import Connection, Handler

MOST_OPEN = 3
PAIRS = ("discord",)
"""Networks where a stranger may write to us directly."""
KIND = "pairing"


class Pairing:
    """The codes of strangers, and the owner's word on them; any process of the soul takes it."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        tell: Callable[[Perception, str], None],
        owner: Callable[[], str],
    ) -> None:
        """Keep it in `store`; `tell` sends a line to one person, in the background; `owner` is who approves."""
        self._store, self._clock, self._tell, self._owner = store, clock, tell, owner

    async def offer(self, perception: Perception) -> None:
        """Offer a code to a stranger who writes directly, once an hour; nothing they said is stored."""
        network = Place.of(perception.conversation).network
        is_stranger = perception.standing is Standing.OUTSIDER and not perception.is_bot
        if network not in PAIRS or not is_stranger or not perception.audience.startswith("private:"):
            return
        asked = OpenCode(
            kind=KIND, person=perception.person, name=perception.name, network=network, asked_at=self._clock()
        )
        made = await self._store.codes.open(asked, MOST_OPEN)
        if made:
            line = f"I do not know you yet. Give this code to whoever runs me; it is good for an hour: {made.code}"
            self._tell(perception, line)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The owner's operations on the control socket."""
        return {
            "pairing_list": self._list,
            "pairing_approve": self._approve,
            "pairing_revoke": self._revoke,
        }

    async def _list(self, connection: Connection, _: Mapping[str, Any]) -> None:
        rows = [
            {
                "code": one.code,
                "network": one.network,
                "person": one.person,
                "name": one.name,
                "asked_at": _stamp(one.asked_at),
                "expires_at": _stamp(one.expires_at),
            }
            for one in await self._store.codes.valid(KIND, self._clock())
        ]
        await connection.send({"event": "pairing", "open": rows, "paired": sorted(await self._store.people.paired())})

    async def _approve(self, connection: Connection, asked: Mapping[str, Any]) -> None:
        now = self._clock()
        found = await self._store.codes.redeem(KIND, str(asked.get("code")), now)
        if found is None:
            await connection.send({"event": "error", "message": "no open request has that code"})
            return
        try:
            await self._store.audit.note(AuditEntry(who=self._owner(), act="approve", target=found.person), now)
            await self._store.people.pair(found.person, found.name, now)
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})
            return
        await connection.send({"event": "paired", "person": found.person, "name": found.name})

    async def _revoke(self, connection: Connection, asked: Mapping[str, Any]) -> None:
        person = str(asked.get("person"))
        now = self._clock()
        if person in await self._store.people.paired():
            await self._store.audit.note(AuditEntry(who=self._owner(), act="revoke", target=person), now)
        was = await self._store.people.unpair(person)
        await self._store.codes.drop(KIND, person)
        message = {"event": "revoked", "person": person}
        await connection.send(message if was else {"event": "error", "message": f"{person} was not let in by a code"})


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
