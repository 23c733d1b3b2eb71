"""The ledger and the second mind: whom the soul deals with, what is believed of them, and what an owner decides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.ledger_types import OwnersHand
from claudius.reports.opened import edit, noted, records
from claudius.reports.session import wake_and_ask


def peer(home: Home, who: str) -> Mapping[str, Any]:
    """Return one peer with every assessment and the latest of what passed. Raises: ClaudiusError."""
    with records(home) as kept:
        found = kept.peer(who)
    if found is None:
        raise ClaudiusError(f"nobody is known as {who!r}: `claudius ledger peers` names everyone")
    return found


_DONE: Mapping[OwnersHand, str] = {"pin": "pinned", "dispute": "disputed", "delete": "deleted"}


async def reflect(home: Home) -> Mapping[str, Any]:
    """Run one cycle now and return its record; the soul is woken for it. Raises: ClaudiusError."""
    record: Mapping[str, Any] = (await wake_and_ask(home, "reflect"))["record"]
    return record


def change(home: Home, key: str, hand: OwnersHand, now: datetime) -> dict[str, str]:
    """Pin, dispute or delete a belief. Raises: ClaudiusError if there is none of that key."""
    with records(home) as kept:
        known = {one["key"] for one in kept.beliefs(now)["beliefs"]}
    noted(home, "belief", hand)  # not its key, which a model chose
    if key not in known or not edit(home, lambda store: store.ledger.set_belief(key, hand)):
        raise ClaudiusError(f"there is no belief {key!r}: `claudius cortex beliefs` lists them")
    return {"key": key, "state": _DONE[hand]}
