"""The Claude Code skills on this machine: the user's own and those of installed plugins, by name and purpose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

HEAD_BYTES = 16_384
WHAT_CHARS = 120

_UNSAFE = re.compile(r"[<>`\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_KEY = re.compile(r"(name|description):[ \t]*(.*)")


class Skill(Struct, frozen=True):
    """One skill, as its own front matter names it."""

    name: str
    what: str


def skills(claude: Path) -> list[Skill]:
    """Find every skill below a Claude configuration directory, by name; the user's own win over plugins'."""
    found: dict[str, Skill] = {}
    for directory in (claude, *_plugins(claude)):
        for file in sorted(directory.glob("skills/*/SKILL.md")):
            if skill := read_skill(file):
                found.setdefault(skill.name.casefold(), skill)
    return [found[name] for name in sorted(found)]


def read_skill(file: Path) -> Skill | None:
    """Read a skill's front matter; None where it has none or cannot be read."""
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as opened:
            lines = opened.read(HEAD_BYTES).splitlines()
    except OSError:
        return None
    if not lines or lines[0].strip() != "---":
        return None
    values = dict(_front_matter(lines[1:]))
    name = _line(values.get("name") or file.parent.name, 60)
    return Skill(name, _line(values.get("description", ""), WHAT_CHARS)) if name else None


def _front_matter(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Read `name` and `description`; folded, indented and quoted values are brought to one line."""
    key, parts = "", list[str]()
    for line in lines:
        match = _KEY.match(line)
        is_more = line[:1] in (" ", "\t") or not line.strip()
        if key and not is_more:
            yield key, _unquoted(" ".join(parts))
            key = ""
        if line.strip() == "---":
            return
        if match:
            key, parts = match[1], [re.sub(r"^[>|][+-]?\d?$", "", match[2].strip())]
        elif key:
            parts.append(line.strip())


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _line(text: str, chars: int) -> str:
    line = " ".join(_UNSAFE.sub(" ", text).split())
    return line if len(line) <= chars else line[: chars - 1].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"


def _plugins(claude: Path) -> Iterator[Path]:
    """Give the directories of the plugins that are installed and not switched off."""
    plugins = _json(claude / "plugins" / "installed_plugins.json").get("plugins")
    enabled = _json(claude / "settings.json").get("enabledPlugins")
    switches = enabled if isinstance(enabled, Mapping) else {}
    for name, places in sorted(plugins.items()) if isinstance(plugins, Mapping) else ():
        for place in places if isinstance(places, list) else [places]:
            path = place.get("installPath") if isinstance(place, Mapping) else None
            if isinstance(path, str) and switches.get(name) is not False:
                yield Path(path)


def _json(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}
