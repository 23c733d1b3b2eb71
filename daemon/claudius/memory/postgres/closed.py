"""Tell why a server is closed to everybody who writes: a move to it has not finished, or the soul has left it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from claudius.memory.database import StorePlace
from claudius.memory.postgres.session import IS_OURS, Made, connected, value_of

HERE, COMING, LEFT = 0, 1, 2
"""What `release.migrating` says. Earlier releases wrote 1 for both of the others."""
SQL = "SELECT migrating, to_jsonb(release) AS kept FROM release WHERE id = 1"
"""The columns that tell who closed it are not there before a server was migrated."""


class Move(Struct, frozen=True):
    """One move, of one home."""

    id: str = ""
    """What the home and the server know it by; empty = of an earlier release, or of nobody."""
    home: str = ""
    """The home that began it, for a person to read."""


class Closed(Struct, frozen=True):
    """Why nobody writes to a server."""

    is_left: bool
    """The soul has left it; else a move to it has not finished."""
    move: Move = Move()

    def is_of(self, move: Move) -> bool:
        """Whether it was this move that closed the server. Pure."""
        return bool(move.id) and move.id == self.move.id

    def why(self) -> str:
        """Return what has happened. Pure."""
        if self.is_left:
            return (
                f"the soul has left this server: it is in a file now, in {self.move.home or 'the home that moved it'}"
            )
        if self.move.home:
            return f"a move to this server has not finished; it was begun in {self.move.home}"
        return "a move to this server has not finished, or the soul has left it"

    def fix(self, url: str) -> str:
        """Return what to type, and where. Pure."""
        again = f"`claudius migrate '{url}'`"
        if self.is_left:
            ends = "`claudius migrate sqlite` there ends a move that was interrupted"
            return f"run Claudius there; {again} there brings the soul back, {ends}"
        if self.move.home:
            return f"run {again} there again, which ends it"
        return f"run {again} in the home whose file holds the soul"

    def line(self, shown: str, url: str) -> str:
        """Return the line for a person. Pure."""
        return f"{shown}: {self.why()}: {self.fix(url)}"


def closed_of(row: Mapping[str, Any]) -> Closed | None:
    """Return why a server with this row of `SQL` is closed; None if it is open. Pure."""
    if row["migrating"] == HERE:
        return None
    kept = row["kept"]
    return Closed(row["migrating"] == LEFT, Move(kept.get("move", ""), kept.get("mover", "")))


def closed_by(made: Made) -> Closed | None:
    """Return why a server is closed; None if it is open, or holds no tables of ours."""
    if not value_of(made, IS_OURS):
        return None
    migrating, kept = made.execute(SQL.encode()).fetchone() or (HERE, {})
    return closed_of({"migrating": migrating, "kept": kept})


def closed_at(place: StorePlace) -> Closed | None:
    """Return why a server is closed; None if it is open, or holds no tables of ours. Raises: StoreError."""
    with connected(place) as made:
        return closed_by(made)
