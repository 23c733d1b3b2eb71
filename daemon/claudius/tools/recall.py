"""The tool `recall`: what was said before, as far as it may be shown where it is asked for."""

from __future__ import annotations

from claudius.memory.store import Store
from claudius.perception import Perception
from claudius.tool import JSON, Caller, Tool, ToolClass

MOST, LINE_CHARS = 8, 300


def build(store: Store) -> Tool:
    """Return the tool, which looks in this store."""

    async def told(args: JSON, caller: Caller) -> str:
        """Return the lines that share most words, best first, each with who said it when."""
        asked = Perception(
            key="",
            conversation=caller.conversation,
            audience=caller.audience,
            person=caller.person,
            name="",
            text="",
            at=caller.now,
            position="",
        )
        found = store.moments.search(asked, str(args["words"]), MOST)
        lines = [
            f"{one.at:%Y-%m-%d} {one.name or 'you'}: {' '.join(one.content.split())[:LINE_CHARS]}" for one in found
        ]
        return "\n".join(lines) or "Nothing of it comes back."

    return Tool(
        name="recall",
        purpose="Search what was said before.",
        cls=ToolClass.LOOK,
        schema={
            "type": "object",
            "properties": {"words": {"type": "string"}},
            "required": ["words"],
            "additionalProperties": False,
        },
        run=told,
    )
