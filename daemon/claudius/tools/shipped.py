"""The tools that ship: the clock, arithmetic, what was said before, a tool's definition, and web pages."""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from claudius.cognition.prompt.present import WEEKDAYS
from claudius.cognition.timing import known_zone, zone_name
from claudius.config.schema import Config
from claudius.errors import ToolFailed
from claudius.memory.store import Store
from claudius.perception import Perception
from claudius.prompt import MONTHS
from claudius.tool import JSON, Runner, Tool, ToolCall, ToolClass

CHARS, BITS = 200, 4096
"""The longest expression, and the largest whole number on the way."""
MOST, LINE_CHARS = 8, 300
"""The most lines that `recall` gives, and how long each may be."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_PERCENT = re.compile(r"(\d[\d.]*)\s*%(?=\s*(?:$|of\b|[-+*/),]))")
_UNITS: Mapping[str, int | float] = {
    "pi": math.pi, "e": math.e, "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Any] = {
    "abs": abs, "max": max, "min": min, "round": lambda one, *to: round(one, *[max(n, -BITS) for n in to]),
    **{name: getattr(math, name) for name in ("ceil", "cos", "exp", "floor", "log", "log10", "sin", "sqrt", "tan")},
}  # fmt: skip


def build(store: Store, config: Callable[[], Config], offered: Callable[[], Sequence[Tool]]) -> tuple[Tool, ...]:
    """Return them. `recall` looks in `store`, `tool_help` tells of what is `offered`."""

    async def clock(args: JSON, call: ToolCall) -> str:
        """Return the time, or a date, in a zone, by default the asker's, else the soul's. Raises: ToolFailed."""
        assert call.asked_at  # noqa: S101 - no call is started before it is recorded
        name = args.get("zone")
        if not name:
            name = zone_name(known_zone(store.people.zone(call.person), config().clock.timezone))
        return time_in(name, call.asked_at, args.get("date", ""), args.get("add", ""))

    async def recall(args: JSON, call: ToolCall) -> str:
        """Return the lines that share words, best first, each with who said it when."""
        assert call.asked_at  # noqa: S101 - no call is started before it is recorded
        asked = Perception(
            key="", conversation=call.conversation, audience=call.audience, person=call.person, name="", text="",
            at=call.asked_at, position="",
        )  # fmt: skip
        found = store.moments.search(asked, args["words"], MOST)
        lines = list[str]()
        for one in found:
            day, who = datetime.fromtimestamp(one.at_s, UTC).date(), "somebody" if one.person else "you"
            lines.append(f"{day} {'you' if one.is_own else one.name or who}: {' '.join(one.text.split())}"[:LINE_CHARS])
        return "\n".join(lines) or "Nothing of it comes back."

    async def tool_help(args: JSON, _: ToolCall) -> str:
        """Return what a tool does and the JSON schema of its arguments. Raises: ToolFailed."""
        found = next((one for one in offered() if one.name == args["name"]), None)
        if found is None:
            raise ToolFailed("tool_help", "there is no such tool")
        return f"{found.purpose}\n{json.dumps(found.schema, ensure_ascii=False)}"

    async def read(args: JSON, _: ToolCall) -> str:
        """Return a page as text. Raises: ToolRefused before anything was sent, ToolFailed."""
        from claudius.tools import page  # noqa: PLC0415 - aiohttp: 11 MiB that a home without it never holds

        return await page.read(str(args["url"]), config().tools, int(args.get("from") or 0))

    shift = "Tell date and time in an IANA zone, or of an ISO date; add: 3 weeks, -1 month."
    sums = "Work out arithmetic, 17% * 240, and units: 90*minute/hour, 3*GB/MiB."
    page = "Read a web page as text, from a character on."
    return (
        _tool("calc", sums, calc, {"expression": "string"}),
        _tool("clock", shift, clock, {"zone?": "string", "date?": "string", "add?": "string"}),
        _tool("recall", "Search what was said before.", recall, {"words": "string"}),
        _tool("tool_help", "Show a tool's whole definition.", tool_help, {"name": "string"}),
        _tool("web.read", page, read, {"url": "string", "from?": "integer"}, ToolClass.READ),
    )


def _tool(name: str, purpose: str, run: Runner, args: Mapping[str, str], cls: ToolClass = ToolClass.LOOK) -> Tool:
    """Return a tool; `args`: the type of each argument, `?` behind the name of one that may be left out."""
    schema = {
        "type": "object",
        "properties": {one.rstrip("?"): {"type": kind} for one, kind in args.items()},
        "required": [one for one in args if not one.endswith("?")],
        "additionalProperties": False,
    }
    return Tool(name=name, purpose=purpose, cls=cls, schema=schema, run=run)


def time_in(name: str, at: datetime, date: str = "", add: str = "") -> str:
    """Return an instant, or a date, shifted, as a zone's clock and calendar show it. Raises: ToolFailed."""
    try:
        now = at.astimezone(zone := ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolFailed("clock", "there is no such zone: use an IANA name, such as Asia/Tokyo") from None
    try:
        given = datetime.fromisoformat(date) if date else now
        then = _shifted(given.astimezone(zone) if given.tzinfo else given.replace(tzinfo=zone), add)
    except (ValueError, TypeError, OverflowError):
        form = "write a date as 2026-12-24 or 2026-12-24T18:30, a shift as 3 weeks or -1 month"
        raise ToolFailed("clock", form) from None
    days, offset = (then.date() - now.date()).days, then.isoformat(timespec="minutes")[16:]
    count = f"{abs(days)} day{'s' * (abs(days) != 1)}"
    far = f", in {count}" if days > 0 else f", {count} ago" if days else ", today"
    day = f"{WEEKDAYS[then.weekday()]}, {then.day} {MONTHS[then.month - 1]} {then.year}"
    hour = f", {then:%H:%M}" if (then.hour, then.minute) != (0, 0) or not date else ""
    return f"{day}{hour} ({'UTC' if name[-3:] == 'UTC' else f'{name}, UTC{offset}'}){far if date or add else ''}"


def _shifted(at: datetime, add: str) -> datetime:
    """Return an instant shifted by `3 weeks` or `-1 month`: by the calendar; by the clock if less than a day."""
    if not add:
        return at
    number, unit = add.lower().split()
    count, unit = int(number), unit.rstrip("s")
    if unit in ("month", "year"):
        years, month = divmod(at.month - 1 + count * (12 if unit == "year" else 1), 12)
        year, month = at.year + years, month + 1
        return at.replace(year=year, month=month, day=min(at.day, monthrange(year, month)[1]))
    by, shift = (at.tzinfo if unit in ("day", "week") else UTC), timedelta(**{f"{unit}s": count})
    return (at.astimezone(by) + shift).astimezone(UTC).astimezone(at.tzinfo)


async def calc(args: JSON, _: ToolCall) -> str:
    """Return the value of an arithmetic expression. Raises: ToolFailed."""
    expression = args["expression"].strip()
    if len(expression) > CHARS:
        raise ToolFailed("calc", f"it is longer than {CHARS} characters")
    try:
        plain = re.sub(r"\bof\b", "*", _PERCENT.sub(r"(\1/100)", expression))
        value = _value(ast.parse(plain, mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError, ArithmeticError, TypeError) as error:
        why = error if isinstance(error, ZeroDivisionError | ValueError) else "it is no arithmetic with a finite value"
        raise ToolFailed("calc", str(why)) from error
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _finite(value)
        case ast.Name(id=name) if name in _UNITS:
            return _UNITS[name]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=one):
            return _value(one) * (-1 if isinstance(sign, ast.USub) else 1)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            a, b = _value(left), _value(right)
            if isinstance(sign, ast.Pow) and isinstance(a, int) and abs(b) * max(1, a.bit_length()) > BITS:
                raise ValueError("a power in it is too large")
            return _finite(_BINARY[type(sign)](a, b))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _finite(_FUNCTIONS[name](*[_value(one) for one in args]))
    raise ValueError(f"only numbers, + - * / // % **, brackets, {', '.join([*_UNITS, *_FUNCTIONS])}")


def _finite(value: Any) -> int | float:
    if (isinstance(value, int) and value.bit_length() <= BITS) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("it has no finite value that fits")
