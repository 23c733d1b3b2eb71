"""The Agent SDK with its own bundled command, against the loopback model."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.errors import Crashed, ProviderError, TimedOut, Unavailable
from claudius.home import Home
from claudius.provider import Event, Message
from claudius.providers import agent_sdk
from claudius.testing.check_provider import CASES, Case, Voice, check_cut_at, check_provider
from claudius.testing.model_calls import Reply
from claudius.testing.provider_contract.voice import ASK, TEXT, after, children, ending, fails, hear, until, whole
from lab.loopback.model import ModelServer

pytest.importorskip("claude_agent_sdk")

PUSH = {f"P{number}" for number in (2, 4, 6, 7, 13, 20, 21, 23, 25, 30, 31, 32, 33, 42, 59, 62, 70, 71)}
"""The cases of every push; each starts the command at least once. `test_claude_hearing.py` covers the others."""
FITTING = [
    pytest.param(case, id=str(case), marks=() if case.number in PUSH else pytest.mark.nightly)
    for case in CASES
    if "exact" not in case.needs
]


@pytest.fixture
def make(settings: Callable[..., Loaded], home: Home, claude_home: Path) -> Callable[..., agent_sdk.AgentSdk]:
    """Return a function that builds clients; its keywords are environment names."""
    return lambda **env: agent_sdk.build(settings(**env), home)


@pytest.mark.parametrize("case", FITTING)
async def test_it_keeps_the_contract(case: Case, server: ModelServer, make: Callable[..., agent_sdk.AgentSdk]) -> None:
    """Each numbered rule of the contract holds for the real library and the real command."""
    await check_provider(case, Voice(make=make, say=server.say, server=server, asks_again=True, is_exact=False))


async def test_a_warm_client_is_asked_again_and_sees_its_own_exchange(
    server: ModelServer, make: Callable[..., agent_sdk.AgentSdk]
) -> None:
    """A continued conversation stays in one process, whose session has the exchange as real turns."""
    provider, before = make(), children()
    first = replace(ASK, tail="heard 1\nstate 1", conversation="c")

    ending(await hear(provider, first))
    started = children() - before
    ending(await hear(provider, after(first, "heard 1", "I hear you.", "heard 2")))

    assert children() - before == started
    spoken = [(role, text) for role, text in server.asked[1].messages if role != "system"]
    assert spoken == [("user", "heard 1\nstate 1"), ("assistant", "I hear you."), ("user", "heard 2")]
    await provider.aclose()


async def test_a_killed_client_costs_nothing_but_time(
    server: ModelServer, make: Callable[..., agent_sdk.AgentSdk]
) -> None:
    """If a session is lost, a new process gets the whole history in the same call, and the soul's text is complete."""
    provider, before = make(), children()
    first = replace(ASK, tail="heard 1", conversation="c")
    ending(await hear(provider, first))

    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)
    done = ending(await hear(provider, after(first, "heard 1", "I hear you.", "heard 2")))

    assert done.text == "I hear you."
    assert "heard 1" in whole(server.asked[-1])
    assert ASK.system in server.asked[-1].system
    await provider.aclose()


