"""What comes later, as `claudius schedule` and `claudius daimon` print it: plans, jobs, daimons; and their changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from claudius.cognition.timing import known_zone
from claudius.config.load import load
from claudius.config.schema import daimons as configured
from claudius.errors import ClaudiusError, UsageProblem
from claudius.home import Home
from claudius.recurrence import local_instant, zone_named
from claudius.reports.opened import edit, noted, records
from claudius.reports.session import ask, wake_and_ask


class NoDaimon(UsageProblem):
    """No daimon has this name."""


def schedule(home: Home, now: datetime) -> list[Mapping[str, Any]]:
    """Return plans and the clock's own jobs, soonest first; also plans that lapsed, and what a due one waits for."""
    live = asyncio.run(ask(home, "status"))
    timers = [_job({"job": name, "next_due": at}) for name, at in (live or {}).get("timers", {}).items()]
    with records(home) as kept:
        plans = [_plan(row, now, is_awake=live is not None) for row in kept.plans()]
        rows = sorted([*plans, *map(_job, kept.jobs()), *timers], key=lambda row: str(row["due_at"]))
    zone = known_zone(load(home, os.environ).config.clock.timezone)
    return [row | {"due_local": datetime.fromisoformat(row["due_at"]).astimezone(zone).isoformat()} for row in rows]


def _plan(row: Mapping[str, Any], now: datetime, *, is_awake: bool) -> dict[str, Any]:
    """Add to a plan what it is about, the words that asked for it or else what will be noticed, and its wait."""
    plan = {key: value for key, value in row.items() if key not in ("heard", "not_before", "reason", "ahead", "short")}
    return plan | {
        "plan": f"p{row['short']}" if row["short"] else None,
        "zone": row["zone"] or "",
        "what": row["params"].get("what") or row["text"],
        "waits_for": _waits_for(row, now, is_awake=is_awake),
    }


def _waits_for(row: Mapping[str, Any], now: datetime, *, is_awake: bool) -> str | None:
    """Return what a due plan waits for; None if it is not due yet, or lapsed."""
    if row["lapsed_at"] or datetime.fromisoformat(row["due_at"]) > now:
        return None
    why = f" ({row['reason']})" if row["reason"] else ""
    if not is_awake:
        return "the daemon: nothing is running"
    if row["heard"] != "pending":
        return {None: "the clock, which looks again within a minute", "committed": f"its network{why}"}.get(
            row["heard"], "its own turn, which is under way"
        )
    if row["not_before"] and datetime.fromisoformat(row["not_before"]) > now:
        return f"{row['not_before']}{why}"
    return f"{row['ahead']} earlier message(s) in its conversation{why}" if row["ahead"] else f"a free moment{why}"


def _job(row: Mapping[str, Any]) -> dict[str, Any]:
    """Format a scheduled job like a plan, but one that nobody made."""
    return {
        "id": row["job"],
        "kind": "job",
        "plan": None,
        "repeat": "",
        "zone": "",
        "state": "waiting",
        "due_at": row["next_due"],
        "conversation": None,
        "process": None,
        "params": {},
        "text": row.get("outcome", ""),
        "what": row.get("outcome", ""),
        "lapsed_at": None,
        "waits_for": None,
        "ended_at": row.get("ended_at"),
        "failures": row.get("failures", 0),
    }


def cancel(home: Home, plan: str) -> None:
    """Cancel a plan. Raises: ClaudiusError if there is none of that id."""
    with records(home) as kept:
        if plan in [row["job"] for row in kept.jobs()]:
            raise ClaudiusError(
                f"{plan} is one of the clock's own jobs, not a plan: docs/daimons.md says which setting controls it"
            )
        number = next((row["id"] for row in kept.plans() if str(row["id"]) == plan), None)
    if number is None or not edit(home, lambda store: store.plans.cancel(number)):
        raise ClaudiusError(f"no plan {plan!r}: `claudius schedule list` names them")


def move(home: Home, plan: str, local: str) -> None:
    """Move a plan to another time by the clock of its zone. Raises: ClaudiusError if there is none, UsageProblem."""
    with records(home) as kept:
        row = next((row for row in kept.plans() if str(row["id"]) == plan), None)
    if row is None:
        raise ClaudiusError(f"no plan {plan!r}: `claudius schedule list` names them")
    try:
        at = datetime.fromisoformat(local)
    except ValueError as error:
        raise UsageProblem(f"{local!r} is no date and time, such as 2026-11-27T09:00") from error
    zone = zone_named(row["zone"]) if row["zone"] else known_zone(load(home, os.environ).config.clock.timezone)
    instant = at.astimezone(UTC) if at.tzinfo else local_instant(at.date(), at.time(), zone)
    if not edit(home, lambda store: store.plans.move(row["id"], instant)):
        raise ClaudiusError(f"no plan {plan!r} waits: `claudius schedule list` names them")


def daimons(home: Home, now: datetime) -> list[dict[str, Any]]:
    """Return the daimons: on or off, how each speaks, when it last did, and why it is paused."""
    known = configured(load(home, os.environ).config)
    with records(home) as kept:
        fared = {row["daimon"]: row for row in kept.daimons()}
    return [_daimon(name, one, fared.get(name, {}), now) for name, one in known.items()]


def _daimon(name: str, one: Any, fared: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    until = fared.get("rests_until")
    rests = until is not None and datetime.fromisoformat(until) > now
    transports = [word for word, on in (("http", one.enabled), ("model", one.groq_enabled)) if on]
    return {
        "name": name,
        "enabled": one.is_on,
        "mode": fared.get("mode") or one.mode,
        "transport": "+".join(transports) or None,
        "last_whisper_at": fared.get("last_whisper_at"),
        "asked_at": fared.get("asked_at"),
        "rests_until": until if rests else None,
        "problem": (fared.get("reason") or "").rpartition(" [")[0],
    }


async def whisper(home: Home, name: str) -> Mapping[str, Any]:
    """Ask a daimon now and return the record; the soul is woken for it. Raises: ClaudiusError."""
    record: Mapping[str, Any] = (await wake_and_ask(home, "daimon", name=name))["record"]
    return record


def set_mode(home: Home, name: str, mode: str) -> None:
    """Set how a daimon may speak, everywhere, until it is changed. Raises: NoDaimon."""
    if name not in configured(load(home, os.environ).config):
        raise NoDaimon(f"no daimon {name!r}: `claudius daimon list` names them")
    home.create()
    noted(home, "daimon", f"{name} {mode}")
    edit(home, lambda store: store.whispers.set_mode(name, mode))
