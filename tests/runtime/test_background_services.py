"""The soul stream: its six kinds of events, live and in order, for the owner only; nothing without a listener."""

import asyncio
import json
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

from claudius.home import Home
from claudius.memory.whispers import Whisper
from claudius.observed import DaimonWhispered
from claudius.perception import SELF
from claudius.providers.scripted import Scripted
from claudius.runtime.background_services import KINDS, WAITING
from claudius.testing.alive import alive
from driven import CLAUDIUS, Machine, reply
from ear import listening
from minds import by_tag
from reflecting import answer

PLAIN = {"CLAUDIUS_PSYCHE_ENABLED": "0", "CLAUDIUS_KOTHAR_ENABLED": "1", "CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
VOICE = {
    "internal_monologue": "Rust, again.",
    "soul_state_check": "true",
    "soul_state_update": "emotionalState: frustrated",
}


async def test_every_kind_is_told_live_and_in_order(home: Home) -> None:
    """A whisper arrives; a message is heard, decided on, felt, thought about, changes the process, and is answered."""
    async with alive(home, Scripted(default=by_tag(**VOICE)), settings=PLAIN) as soul:
        await soul.network.hear("Hello.")
        await soul.until_said(1)
        async with listening(soul) as connection:
            now = soul.mind.clock()
            whisper = Whisper(daimon="kothar", text="They wait.", transport="offer", sources=(SELF,), at=now, expires_at=now + timedelta(hours=1))  # fmt: skip
            await soul.mind.store.whispers.keep_whisper(whisper)
            soul.mind.hooks.emit(DaimonWhispered(daimon="kothar", text="They wait.", timestamp=now))
            await soul.network.hear("It rusts again.")
            events: list[Any] = []
            async with asyncio.timeout(20):
                while not events or events[-1]["kind"] != "speak":
                    events.append(await connection.receive())

    kinds = [event["kind"] for event in events]
    assert set(kinds) == set(KINDS) - {"error"}
    assert (kinds[0], kinds[1], kinds[-1]) == ("whisper", "hear", "speak")
    assert all(set(event) - {"key"} == {"at", "kind", "conversation", "turn", "text"} for event in events)
    text = {kind: " | ".join(event["text"] for event in events if event["kind"] == kind) for kind in KINDS}
    assert "It rusts again." in text["hear"]
    assert "Rust, again." in text["think"]
    assert "soul_state_check: true" in text["gate"]
    assert "kothar is felt: They wait." in text["whisper"]
    assert "frustrated" in text["transition"]
    assert text["speak"] == "So it is."


async def test_a_listener_that_is_slow_or_gone_disturbs_nobody(home: Home) -> None:
    """A listener that hangs up is removed, one that does not read loses the oldest events, and turns go on."""
    async with alive(home, Scripted(), settings=PLAIN) as soul:
        async with listening(soul):
            stream = soul.services.stream
            for n in range(WAITING + 50):
                stream._tell({"n": n})
            assert all(queue.qsize() <= WAITING for queue in stream._listeners)
            await soul.network.hear("Hello.")
            await soul.network.until_visible(1)
        async with asyncio.timeout(20):
            while stream._listeners:
                await asyncio.sleep(0.002)
        await soul.network.hear("Again.")
        await soul.network.until_visible(2)

    assert len(soul.network.visible) == 2


def test_the_command_shows_it_in_colour_and_as_json(tmp_path: Path) -> None:
    """`claudius stream` exits with 75 if no soul runs; else it prints lines for a person, or one JSON object each."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada", "CLAUDIUS_PSYCHE_ENABLED": "0"})
    machine.scripted(*[reply("So it is.")] * 4)
    asleep = machine.run("stream")
    with machine.daemon():
        watching = subprocess.Popen([str(CLAUDIUS), "stream", "--json", "--count", "4"], env=machine.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        assert watching.stderr
        watching.stderr.readline()
        machine.ok("chat", "--once", "Hello.")
        out, _ = watching.communicate(timeout=60)

    events = [json.loads(line) for line in out.decode().splitlines()]
    assert (asleep.code, len(asleep.stderr.splitlines())) == (75, 1)
    assert [event["kind"] for event in events if event["kind"] != "think.delta"][:2] == ["hear", "gate"]
    assert {event["conversation"] for event in events} == {"terminal:local:main:main"}
    assert "Somebody speaks." in json.dumps(events)


def test_the_command_shows_what_the_second_mind_does(tmp_path: Path) -> None:
    """`claudius stream` tells a cycle as it ends: whom it assessed and why, and what it saw, as thoughts."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada", "CLAUDIUS_CORTEX_ENABLED": "1", "CLAUDIUS_PSYCHE_ENABLED": "0"})
    machine.scripted(reply("So it is."), answer(("terminal:local:ada", 3)))
    with machine.daemon():
        machine.ok("chat", "--once", "I build bridges.")
        watching = subprocess.Popen([str(CLAUDIUS), "stream", "--json", "--count", "2"], env=machine.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        assert watching.stderr
        watching.stderr.readline()
        machine.ok("cortex", "reflect", "--json")
        out, _ = watching.communicate(timeout=60)

    events = [json.loads(line) for line in out.decode().splitlines()]
    assert [event["kind"] for event in events] == ["think", "think"]
    assert events[0]["text"].startswith("assessed terminal:local:ada")
    assert events[1]["text"].startswith("looked back, cycle 1")
