"""People as `claudius users` shows them: portraits, versions, and what an owner changes about them.

Whoever reads or changes a portrait is in the audit log; `origin` says from where, `cli` or `console`. Where the log
cannot be written, a change is refused, and a look is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher, unified_diff
from typing import Any

from msgspec import to_builtins

from claudius.errors import ClaudiusError, UsageProblem, near
from claudius.home import Home
from claudius.memory.audit import CLI
from claudius.memory.facts import Knowledge
from claudius.memory.records import Records
from claudius.reports.opened import edit, looked, noted, records
from claudius.reports.session import wake_and_ask

_LOG = ("version", "at", "note", "commit", "turn", "audience", "author", "suspect")


def person(home: Home, who: str, origin: str = CLI) -> Knowledge:
    """Return who a person is to the soul. Raises: ClaudiusError."""
    with records(home) as kept:
        found = _person(kept, who)
    looked(home, "read", found.person, origin)
    return found


def log(home: Home, who: str, origin: str = CLI) -> list[dict[str, Any]]:
    """Return the versions of a person's portraits, newest first, each with its note; then the pages of the diary.

    Raises: ClaudiusError.
    """
    rows = _read(home, who, origin)
    with records(home) as kept:
        pages = kept.diaries([_person(kept, who).person])
    return [*[{key: row.get(key) for key in _LOG} for row in reversed(rows)], *map(dict, reversed(pages))]


def diff(
    home: Home, who: str, old: int | None = None, new: int | None = None, audience: str = "", origin: str = CLI
) -> dict[str, Any]:
    """Compare two versions (default: the newest and the one before). Raises: ClaudiusError."""
    with records(home) as kept:
        rows = _of_one_audience(_versions(kept, who), audience)
    looked(home, "read", rows[-1]["person"], origin)
    latest = rows[-1]["version"]
    new = latest if new is None else new
    old = new - 1 if old is None else old
    before, after = (_markdown(rows, version).splitlines() for version in (old, new))
    lines = list(unified_diff(before, after, f"version {old}", f"version {new}", lineterm=""))
    return {"person": rows[-1]["person"], "audience": rows[-1]["audience"], "old": old, "new": new, "diff": lines}


def blame(home: Home, who: str, audience: str = "", origin: str = CLI) -> list[dict[str, Any]]:
    """Return each line of a portrait with the version, turn and note that added it. Raises: ClaudiusError."""
    rows = _read(home, who, origin)
    return _blame(_of_one_audience(rows, audience) if rows else ())


def revert(home: Home, who: str, version: int, audience: str, now: datetime) -> dict[str, Any]:
    """Make an earlier version the newest again. Raises: ClaudiusError."""
    with records(home) as kept:
        rows = _of_one_audience(_versions(kept, who), audience)
    markdown, note = _markdown(rows, version), f"back to version {version}"
    whose, where = rows[-1]["person"], rows[-1]["audience"]
    noted(home, "revert", whose)
    made = edit(home, lambda store: store.documents.set_model(whose, where, markdown, note, "revert", now))
    return {"person": whose, "audience": where, "version": made, "from": version}


def link(home: Home, who: str, other: str) -> dict[str, Any]:
    """Make two ids one person. Raises: ClaudiusError."""
    with records(home) as kept:
        found = [(one, _person(kept, one)) for one in (who, other)]
        ids = [one if one in known.ids else known.person for one, known in found]
    for one in ids:
        noted(home, "link", one)
    edit(home, lambda store: store.people.link(*ids))
    return {"person": ids[0], "linked": ids[1]}


def unlink(home: Home, who: str, now: datetime) -> dict[str, Any]:
    """Separate the ids of a person again. Raises: ClaudiusError."""
    with records(home) as kept:
        known = _person(kept, who)
    if not known.ids:
        raise ClaudiusError(f"{known.person} is not linked with another id")
    noted(home, "unlink", known.person)
    ids = edit(home, lambda store: store.people.unlink(known.person, now))
    return {"person": ids[0], "unlinked": list(ids[1:])}


def export(home: Home, who: str, origin: str = CLI) -> dict[str, Any]:
    """Return everything that is kept of a person. Raises: ClaudiusError."""
    with records(home) as kept:
        found = _person(kept, who)
        said = kept.personal((found.person, *found.ids))
    looked(home, "export", found.person, origin)
    return {"person": found.person, "name": found.name, "models": to_builtins(found.models), **said}


async def forget(home: Home, who: str, *, at_once: bool = False) -> Mapping[str, Any]:
    """Erase a person and return the receipt; the soul is woken for it. Raises: ClaudiusError.

    `at_once`: what the database's files still hold is overwritten before the receipt, not in a quiet hour.
    """
    with records(home) as kept:
        known = _person(kept, who).person
    receipt: Mapping[str, Any] = (await wake_and_ask(home, "forget", person=known, now=at_once))["receipt"]
    return receipt


def nothing_of(name: str) -> str:
    """Return the line that says that a person has no portrait yet."""
    return f"nothing has been written about {name} yet"


def _read(home: Home, who: str, origin: str) -> Sequence[Mapping[str, Any]]:
    with records(home) as kept:
        whose = _person(kept, who).person
        rows = kept.versions(whose)
    looked(home, "read", whose, origin)
    return rows


def _person(kept: Records, who: str) -> Knowledge:
    found = kept.person(who)
    if found is None:
        people = [(row["person"], row["name"]) for row in kept.people() if who]
        lower = who.casefold()
        if several := [one for one, name in people if lower in (name.casefold(), one.rpartition(":")[2].casefold())]:
            raise ClaudiusError(f"{who!r} is the name of several: say which of {', '.join(several)}")
        known = [name for one in people for name in one if name]
        raise ClaudiusError(f"nobody is known as {who!r}{near(who, known)}: `claudius users list` lists everyone")
    return found


def _versions(kept: Records, who: str) -> Sequence[Mapping[str, Any]]:
    found = kept.versions(_person(kept, who).person)
    if not found:
        raise ClaudiusError(nothing_of(repr(who)))
    return found


def _of_one_audience(rows: Sequence[Mapping[str, Any]], audience: str) -> Sequence[Mapping[str, Any]]:
    audiences = sorted({row["audience"] for row in rows})
    if not audience and len(audiences) > 1:
        raise UsageProblem(f"there are several models: choose one with --audience: {', '.join(audiences)}")
    chosen = [row for row in rows if row["audience"] == (audience or audiences[0])]
    if not chosen:
        raise UsageProblem(f"no model in {audience!r}: choose one of {', '.join(audiences)}")
    return chosen


def _markdown(rows: Sequence[Mapping[str, Any]], version: int) -> str:
    if version == 0:
        return ""
    found = next((row for row in rows if row["version"] == version), None)
    if found is None:
        raise UsageProblem(f"there is no version {version}: 1 to {rows[-1]['version']}")
    return str(found["markdown"])


def _blame(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Trace each line of the newest version to the version that introduced it. Pure."""
    lines: list[tuple[str, Mapping[str, Any]]] = []
    for row in rows:
        fresh = str(row["markdown"]).splitlines()
        matcher = SequenceMatcher(None, [line for line, _ in lines], fresh, autojunk=False)
        traced: list[tuple[str, Mapping[str, Any]]] = []
        for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
            traced += lines[old_from:old_to] if tag == "equal" else [(line, row) for line in fresh[new_from:new_to]]
        lines = traced
    return [
        {"line": line, "version": row["version"], "turn": row.get("turn"), "note": row["note"]} for line, row in lines
    ]
