"""The tools that ship: the clock, arithmetic, what was said before, a tool's definition, and web pages."""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
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

CHARS, BITS = 300, 4096
"""The longest expression, and the largest whole number on the way."""
MOST, LINE_CHARS = 8, 300
"""The most lines that `recall` gives, and how long each may be."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_KNOWN: Mapping[str, Any] = {"abs": abs, "max": max, "min": min, "round": round} | {
    name: getattr(math, name)
    for name in ("pi", "e", "ceil", "cos", "exp", "floor", "log", "log10", "sin", "sqrt", "tan")
}


def build(store: Store, config: Callable[[], Config], offered: Callable[[], Sequence[Tool]]) -> tuple[Tool, ...]:
    """Return them. `recall` looks in `store`, `tool_help` tells of what is `offered`."""

    async def clock(args: JSON, call: ToolCall) -> str:
        """Return the time in a zone, by default the asker's, else the soul's. Raises: ToolFailed."""
        name = args.get("zone")
        if not name:
            name = zone_name(known_zone(store.people.zone(call.person), config().clock.timezone))
        return time_in(name, _asked_at(call))

    async def recall(args: JSON, call: ToolCall) -> str:
        """Return the lines that share most words, best first, each with who said it when."""
        asked = Perception(
            key="", conversation=call.conversation, audience=call.audience, person=call.person, name="", text="",
            at=_asked_at(call), position="",
        )  # fmt: skip
        found = store.moments.search(asked, args["words"], MOST)
        lines = [f"{one.at:%Y-%m-%d} {one.name or 'you'}: {' '.join(one.content.split())}" for one in found]
        return "\n".join([line[:LINE_CHARS] for line in lines]) or "Nothing of it comes back."

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

    return (
        _look("calc", "Work out arithmetic.", calc, "expression"),
        _look("clock", "Tell date and time in an IANA zone.", clock, "zone?"),
        _look("recall", "Search what was said before.", recall, "words"),
        _look("tool_help", "Show a tool's whole definition.", tool_help, "name"),
        Tool(
            name="web.read",
            purpose="Read a web page as text, from a character on.",
            cls=ToolClass.READ,
            schema=_PAGE,
            run=read,
        ),
    )


_PAGE: JSON = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "the whole address, https://…"},
        "from": {"type": "integer", "description": "the character to begin at; default 0"},
    },
    "required": ["url"],
    "additionalProperties": False,
}


def _look(name: str, purpose: str, run: Runner, arg: str) -> Tool:
    bare = arg.rstrip("?")
    schema = {
        "type": "object",
        "properties": {bare: {"type": "string"}},
        "required": [bare] * (bare == arg),
        "additionalProperties": False,
    }
    return Tool(name=name, purpose=purpose, cls=ToolClass.LOOK, schema=schema, run=run)


def _asked_at(call: ToolCall) -> datetime:
    assert call.asked_at  # noqa: S101 - no call is started before it is recorded
    return call.asked_at


def time_in(name: str, at: datetime) -> str:
    """Return an instant as a zone's clock and calendar show it. Raises: ToolFailed."""
    try:
        now = at.astimezone(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolFailed("clock", "there is no such zone: use an IANA name, such as Asia/Tokyo") from None
    offset = now.isoformat(timespec="minutes")[16:]
    return f"{WEEKDAYS[now.weekday()]}, {now.day} {MONTHS[now.month - 1]} {now.year}, {now:%H:%M} ({name}, UTC{offset})"


async def calc(args: JSON, _: ToolCall) -> str:
    """Work an expression out. Raises: ToolFailed."""
    try:
        return worked_out(args["expression"])
    except (ValueError, SyntaxError, RecursionError, MemoryError, ArithmeticError, TypeError) as error:
        why = error if isinstance(error, ZeroDivisionError | ValueError) else "it is no arithmetic with a finite value"
        raise ToolFailed("calc", str(why)) from error


def worked_out(expression: str) -> str:
    """Return the value of an arithmetic expression. Pure. Raises: ValueError, and whatever Python raises for it."""
    if len(expression) > CHARS:
        raise ValueError(f"it is longer than {CHARS} characters")
    value = _value(ast.parse(expression.strip(), mode="eval").body)
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _finite(value)
        case ast.Name(id="pi" | "e" as name):
            return float(_KNOWN[name])
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=one):
            return _value(one) * (-1 if isinstance(sign, ast.USub) else 1)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            a, b = _value(left), _value(right)
            if isinstance(sign, ast.Pow) and isinstance(a, int) and abs(b) * max(1, a.bit_length()) > BITS:
                raise ValueError("a power in it is too large")
            return _finite(_BINARY[type(sign)](a, b))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if callable(_KNOWN.get(name)):
            return _finite(_KNOWN[name](*[_value(one) for one in args]))
    raise ValueError(f"only numbers, + - * / // % **, brackets, {', '.join(_KNOWN)}")


def _finite(value: Any) -> int | float:
    if (isinstance(value, int) and value.bit_length() <= BITS) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("it has no finite value that fits")
