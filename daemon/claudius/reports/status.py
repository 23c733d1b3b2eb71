"""What is running and waits, what it cost, and who did what: as `claudius status`, `usage` and `audit` print it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec.structs import asdict

import claudius
from claudius.config import load
from claudius.failure import failure_of
from claudius.home import Home
from claudius.reports.opened import records
from claudius.reports.session import ask
from claudius.runtime.lock import holder

EVERY = -1
"""As a number of acts: all of them."""
By = Literal["day", "model", "person", "conversation", "job"]


def status(home: Home) -> dict[str, Any]:
    """Return what is running, who speaks, and what waits."""
    live = asyncio.run(ask(home, "status"))
    document: dict[str, Any] = {
        "running": live is not None,
        "pid": found.pid if live and (found := holder(home)) else None,
        "version": claudius.__version__,
        "home": str(home.root),
        "uptime_s": None,
        "provider": None if live and "provider" in live else _voice(home),
        "adapters": [],
        "brake": None,
        "careful": False,
        "disk": {"accepting": live is not None, "problem": None},
    }
    document |= live or {}
    with records(home) as kept:
        document |= kept.counts(datetime.now(UTC))
        document["last_failure"] = kept.last_failure()
    return document


def _voice(home: Home) -> dict[str, Any]:
    from claudius.providers.chain import NO_MODEL, NO_VOICE, choose, may_rehearse

    loaded = load(home, os.environ)
    name = choose(loaded, may_rehearse=may_rehearse(loaded, home))[0]
    error = asdict(failure_of(NO_MODEL)) if name == NO_VOICE else None
    return {"name": name, "model": "", "resting_until": None, "last_error": error}


def usage(home: Home, by: By) -> dict[str, Any]:
    """Return tokens and dollars by day, model, person, conversation or job, and the budgets: the tightest, and each."""
    from claudius.cognition.mind import caps, day_start, tightest

    budget = load(home, os.environ).config.budget
    today = day_start(datetime.now(UTC))
    with records(home) as kept:
        found: dict[str, Any] = dict(kept.usage(by))
        held = caps(budget, kept.spent_since(today), kept.spent_since(today.replace(day=1)))
    rows = [
        {"name": one.name, "limit_usd": one.limit_usd or None, "spent_usd": one.spent_usd, "stage": one.stage.value}
        for one in held
    ]
    found["budget"] = {name: value for name, value in rows[held.index(tightest(held))].items() if name != "name"}
    found["caps"] = rows
    return found


def acts(home: Home, since: str = "", most: int = EVERY) -> Sequence[Mapping[str, Any]]:
    """Return the newest acts of the audit log since a time (RFC 3339 UTC; empty = ever), oldest first."""
    with records(home) as kept:
        return kept.audit(since, most)
