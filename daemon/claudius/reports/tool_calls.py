"""What the soul asks to do with tools and did, as `claudius tools` prints it; and the owner's decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from claudius.errors import UsageProblem
from claudius.home import Home
from claudius.reports.opened import edit, noted, records
from claudius.reports.session import wake_and_ask

CALL_S = 120.0
"""How long a command lets what it has allowed go on, where no daemon runs that would do it."""


def call(home: Home, name: str) -> Mapping[str, Any]:
    """Return one call with its result. Raises: UsageProblem if there is none."""
    with records(home) as kept:
        found = kept.call(name)
    if found is None:
        raise UsageProblem(f"there is no call {name}: `claudius tools calls` lists the last ones")
    return found


def decide(home: Home, name: str, verb: str) -> str:
    """Decide a call by the owner's word, through the soul that runs or in this process. Raises: ClaudiusError."""
    return str(asyncio.run(wake_and_ask(home, "tool", grace_s=CALL_S, id=name, verb=verb))["said"])


def revoke(home: Home, grant: int) -> None:
    """End a remembered consent. Raises: UsageProblem if none of this number is in force."""
    noted(home, "tool_revoke", str(grant))
    if not edit(home, lambda store: store.calls.revoke(grant, datetime.now(UTC))):
        raise UsageProblem(f"there is no consent {grant} in force: `claudius tools grants` lists them")
