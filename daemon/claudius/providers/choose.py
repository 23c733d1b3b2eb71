"""Choose the providers to ask: those named in the settings, with `auto` replaced by the first available one."""

from __future__ import annotations

import importlib.util
import os

from claudius.config import Loaded
from claudius.errors import Unavailable
from claudius.home import Home

AUTO = "auto"
OLLAMA_S = 0.2
"""How long a local Ollama may take to answer."""


def choose(loaded: Loaded, home: Home) -> list[str]:
    """Return the providers' names in the order in which they are asked, `auto` resolved to the first available one.

    The order for `auto`: the Anthropic API with a key, Claude with a login, a chat-completions server, rehearsal.
    """
    del home
    names = [_first(loaded) if name == AUTO else name for name in loaded.config.providers]
    return list(dict.fromkeys(names))


def _first(loaded: Loaded) -> str:
    if loaded.secret("ANTHROPIC_API_KEY") and _is_installed("anthropic"):
        return "anthropic_api"
    if _has_login(loaded):
        return "agent_sdk" if _is_installed("claude_agent_sdk") else "claude_cli"
    if loaded.config.openai.base_url or _has_ollama():
        return "openai_compat"
    return "rehearsal"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _has_login(loaded: Loaded) -> bool:
    from claudius.providers.claude import command  # noqa: PLC0415 - probes only when asked

    try:
        found = command.find(loaded.config.claude.cli_path)
    except Unavailable:
        return False
    return command.is_logged_in(found, command.child_env(loaded, os.environ, max_tokens=1))


def _has_ollama() -> bool:
    from claudius.providers.openai_compat import has_ollama  # noqa: PLC0415 - as above

    return has_ollama(OLLAMA_S)
