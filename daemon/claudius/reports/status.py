"""What is running and waits, and what it cost, as `claudius status` and `claudius usage` print it."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any, Literal

import claudius
from claudius.config import load
from claudius.home import Home
from claudius.reports.opened import records
from claudius.reports.session import ask
from claudius.runtime.lock import holder

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
    return document


def _voice(home: Home) -> dict[str, str] | None:
    from claudius.providers.chain import choose

    return {"name": choose(load(home, os.environ))[0], "model": ""}


def usage(home: Home, by: By) -> dict[str, Any]:
    """Return tokens and dollars by day, model, person, conversation or job, and the day's budget."""
    from claudius.cognition.mind import stage

    limit = load(home, os.environ).config.budget.daily_usd
    with records(home) as kept:
        found: dict[str, Any] = dict(kept.usage(by))
        today = datetime.now(UTC).date().isoformat()
        spent = next((row["cost_usd"] for row in kept.usage("day")["rows"] if row["day"] == today), None) or 0.0
    found["budget"] = {"limit_usd": limit or None, "spent_usd": spent, "stage": stage(limit, spent).value}
    return found
