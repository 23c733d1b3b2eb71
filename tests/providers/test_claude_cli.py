"""Our own `claude -p`, the real command, against the loopback model."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.errors import AuthFailed, Crashed, RateLimited, Unavailable
from claudius.home import Home
from claudius.providers import claude_cli
from claudius.providers.claude import command
from claudius.testing.check_provider import CASES, Case, Voice, check_provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, after, children, ending, fails, hear, in_order, until, whole
from lab.loopback.model import ModelServer

PUSH = {f"P{number}" for number in (2, 7, 20, 22, 30, 32, 60)}
"""The cases of every push; the Agent SDK's tests cover more of them with the same command."""
FITTING = [
    pytest.param(case, id=str(case), marks=() if case.number in PUSH else pytest.mark.nightly)
    for case in CASES
    if "exact" not in case.needs
]


@pytest.fixture
def make(settings: Callable[..., Loaded], home: Home, claude_home: Path) -> Callable[..., claude_cli.ClaudeCli]:
    """Return a function that builds clients; its keywords are environment names. Skips if no command is installed."""
    try:
        command.find("")
    except Unavailable as error:
        pytest.skip(error.message)
    return lambda **env: claude_cli.build(settings(**env), home)


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a command which reports a good version and then runs a line of shell."""

    def write(line: str) -> str:
        path = tmp_path / "claude"
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "9.0.0 (Claude Code)" && exit\n{line}\n')
        path.chmod(0o700)
        return str(path)

    return write


@pytest.mark.parametrize("case", FITTING)
async def test_it_keeps_the_contract(
    case: Case, server: ModelServer, make: Callable[..., claude_cli.ClaudeCli]
) -> None:
    """Each numbered rule of the contract holds for the real command."""
    await check_provider(case, Voice(make=make, say=server.say, server=server, asks_again=True, is_exact=False))


async def test_a_session_is_resumed_as_real_turns(
    server: ModelServer, make: Callable[..., claude_cli.ClaudeCli]
) -> None:
    """A continued conversation is resumed, with the current system prompt."""
    provider = make()
    first = replace(ASK, tail="heard 1\nstate 1", conversation="c")

    one = ending(await hear(provider, first))
    two = ending(await hear(provider, after(first, "heard 1", "I hear you.", "heard 2")))

    assert one.session == two.session
    spoken = [(role, text) for role, text in server.asked[1].messages if role != "system"]
    assert spoken == [("user", "heard 1\nstate 1"), ("assistant", "I hear you."), ("user", "heard 2")]
    assert ASK.system in server.asked[1].system
    await provider.aclose()


async def test_a_lost_session_is_begun_anew_in_the_same_call(
    server: ModelServer, make: Callable[..., claude_cli.ClaudeCli], claude_home: Path
) -> None:
    """If the command reports "No conversation found", the same call starts a new session with our own history."""
    provider = make()
    first = replace(ASK, tail="heard 1", conversation="c")
    one = ending(await hear(provider, first))

    _lose(claude_home, one.session)
    two = ending(await hear(provider, after(first, "heard 1", "I hear you.", "heard 2")))

    assert two.text == "I hear you."
    assert two.session != one.session
    assert in_order([ASK.system, "heard 1", "I hear you.", "heard 2"], whole(server.asked[-1]))
    await provider.aclose()


def _lose(directory: Path, session: str | None) -> None:
    for transcript in directory.rglob(f"{session}*"):
        transcript.unlink()


async def test_transcripts_end_with_their_sessions(
    make: Callable[..., claude_cli.ClaudeCli], claude_home: Path, home: Home, settings: Callable[..., Loaded]
) -> None:
    """A transcript is plain text on disk: it is deleted when the session ends, or after a kill at the next start."""
    provider = make()
    kept, other = (replace(ASK, tail="transcript-canary", conversation=name) for name in "ab")
    ending(await hear(provider, kept))
    assert _canaries(claude_home) == 1
    ending(await hear(provider, replace(other, keep_session=False)))
    ending(await hear(provider, replace(other, conversation="")))
    assert _canaries(claude_home) == 1

    del provider  # a kill closes nothing either
    await make().aclose()

    assert _canaries(claude_home) == 0


async def test_a_forgotten_conversation_leaves_no_transcript(
    make: Callable[..., claude_cli.ClaudeCli], claude_home: Path
) -> None:
    """Erasure deletes what the command wrote, while the daemon runs."""
    provider = make()
    ending(await hear(provider, replace(ASK, tail="transcript-canary", conversation="c")))

    await provider.forget("another")
    before = _canaries(claude_home)
    await provider.forget("c")

    assert (before, _canaries(claude_home)) == (1, 0)
    await provider.aclose()


def _canaries(directory: Path) -> int:
    return sum(path.is_file() and b"transcript-canary" in path.read_bytes() for path in directory.rglob("*"))


async def test_without_a_login_the_credentials_are_refused(make: Callable[..., claude_cli.ClaudeCli]) -> None:
    """The command's message about a missing login is an error, even though it arrives as a success."""
    provider = make(ANTHROPIC_API_KEY="")

    error = await fails(provider, ASK)

    assert isinstance(error, AuthFailed)
    await provider.aclose()


