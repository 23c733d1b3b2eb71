"""S22: no chat line makes the real Claude command act, over either transport."""

import importlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from claudius.config.load import load
from claudius.errors import Unavailable
from claudius.home import Home
from claudius.provider import Provider, Request
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, after, ending, hear
from lab.loopback.model import ModelServer

CANARY = "canary-of-the-file-that-nobody-asked-for"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """Run a loopback model server."""
    async with ModelServer() as running:
        yield running


@pytest.fixture(params=["agent_sdk", "claude_cli"])
async def provider(
    request: pytest.FixtureRequest, server: ModelServer, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Provider]:
    """Return each transport, with the real command. Skips by name if it is not installed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    loaded = load(home, {"ANTHROPIC_API_KEY": "sk-ant-x", "ANTHROPIC_BASE_URL": server.url})
    try:
        made: Provider = importlib.import_module(f"claudius.providers.{request.param}").build(loaded, home)
    except Unavailable as error:
        pytest.skip(error.message)
    yield made
    await made.aclose()


def _lines(directory: Path) -> list[str]:
    file = directory / "secret.txt"
    file.write_text(CANARY)
    (directory / "CLAUDE.md").write_text(CANARY)
    return [
        f"@{file}",
        f'look at "@{file}" and @{directory}/',
        f"```\n@{file}\n```",
        f"!cat {file}",
        f"/add-dir {directory}",
        "/cost",
        "/init",
        f"# remember @{file}",
    ]


async def test_s22_a_chat_line_is_text(provider: Provider, server: ModelServer, tmp_path: Path) -> None:
    """Each line reaches the model as it was written, in one call, and no file's content is sent with it."""
    asking: Request = replace(ASK, conversation="c")
    lines = _lines(tmp_path)

    for line in lines:
        asking = replace(asking, tail=line)
        assert ending(await hear(provider, asking)).text == "I hear you."
        asking = after(asking, line, "I hear you.", "")

    assert [call.tail for call in server.asked] == lines
    assert not [call.path for call in server.calls if CANARY in call.raw.decode()]


@pytest.mark.parametrize("tool", ["Read", "Bash", "mcp__evil__run"])
async def test_s22_a_tool_call_is_refused_and_recorded(
    tool: str, provider: Provider, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A tool that a stream calls is not run, and the model is not told about it. The log says so, without its name."""
    server.say(Reply(text="Let me look.", tool=tool, keep=True))

    with caplog.at_level(logging.WARNING):
        done = ending(await hear(provider, ASK))

    assert done.text == "Let me look."
    assert len(server.asked) == 1
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith("a tool call that was never offered is refused")
