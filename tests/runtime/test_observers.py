"""Observers of the owner's own: told what happens, in their own thread, and no turn is the worse for them (doors §2, D3)."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from claudius.home import Home
from claudius.observed import MessageHeard, Observed
from claudius.providers.scripted import Scripted
from claudius.runtime.observers import POINTS, WAITING, Observer, Observers, unfit
from claudius.testing.alive import alive
from claudius.testing.check_observer import check_observer, sample
from driven import CLAUDIUS, Machine
from minds import by_tag, say

HEARD = sample(MessageHeard)


class Hoarder:
    """An observer that keeps all that it is told, and more."""

    def __init__(self) -> None:
        self.kept: list[tuple[Observed, bytes]] = []

    def _keep(self, event: Observed) -> None:
        self.kept.append((event, bytes(100_000)))

    on_message = before_llm = after_llm = before_send = after_send = transition = _keep


class Raiser:
    """An observer that raises what somebody said."""

    def on_message(self, event: MessageHeard) -> None:
        """Raise."""
        raise ValueError(event.preview)


class Leaver:
    """An observer that would end the program."""

    def on_message(self, _: MessageHeard) -> None:
        """Leave."""
        sys.exit(3)


class Sleeper:
    """An observer that does not return before it is told to."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def on_message(self, _: MessageHeard) -> None:
        """Wait."""
        self.may_end.wait()


async def test_d3_observers_that_sleep_raise_and_hoard_harm_no_turn(home: Home) -> None:
    """Every turn is answered; each is told in order what it has a method for; the faulty ones are off, and named."""
    sleeper, hoarder = Sleeper(), Hoarder()
    parts = {"x:Raiser": Raiser(), "x:Hoarder": hoarder}
    async with alive(home, Scripted(default=by_tag())) as soul:
        slow = Observers({"x:Sleeper": sleeper}, soul.mind.hooks, slow_s=0.0)
        others = Observers(parts, soul.mind.hooks)
        said = await say(soul, *"ABCDE")
        for one in others.each:
            one.drain()
        found = slow.problems() | others.problems()
    sleeper.may_end.set()

    assert said == ["So it is."] * 5
    told = [event.point.partition(".")[2] for event, _ in hoarder.kept]
    assert told[:6] == ["on_message", "before_llm", "after_llm", "transition", "before_send", "after_send"]
    assert "is switched off: its on_message took more than 0 s" in found["x:Sleeper"]
    assert "is switched off: its on_message raised ValueError in test_observers.py" in found["x:Raiser"]
    assert not any(letter in found["x:Raiser"].split() for letter in "ABCDE")


def test_what_waits_is_bounded_and_what_is_dropped_is_counted() -> None:
    """A thousand events wait for a slow one; those after them are dropped, and counted."""
    sleeper = Sleeper()
    one = Observer("slow", sleeper, slow_s=3600)
    for _ in range(WAITING + 100):
        one.take("on_message", HEARD)
    sleeper.may_end.set()
    one.drain()

    assert 99 <= one.dropped <= 100


def test_one_that_would_end_the_program_is_switched_off_and_nothing_waits_for_it() -> None:
    """Three exits are three faults, as any error; of one that is off nobody's words stay queued."""
    leaver, sleeper = Observer("leaves", Leaver()), Sleeper()
    slow = Observer("slow", sleeper, slow_s=-1.0)
    for _ in range(10):
        leaver.take("on_message", HEARD)
    leaver.drain()
    while not slow.why_off:
        slow.take("on_message", HEARD)
    waiting = slow._queue.qsize()
    sleeper.may_end.set()

    assert "its on_message raised SystemExit in test_observers.py" in leaver.why_off
    assert waiting == 0


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing of ours": ({"on_massage": lambda _, __: None}, "it has none of on_message"),
    "no argument": ({"on_message": lambda _: None}, "cannot be called as on_message"),
    "a value": ({"after_send": 3}, "its after_send is not a function"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_observer_is_named(fault: str) -> None:
    """The shape is checked before anybody talks."""
    methods, why = FAULTS[fault]
    assert why in unfit(type("Own", (), methods)())


def test_check_observer_finds_what_would_switch_it_off() -> None:
    """Each method is called once with a struct of its own kind; one that raises, or that is slow, is named."""
    hoarder = Hoarder()
    check_observer(hoarder)

    assert [type(event) for event, _ in hoarder.kept] == [
        kind for name, kind in POINTS.items() if hasattr(hoarder, name)
    ]
    with pytest.raises(AssertionError, match="on_message raised"):
        check_observer(Raiser())
    with pytest.raises(AssertionError, match="took more than"):
        check_observer(hoarder, slow_s=-1.0)


WATCHER = """
class Watcher:
    def on_message(self, event):
        open({where!r}, "a").write(event.preview + "\\n")
        raise OSError("no such dashboard")
"""


def test_a_daemon_tells_its_observers_and_doctor_names_the_one_that_is_off(tmp_path: Path) -> None:
    """From `observers` in the settings to `doctor`; the stream has the typed payload beside the prose."""
    machine = Machine(tmp_path, env={"CLAUDIUS_PROVIDERS": "rehearsal"})
    (tmp_path / "watch.py").write_text(WATCHER.format(where=str(tmp_path / "seen")))
    machine.env["PYTHONPATH"] = str(tmp_path)
    machine.env["CLAUDIUS_OBSERVERS"] = "watch:Nobody"
    assert "CLAUDIUS_OBSERVERS: 'watch:Nobody'" in machine.run("config", "check").shown
    machine.env["CLAUDIUS_OBSERVERS"] = "watch:Watcher"

    with machine.daemon():
        watching = subprocess.Popen([str(CLAUDIUS), "stream", "--json", "--count", "1"], env=machine.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        assert watching.stderr
        watching.stderr.readline()
        for line in ("One.", "Two.", "Three."):
            machine.ok("chat", "--once", line)
        told, _ = watching.communicate(timeout=60)
        named = machine.run("doctor").shown

    assert (tmp_path / "seen").read_text() == "One.\nTwo.\nThree.\n"
    assert "watch:Watcher" in named
    assert "raised OSError in watch.py:5" in named
    event = json.loads(told.decode().splitlines()[0])["event"]
    assert (event["point"], event["preview"], event["channel_type"]) == ("loop.on_message", "One.", "terminal")
