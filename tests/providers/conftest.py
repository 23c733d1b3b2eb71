"""Fixtures of the providers' tests: a loopback model, and a configuration that points at it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from claudius.config.load import Loaded, load
from claudius.home import Home
from lab.loopback.model import MODEL, ModelServer
from lab.loopback.prompt_cache import PromptCache

KEY = "sk-ant-canary"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """Run a loopback model with a prompt cache that has no minimum length."""
    async with ModelServer(cache=PromptCache(minimum=1)) as running:
        yield running


@pytest.fixture
def settings(server: ModelServer, home: Home) -> Callable[..., Loaded]:
    """Return a function that builds a configuration: all providers use the loopback; keywords are environment names."""

    def make(**env: str) -> Loaded:
        given = {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "CLAUDIUS_ANTHROPIC_MODEL": MODEL,
            "CLAUDIUS_CLAUDE_MODEL": "sonnet",
            "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1",
            "CLAUDIUS_OPENAI_PROFILE": "full",  # what a model at home gets is tested in test_local_models
        }
        return load(home, given | env)

    return make


@pytest.fixture
def claude_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the Claude command its own home, with no login."""
    directory = tmp_path / "claude-home"
    directory.mkdir()
    monkeypatch.setenv("HOME", str(directory))
    for name in ("CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return directory