async def test_an_exhausted_login_says_when_it_is_back(
    server: ModelServer, make: Callable[..., claude_cli.ClaudeCli]
) -> None:
    """The limit of a subscription is a rate limit with an end, so that the chain moves on and returns later."""
    limits = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": "4000000000",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "retry-after": "3000",
    }
    server.say(Reply(fault="status", status=429, headers=limits, keep=True))
    provider = make(ANTHROPIC_API_KEY="", CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-canary")

    error = await fails(provider, ASK)

    assert isinstance(error, RateLimited)
    assert error.after_s is not None
    assert error.after_s > 3600
    await provider.aclose()


async def test_a_command_that_dies_is_a_crash(
    settings: Callable[..., Loaded], home: Home, stand_in: Callable[[str], str], claude_home: Path
) -> None:
    """A command that exits without a reply raises Crashed and keeps the end of its stderr; the chain retries it."""
    path = stand_in("echo 'out of memory' >&2; exit 137")
    provider = claude_cli.build(settings(CLAUDIUS_CLAUDE_CLI_PATH=path), home)

    error = await fails(provider, ASK)

    assert isinstance(error, Crashed)
    assert error.message == "Claude Code ended without a reply"
    assert "out of memory" in error.said.words()
    await provider.aclose()


async def test_a_failure_that_looks_like_success_is_never_text(
    settings: Callable[..., Loaded], home: Home, stand_in: Callable[[str], str], claude_home: Path
) -> None:
    """A result with `is_error` is an error, whatever its subtype, and so is a result without a model call."""
    for result in (
        {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: secret-canary"},
        {"type": "result", "subtype": "success", "is_error": False, "result": "Total cost: secret-canary"},
    ):
        path = stand_in(f"cat >/dev/null; echo '{json.dumps(result)}'")
        provider = claude_cli.build(settings(CLAUDIUS_CLAUDE_CLI_PATH=path), home)
        heard: list[object] = []

        error = await fails(provider, ASK, heard)

        assert error
        assert heard == []
        await provider.aclose()


@pytest.mark.parametrize("line", ["exec sleep 60", "trap '' TERM INT; cat >/dev/null; sleep 60"])
async def test_closing_kills_a_command_that_will_not_end(
    line: str, settings: Callable[..., Loaded], home: Home, stand_in: Callable[[str], str], claude_home: Path
) -> None:
    """A hanging child is killed with its whole process group."""
    provider, before = claude_cli.build(settings(CLAUDIUS_CLAUDE_CLI_PATH=stand_in(line)), home), children()
    task = asyncio.create_task(hear(provider, ASK))
    await until(lambda: bool(children() - before))

    await provider.aclose()
    await asyncio.wait([task])

    assert children() <= before
    assert isinstance(task.exception(), Crashed)
