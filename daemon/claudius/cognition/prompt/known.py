"""Write what those present are known by, and what is open in the addressee's life, for the tail of a prompt. Pure."""

from __future__ import annotations

from datetime import date

from claudius.cognition.prompt.present import WEEKDAYS
from claudius.memory.facts import LINE_CHARS, NAME, NEWEST_OF
from claudius.prompt import MONTHS, RecordKind, Scalar, short_name
from claudius.recollection import Fact, Matter, Recollection


def known_records(recollection: Recollection) -> dict[str, dict[str, Scalar]]:
    """Return what those present are known by, and what is open in the addressee's life, by its heading. Pure."""
    names = {one.person: one.name or short_name(one.person) for one in recollection.people}
    today = recollection.now.date()
    blocks = {
        "Known": (RecordKind.KNOWN, [fact_line(one, names.get(one.person, "")) for one in recollection.known]),
        "Open": (RecordKind.OPEN, [matter_line(one, today) for one in recollection.matters]),
    }
    return {name: {"kind": kind, "text": "\n".join(lines)} for name, (kind, lines) in blocks.items() if lines}


def fact_line(one: Fact, whose: str) -> str:
    """Return the line of a fact: `f7 Allergic to walnuts`; that of somebody else begins with their name. Pure."""
    text = " ".join(one.text.split())
    text = f"called {text}" if one.kind == NAME else text
    text = text[:LINE_CHARS] if one.kind in NEWEST_OF else text
    dates = [f"since {one.since}"] if one.since else []
    dates += [f"until {one.until}"] if one.until else []
    said = ", ".join(([f"{one.about}: {text}"] if one.about else [text]) + dates)
    return f"{one.short or f'{whose}:'} {said}{' (unchecked)' if one.unchecked else ''}"


def matter_line(one: Matter, today: date) -> str:
    """Return the line of a matter: `m2 interview at the museum, was on Friday`. Pure."""
    text = f"{one.short} {' '.join(one.text.split())}"
    if one.when is None:
        return text
    days = (one.when - today).days
    if days == 0:
        return f"{text}, is today"
    day = WEEKDAYS[one.when.weekday()] if abs(days) < len(WEEKDAYS) else f"{one.when.day} {MONTHS[one.when.month - 1]}"
    return f"{text}, {'is' if days > 0 else 'was'} on {day}"
