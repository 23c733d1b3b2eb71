"""What is running and waits, and what it cost, as `claudius status` and `claudius usage` print it."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import claudius
from claudius.config import Config, load
from claudius.home import Home
from claudius.reports.opened import records
from claudius.reports.session import ask
from claudius.runtime.lock import holder


class Offer(NamedTuple):
    """Something that is off until its owner wants it."""

    name: str
    sets: str
    """The setting that turns it on."""
    told: str
    """What it is, and what it costs a day."""


OFFERS = (
    Offer(
        "kothar",
        "kothar.groq_enabled",
        "Kothar, a daimon who whispers a line of counsel when a talk rests; in rehearsal he needs no model, at no cost",
    ),
    Offer(
        "writing first",
        "psyche.proactive",
        "Writing first, by day, only to people who said yes: at most one message, so one model call, a person a day",
    ),
    Offer(
        "ism",
        "ism.enabled",
        "Choosing its own steps on a hard problem: up to twelve model calls in such a turn instead of one",
    ),
    Offer(
        "consultation",
        "cortex.consult.enabled",
        "Asking its second mind before it answers where money, passwords or deletion are at stake: one more model call",
    ),
)


def is_on(config: Config, sets: str) -> bool:
    """Return whether a setting of an offer is on; Kothar is, too, if he is asked over HTTP. Pure."""
    value: Any = config
    for part in sets.split("."):
        value = getattr(value, part)
    return bool(value) or (sets.startswith("kothar.") and config.kothar.is_on)


def offered(config: Config) -> list[dict[str, str]]:
    """Return what is off, what it would cost, and the command that turns it on. Pure."""
    return [
        {"name": one.name, "what": one.told, "command": f"claudius config set {one.sets} true"}
        for one in OFFERS
        if not is_on(config, one.sets)
    ]


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
        "offers": offered(load(home, os.environ).config),
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
