"""Crash-loop backoff: a process that starts too often waits before it logs in to any network.

Source: the reliability design, section 4. Discord allows 1,000 logins a day and revokes the token beyond that.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from claudius.home import FILE_MODE

STARTS = 5
WITHIN_S = 300.0
FIRST_S, LONGEST_S = 2.0, 900.0
KEPT = 20


class Start(Struct, frozen=True):
    """One start of a process that did not end cleanly, and how long it was held back."""

    at_s: float
    held_s: float = 0.0


def starts_lately(starts: Sequence[Start], now_s: float) -> int:
    """Count the starts within the last 300 s, this one included; time spent held back does not count. Pure."""
    count, ran_s, later_s = 1, 0.0, now_s
    for start in reversed(starts):
        ran_s += max(0.0, later_s - start.at_s - start.held_s)
        if ran_s > WITHIN_S:
            break
        count += 1
        later_s = min(start.at_s, later_s)
    return count


def hold_s(starts: Sequence[Start], now_s: float) -> float:
    """Return how long a start at `now_s` is held back: 2, 4, 8 … 900 s from the fifth within 300 s on. Pure."""
    count = starts_lately(starts, now_s)
    return min(LONGEST_S, FIRST_S * 2 ** (count - STARTS)) if count >= STARTS else 0.0


class Brake:
    """The recent starts of one home, kept in `run/starts`."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Keep the starts in `path`; `clock` gives seconds that are comparable between processes."""
        self._path, self._clock = path, clock
        self._started: Start | None = None
        self.count = 0
        """How many recent starts there were, this one included."""

    def start(self) -> float:
        """Record a start. Returns how many seconds the process must wait before it logs in to any network."""
        now_s, starts = self._clock(), self._read()
        self.count = starts_lately(starts, now_s)
        self._started = Start(now_s, hold_s(starts, now_s))
        self._write([*starts, self._started])
        return self._started.held_s

    def forgive(self) -> None:
        """Remove the record of this start: the process ended cleanly, or before it logged in."""
        self._write([start for start in self._read() if start != self._started])

    @property
    def message(self) -> str:
        """The reason why the process waits, and for how long."""
        held_s = self._started.held_s if self._started else 0.0
        return (
            f"crash-loop brake: {self.count} starts that did not end well within {WITHIN_S:.0f} s; "
            f"waiting {held_s:.0f} s before any network login"
        )

    def _read(self) -> list[Start]:
        try:
            found = [Start(*map(float, json.loads(line))) for line in self._path.read_text("ascii").splitlines()]
        except (OSError, ValueError, TypeError):
            return []
        return found[-KEPT:]

    def _write(self, starts: Sequence[Start]) -> None:
        """Replace the file. A write error loses the record but does not prevent the start."""
        aside = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
            with os.fdopen(file, "w", encoding="ascii") as lines:
                lines.writelines(json.dumps([start.at_s, start.held_s]) + "\n" for start in starts[-KEPT:])
            aside.replace(self._path)
