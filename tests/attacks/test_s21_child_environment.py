"""S21: what a Claude child process can see of us: its environment, its working directory and its command line."""

import asyncio
import importlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from claudius.config.load import load
from claudius.errors import Unavailable
from claudius.home import Home
from claudius.provider import Message, Provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, children, hear, until
from lab.loopback.model import ModelServer

OURS = {
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1000",
    "MAX_THINKING_TOKENS": "0",
    "ANTHROPIC_API_KEY": "sk-ant-the-one-credential",
}
PASSED_ON = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", "HTTPS_PROXY": "", "SSL_CERT_FILE": ""}
SECRETS = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DISCORD_TOKEN", "GROQ_API_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH")


@dataclass(frozen=True, slots=True)
class _Seen:
    """A child in the middle of a call, inspected from outside."""

    environ: dict[str, str]
    cwd: Path
    left_in_cwd: list[Path]
    cwd_mode: int
    cmdline: bytes
    pid: int
    group: int
    base_url: str
    home: Home


@pytest.fixture(scope="module", params=["agent_sdk", "claude_cli"])
def child(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> _Seen:
    """Start a child of each transport, with the real command, in a daemon whose environment is full of secrets."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("this system has no /proc")
    directory = tmp_path_factory.mktemp("s21")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            patch.delenv(name)
        for name, value in (PASSED_ON | {"HOME": str(directory)} | dict.fromkeys(SECRETS, "canary")).items():
            patch.setenv(name, value)
        return asyncio.run(_look(request.param, directory))


async def _look(name: str, directory: Path) -> _Seen:
    home = Home(directory / "home")
    home.create()
    async with ModelServer([Reply(fault="hang")]) as server:
        provider, before = _provider(name, server.url, home), children()
        history = (Message("user", "prompt-canary heard"), Message("assistant", "prompt-canary said"))
        asking = replace(ASK, system="prompt-canary system", history=history, tail="--prompt-canary", conversation="c")
        task = asyncio.create_task(hear(provider, asking))
        await until(lambda: bool(server.asked))
        (pid,) = children() - before
        seen = _see(pid, server.url, home)
        task.cancel()
        await asyncio.wait([task])
        await provider.aclose()
    return seen


def _provider(name: str, url: str, home: Home) -> Provider:
    credentials = {"ANTHROPIC_API_KEY": OURS["ANTHROPIC_API_KEY"], "CLAUDE_CODE_OAUTH_TOKEN": "a-second-credential"}
    loaded = load(home, dict.fromkeys(SECRETS, "canary") | credentials | {"ANTHROPIC_BASE_URL": url})
    try:
        made: Provider = importlib.import_module(f"claudius.providers.{name}").build(loaded, home)
    except Unavailable as error:
        pytest.skip(error.message)
    return made


def _see(pid: int, url: str, home: Home) -> _Seen:
    proc = Path(f"/proc/{pid}")
    cwd = (proc / "cwd").readlink()
    return _Seen(
        environ=dict(entry.split("=", 1) for entry in (proc / "environ").read_text().split("\0") if entry),
        cwd=cwd,
        left_in_cwd=list(cwd.iterdir()),
        cwd_mode=cwd.stat().st_mode & 0o777,
        cmdline=(proc / "cmdline").read_bytes(),
        pid=pid,
        group=os.getpgid(pid),
        base_url=url,
        home=home,
    )


def test_s21_the_environment_is_the_allow_list(child: _Seen) -> None:
    """The environment holds the listed variables, our settings, one credential and the base URL, and nothing else."""
    passed_on = PASSED_ON | {"HOME": str(child.home.root.parent)}

    assert child.environ == passed_on | OURS | {"ANTHROPIC_BASE_URL": child.base_url}


def test_s21_the_working_directory_is_empty_and_ours(child: _Seen) -> None:
    """The working directory is an empty directory of the home that no one else can open."""
    assert child.home.run in child.cwd.parents
    assert child.left_in_cwd == []
    assert child.cwd_mode == 0o700


def test_s21_the_command_line_holds_nothing_that_was_said(child: _Seen) -> None:
    """The arguments hold no system text, history, message or credential, because anyone can read them."""
    assert b"prompt-canary" not in child.cmdline
    assert b"credential" not in child.cmdline
    assert b"--system-prompt-file" in child.cmdline


def test_s21_the_child_has_a_group_of_its_own(child: _Seen) -> None:
    """The whole process group can be killed, and a Ctrl-C at the daemon does not reach it."""
    assert child.group == child.pid
