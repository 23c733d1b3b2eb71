"""The tools that ship, and what speaks to those of others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence

from claudius.config import Config
from claudius.memory.store import Store
from claudius.tool import Tool

HELP = "tool_help"
"""It is offered only beside tools whose line in a prompt does not say all of them."""


def built_in(
    modules: Iterable[str],
    store: Store | None,
    config: Callable[[], Config],
    others: Callable[[], Sequence[Tool]] = tuple,
) -> Callable[[], Sequence[Tool]]:
    """Return what lists every tool: those that ship, and `others`; the same tuple while these are the same.

    `store`: None = they are only listed.
    """
    last: list[tuple[Sequence[Tool], Sequence[Tool]]] = []

    def listed() -> Sequence[Tool]:
        found = others()
        if not last or last[-1][0] is not found:
            last[:] = [(found, (*[one for one in ours if found or one.name != HELP], *found))]
        return last[-1][1]

    made = [importlib.import_module(module).build(store, config, listed) for module in dict.fromkeys(modules)]
    ours = [tool for tools in made for tool in tools]
    return listed
