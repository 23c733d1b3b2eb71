"""Find the Claude Code command, prepare its directories, environment and flags, and run its processes.

A child gets an empty working directory and its system prompt in a file, and leaves no transcript behind.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from claudius.children import INHERITED
from claudius.config.load import Loaded
from claudius.errors import Unavailable
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home

PROMPTS_KEPT = 8
RSS_LIMIT_BYTES = 1_500_000_000
"""A warm child above this is not used again. Source: leaks in the field, anthropics/claude-code#85639."""
VERBATIM_SINCE = (2, 1, 248)
"""The first version that sends a prompt verbatim. Older ones read the file behind `@/path` in a chat line."""
PROBE_S = 10.0
RETRIES = 2
"""The command's own retries. Without a limit, it repeats a 401 for over a minute."""

CREDENTIALS = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
"""In the command's own order of preference. One is passed to the child, or none if a login is stored."""

SETTINGS: Mapping[str, str] = {
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # else a billing block precedes our system prompt
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # no file behind `@path`
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",  # no telemetry, no update check
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # else a dropped stream is billed twice
    "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
    "MAX_THINKING_TOKENS": "0",
}


class ClaudeDirectories:
    """The directories of one transport in one home, private to this user."""

    def __init__(self, home: Home, name: str, environ: Mapping[str, str]) -> None:
        """Create them, and delete what a killed daemon left. Raises: Unavailable if they cannot be created."""
        self._root = home.run / name
        self._prompts, self._sessions = self._root / "system", self._root / "sessions"
        self.cwd = self._root / "empty"
        """The empty working directory of a child."""
        config = environ.get("CLAUDE_CONFIG_DIR") or str(Path(environ.get("HOME") or "~").expanduser() / ".claude")
        self._transcripts = Path(config) / "projects"
        try:
            for directory in (self._root, self._prompts, self._sessions, self.cwd):
                directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            for left in self.cwd.iterdir():
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        except OSError as error:
            raise Unavailable(f"{self._root} cannot be used: {error.strerror}") from error
        for session in list(self._sessions.iterdir()):
            self.forget(session.name)

    def system_file(self, system: str) -> Path:
        """Write a system prompt once and return its file. Only the newest few are kept."""
        path = self._prompts / (hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".md")
        if not path.exists():
            new = path.with_suffix(f".{os.getpid()}")
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "w", encoding="utf-8") as file:  # noqa: PTH123 - the mode from the first byte on
                file.write(system)
            new.replace(path)
            for old in sorted(self._prompts.glob("*.md"), key=lambda file: file.stat().st_mtime)[:-PROMPTS_KEPT]:
                old.unlink(missing_ok=True)
        return path

    def note(self, session: str) -> None:
        """Note that a transcript of this session will be written, so that it is deleted whatever happens."""
        (self._sessions / session).touch(mode=FILE_MODE)

    def forget(self, session: str) -> None:
        """Delete a session's transcript and the note of it. One that does not exist is no error."""
        for found in self._transcripts.glob(f"*/{session}*"):
            with suppress(FileNotFoundError):
                shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()
        (self._sessions / session).unlink(missing_ok=True)


class ClaudeCommand(Struct, frozen=True):
    """One installed command that can be used."""

    path: str
    version: tuple[int, int, int]


def find(cli_path: str) -> ClaudeCommand:
    """Find the command: the configured one, else the Agent SDK's bundled one, else the one on PATH.

    Raises: Unavailable if there is none, it does not run, or it is too old to send a prompt verbatim.
    """
    path = cli_path or _bundled() or shutil.which("claude")
    if not path:
        raise Unavailable("Claude Code is not installed: install it, or pip install 'claudius-daemon[claude]'")
    version = _version(path)
    if version < VERBATIM_SINCE:
        needed, found = (".".join(map(str, parts)) for parts in (VERBATIM_SINCE, version))
        raise Unavailable(f"{path} is Claude Code {found}, too old to be safe: update it to {needed} or later")
    return ClaudeCommand(path, version)


def _bundled() -> str | None:
    """Find the SDK's bundled command without importing the SDK."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    path = Path(spec.origin).parent / "_bundled" / "claude" if spec and spec.origin else None
    return str(path) if path and path.is_file() else None


def _version(path: str) -> tuple[int, int, int]:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, timeout=PROBE_S, check=True, text=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{path} does not run ({type(error).__name__})") from error
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    if not match:
        raise Unavailable(f"{path} is not Claude Code: it does not tell its version")
    return int(match[1]), int(match[2]), int(match[3])


def is_logged_in(command: ClaudeCommand, env: Mapping[str, str]) -> bool:
    """Return whether the command has a login or a credential. No network is used."""
    argv = [command.path, "auth", "status"]
    try:
        asked = subprocess.run(argv, capture_output=True, timeout=PROBE_S, check=True, env=dict(env))
        return bool(json.loads(asked.stdout)["loggedIn"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return False


def child_env(loaded: Loaded, environ: Mapping[str, str], *, max_tokens: int) -> dict[str, str]:
    """Return a child's whole environment: the allow-list, our settings, the base URL, and one credential. Pure."""
    env = {name: environ[name] for name in (*INHERITED, "CLAUDE_CONFIG_DIR") if name in environ}
    env |= SETTINGS
    env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(max_tokens)
    if loaded.config.anthropic.base_url:
        env["ANTHROPIC_BASE_URL"] = loaded.config.anthropic.base_url
    for name in CREDENTIALS:
        if secret := loaded.secret(name):
            env[name] = secret
            break
    return env


def flags(*, model: str, system_file: Path, session: tuple[str, ...]) -> list[str]:
    """Return the flags, none of which contain anything that a user wrote. Pure.

    `session` is `--session-id ID`, `--resume ID` or `--no-session-persistence`. `--max-turns` allows one model call per
    turn, because after a refused tool call the command would ask the model again, without end.
    """
    return [
        *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *("--system-prompt-file", str(system_file), "--system-prompt-snapshot", "off"),
        *("--setting-sources=", "--strict-mcp-config", "--disable-slash-commands"),
        *("--permission-mode", "dontAsk", "--permission-prompts", "none"),
        *("--max-turns", "1", "--thinking", "disabled", "--effort", "low"),
        *("--model", model),
        *session,
        *("--disallowedTools", "Read"),
        *("--tools", ""),  # last, because it takes everything that follows
    ]
