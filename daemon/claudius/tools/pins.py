"""Definitions of servers' tools: which are acceptable, what the model is shown of them, what differs. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any
from urllib.parse import unquote

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
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}\Z")
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
        return f"{repr(name)[:80]}: no usable name"
    wrong = ""
    if not isinstance(description, str) or len(description) > DESCRIPTION_CHARS:
        wrong = f"its description is no text of at most {DESCRIPTION_CHARS} characters"
    elif not isinstance(schema, dict) or schema.get("type", "object") != "object":
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
    if not isinstance(value, dict | list) or not most:
        return 1
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(one, most - 1) for one in inner), default=0)


def purpose(description: str) -> str:
    """Return the first sentence of a description, at most PURPOSE_CHARS characters."""
    words = " ".join(description.split())
    sentence = re.split(r"(?<=[.!?。])\s", words, maxsplit=1)[0]
    return sentence if len(sentence) <= PURPOSE_CHARS else sentence[: PURPOSE_CHARS - 1] + "…"


def closed(schema: JSON, key_arg: str = "") -> JSON:
    """Return a schema whose `properties` are all arguments that it names anywhere, but for the idempotency key.

    Of alternatives, what each of them requires is required; which of them fits is the server's own to check, as nested
    values are. Arguments that it does not name are taken where it says so.
    """
    properties, required, more = _arguments(schema, schema, set())
    properties.pop(key_arg, None)
    needed = [name for name in properties if name in required]
    return {**schema, "properties": properties, "required": needed, "additionalProperties": more}


def _arguments(part: Any, whole: JSON, followed: set[str]) -> tuple[dict[str, Any], set[str], Any]:
    """Return the arguments that a part of a schema names, those that it requires, and what it takes besides."""
    part = part if isinstance(part, dict) else {}
    properties: dict[str, Any] = {**_of(dict, part, "properties")}
    required = {one for one in _of(list, part, "required") if isinstance(one, str)}
    more = "patternProperties" in part or part.get("additionalProperties", False)
    more = True if more == {} else more
    groups = [_of(list, part, "oneOf"), _of(list, part, "anyOf"), *([one] for one in _of(list, part, "allOf"))]
    groups += [[part[name], {}] for name in ("then", "else") if name in part]
    ref = str(part.get("$ref", ""))
    if ref.startswith("#/") and ref not in followed and len(followed) < SCHEMA_DEPTH:
        followed.add(ref)
        names = [one.replace("~1", "/").replace("~0", "~") for one in unquote(ref[2:]).split("/")]
        groups.append([reduce(lambda found, name: _of(dict, found, name), names, whole)])
    for found in [[_arguments(one, whole, followed) for one in group] for group in groups if group]:
        for named, _, also in found:
            for name, one in named.items():
                is_same = properties.setdefault(name, one) == one
                properties[name] = one if is_same else {"anyOf": [properties[name], one]}
            more = more or also
        required |= set.intersection(*[needed for _, needed, _ in found])
    return properties, required, more


def _of(kind: type, part: JSON, name: str) -> Any:
    return found if isinstance(found := part.get(name), kind) else kind()


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
    shown = (visible(one[at : len(one) - max(0, behind - BEFORE_CHARS)]) for one in (old, new))
    return "“{}” is now “{}”".format(*shown)


def _alike(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def visible(text: str) -> str:
    """Return a text in which each character that shows nothing is written as its number. Pure."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
