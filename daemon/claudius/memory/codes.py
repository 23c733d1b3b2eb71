"""The topic `store.codes`: codes that a person shows or says within an hour, to be let in or to link accounts.

Codes are short enough to be read out, compared in constant time, and taken with limited tries.
Source: the security design, section 4.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from claudius.memory.database import Core, Database, Row, instant, stamp

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
    """The codes that are open, for every process that has the store, and for the next one."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def open(self, asked: OpenCode, most: int) -> OpenCode | None:
        """Give a code to who asked; None if they have one of this kind, or the network has `most`."""

        def write(db: Database) -> OpenCode | None:
            db.run("codes_past", before=stamp(asked.asked_at - LIFE))
            made = admitted(asked, _valid(db.all("codes", kind=asked.kind), asked.asked_at), most)
            if made:
                db.run("code_opened", **asdict(made) | {"asked_at": stamp(made.asked_at)})
            return made

        return await self._core.write(write)

    def valid(self, kind: str, now: datetime) -> Sequence[OpenCode]:
        """Return what is open, oldest first."""
        return _valid(self._core.look("codes", kind=kind), now)

    async def redeem(self, kind: str, code: str, now: datetime) -> OpenCode | None:
        """Close and return what has this code; None if it is wrong. After `WRONG_TRIES` wrong ones all are void."""

        def write(db: Database) -> OpenCode | None:
            found = find(code, _valid(db.all("codes", kind=kind), now))
            if found:
                db.run("code_closed", kind=kind, person=found.person)
                db.run("codes_right", kind=kind)
            else:
                db.run("codes_wrong", kind=kind)
                db.run("codes_void", kind=kind, most=WRONG_TRIES)
            return found

        return await self._core.write(write)

    async def drop(self, kind: str, person: str) -> bool:
        """Close what a person has open; False if that is nothing."""
        return await self._core.write(lambda db: db.change("code_closed", kind=kind, person=person)) > 0


def _valid(rows: Sequence[Row], now: datetime) -> list[OpenCode]:
    return sorted(
        (one for one in map(_code, rows) if one.asked_at <= now < one.expires_at),
        key=lambda one: (one.asked_at, one.code),
    )


def _code(row: Row) -> OpenCode:
    values: dict[str, Any] = {name: row[name] for name in OpenCode.__struct_fields__}
    return OpenCode(**values | {"asked_at": instant(row["asked_at"])})
