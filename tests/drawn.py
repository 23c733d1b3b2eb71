"""Run a command on a terminal that draws, and look at its screen as a person does: the lines that have scrolled, too."""

import os
import re
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyte

from driven import ROWS, TIMEOUT_S, Machine, Terminal

FULL = "xterm-256color"
HISTORY = 1000


@dataclass(slots=True)
class Drawn:
    """A terminal that draws what a command writes."""

    terminal: Terminal
    screen: pyte.HistoryScreen
    stream: pyte.ByteStream

    @property
    def lines(self) -> list[str]:
        """Return everything on the screen and above it, without blank ends."""
        above = ["".join(row[at].data for at in range(self.screen.columns)) for row in self.screen.history.top]
        return [line.rstrip() for line in "\n".join((*above, *self.screen.display)).rstrip().split("\n")]

    @property
    def text(self) -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines)

    @property
    def typing(self) -> str:
        """Return the line at the bottom, which is being typed."""
        return self.lines[-1]

    def keys(self, keys: str) -> None:
        """Type keys."""
        os.write(self.terminal.master, keys.encode())

    def say(self, line: str) -> None:
        """Type a line and Enter."""
        self.keys(line + "\r")

    def until(self, condition: Callable[[], object]) -> None:
        """Draw until the condition holds."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < give_up_at, f"it never came to that:\n{self.text}"
            self._draw(0.05)

    def until_shown(self, text: str, times: int = 1) -> None:
        """Draw until a text is on the screen that often, wherever its lines break."""
        self.until(lambda: _flat(self.text).count(_flat(text)) >= times)

    def until_asked(self) -> None:
        """Draw until an empty prompt stands at the bottom."""
        self.until(lambda: self.typing == "you ›")

    def until_said(self, text: str, typing: str = "you ›") -> None:
        """Draw until the soul has said a text to its end, and the prompt stands below it with what is being typed."""
        self.until_shown(text)
        self.until(lambda: self.lines[-2:] == ["", typing])

    def rest(self) -> str:
        """Draw to the end of the command; return the whole text."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while self._draw(1):
            assert time.monotonic() < give_up_at, f"the command did not end:\n{self.text}"
        self.terminal.process.wait(TIMEOUT_S)
        return self.text

    def _draw(self, wait_s: float) -> bool:
        """Draw what the command writes within a time. Returns whether it may write more."""
        ready, _, _ = select.select([self.terminal.master], [], [], wait_s)
        if not ready:
            return True
        try:
            piece = os.read(self.terminal.master, 65536)
        except OSError:  # Linux raises this once nobody holds the other end
            return False
        self.stream.feed(piece)
        return bool(piece)


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@contextmanager
def drawn(machine: Machine, *args: str, columns: int = 80, command: str = "", **env: str) -> Iterator[Drawn]:
    """Run `claudius ARGS`, or another command, on a terminal that draws."""
    screen = pyte.HistoryScreen(columns, ROWS, history=HISTORY)
    with machine.terminal(*args, env={"TERM": FULL, **env}, columns=columns, command=command) as terminal:
        yield Drawn(terminal, screen, pyte.ByteStream(screen))
