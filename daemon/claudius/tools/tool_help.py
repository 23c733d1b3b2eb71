"""The tool `tool_help`: the whole definition of another tool, of which a prompt has one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from claudius.errors import ToolFailed
from claudius.tool import JSON, Caller, Tool, ToolClass


def build(offered: Callable[[], Sequence[Tool]]) -> Tool:
    """Return the tool, which tells of those that are offered."""

    async def told(args: JSON, caller: Caller) -> str:
        """Return what a tool does and the JSON schema of its arguments. Raises: ToolFailed."""
        del caller
        found = next((one for one in offered() if one.name == args["name"]), None)
        if found is None:
            raise ToolFailed("tool_help", f"there is no tool {args['name']!r}")
        properties = {name: one for name, one in found.schema.get("properties", {}).items() if name != found.key_arg}
        return f"{found.purpose}\n{json.dumps({**found.schema, 'properties': properties}, ensure_ascii=False)}"

    return Tool(
        name="tool_help",
        purpose="Show a tool's whole definition.",
        cls=ToolClass.LOOK,
        schema={
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        run=told,
    )
