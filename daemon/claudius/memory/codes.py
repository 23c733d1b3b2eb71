"""The topic `store.codes`: codes that a person shows or says within an hour, to be let in or to link accounts.

Codes are short enough to be read out, compared in constant time, and taken with limited tries. Where one process has
the store they are kept in its memory, and a restart forgets them; where several share it, each one knows all.
Source: the security design, section 4.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""31 letters and digits, without those that look alike: 0 O 1 I L."""
CODE_CHARS = 8
LIFE = timedelta(hours=1)
WRONG_TRIES = 5


class OpenCode(Struct, frozen=True, kw_only=True):
    """One code that somebody was given."""

    kind: str
    """What it is for; codes of different kinds know nothing of one another."""
    person: str
    name: str
    network: str
    asked_at: datetime
    about: str = ""
    """The other person whom `payload` is about; empty if none."""
    payload: str = ""
    """What whoever made it wants back."""
    code: str = ""
    wrong: int = 0
    """How many wrong codes were tried since it was made, or since the last right one."""

    @property
    def expires_at(self) -> datetime:
        """When it expires."""
        return self.asked_at + LIFE

    def is_valid(self, now: datetime) -> bool:
        """Return whether it is valid at this instant."""
        return self.asked_at <= now < self.expires_at


def admitted(asked: OpenCode, current: Sequence[OpenCode], most: int) -> OpenCode | None:
    """Return what was asked with a code of its own; None if this person has one, or the network has `most`."""
    if any(one.person == asked.person for one in current):
        return None
    if sum(one.network == asked.network for one in current) >= most:
        return None
    return replace(asked, code="".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS)))


def find(code: str, current: Sequence[OpenCode]) -> OpenCode | None:
    """Return what has this code, in constant time: no early exit, every code is compared."""
    given = code.strip().upper().encode()
    found: OpenCode | None = None
    for one in current:
        if hmac.compare_digest(one.code.encode(), given):
            found = one
    return found


class CodeStore:
    """The codes that are open, in the memory of the one process that has the store. A restart forgets them."""

    def __init__(self) -> None:
        self._open: list[OpenCode] = []

    async def open(self, asked: OpenCode, most: int) -> OpenCode | None:
        """Give a code to who asked; None if they have one of this kind, or the network has `most`."""
        made = admitted(asked, self.valid(asked.kind, asked.asked_at), most)
        if made:
            self._open.append(made)
        return made

    def valid(self, kind: str, now: datetime) -> Sequence[OpenCode]:
        """Return what is open, oldest first."""
        self._open = [one for one in self._open if one.kind != kind or one.is_valid(now)]
        return [one for one in self._open if one.kind == kind]

    async def redeem(self, kind: str, code: str, now: datetime) -> OpenCode | None:
        """Close and return what has this code; None if it is wrong. After `WRONG_TRIES` wrong ones all are void."""
        current = self.valid(kind, now)
        found, others = find(code, current), [one for one in self._open if one.kind != kind]
        wrong = [replace(one, wrong=0 if found else one.wrong + 1) for one in current if one is not found]
        self._open = [*others, *(one for one in wrong if one.wrong < WRONG_TRIES)]
        return found

    async def drop(self, kind: str, person: str) -> bool:
        """Close what a person has open; False if that is nothing."""
        before, self._open = self._open, [one for one in self._open if (one.kind, one.person) != (kind, person)]
        return len(self._open) < len(before)
