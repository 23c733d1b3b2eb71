"""The tools that ship, and what speaks to those of others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence

from claudius.memory.store import Store
from claudius.tool import Tool

HELP = "tool_help"
"""It is offered only beside tools whose line in a prompt does not say all of them."""


def built_in(
    paths: Mapping[str, str], store: Store | None, others: Callable[[], Sequence[Tool]] = tuple
) -> Callable[[], Sequence[Tool]]:
    """Return what lists every tool, by name: those that ship, and `others`; the same tuple while these are the same.

    `store`: where they look; None = they are only named.
    """
    made: dict[str, Tool] = {}
    last: list[tuple[Sequence[Tool], Sequence[Tool]]] = []

    def listed() -> Sequence[Tool]:
        found = others()
        if not last or last[-1][0] != found:
            last[:] = [(found, (*[one for name, one in made.items() if found or name != HELP], *found))]
        return last[-1][1]

    for name, path in paths.items():
        module = importlib.import_module(path)
        made[name] = module.build(listed if name == HELP else store) if hasattr(module, "build") else module.TOOL
    return listed
