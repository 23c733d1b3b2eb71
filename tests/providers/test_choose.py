"""Which provider is chosen if none is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from claudius.config.load import load
from claudius.home import Home
from claudius.providers import chain, openai_compat
from lab.loopback.model import ModelServer


@pytest.fixture
def bare(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that chooses on a machine with no provider; its keywords are environment names."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(openai_compat, "OLLAMA", "http://127.0.0.1:9/v1")
    monkeypatch.setattr(chain, "_is_installed", lambda package: package == "anthropic")
    monkeypatch.setattr(chain, "_has_ollama", lambda: False)
    monkeypatch.setattr("claudius.providers.claude.command._bundled", lambda: None)
    return lambda **env: chain.choose(load(home, env), home)


@pytest.fixture
def claude(tmp_path: Path) -> Callable[[bool], None]:
    """Return a function that puts a `claude` command on PATH, logged in or not."""

    def install(logged_in: bool) -> None:  # noqa: FBT001 - read at the call
        path = tmp_path / "claude"
        status = f'{{"loggedIn": {str(logged_in).lower()}}}'
        path.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo "9.0.0" || {{ echo \'{status}\'; exit {1 - logged_in}; }}\n'
        )
        path.chmod(0o700)

    return install


URL = {"CLAUDIUS_OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
SLACK = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
CHOSEN: list[tuple[str, dict[str, str], list[str]]] = [
    ("login", URL | {"ANTHROPIC_API_KEY": "k"}, ["anthropic_api"]),  # fastest, with the clearest errors
    ("login", URL, ["claude_cli"]),
    ("login, sdk", {}, ["agent_sdk"]),  # its warm clients answer sooner
    ("logged out", URL, ["openai_compat"]),
    ("logged out", {}, ["rehearsal"]),
    ("ollama", {}, ["openai_compat"]),
    ("", {}, ["rehearsal"]),  # a new user gets replies without key, account or network
    # A list of names is not probed; `auto` in it becomes one name, and no provider appears twice.
    ("", {"CLAUDIUS_PROVIDERS": "scripted,mypkg.voice"}, ["scripted", "mypkg.voice"]),
    ("", {"CLAUDIUS_PROVIDERS": "auto,openai_compat,rehearsal"}, ["rehearsal", "openai_compat"]),
    # With a network on, or once a model answered there, the rehearsal voice speaks only where it is named.
    ("", {"DISCORD_TOKEN": "t"}, ["none"]),
    ("", SLACK, ["none"]),
    ("", SLACK | {"CLAUDIUS_ADAPTERS": "terminal"}, ["rehearsal"]),
    ("", SLACK | {"CLAUDIUS_PROVIDERS": "rehearsal"}, ["rehearsal"]),
    ("", SLACK | {"CLAUDIUS_PROVIDERS": "auto,rehearsal"}, ["rehearsal"]),
    ("", SLACK | {"CLAUDIUS_PROVIDERS": "auto,openai_compat"}, ["openai_compat"]),
    ("met", {}, ["none"]),
    ("met", {"CLAUDIUS_PROVIDERS": "rehearsal"}, ["rehearsal"]),
]
"""What is on the machine, what the owner says, and who speaks."""


@pytest.mark.parametrize(("there", "env", "names"), CHOSEN)
def test_who_speaks(
    there: str, env: dict[str, str], names: list[str],
    bare: Callable[..., list[str]], claude: Callable[[bool], None], home: Home, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A key, a login (by the SDK if it is installed), a server, a model on this machine; else the rehearsal voice."""
    if there.startswith("log"):
        claude(there != "logged out")
    if there == "login, sdk":
        monkeypatch.setattr(chain, "_is_installed", lambda _: True)
    if there == "ollama":
        monkeypatch.setattr(chain, "_has_ollama", lambda: True)
    if there == "met":
        chain.met_model(home)

    assert bare(**env) == names


async def test_an_ollama_is_one_that_has_a_model() -> None:
    """The probe requires an answer in time and at least one model."""
    import asyncio  # noqa: PLC0415 - the probe blocks, so it runs beside the server's loop

    async with ModelServer() as server:
        there = await asyncio.to_thread(openai_compat.has_ollama, 5.0, server.url + "/v1")
        server.models = ()
        empty = await asyncio.to_thread(openai_compat.has_ollama, 5.0, server.url + "/v1")

    assert (there, empty) == (True, False)
    assert openai_compat.has_ollama(0.2, "http://127.0.0.1:9/v1") is False
