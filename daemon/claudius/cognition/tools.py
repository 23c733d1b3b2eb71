"""Tools that the owner granted: each ends in its result, or in one of four typed errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from claudius.errors import ToolAborted, ToolFailed, ToolTimedOut, ToolUnknown

Tool = Callable[..., Awaitable[Any]]
"""`async def tool(**args)`; what it returns stands in a prompt as data."""


async def use(tools: Mapping[str, Tool], name: str, args: Mapping[str, Any], *, seconds: float) -> Any:
    """Use one tool; an unknown one is refused at once.

    Raises: ToolUnknown, ToolFailed, ToolTimedOut, ToolAborted; a turn that is itself stopped is cancelled as ever.
    """
    if name not in tools:
        raise ToolUnknown(name, f"is not granted here; there is {', '.join(sorted(tools)) or 'none'}")
    using = asyncio.ensure_future(tools[name](**args))
    try:
        done, _ = await asyncio.wait((using,), timeout=seconds)
    finally:
        using.cancel()
    if not done:
        await asyncio.gather(using, return_exceptions=True)
        raise ToolTimedOut(name, f"gave nothing within {seconds:g} s")
    if using.cancelled():
        raise ToolAborted(name, "was stopped")
    error = using.exception()
    if error is not None:
        raise ToolFailed(name, f"{type(error).__name__}: {error}") from error
    return using.result()
