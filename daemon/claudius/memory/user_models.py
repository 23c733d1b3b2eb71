"""Parse, merge and render the markdown of portraits and of the soul's state. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from claudius.recollection import StateKey

_STATE_LINE = re.compile(r"[-*] (?P<key>\w+):(?P<value>.*?)(?:\(\d{4}-\d\d-\d\dT[\d:.]+Z\))?\s*$")
_STATE_KEYS = {key.value.casefold(): key.value for key in StateKey}
_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)


def sections(markdown: str) -> dict[str, str]:
    """Split a portrait at its level-2 headings: heading to body; text before the first is under "". Pure.

    A heading that occurs twice keeps both bodies, in order, at its first position.
    """
    first, *rest = _HEADING.split(markdown)
    found = {"": first.strip()} if first.strip() else {}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        found[heading] = "\n\n".join(part for part in (found.get(heading, ""), body.strip()) if part)
    return found


def joined(mine: str, theirs: str) -> str:
    """Merge two portraits of one person section by section, the first's words first, without repeating text. Pure."""
    merged = sections(mine)
    by_name = {heading.casefold(): heading for heading in merged}
    for heading, body in sections(theirs).items():
        kept = heading if heading in merged else by_name.setdefault(heading.casefold(), heading)
        old = merged.get(kept, "")
        if body and body not in old:
            merged[kept] = f"{old}\n\n{body}" if old else body
        else:
            merged.setdefault(kept, old)
    parts = [f"## {heading}\n{body}".strip() if heading else body for heading, body in merged.items()]
    return "\n\n".join(parts) + "\n"


def state_document(rows: Iterable[Sequence[Any]]) -> str:
    """Render the soul's state as the markdown that git holds: one heading per audience, one line per key. Pure.

    `rows` are (key, audience, value, instant), in any order. An empty value is the key's default and is left out.
    """
    by_audience: dict[str, list[str]] = {}
    for key, audience, value, at in sorted(rows, key=lambda row: (row[1] != "self", row[1], row[0])):
        if value:
            by_audience.setdefault(audience, []).append(f"- {key}: {' '.join(value.splitlines())} ({at})")
    parts = [f"## {audience}\n" + "\n".join(lines) for audience, lines in by_audience.items()]
    return "\n\n".join(["# Soul state", *parts]) + "\n"


def read_state_document(text: str) -> list[tuple[str, str, str]]:
    """Parse what `state_document` wrote, possibly edited by hand: (audience, key, value) of known keys. Pure."""
    found = []
    audience = ""
    for line in text.splitlines():
        if line.startswith("## "):
            audience = line[3:].strip()
        match = _STATE_LINE.match(line)
        if match and audience and match["key"].casefold() in _STATE_KEYS:
            found.append((audience, _STATE_KEYS[match["key"].casefold()], match["value"].strip()))
    return found
