"""Write the receipts of what was really done, in a fixed form that no model writes and no language is needed for. Pure.

Babel is loaded with the first receipt that names a day. Source: the design of acts, section 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Final

from claudius.recurrence import DAYS, days_of

if TYPE_CHECKING:
    from babel import Locale

PLANNED, DROPPED, CHANGED, ZONE = "⏰", "✖", "✎", "◷"
"""What a receipt begins with: a plan made or moved, one dropped, a fact ended or deleted, a zone set."""
NONE: Final = "∅"
"""Follows what was to be changed and was not there any more."""
TEXT_CHARS = 40
_EVERY: Final = {"daily": "1 d", "weekly": "1 w", "monthly": "1 mo", "yearly": "1 y"}
PLAIN: Final = "en_150"
"""English with 24 hours, where the locale is not known."""
_DAY: Final = "EEE d MMM y"


def planned(
    at: datetime,
    zone: tzinfo,
    text: str,
    called: str,
    *,
    repeat: str = "",
    until: date | None = None,
    locale: str = "",
) -> str:
    """Return the receipt of a plan made or moved; `called`: its id, in company with whose it is. Pure."""
    again = f" {repeated(repeat, until, locale)}" if repeat else ""
    words = " ".join(text.split())[:TEXT_CHARS].rstrip()
    return f"{PLANNED} {said_at(at, zone, locale)} {zone}{again} · {words} · {called}"


def unplanned(text: str) -> str:
    """Return the receipt of a plan that found no room. Pure."""
    return f"{PLANNED} {NONE} · {' '.join(text.split())[:TEXT_CHARS].rstrip()}"


def dropped(ids: Iterable[str], gone: Iterable[str] = ()) -> str:
    """Return the receipt of plans that were dropped; `gone` were dropped or said already. Pure."""
    found = " ".join([*ids, *[f"{one} {NONE}" for one in gone]])
    return f"{DROPPED} {found or NONE}"


def changed(called: str) -> str:
    """Return the receipt of a fact that was ended or is to be deleted. Pure."""
    return f"{CHANGED} {called}"


def zone_set(zone: str, others: Mapping[str, Iterable[str]]) -> str:
    """Return the receipt of a zone that was set; `others`: the plans that keep another one, by that zone. Pure."""
    return " · ".join([f"{ZONE} {zone}", *[f"{' '.join(ids)} {name}" for name, ids in others.items()]])


def said_at(at: datetime, zone: tzinfo, locale: str = "") -> str:
    """Return an instant by the clock of a zone: `Thu 27 Nov 2026, 9:00`. Pure."""
    from babel.dates import format_datetime  # noqa: PLC0415 - 0.1 s, only where a day is named

    known = _known(locale)
    hour = "h:mm a" if "h" in known.time_formats["short"].pattern else "H:mm"
    return format_datetime(at.astimezone(zone), f"{_DAY}, {hour}", locale=known)


def repeated(repeat: str, until: date | None = None, locale: str = "") -> str:
    """Return a repetition in signs: `↻ Mon–Fri`, `↻ Mon, Thu`, `↻ 1 d`, with its last day if it has one. Pure."""
    from babel.dates import format_date, get_day_names  # noqa: PLC0415 - likewise

    names, days = get_day_names("abbreviated", locale=_known(locale)), days_of(repeat)
    shown = [names[DAYS.index(day)] for day in days]
    whole = f"{shown[0]}–{shown[-1]}" if repeat == "weekdays" else ", ".join(shown)
    end = f" → {format_date(until, _DAY, locale=_known(locale))}" if until else ""
    return f"↻ {_EVERY.get(repeat) or whole}{end}"


def _known(locale: str) -> Locale:
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - likewise

    try:
        return Locale.parse(locale.replace("-", "_") or PLAIN)
    except (UnknownLocaleError, ValueError):
        return Locale.parse(PLAIN)
