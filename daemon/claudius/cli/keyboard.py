"""Lines from the keyboard, read in a thread that nobody waits for: Ctrl-C ends a conversation at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

READER = "keyboard"
EXIT_INTERRUPTED = 130


async def typed(prompt: str) -> str | None:
    """Return the next line; None at the end of the input."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def read() -> None:
        try:
            text: str | None = input(prompt)
        except EOFError:
            text = None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(_give, line, text)

    threading.Thread(target=read, name=READER, daemon=True).start()
    return await line


def _give(line: asyncio.Future[str | None], text: str | None) -> None:
    if not line.done():
        line.set_result(text)


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """Give the terminal back as it was, where Ctrl-C ends the block while a line is being read.

    That reader would hold the interpreter's own end up until Enter, and leave the terminal without an echo.
    """
    before = _attributes()
    try:
        yield
    except KeyboardInterrupt:
        if not any(thread.name == READER for thread in threading.enumerate()):
            raise
        if before is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
            print()  # noqa: T201 - the shell's prompt is to begin a line
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)


def _attributes() -> Any:
    if not sys.stdin.isatty():
        return None
    import termios

    return termios.tcgetattr(sys.stdin.fileno())
