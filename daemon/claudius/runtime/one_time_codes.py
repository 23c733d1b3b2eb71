"""One-time codes: short enough to be read out, kept only in memory, compared in constant time, with limited tries.

Source: the security design, section 4.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""31 letters and digits, without those that look alike: 0 O 1 I L."""
CODE_CHARS = 8
LIFE = timedelta(hours=1)
WRONG_TRIES = 5


def draw() -> str:
    """Draw a random code."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))


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

    def __init__(self, most: int, drawn: Callable[[], str] = draw) -> None:
        """Hold at most `most` requests per network."""
        self._most, self._draw = most, drawn
        self._open: list[Open] = []
        self._wrong = 0

    def ask(self, person: str, name: str, network: str, now: datetime) -> Open | None:
        """Open a request. Returns None if this person has a valid one, or too many are open."""
        current = self.open(now)
        if any(one.person == person for one in current):
            return None
        if sum(one.network == network for one in current) >= self._most:
            return None
        made = Open(self._draw(), person, name, network, now)
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
