"""Write one setting into config.toml; its comments and other lines stay as they are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from claudius.config.load import Loaded, load, toml
from claudius.errors import BadHome
from claudius.home import Home, write_private


def write_setting(home: Home, key: str, value: Any, check: Callable[[Loaded], None] = lambda _: None) -> None:
    """Write one setting to config.toml after checking that it can be read back. Raises: BadConfiguration.

    `check` looks at all settings, and raises BadConfiguration if the file is to stay as it was.
    """
    home.create()
    write_private(home.config.resolve(), check_setting(home, key, value, check))


def check_setting(home: Home, key: str, value: Any, check: Callable[[Loaded], None] = lambda _: None) -> str:
    """Check that a setting can be written to config.toml and read back; return the file's new text.

    Writes nothing. Raises: BadConfiguration, also by `check`; BadHome.
    """
    file = home.config.resolve()  # it may be a symlink to where the owner keeps such files
    before = file.read_text("utf-8-sig") if file.exists() else ""
    if file.parent.exists() and not os.access(file.parent, os.W_OK):
        raise BadHome(f"{file.parent} cannot be written to: {key} is set there")
    text = _with(before, key, toml(value))
    check(load(home, {}, text))
    return text


def _with(text: str, key: str, value: str) -> str:
    """Set `key` in TOML text without changing any other line."""
    table, _, name = key.rpartition(".")
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*\[", line)]
    if table:
        header = next((i for i in starts if re.fullmatch(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?", lines[i])), None)
        if header is None:
            return "\n".join([*lines, *([""] if lines else []), f"[{table}]", f"{name} = {value}"]) + "\n"
        first, last = header + 1, next((i for i in starts if i > header), len(lines))
    else:
        first, last = 0, starts[0] if starts else len(lines)
    for place in range(first, last):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[place]):
            return "\n".join([*lines[:place], f"{name} = {value}", *lines[place + 1 :]]) + "\n"
    for place in range(first, last):
        if re.match(rf"\s*#\s*{re.escape(name)}\s*=", lines[place]):
            return "\n".join([*lines[: place + 1], f"{name} = {value}", *lines[place + 1 :]]) + "\n"
    return "\n".join([*lines[:first], f"{name} = {value}", *lines[first:]]) + "\n"
