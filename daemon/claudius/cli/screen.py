"""Show a conversation on a plain output: a pipe, or a terminal that can only print; and read its lines.

A full terminal has `claudius.cli.prompt`. Lines are read in a thread that is never joined, so that Ctrl-C ends the
conversation at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import click

from claudius.cli.output import safe

YOU = "you › "
THINKING = "… thinking"
READER = "keyboard"
EXIT_INTERRUPTED = 130
"""The exit code of a process that Ctrl-C ended: 128 + SIGINT."""


class Screen(Protocol):
    """Where a conversation is shown and typed."""

    one_by_one: bool
    """The next line is read once the last one is answered."""
    is_interrupted: bool
    """Ctrl-C was typed: the conversation ends."""

    def close(self) -> None:
        """Give the terminal back as it was; nothing is read any more."""

    async def line(self) -> str | None:
        """Return the next line; None at the end of the input."""

    async def tell(self, text: str, kind: str = "") -> None:
        """Show lines beside the talk: of `kind` `past`, `help`, `note` or `wrong`, or plain words."""

    async def working(self, text: str) -> None:
        """Show that the soul is thinking, in these words; empty = it is not."""

    async def delta(self, turn: str, text: str) -> None:
        """Show one more piece of a turn's reply."""

    async def thought(self, turn: str, verb: str, text: str) -> None:
        """Show one more piece of a turn's private thought."""

    async def void(self) -> None:
        """Take back the private thought that was shown: it does not count."""

    async def speech(self, turn: str, body: str, receipts: Sequence[str] = ()) -> None:
        """Show a whole utterance, and what was done: what of it was shown as it grew is not shown again."""


class Plain:
    """A screen that prints: words and nothing else into a pipe, an indicator and growing words on a terminal."""

    one_by_one = True
    is_interrupted = False

    def __init__(self, *, is_tty: bool) -> None:
        """Print; the prompt, the indicator and growing words are shown only on a terminal."""
        self._is_tty = is_tty
        self._visible = ""
        self._sign = ""
        self._thought = False
        self._is_reading = False

    def close(self) -> None:
        """Do nothing: the terminal is as it was."""

    async def line(self) -> str | None:
        """Return the next line; None at the end of the input."""
        if self._is_tty:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - enables arrow keys at the prompt
        self._is_reading = True
        try:
            return await typed(YOU if self._is_tty else "")
        finally:
            self._is_reading = False

    async def tell(self, text: str, kind: str = "") -> None:
        """Print lines; what is wrong, and notes, to stderr."""
        colour = {"note": "yellow", "wrong": "red"}.get(kind)
        with self._beside_the_line():
            click.secho(safe(text), err=colour is not None, fg=colour, dim=kind in ("past", "help") or None)

    async def working(self, text: str) -> None:
        """Show the indicator, or remove it."""
        if not self._is_tty or self._visible or self._thought or self._is_reading:
            return
        sign = safe(text)
        if self._sign and sign != self._sign:
            click.echo("\r" + " " * len(self._sign) + "\r", nl=False)
        if sign and sign != self._sign:
            click.secho(sign, nl=False, dim=True)
        self._sign = sign
        sys.stdout.flush()

    async def delta(self, turn: str, text: str) -> None:  # noqa: ARG002 - one line is answered at a time
        """Print one more piece of the reply."""
        if not self._is_tty:
            return
        await self.working("")
        self.end_thought()
        if self._is_reading and not self._visible:
            click.echo()
        self._visible += text
        click.echo(safe(text), nl=False)
        sys.stdout.flush()

    async def thought(self, turn: str, verb: str, text: str) -> None:  # noqa: ARG002 - likewise
        """Print one more piece of a private thought, to stderr where stdout is for words alone."""
        await self.working("")
        begun = "" if self._thought else f"({verb or 'thought'}, to itself) "
        self._thought = True
        click.secho(begun + safe(text), nl=False, dim=True, err=not self._is_tty)
        sys.stdout.flush()

    async def void(self) -> None:
        """Mark a printed thought as void."""
        if self._thought:
            click.secho(" … (no: begun anew)", dim=True, err=not self._is_tty)
            self._thought = False

    async def speech(self, turn: str, body: str, receipts: Sequence[str] = ()) -> None:  # noqa: ARG002 - likewise
        """Print the missing rest, or all of it if something else was shown before."""
        await self.working("")
        self.end_thought()
        with self._beside_the_line(is_begun=bool(self._visible)):
            is_rest = body.startswith(self._visible)
            click.echo(safe(body[len(self._visible) :]) if is_rest else f"\n{safe(body)}")
            if receipts:
                click.secho("\n" + safe("\n".join(receipts)), dim=True)
        self._visible = ""
        sys.stdout.flush()

    def end_thought(self) -> None:
        """End the line of a thought."""
        if self._thought:
            click.echo(err=not self._is_tty)
            self._thought = False

    @contextlib.contextmanager
    def _beside_the_line(self, *, is_begun: bool = False) -> Iterator[None]:
        """Print on lines of their own, and show the prompt and what is being typed again."""
        is_between = self._is_tty and self._is_reading
        if is_between and not is_begun:
            click.echo()
        yield
        if is_between:
            reading = sys.modules.get("readline")
            click.echo(YOU + (reading.get_line_buffer() if reading else ""), nl=False)
            sys.stdout.flush()


async def show(screen: Screen, frame: Mapping[str, Any]) -> None:
    """Show one frame of a conversation, other than a whole utterance."""
    match frame["event"]:
        case "working":
            await screen.working(str(frame.get("text") or THINKING) if frame["on"] else "")
        case "delta":
            await screen.delta(str(frame["turn"]), str(frame["text"]))
        case "thinking" if frame["step"] == "internal_monologue":
            await screen.thought(str(frame["turn"]), str(frame["verb"]), str(frame["text"]))
        case "void":
            await screen.void()
        case "failed":
            lead = "trying again" if frame["again"] else "failed"
            await screen.tell(f"{lead}: {frame['detail']}: {frame['fix']}".removesuffix(": "), "note")
        case "refused":
            await screen.tell(f"not accepted: {frame['message']}", "wrong")


class Notices:
    """The problems with the soul's files or settings, told whenever they change."""

    def __init__(self) -> None:
        self._told: tuple[str, ...] = ()

    async def tell(self, screen: Screen, notices: Sequence[str]) -> None:
        """Show them, unless they are those shown last."""
        if tuple(notices) != self._told:
            self._told = tuple(notices)
            for line in notices:
                await screen.tell(f"note: {line}", "note")


async def typed(prompt: str) -> str | None:
    """Return the next line; None at the end of the input."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def read() -> None:
        try:
            text: str | None = input(prompt)
        except EOFError:
            text = None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for the line any more
            loop.call_soon_threadsafe(_give, line, text)

    threading.Thread(target=read, name=READER, daemon=True).start()
    return await line


def _give(line: asyncio.Future[str | None], text: str | None) -> None:
    if not line.done():
        line.set_result(text)


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """Restore the terminal if Ctrl-C ends the block while a line is being read.

    The reading thread would block the interpreter's exit until Enter, and leave the terminal without echo.
    """
    import termios

    before = termios.tcgetattr(sys.stdin.fileno()) if sys.stdin.isatty() else None
    try:
        yield
    except KeyboardInterrupt:
        if not any(thread.name == READER for thread in threading.enumerate()):
            raise
        if before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
            print()  # noqa: T201 - the shell's prompt must begin on a new line
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)
