"""P18: how soon each failure names its cause and its remedy: in the chat, in `--once`, in `status` and in `why`.

One real daemon lives through every failure, with a wait of the terminal longer than any of them takes, so that the
apology tells nothing. The clock runs from the Enter of the line, or the start of the command, to the words on the
screen; where a failure is a wait itself (a silent server), from its end. `status` and `why` are asked again and again.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from command import Bench, alone
from drawn import Drawn, drawn
from driven import CLAUDIUS
from failing import CASES, Case, Place, failing
from figures import Figure, within

WAIT_S = 30.0
"""How long a terminal waits here for a model: the apology at its end is no part of any figure."""
QUICK = ("dead server", "401", "silent", "cut stream", "own function raises")
HEALED = Case("", "", "")
SETTINGS_S = 0.4
FACES = ("chat", "--once", "status", "why")


def measure(bench: Bench) -> Iterator[Figure]:
    """Go through the failures once a round; a figure is the slowest failure of each round."""
    names = QUICK if bench.is_quick else tuple(CASES)
    told: dict[str, dict[str, list[float]]] = {face: {name: [] for name in names} for face in FACES}
    rounds = 1 if bench.is_quick else min(3, bench.rounds)
    for _ in range(rounds):
        with failing(bench.home("failing")) as place:
            for name in names:
                for face, took_s in _told_s(place, name):
                    told[face][name].append(took_s)
    for face, found in told.items():
        slowest = [max(took[at] for took in found.values()) for at in range(rounds)]
        yield Figure(
            id="P18", name=f"a failure is told, {face}", unit="s", samples=slowest,
            beside=(within("P18.told", rounds),),
            note="\n".join(f"{name}: {median(took):.2f}" for name, took in found.items()),
        )  # fmt: skip


def _told_s(place: Place, name: str) -> Iterator[tuple[str, float]]:
    """Bring a failure about for each face in turn; yield the seconds until its cause and remedy stood there."""
    case = CASES[name]
    known_s = case.first_byte_s if case.answer and case.answer.get("fault") == "hang" else 0.0
    words = (case.detail.format(server=place.server), case.fix)
    with drawn(place.machine, "chat", "--conversation", f"chat {name}") as shown:
        shown.until_asked()
        _bring(place, case)
        began = time.monotonic()
        shown.say("hello")
        shown.until(lambda: _has(shown.text, *words))
        yield "chat", time.monotonic() - began - known_s
        _heal(place, shown)
        for face in ("status", "why"):
            _bring(place, case)
            began = time.monotonic()
            shown.say("hello")
            yield face, _shown_s(place, face, words, began) - known_s
            _heal(place, shown)
        shown.keys("\x04")
        shown.rest()
    _bring(place, case)
    yield "--once", _once_s(place, name, words) - known_s


def _shown_s(place: Place, face: str, words: tuple[str, ...], began: float) -> float:
    """Ask again and again until the failure is shown; return the seconds to the end of the command that showed it."""
    while True:
        said, took_s = place.machine.run(face).stdout, time.monotonic() - began
        if _has(said, *words) and (_last(place) or "nobody") in said:
            return took_s
        assert took_s < 2 * WAIT_S, said


def _once_s(place: Place, name: str, words: tuple[str, ...]) -> float:
    machine, began = place.machine, time.monotonic()
    once = subprocess.Popen(
        [str(CLAUDIUS), "chat", "--once", "hello", "--conversation", f"once {name}"],
        env=machine.environment(), cwd=machine.user, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    with once:
        assert once.stderr
        shown = ""
        while not _has(shown, *words):
            piece = os.read(once.stderr.fileno(), 65536).decode()
            assert piece, shown
            shown += piece
        took_s = time.monotonic() - began
        place.reset()
        place.set(HEALED, WAIT_S)
        once.stderr.read()
    return took_s


def _bring(place: Place, case: Case) -> None:
    """Bring a failure about, and wait until the settings are in force."""
    place.have(case, WAIT_S)
    time.sleep(SETTINGS_S)


def _heal(place: Place, shown: Drawn) -> None:
    """Have everything work again, and draw the chat until whatever was asked is answered."""
    _bring(place, HEALED)
    shown.say("and now?")
    shown.until(lambda: not (found := _status(place))["inbox"]["pending"] and not found["last_failure"])
    shown.until_asked()
    assert _last(place) is None


def _last(place: Place) -> str | None:
    """Return the turn that failed last, None if the last one was answered."""
    failed = _status(place)["last_failure"]
    return str(failed["turn"]) if failed else None


def _status(place: Place) -> Any:
    return json.loads(place.machine.run("status", "--json").stdout)


def _has(shown: str, *words: str) -> bool:
    flat = " ".join(shown.split())
    return all(word in flat for word in words)


if __name__ == "__main__":
    alone(__file__)
