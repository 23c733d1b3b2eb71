"""Pairing: a stranger who writes to the soul directly gets a one-time code, and is let in when the owner approves it.

Codes are short enough to be read out, kept only in memory, compared in constant time, with limited tries. Linking
accounts uses them too. Source: the security design, section 4.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from claudius.errors import ClaudiusError
from claudius.memory.audit import AuditEntry
from claudius.memory.store import Store
from claudius.perception import Perception, Place, Standing
from claudius.runtime.control import Connection, Handler

MOST_OPEN = 3
PAIRS = ("discord",)
"""Networks where a stranger may write to us directly."""
ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""31 letters and digits, without those that look alike: 0 O 1 I L."""
CODE_CHARS = 8
LIFE = timedelta(hours=1)
WRONG_TRIES = 5


class Open(Struct, frozen=True):
    """One open request."""

    code: str
    person: str
    name: str
    network: str
    asked_at: datetime

    @property
    def expires_at(self) -> datetime:
        """When the request expires."""
        return self.asked_at + LIFE


class Codes:
    """Open requests of one kind. A restart forgets them."""

    def __init__(self, most: int) -> None:
        """Hold at most `most` requests per network."""
        self._most = most
        self._open: list[Open] = []
        self._wrong = 0

    def ask(self, person: str, name: str, network: str, now: datetime) -> Open | None:
        """Open a request. Returns None if this person has a valid one, or too many are open."""
        current = self.open(now)
        if any(one.person == person for one in current):
            return None
        if sum(one.network == network for one in current) >= self._most:
            return None
        code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
        made = Open(code, person, name, network, now)
        self._open.append(made)
        return made

    def open(self, now: datetime) -> tuple[Open, ...]:
        """Return the valid requests, oldest first."""
        self._open = [one for one in self._open if one.asked_at <= now < one.expires_at]
        return tuple(self._open)

    def find(self, code: str, now: datetime) -> Open | None:
        """Return the request with this code and leave it open; None if the code is wrong. Counts no wrong try."""
        given = code.strip().upper().encode()
        found: Open | None = None
        for one in self.open(now):  # no early exit: every code is compared
            if hmac.compare_digest(one.code.encode(), given):
                found = one
        return found

    def redeem(self, code: str, now: datetime) -> Open | None:
        """Close and return the request with this code; None if the code is wrong.

        After `WRONG_TRIES` wrong tries every open request is void.
        """
        found = self.find(code, now)
        if found is None:
            self._wrong += 1
            if self._wrong >= WRONG_TRIES:
                self._open, self._wrong = [], 0
            return None
        self._wrong = 0
        self._open.remove(found)
        return found

    def drop(self, person: str) -> None:
        """Close a person's requests."""
        self._open = [one for one in self._open if one.person != person]


class Pairing:
    """Who was let in by a code, cached in memory for everything that is heard."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        tell: Callable[[Perception, str], None],
        owner: Callable[[], str],
    ) -> None:
        """Keep it in `store`; `tell` sends a line to one person, in the background; `owner` is who approves."""
        self._store, self._clock, self._tell, self._owner = store, clock, tell, owner
        self.paired: set[str] = set()
        self._asking = Codes(MOST_OPEN)

    async def load(self) -> None:
        """Load what is stored."""
        self.paired = set(await self._store.people.paired())

    def offer(self, perception: Perception) -> None:
        """Offer a code to a stranger who writes directly, once an hour; nothing they said is stored."""
        network = Place.of(perception.conversation).network
        is_stranger = perception.standing is Standing.OUTSIDER and not perception.is_bot
        if network not in PAIRS or not is_stranger or not perception.audience.startswith("private:"):
            return
        asked = self._asking.ask(perception.person, perception.name, network, self._clock())
        if asked:
            line = f"I do not know you yet. Give this code to whoever runs me; it is good for an hour: {asked.code}"
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
            for one in self._asking.open(self._clock())
        ]
        await connection.send({"event": "pairing", "open": rows, "paired": sorted(self.paired)})

    async def _approve(self, connection: Connection, asked: Mapping[str, Any]) -> None:
        now = self._clock()
        found = self._asking.redeem(str(asked.get("code")), now)
        if found is None:
            await connection.send({"event": "error", "message": "no open request has that code"})
            return
        try:
            await self._store.audit.note(AuditEntry(who=self._owner(), act="approve", target=found.person), now)
            await self._store.people.pair(found.person, found.name, now)
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})
            return
        self.paired.add(found.person)
        await connection.send({"event": "paired", "person": found.person, "name": found.name})

    async def _revoke(self, connection: Connection, asked: Mapping[str, Any]) -> None:
        person = str(asked.get("person"))
        if person in self.paired:
            now = self._clock()
            await self._store.audit.note(AuditEntry(who=self._owner(), act="revoke", target=person), now)
        was = await self._store.people.unpair(person)
        self.paired.discard(person)
        self._asking.drop(person)
        message = {"event": "revoked", "person": person}
        await connection.send(message if was else {"event": "error", "message": f"{person} was not let in by a code"})


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
