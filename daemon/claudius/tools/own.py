"""Tools of the owner's own: functions with `@tool`, named under `[tools.own]`."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from claudius.config.schema import OwnTool
from claudius.errors import BadConfiguration
from claudius.failure import of_a_part
from claudius.tool import JSON, Caller, Tool, ToolClass, schema_of
from claudius.tools.pins import PURPOSE_CHARS

_FIX = "docs/hands.md shows the shape"


def own_tools(named: Mapping[str, str | OwnTool], taken: Callable[[str], bool]) -> tuple[Tool, ...]:
    """Return the owner's own tools, by name. `taken` tells which names are others'. Raises: BadConfiguration."""
    return tuple(_tool(name, one, taken) for name, one in sorted(named.items()))


def _tool(name: str, given: str | OwnTool, taken: Callable[[str], bool]) -> Tool:
    own, key = given if isinstance(given, OwnTool) else OwnTool(call=given), f"tools.own.{name}"
    if taken(name) or not name.isidentifier():
        raise BadConfiguration("config.toml", key, "is a name in use, or none", "choose another name, of letters")
    module, _, attribute = own.call.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
        about = function.__tool__
        schema = schema_of(function)
    except Exception as error:
        detail = f"{own.call!r} is no tool: {of_a_part(error)}"
        raise BadConfiguration("config.toml", key, detail, _FIX) from error
    cls = about["cls"]
    return Tool(
        name=name,
        purpose=str(about["purpose"])[:PURPOSE_CHARS],
        cls=cls,
        schema=schema,
        run=partial(_run, function),
        source="own",
        where=own.where or (() if cls is ToolClass.LOOK else ("owner",)),
    )


async def _run(function: Callable[..., Any], args: JSON, caller: Caller) -> str:
    if inspect.iscoroutinefunction(function):
        return str(await function(**args))
    return str(await _in_thread(partial(function, **args), caller.call))


async def _in_thread(call: Callable[[], Any], name: str) -> Any:
    """Run a function in a thread of its own: one that hangs takes no place of another, and keeps no process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def end(method: str, value: Any) -> None:
        if not future.done():
            getattr(future, method)(value)

    def work() -> None:
        try:
            ended = ("set_result", call())
        except Exception as error:  # noqa: BLE001 - it is raised where the call is awaited
            ended = ("set_exception", error)
        with suppress(RuntimeError):  # the process stops
            loop.call_soon_threadsafe(end, *ended)

    threading.Thread(target=work, name=f"tool-{name}", daemon=True).start()
    return await future
