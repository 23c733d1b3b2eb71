"""Definitions of servers' tools: which are acceptable, what the model is shown of them, what differs. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from claudius.memory.calls import Pin
from claudius.tool import JSON, ToolClass

MOST_TOOLS = 64
MOST_PAGES = 8
SCHEMA_BYTES = 20_000
SCHEMA_DEPTH = 24
DESCRIPTION_CHARS = 8_000
PURPOSE_CHARS = 120
BEFORE_CHARS = 30
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,63}\Z")
SERVER = re.compile(r"[a-z][a-z0-9_-]{0,30}\Z")


class Definition(Struct, frozen=True, kw_only=True):
    """One tool, as its server describes it."""

    name: str
    description: str
    schema: JSON
    hints: Mapping[str, Any] = field(default_factory=dict)
    """The server's own annotations; a proposal, never a rule."""

    @property
    def sha256(self) -> str:
        """What the owner agrees to: name, description and schema in their canonical form."""
        whole = json.dumps([self.name, self.description, self.schema], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(whole.encode()).hexdigest()

    @property
    def proposed(self) -> ToolClass:
        """The class that its annotations suggest; the strictest where they say nothing."""
        if self.hints.get("readOnlyHint") is True:
            return ToolClass.READ
        mild = self.hints.get("destructiveHint") is False and self.hints.get("openWorldHint") is False
        return ToolClass.WRITE if mild else ToolClass.SEND


def flaw(raw: Any) -> str:
    """Return what is wrong with a definition as a server sent it; empty if it can be offered."""
    one: dict[str, Any] = raw if isinstance(raw, dict) else {}
    name, schema, description = one.get("name"), one.get("inputSchema"), one.get("description") or ""
    if not isinstance(name, str) or not NAME.match(name):
        return f"{ascii(name)[:80]}: no usable name"
    wrong = ""
    if not isinstance(description, str) or len(description) > DESCRIPTION_CHARS:
        wrong = f"its description is no text of at most {DESCRIPTION_CHARS} characters"
    elif not isinstance(schema, dict) or schema.get("type") != "object":
        wrong = "its schema is no object"
    elif not _is_shaped(schema.get("properties", {}), schema.get("required", [])):
        wrong = "its schema is malformed"
    elif _depth(schema, SCHEMA_DEPTH) > SCHEMA_DEPTH:
        wrong = "its schema is nested too deep"
    elif len(json.dumps(schema)) > SCHEMA_BYTES:
        wrong = f"its schema is longer than {SCHEMA_BYTES} bytes"
    return f"{name}: {wrong}" if wrong else ""


def _is_shaped(properties: Any, required: Any) -> bool:
    return (
        isinstance(properties, dict)
        and all(isinstance(one, dict | bool) for one in properties.values())
        and isinstance(required, list)
        and all(isinstance(one, str) for one in required)
    )


def _depth(value: Any, most: int) -> int:
    """Return how deep a value is nested, or more than `most`; looks no deeper."""
    level, depth = [value], 0
    while level and depth <= most:
        depth += 1
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


def purpose(description: str) -> str:
    """Return the first sentence of a description, at most PURPOSE_CHARS characters."""
    words = " ".join(description.split())
    sentence = re.split(r"(?<=[.!?。])\s", words, maxsplit=1)[0]
    return sentence if len(sentence) <= PURPOSE_CHARS else sentence[: PURPOSE_CHARS - 1] + "…"


def closed(schema: JSON, key_arg: str) -> JSON:
    """Return a schema without the argument that takes the idempotency key, and without additional ones."""
    properties = {name: one for name, one in schema.get("properties", {}).items() if name != key_arg}
    required = [name for name in schema.get("required", []) if name != key_arg]
    return {**schema, "properties": properties, "required": required, "additionalProperties": False}


def differences(pinned: Iterable[Pin], found: Iterable[Definition], *, parts: bool = False) -> dict[str, str]:
    """Return what differs from the pins, by tool: `changed`, `vanished`, `new`; `parts`: and where it changed. Pure."""
    then, now = {one.tool: one for one in pinned}, {one.name: one for one in found}
    differs = {}
    for name in sorted({*then, *now}):
        if name not in then or name not in now:
            differs[name] = "vanished" if name in then else "new"
        elif then[name].sha256 != now[name].sha256:
            differs[name] = "changed" + (f": {_parting(then[name], now[name])}" if parts else "")
    return differs


def _parting(then: Pin, now: Definition) -> str:
    """Return all of both texts from a little before where they part to where they meet again, each character seen."""
    old, new = (
        f"{one.description} {json.dumps(one.schema, sort_keys=True, ensure_ascii=False)}" for one in (then, now)
    )
    before = _alike(old, new)
    behind = _alike(old[before:][::-1], new[before:][::-1])
    at = max(0, before - BEFORE_CHARS)
    shown = (_visible(one[at : len(one) - max(0, behind - BEFORE_CHARS)]) for one in (old, new))
    return "“{}” is now “{}”".format(*shown)


def _alike(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _visible(text: str) -> str:
    """Return a text in which each character that shows nothing is written as its number. Pure."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
