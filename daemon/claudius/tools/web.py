"""The tool `web.read`, whose client is imported for the first page and not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from claudius.config.schema import Config
from claudius.memory.store import Store
from claudius.tool import JSON, Tool, ToolCall, ToolClass


def build(_: Store, config: Callable[[], Config], __: Callable[[], Sequence[Tool]]) -> tuple[Tool, ...]:
    """Return the tool; `config` returns the settings in force."""

    async def read(args: JSON, _: ToolCall) -> str:
        """Return a page as text. Raises: ToolRefused before anything was sent, ToolFailed."""
        from claudius.tools import page  # noqa: PLC0415 - aiohttp: 11 MiB that a home without it never holds

        return await page.read(str(args["url"]), config().tools, int(args.get("from") or 0))

    made = Tool(
        name="web.read",
        purpose="Read a web page as text, from a character on.",
        cls=ToolClass.READ,
        schema={
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "the whole address, https://…"},
                "from": {"type": "integer", "description": "the character to begin at; default 0"},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
        run=read,
    )
    return (made,)
