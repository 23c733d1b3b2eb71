"""Hold the settings in force, and reload them when their files change."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from claudius.config.load import Loaded, load
from claudius.config.schema import Config
from claudius.errors import BadConfiguration
from claudius.home import Home

log = logging.getLogger("claudius.config")


class Settings:
    """The settings in force: reloaded when their files change. A broken edit keeps the last good settings."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        """Load the settings for the first time. Raises: BadConfiguration."""
        self._home, self._env = home, env
        self._seen: tuple[tuple[int, int, int], ...] = self._stamp()
        self.loaded: Loaded = load(home, env)
        self.problem: BadConfiguration | None = None

    def current(self) -> Config:
        """Return the configuration currently in force."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self.loaded, self.problem = load(self._home, self._env), None
            except BadConfiguration as error:
                self.problem = error
                log.warning("broken settings are not in force", extra={"problem": error.message})
        return self.loaded.config

    def reread(self) -> None:
        """Force a reload at the next `current`, whatever the files' times are."""
        self._seen = ()

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(_stat(path) for path in (self._home.config, self._home.env_file))


def _stat(path: Any) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - a hot path
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
