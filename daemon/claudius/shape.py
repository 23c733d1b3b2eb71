"""Tell whether a part of the owner's own has the shape that Claudius calls, before anybody waits for it."""

from __future__ import annotations

import inspect
from typing import Any


def misfit(part: object, door: type) -> str:
    """Return what `part` lacks of a protocol, in words; empty if it fits. Nothing of it is called. Pure."""
    parts = [vars(one) for one in door.__mro__ if getattr(one, "_is_protocol", False)]
    wanted = {name: one for of_it in parts for name, one in of_it.items() if not name.startswith("_")}
    for name in [one for of_it in parts for one in of_it.get("__annotations__", {}) if one not in wanted]:
        if not hasattr(part, name):
            return f"it has no {name}"
    for name, one in wanted.items():
        if not hasattr(part, name):
            return f"it has no {name}" + (_words(one) if callable(one) else "")
        if callable(one) and (problem := _method(getattr(part, name), one)):
            return f"its {name} {problem}"
    return ""


def _method(own: Any, wanted: Any) -> str:
    if not callable(own):
        return "is not a function"
    if inspect.iscoroutinefunction(wanted) and not inspect.iscoroutinefunction(own):
        return "is not `async def`"
    if not inspect.iscoroutinefunction(wanted) and inspect.iscoroutinefunction(own):
        return "has to `yield` what it returns" if "AsyncIterator" in str(wanted.__annotations__) else "is `async def`"
    keywords = tuple(one.name for one in _parameters(wanted) if one.kind is inspect.Parameter.KEYWORD_ONLY)
    if problem := unfit_for(own, len(_parameters(wanted)) - len(keywords), keywords):
        return f"cannot be called as {wanted.__name__}{_words(wanted)}: {problem}"
    return ""


def unfit_for(function: Any, positional: int, keywords: tuple[str, ...] = ()) -> str:
    """Return why a function cannot be called with so many arguments, in Python's words; empty if it can. Pure."""
    try:
        inspect.signature(function).bind(*[None] * positional, **dict.fromkeys(keywords))
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _parameters(wanted: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(wanted).parameters.values())[1:]


def _words(wanted: Any) -> str:
    return f"({', '.join(one.name for one in _parameters(wanted))})"