async def test_a_client_killed_in_mid_reply_is_a_crash(
    server: ModelServer, make: Callable[..., agent_sdk.AgentSdk]
) -> None:
    """After part of a reply was heard, the call raises Crashed and no second request is made."""
    provider, before = make(), children()
    first = replace(ASK, tail="heard 1", conversation="c")
    server.say("I hear you.", Reply(text=TEXT, fault="hang_mid"))
    ending(await hear(provider, first))

    heard: list[Event] = []
    task = asyncio.create_task(fails(provider, after(first, "heard 1", "I hear you.", "heard 2"), heard))
    await until(lambda: bool(heard))
    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)

    assert isinstance(await task, Crashed)
    assert len(server.asked) == 2
    await provider.aclose()


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [("exec sleep 60", TimedOut, "did not start"), ("echo 'no licence' >&2; exit 3", Crashed, "no licence")],
)
async def test_a_command_that_does_not_come_up_is_an_error(
    line: str,
    kind: type[ProviderError],
    words: str,
    make: Callable[..., agent_sdk.AgentSdk],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command that hangs or exits at start raises a named error early; the SDK alone would wait a minute."""
    monkeypatch.setattr(agent_sdk, "START_S", 0.3 if kind is TimedOut else 60.0)
    path = tmp_path / "claude"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 9.0.0 && exit\n{line}\n')
    path.chmod(0o700)
    provider, before = make(CLAUDIUS_CLAUDE_CLI_PATH=str(path)), children()

    error = await fails(provider, ASK)

    assert isinstance(error, kind)
    assert words in f"{error.message}; {error.said.words()}"
    assert children() <= before
    await provider.aclose()


def test_without_the_library_it_is_unavailable(
    make: Callable[..., agent_sdk.AgentSdk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the extra that installs the library."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)

    with pytest.raises(Unavailable, match=r"\[claude\]"):
        make()


async def test_the_least_recent_client_goes(
    server: ModelServer, make: Callable[..., agent_sdk.AgentSdk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool holds POOL clients; the least recently used one is ended."""
    monkeypatch.setattr(agent_sdk, "POOL", 2)
    provider, before = make(), children()

    for name in ("a", "b", "c"):
        ending(await hear(provider, replace(ASK, conversation=name)))

    await until(lambda: len(children() - before) == 2)
    assert [key for key, _ in provider._pool._held.items()] == ["b", "c"]
    await provider.aclose()
    assert children() <= before


async def test_closing_ends_a_client_that_is_just_starting(make: Callable[..., agent_sdk.AgentSdk]) -> None:
    """Closing the provider ends a child process that is still starting."""
    provider, before = make(), children()
    task = asyncio.create_task(hear(provider, ASK))
    await until(lambda: bool(children() - before))

    await provider.aclose()
    await asyncio.wait([task])

    assert isinstance(task.exception(), Crashed)
    await until(lambda: children() <= before)


async def test_an_idle_client_is_closed(
    make: Callable[..., agent_sdk.AgentSdk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is not used for a while is closed, which frees its memory."""
    monkeypatch.setattr(agent_sdk, "IDLE_S", 0.05)
    provider, before = make(), children()

    ending(await hear(provider, replace(ASK, conversation="c")))

    await until(lambda: children() <= before)
    await provider.aclose()


async def test_a_forgotten_conversation_ends_its_client(make: Callable[..., agent_sdk.AgentSdk]) -> None:
    """Erasure: no process keeps what was said in the conversation."""
    provider, before = make(), children()
    ending(await hear(provider, replace(ASK, conversation="c")))

    await provider.forget("c")

    await until(lambda: children() <= before)
    await provider.aclose()


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["truncate", "eof"])
async def test_a_stream_cut_at_any_event_is_never_half_a_reply(
    fault: str, server: ModelServer, make: Callable[..., agent_sdk.AgentSdk]
) -> None:
    """The command retries and resumes by itself; the outcome is still an error or the whole reply."""
    server.say(TEXT)
    provider = make()
    ending(await hear(provider, ASK))
    borders = server.asked[-1].borders
    voice = Voice(make=make, say=server.say, server=server, asks_again=True, is_exact=False)

    for at in (0, *borders):
        await check_cut_at(voice, provider, fault, at, borders)
    await provider.aclose()


async def test_no_transcript_is_written(make: Callable[..., agent_sdk.AgentSdk], claude_home: Path) -> None:
    """The command leaves no transcript of what was said on the disk."""
    provider = make()
    first = replace(ASK, tail="transcript-canary", conversation="c")

    ending(await hear(provider, first))
    await provider.aclose()

    assert [
        path for path in claude_home.rglob("*") if path.is_file() and b"transcript-canary" in path.read_bytes()
    ] == []


async def test_a_history_is_framed_for_a_new_client(
    server: ModelServer, make: Callable[..., agent_sdk.AgentSdk]
) -> None:
    """A new process receives the history block by block, with the speaker of each, marked as past."""
    provider = make()
    history = (Message("user", "heard 0"), Message("assistant", "said 0"))

    ending(await hear(provider, replace(ASK, history=history)))

    blocks = [block["text"] for block in server.asked[0].body["messages"][0]["content"]]
    assert blocks[1:] == ["[heard]\nheard 0", "[you]\nsaid 0", ASK.tail]
    await provider.aclose()


def test_a_command_that_is_too_old_is_refused(make: Callable[..., agent_sdk.AgentSdk], tmp_path: Path) -> None:
    """An old command would send the files behind `@/path`, so it is never started for a turn."""
    old = tmp_path / "claude"
    old.write_text("#!/bin/sh\necho '2.1.247 (Claude Code)'\n")
    old.chmod(0o700)

    with pytest.raises(Unavailable, match=r"2\.1\.248"):
        make(CLAUDIUS_CLAUDE_CLI_PATH=str(old))
