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


def test_a_key_comes_first(bare: Callable[..., list[str]], claude: Callable[[bool], None]) -> None:
    """An API key comes first: the API is fastest and has the clearest errors."""
    claude(True)

    assert bare(ANTHROPIC_API_KEY="k", CLAUDIUS_OPENAI_BASE_URL="http://127.0.0.1:9/v1") == ["anthropic_api"]


def test_a_login_comes_next(bare: Callable[..., list[str]], claude: Callable[[bool], None]) -> None:
    """With a login and without the SDK, the command itself is chosen."""
    claude(True)

    assert bare(CLAUDIUS_OPENAI_BASE_URL="http://127.0.0.1:9/v1") == ["claude_cli"]


def test_a_login_is_used_by_the_sdk_where_it_is_installed(
    bare: Callable[..., list[str]], claude: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a login and the SDK, the SDK is chosen, because its warm clients answer sooner."""
    monkeypatch.setattr(chain, "_is_installed", lambda _: True)
    claude(True)

    assert bare() == ["agent_sdk"]


def test_a_command_without_a_login_does_not_count(
    bare: Callable[..., list[str]], claude: Callable[[bool], None]
) -> None:
    """Without a login, a base URL is used; without that, only the rehearsal provider is left."""
    claude(False)

    assert bare(CLAUDIUS_OPENAI_BASE_URL="http://127.0.0.1:9/v1") == ["openai_compat"]
    assert bare() == ["rehearsal"]


def test_a_local_ollama_counts(bare: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model on the local machine is used."""
    monkeypatch.setattr(chain, "_has_ollama", lambda: True)

    assert bare() == ["openai_compat"]


def test_with_nothing_there_it_is_the_rehearsal_voice(bare: Callable[..., list[str]]) -> None:
    """A new user gets replies without key, account or network."""
    assert bare() == ["rehearsal"]


def test_named_voices_stay_as_they_are(bare: Callable[..., list[str]]) -> None:
    """A list of names is not probed; `auto` in it becomes one name, and no provider appears twice."""
    assert bare(CLAUDIUS_PROVIDERS="scripted,mypkg.voice") == ["scripted", "mypkg.voice"]
    assert bare(CLAUDIUS_PROVIDERS="auto,openai_compat,rehearsal") == ["rehearsal", "openai_compat"]


async def test_an_ollama_is_one_that_has_a_model() -> None:
    """The probe requires an answer in time and at least one model."""
    import asyncio  # noqa: PLC0415 - the probe blocks, so it runs beside the server's loop

    async with ModelServer() as server:
        there = await asyncio.to_thread(openai_compat.has_ollama, 5.0, server.url + "/v1")
        server.models = ()
        empty = await asyncio.to_thread(openai_compat.has_ollama, 5.0, server.url + "/v1")

    assert (there, empty) == (True, False)
    assert openai_compat.has_ollama(0.2, "http://127.0.0.1:9/v1") is False


def chosen(home: Home, **env: str) -> list[str]:
    """Return who speaks in a home."""
    return chain.choose(load(home, env), home)


def test_the_rehearsal_voice_never_speaks_to_others_unless_it_is_named(
    home: Home, bare: Callable[..., list[str]]
) -> None:
    """With a network on, `auto` finds no one rather than the rehearsal voice; its name, anywhere in the list, has it."""
    del bare
    slack = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}

    assert chosen(home, DISCORD_TOKEN="t") == ["none"]
    assert chosen(home, **slack) == ["none"]
    assert chosen(home, **slack, CLAUDIUS_ADAPTERS="terminal") == ["rehearsal"]
    assert chosen(home, **slack, CLAUDIUS_PROVIDERS="rehearsal") == ["rehearsal"]
    assert chosen(home, **slack, CLAUDIUS_PROVIDERS="auto,rehearsal") == ["rehearsal"]
    assert chosen(home, **slack, CLAUDIUS_PROVIDERS="auto,openai_compat") == ["openai_compat"]


def test_a_home_that_had_a_model_does_not_fall_to_the_rehearsal_voice(
    home: Home, bare: Callable[..., list[str]]
) -> None:
    """Once a model answered there, `auto` finds it or no one."""
    del bare
    before = chosen(home)
    chain.met_model(home)

    assert (before, chosen(home)) == (["rehearsal"], ["none"])
    assert chosen(home, CLAUDIUS_PROVIDERS="rehearsal") == ["rehearsal"]
