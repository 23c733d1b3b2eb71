"""Tell the soul which tools there are, in the system part, and which of them it may use now, in the tail. Pure.

A turn's soul holds the manifest as one more of its texts, so that a snapshot keeps it with the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from msgspec.structs import replace

from claudius.cognition.plan import Plan
from claudius.prompt import quoted
from claudius.soul import SoulFile, SoulText
from claudius.tool import Tool

MANIFEST = "manifest.md"
"""The name of the manifest among the texts of a turn's soul; no file on disk is called so."""
WORDS = "tools.md"


def with_tools(soul: SoulText, tools: Sequence[Tool]) -> SoulText:
    """Return the soul with the manifest of these tools; the same object for the same tools, unchanged for none."""
    if not tools or WORDS not in soul.files:
        return soul
    known: Sequence[Tool]
    told: SoulText
    known, told = soul.derived.get(MANIFEST, ((), soul))
    if known != tools:  # quick: nearly always the same objects
        text = manifest(soul, tools)
        file = SoulFile(MANIFEST, text, Path(), sha256(text.encode()).hexdigest())
        told = replace(soul, files={**soul.files, MANIFEST: file})
        soul.derived[MANIFEST] = tools, told
    return told


def manifest(soul: SoulText, tools: Sequence[Tool]) -> str:
    """Return the part of the system text that names every tool, a line each, by name."""
    return "\n".join([soul.text(WORDS), *[tool_line(one) for one in sorted(tools, key=lambda one: one.name)]])


def tool_line(tool: Tool) -> str:
    """Return the line of a tool: `- clock(zone?: string): Tell the time.` What others wrote of it is escaped."""
    needed = tool.schema.get("required", ())
    args = [
        f"{name if name in needed else f'{name}?'}: {_type(one)}"
        for name, one in tool.schema.get("properties", {}).items()
        if name != tool.key_arg
    ]
    line = quoted(f"{tool.name}({', '.join(args)}): {tool.purpose}")
    return f"- {line[1:-1]}"


def _type(schema: Any) -> str:
    named = schema.get("type") if isinstance(schema, dict) else None
    return named if isinstance(named, str) else "any"


def skills(soul: SoulText) -> str:
    """Return what the soul says it can do; without the sentence that tools take the place of, where there are some."""
    text, alone = soul.text("skills.md"), soul.files[WORDS].head.get("instead_of") if MANIFEST in soul.files else None
    return text.replace(str(alone), "").rstrip() if alone else text


def tools_here(plan: Plan, soul: SoulText) -> Iterator[str]:
    """Yield the line that names the tools of this turn, if there are some."""
    if plan.tools:
        yield Template(str(soul.files[WORDS].head["here"])).substitute(tools=quoted(", ".join(plan.tools))[1:-1])
