"""The tool `clock`: the date and time in a zone."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from claudius.errors import ToolFailed
from claudius.prompt import MONTHS
from claudius.tool import JSON, Caller, Tool, ToolClass

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


async def told(args: JSON, caller: Caller) -> str:
    """Return the time of the turn in a zone, by default the asker's. Raises: ToolFailed."""
    name = str(args.get("zone") or caller.zone or "UTC")
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolFailed("clock", f"there is no zone {name!r}: use an IANA name, such as Asia/Tokyo") from error
    now = caller.now.astimezone(zone)
    offset = now.utcoffset() or UTC.utcoffset(now)
    minutes = int(offset.total_seconds() // 60)
    shown = f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    return f"{WEEKDAYS[now.weekday()]}, {now.day} {MONTHS[now.month - 1]} {now.year}, {now:%H:%M} ({name}, {shown})"


TOOL = Tool(
    name="clock",
    purpose="Tell date and time in an IANA zone.",
    cls=ToolClass.LOOK,
    schema={
        "type": "object",
        "properties": {"zone": {"type": "string", "description": "an IANA name, such as Asia/Tokyo; default: theirs"}},
        "required": [],
        "additionalProperties": False,
    },
    run=told,
)
