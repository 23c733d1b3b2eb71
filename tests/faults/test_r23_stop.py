"""R23: stopping. A running turn gets a few seconds, decided replies are said, and unfinished work is not lost."""

import asyncio
import os
import signal

import pytest

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.runtime.control import connect
from claudius.runtime.life import Signals
from claudius.testing.alive import alive
from driven import TIMEOUT_S, Machine, reply, until

pytestmark = pytest.mark.slow

IN_FLIGHT = 50


def asked(machine: Machine) -> int:
    """Count the calls of the scripted model."""
    return len(machine.requests.read_text().splitlines()) if machine.requests.exists() else 0


async def say(machine: Machine, count: int, *, person: str = "") -> None:
    """Say one line in each of `count` conversations over the daemon's socket. Returns once each is accepted."""
    for number in range(count):
        async with connect(machine.home / "run" / "claudius.sock") as connection:
            await connection.send({"op": "chat", "conversation": f"c{number}", "as": ""})
            await connection.send({"op": "say", "id": f"{person}{number}", "text": f"line {number}"})
            while (frame := await connection.receive()) is not None and frame["event"] != "heard":
                assert frame["event"] in ("attached", "working", "speech")
            assert frame


def test_r23_sigterm_with_fifty_in_flight_loses_nothing(machine: Machine) -> None:
    """50 turns hang in the model: the daemon ends by itself in order, and the next one answers each of the 50 once."""
    machine.scripted(*[{"deltas": [reply("late")], "delay_s": 60}] * IN_FLIGHT)
    with machine.daemon(is_stopped=False) as pid:
        asyncio.run(say(machine, IN_FLIGHT))
        until(pid, lambda: asked(machine) == IN_FLIGHT)
        waiting = machine.ok("status", "--json").json["inbox"]["pending"]
        stopped = machine.ok("daemon", "stop", "--json").json
    machine.scripted(*[reply("now")] * IN_FLIGHT)
    with machine.daemon() as pid:
        until(pid, lambda: machine.ok("status", "--json").json["turns"]["total"] == IN_FLIGHT)
        shown = [machine.ok("conversations", "show", f"terminal:local:main:c{n}", "--json").json for n in (0, 49)]

    assert (waiting, stopped["stopped"]) == (IN_FLIGHT, True)
    assert asked(machine) == 2 * IN_FLIGHT
    for one in shown:
        assert [entry["content"] for entry in one["entries"] if entry["entry_type"] == "externalDialog"] == ["now"]
    assert not any(event["event"].startswith("the last process") for event in machine.events())


def test_r23_a_second_sigterm_ends_it_at_once_and_loses_nothing(machine: Machine) -> None:
    """While it waits for a turn, a second SIGTERM ends it. The next start answers the line once."""
    machine.scripted({"deltas": [reply("late")], "delay_s": 60})
    with machine.foreground() as process:
        asyncio.run(say(machine, 1))
        until(process.pid, lambda: asked(machine))
        process.send_signal(signal.SIGTERM)
        machine.until_logged("asked to end")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=TIMEOUT_S)
        ended = [event["event"] for event in machine.events()]
    machine.scripted(reply("now"), reply("then"))
    ran = machine.ok("chat", "--once", "again", "--conversation", "c0")

    assert (process.returncode, said) == (128 + signal.SIGTERM, b"")
    assert "asleep" not in ended
    assert (ran.stdout, ran.stderr) == ("then\n", "(earlier) now\n")


def test_r23_ctrl_c_ends_it_in_good_order(machine: Machine) -> None:
    """In the foreground SIGINT works like SIGTERM: exit 0, no traceback, and a stop recorded as `clean`."""
    with machine.foreground() as process:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, said) == (0, b"")
    assert [event["event"] for event in machine.events()][-1] == "asleep"


def test_r23_sighup_reads_the_settings_again(machine: Machine) -> None:
    """SIGHUP applies an edit, keeps the last good settings if the edit is broken, and ends nothing."""
    with machine.daemon() as pid:
        (machine.home / "config.toml").write_text("[log]\nlevel = 7\n")
        os.kill(pid, signal.SIGHUP)
        broken = machine.until_logged("the settings were read again")
        answered = machine.ok("chat", "--once", "still there?")
        (machine.home / "config.toml").write_text('[log]\nlevel = "ERROR"\n')
        os.kill(pid, signal.SIGHUP)
        until(pid, lambda: machine.events()[-1].get("problem") == "")

    assert "log.level" in broken["problem"]
    assert "the last good version stays in use" in answered.stderr
    assert machine.events()[-1]["event"] == "the settings were read again"


async def test_r23_nothing_is_accepted_once_it_stops(home: Home) -> None:
    """A message during the stop is not acknowledged, so the network redelivers it to the next process."""
    async with alive(home, Scripted(default=reply("never"))) as soul:
        pass

    with pytest.raises((ConnectionError, AssertionError)):
        await soul.network.hear("too late")


async def test_r23_signals_are_given_back() -> None:
    """After its life the process handles signals as it did before."""
    kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(kind) for kind in kinds]

    with Signals().heard():
        pass

    assert [signal.getsignal(kind) for kind in kinds] == before
