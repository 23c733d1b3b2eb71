"""The tool `calc`: arithmetic, and nothing that could take long or reach anything."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from claudius.errors import ToolFailed
from claudius.tool import JSON, Caller, Tool, ToolClass

CHARS, BITS = 300, 4096
"""The longest expression, and the largest whole number on the way."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "ceil": math.ceil, "cos": math.cos, "exp": math.exp, "floor": math.floor, "log": math.log,
    "log10": math.log10, "max": max, "min": min, "round": round, "sin": math.sin, "sqrt": math.sqrt, "tan": math.tan,
}  # fmt: skip
_NAMES = {"pi": math.pi, "e": math.e}


class _Refused(ValueError):
    """Says what is no arithmetic."""


def worked_out(expression: str) -> str:
    """Return the value of an arithmetic expression. Pure. Raises: ValueError with the reason."""
    if len(expression) > CHARS:
        raise _Refused(f"it is longer than {CHARS} characters")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise _Refused("it divides by zero") from None
    except (SyntaxError, RecursionError, MemoryError, ArithmeticError, TypeError) as error:
        raise _Refused("it is no arithmetic with a finite value") from error
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value)


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _small(value)
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=sign, operand=one) if type(sign) in _UNARY:
            return _small(_UNARY[type(sign)](_value(one)))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            a, b = _value(left), _value(right)
            if isinstance(sign, ast.Pow) and isinstance(a, int) and abs(b) * max(1, a.bit_length()) > BITS:
                raise _Refused("a power in it is too large")
            return _small(_BINARY[type(sign)](a, b))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _small(_FUNCTIONS[name](*[_value(one) for one in args]))
    raise _Refused(f"only numbers, + - * / // % **, brackets, {', '.join([*_NAMES, *_FUNCTIONS])}")


def _small(value: Any) -> int | float:
    if isinstance(value, int) and value.bit_length() <= BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise _Refused("it has no finite value that fits")


async def told(args: JSON, caller: Caller) -> str:
    """Work an expression out. Raises: ToolFailed."""
    del caller
    try:
        return worked_out(str(args["expression"]))
    except ValueError as error:
        raise ToolFailed("calc", str(error)) from error


TOOL = Tool(
    name="calc",
    purpose="Work out arithmetic.",
    cls=ToolClass.LOOK,
    schema={
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "such as 0.17 * 240, sqrt(2), 7 // 2"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
    run=told,
)
