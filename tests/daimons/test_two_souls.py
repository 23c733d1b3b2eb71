"""Two homes that whisper to each other over loopback, and that a silent daimon costs nothing."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive

HEADING = "## Daimonic Intuition"
TOKENS = {"claudius": "the token that Claudius gives out", "beata": "the token that Beata gives out"}


def free_port() -> int:
    """Return a port on which no one listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def settings(own: str, other: str, ports: dict[str, int]) -> dict[str, str]:
    """Return the settings with which one soul has the other as its daimon."""
    prefix = f"CLAUDIUS_DAIMON_{other.upper()}_"
    return {
        "CLAUDIUS_HTTP_LISTEN": f"127.0.0.1:{ports[own]}",
        "CLAUDIUS_HTTP_TOKEN": TOKENS[own],
        f"{prefix}ENABLED": "1",
        f"{prefix}URL": f"http://127.0.0.1:{ports[other]}",
        f"{prefix}AUTH_TOKEN": TOKENS[other],
    }


def voice(line: str) -> Scripted:
    """Return a soul's model, which whispers one line."""
    said = "<internal_monologue>It is asked.</internal_monologue><external_dialogue>So it is.</external_dialogue>"
    return Scripted(default=lambda request: line if request.purpose == "whisper" else said)


async def say(soul: Alive, text: str) -> None:
    """Say a line and wait for its answer."""
    seen = len(soul.network.visible)
    await soul.network.hear(text)
    await soul.network.until_visible(seen + 1)
    await soul.idle()


async def test_two_souls_whisper_to_each_other_once(tmp_path: Path) -> None:
    """Each holds the other's line in one prompt, once, and neither learns a word of the other's people."""
    ports = {name: free_port() for name in TOKENS}
    mouths = {"claudius": voice("Claudius's line."), "beata": voice("Beata's line.")}
    souls: dict[str, Alive] = {}
    async with AsyncExitStack() as stack:
        for name, other in (("claudius", "beata"), ("beata", "claudius")):
            home = Home(tmp_path / name)
            home.create()
            awake = alive(home, mouths[name], settings=settings(name, other, ports), keeps_clock=True)
            souls[name] = await stack.enter_async_context(awake)
        for soul in souls.values():
            await say(soul, "My name is CANARY.")
        for name, other in (("claudius", "beata"), ("beata", "claudius")):
            assert (await souls[name].services._daimons.get().now(other)).stored
        for soul in souls.values():
            await say(soul, "And now?")
            await say(soul, "And then?")

    for name, line in (("claudius", "Beata whispers: Beata's line."), ("beata", "Claudius whispers: Claudius's line.")):
        turns = [request for request in mouths[name].requests if request.purpose == "turn"]
        assert [HEADING in request.tail for request in turns] == [False, True, False]
        assert line in turns[1].tail
        asked = [request for request in mouths[name].requests if request.purpose == "whisper"]
        assert len(asked) == 1
        assert "CANARY" not in asked[0].system + asked[0].tail


async def test_the_other_s_silence_changes_no_turn_and_an_idle_hour_asks_nobody(tmp_path: Path) -> None:
    """With the other gone turns are unchanged, and while no one speaks the clock asks no one."""
    ports, home = {name: free_port() for name in TOKENS}, Home(tmp_path / "claudius")
    home.create()
    mouth = voice("x")
    async with alive(home, mouth, settings=settings("claudius", "beata", ports), keeps_clock=True) as soul:
        await say(soul, "Hello.")
        found = await soul.services._daimons.get().now("beata")
        await say(soul, "And now?")
        calls, now = len(mouth.requests), soul.mind.clock()
        due = [await soul.services._daimons.get().due("beata", quiet=False) for _ in range(2)]
        for minutes in range(0, 60, 10):
            await soul.services.look(now + timedelta(minutes=minutes))
            await soul.idle()

    assert (found.stored, found.whisper) == (False, "")
    assert len(soul.network.visible) == 2
    assert [one.reason for one in due][1] == "nothing was said since it was last asked"
    assert len(mouth.requests) == calls
