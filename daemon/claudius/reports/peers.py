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


def peer(home: Home, who: str) -> Mapping[str, Any]:
    """Return one peer with every assessment and the latest of what passed. Raises: ClaudiusError."""
    with records(home) as kept:
        found = kept.peer(who)
    if found is None:
        raise ClaudiusError(f"nobody is known as {who!r}: `claudius ledger peers` names everyone")
    return found
