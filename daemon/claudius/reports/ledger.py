"""The ledger as `claudius ledger` prints it: whom the soul deals with, and how its trust changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.reports.opened import records


def peers(home: Home) -> Sequence[Mapping[str, Any]]:
    """Return everyone it deals with, latest first."""
    with records(home) as kept:
        return kept.peers()


def evidence(home: Home, ids: Sequence[int]) -> Sequence[Mapping[str, Any]]:
    """Return lines of the ledger by their ids, oldest first; one that was erased is missing."""
    with records(home) as kept:
        return kept.evidence(ids)


def peer(home: Home, who: str) -> Mapping[str, Any]:
    """Return one peer with every assessment and the latest of what passed. Raises: ClaudiusError."""
    with records(home) as kept:
        found = kept.peer(who)
    if found is None:
        raise ClaudiusError(f"nobody is known as {who!r}: `claudius ledger peers` names everyone")
    return found
