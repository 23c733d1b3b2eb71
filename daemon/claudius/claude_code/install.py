"""Installs the plugin into Claude Code and removes it, with Claude Code's own commands.

Measured with Claude Code 2.1.330: removing a plugin leaves empty tables in settings.json and a copy in its cache.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import claudius
from claudius.errors import ClaudiusError
from claudius.home import DIRECTORY_MODE, Home, write_private

PLUGIN = "claudius@claudius"
COMMAND_S = 60
QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
"""Causes no telemetry: a plugin is installed and removed silently."""
_TABLES = ("enabledPlugins", "extraKnownMarketplaces")
_EMPTY: Mapping[str, Any] = {
    "plugins/installed_plugins.json": {"version": 2, "plugins": {}},
    "plugins/known_marketplaces.json": {},
}
"""What Claude Code writes when no plugin is left."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The plugin of one home, and the Claude Code that it is installed into."""

    home: Home
    claude: str
    """The command; empty = there is none."""
    config: Path
    """Claude Code's own directory."""

    @classmethod
    def of(cls, home: Home, env: Mapping[str, str]) -> Plugin:
        """Find Claude Code: the configured one, else the one on the PATH, else the one bundled with the Agent SDK."""
        set_by_owner = env.get("CLAUDIUS_CLAUDE_CLI_PATH", "")
        config = Path(env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME") or "~").expanduser() / ".claude")
        return cls(home, set_by_owner or shutil.which("claude", path=env.get("PATH")) or bundled(), config)

    @property
    def directory(self) -> Path:
        """The directory of the plugin's files."""
        return self.home.root / "claude-code" / "marketplace"

    @property
    def is_installed(self) -> bool:
        """Whether Claude Code lists the plugin."""
        try:
            found = json.loads((self.config / "plugins" / "installed_plugins.json").read_text("utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(found, dict) and PLUGIN in found.get("plugins", {})

    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that install the plugin, once its files are written."""
        return (("plugin", "marketplace", "add", str(self.directory)), ("plugin", "install", PLUGIN))

    def install(self) -> None:
        """Write the files, and install them in Claude Code. Raises: ClaudiusError."""
        if self.is_installed:
            self.uninstall()
        self.write()
        names = ("settings.json", *_EMPTY)
        found = {name: (self.config / name).read_text("utf-8") for name in names if (self.config / name).is_file()}
        write_private(self._before, json.dumps(found))
        for command in self.commands():
            self._run(command)

    def uninstall(self) -> None:
        """Remove the plugin, and restore Claude Code's files. Raises: ClaudiusError."""
        if self.is_installed and self.claude:
            self._run(("plugin", "uninstall", PLUGIN))
            self._run(("plugin", "marketplace", "remove", "claudius"))
            self._restore()
        shutil.rmtree(self.home.root / "claude-code", ignore_errors=True)

    def write(self) -> None:
        """Write the marketplace with its one plugin, private to this user."""
        shutil.rmtree(self.directory, ignore_errors=True)
        source, command = Path(__file__).parent / "marketplace", self._command()
        for file in sorted(source.rglob("*")):
            target = self.directory / file.relative_to(source)
            if file.is_dir():
                target.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
                continue
            target.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            word = json.dumps(command)[1:-1] if file.suffix == ".json" else command
            write_private(target, file.read_text("utf-8").replace("@claudius@", word))

    def _command(self) -> str:
        """Return how a hook calls us: by the absolute path, which an editor's PATH may lack, and for this home."""
        beside = Path(sys.executable).with_name("claudius")
        found = str(beside) if beside.is_file() else shutil.which("claudius")
        own = shlex.quote(found) if found else f"{shlex.quote(sys.executable)} -m {claudius.__name__}"
        return f"CLAUDIUS_HOME={shlex.quote(str(self.home.root))} {own}"

    def _run(self, command: tuple[str, ...]) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDIUS_")} | QUIET
        try:
            ran = subprocess.run(
                [self.claude, *command], capture_output=True, text=True, timeout=COMMAND_S, check=False, env=env
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClaudiusError(f"claude {' '.join(command)}: {error}") from error
        if ran.returncode:
            said = (ran.stderr or ran.stdout).strip().splitlines()
            raise ClaudiusError(f"claude {' '.join(command)} failed: {said[-1] if said else ran.returncode}")

    @property
    def _before(self) -> Path:
        return self.home.root / "claude-code" / "before.json"

    def _restore(self) -> None:
        """Delete what the removal of a plugin leaves: empty tables, empty files, a copy in a cache."""
        try:
            before = json.loads(self._before.read_text("utf-8"))
        except (OSError, ValueError):
            before = {}
        _restore_settings(self.config / "settings.json", before.get("settings.json"))
        for name, empty in _EMPTY.items():
            path = self.config / name
            if name not in before and path.is_file() and json.loads(path.read_text("utf-8")) == empty:
                path.unlink()
        shutil.rmtree(self.config / "plugins" / "cache" / "claudius", ignore_errors=True)
        for directory in (self.config / "plugins" / "cache", self.config / "plugins"):
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()


def _restore_settings(path: Path, before: str | None) -> None:
    if not path.is_file():
        return
    now = json.loads(path.read_text("utf-8"))
    was = json.loads(before) if before else {}
    left = {key: value for key, value in now.items() if key in was or key not in _TABLES or value}
    if left == was and before is not None:
        path.write_text(before, "utf-8")
    elif not left:
        path.unlink()
    elif left != now:
        path.write_text(json.dumps(left, indent=2, ensure_ascii=False) + "\n", "utf-8")


def bundled() -> str:
    """Return the Claude Code bundled with the Agent SDK; empty if that is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - beside its only use

    found = find_spec("claude_agent_sdk")
    place = Path(found.origin).parent / "_bundled" / "claude" if found and found.origin else None
    return str(place) if place and place.is_file() else ""
