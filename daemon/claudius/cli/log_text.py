"""Turn a line of the log into one that people read: when, how bad, what, and the facts; a turn in words of its own."""

from __future__ import annotations

import json
from typing import Any

import click

from claudius.cli.output import safe

COLOURS = {"DEBUG": "bright_black", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
FIRST = ("at", "level", "logger", "event", "traceback")


def readable(line: str) -> str:
    """Return a JSON line as text; a line that is none is returned as it is."""
    try:
        event = json.loads(line)
    except ValueError:
        return safe(line)
    if not isinstance(event, dict):
        return safe(line)
    level = str(event.get("level", ""))
    at = str(event.get("at", "")).replace("T", " ")[:19]
    facts = {name: value for name, value in event.items() if name not in FIRST and value not in (None, "")}
    what = _turn(facts) if event.get("event") == "turn" and "total_ms" in facts else _any(event, facts)
    head = f"{click.style(at, dim=True)} {click.style(f'{level:<7}', fg=COLOURS.get(level))} {safe(what)}"
    trace = "".join(f"\n    {safe(one)}" for one in str(event.get("traceback") or "").splitlines())
    return head + trace


def _any(event: dict[str, Any], facts: dict[str, Any]) -> str:
    room = str(event.get("logger", "")).removeprefix("claudius.")
    told = "  ".join(f"{name}={_plain(value)}" for name, value in facts.items())
    return f"{room}: {event.get('event', '')}" + (f"  {told}" if told else "")


def _turn(facts: dict[str, Any]) -> str:
    said = facts.get("apology") or facts.get("outcome", "")
    took = f"{facts['total_ms'] / 1000:.1f} s, model {facts['model_ms'] / 1000:.1f} s"
    cost = f"${facts['cost_usd']:.4f}" if "cost_usd" in facts else ""
    unposted = "" if facts.get("posted") else "not posted yet"
    parts = (said, f"in {took}", facts.get("rung", ""), facts.get("model", ""), cost, unposted)
    where = f"{facts.get('conversation', '')} {facts.get('person', '')}".strip()
    return f"turn {facts.get('turn', '')}: {', '.join(str(one) for one in parts if one)}  {where}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
