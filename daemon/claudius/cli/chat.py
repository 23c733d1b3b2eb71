"""`claudius chat`: talk with the soul in this terminal, or send a single line.

Lines are read in a thread that is never joined, so that Ctrl-C ends the conversation at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from claudius.cli.output import print_json, safe
from claudius.errors import EXIT_TRY_AGAIN, ClaudiusError, TryAgain, UsageProblem
from claudius.home import Home
from claudius.perception import private
from claudius.reports.session import LOOK_AGAIN_S, HeldBack, SentLine, attach, session
from claudius.runtime.control import Connection, FrameTooLong

NOTED_S = 5.0
READER = "keyboard"
SHOWN_TURNS = 3
"""How many of the last exchanges are shown at the start."""
THINKING = "… thinking"


@click.command()
@click.option("--once", "text", metavar="TEXT", help="Say one line, print the reply, and exit.")
@click.option("--conversation", default="", metavar="NAME", help="Which conversation of this terminal (default: main).")
@click.option("--as", "other", metavar="NAME", help="Speak as somebody else, without the owner's rights.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds to wait for a reply.",
)
@click.option("--json", "as_json", is_flag=True, help="With --once: print the whole turn as one JSON document.")
def chat(text: str | None, conversation: str, other: str | None, timeout_s: float, *, as_json: bool) -> int:
    """Talk with the soul here in the terminal."""
    if as_json and text is None:
        raise UsageProblem("--json needs --once TEXT")
    if other is not None and not other.strip():
        raise UsageProblem("--as needs a name: without one you would speak as yourself, with the owner's rights")
    home = Home.of(os.environ)
    home.create()
    hello = {"op": "chat", "conversation": conversation, "as": other or ""}
    if text is not None:
        if not text.strip():
            raise UsageProblem("--once needs a text to say")
        return asyncio.run(_once(home, hello, text, timeout_s, as_json=as_json))
    with given_back():
        return asyncio.run(talk(home, hello | {"stream": sys.stdin.isatty() and sys.stdout.isatty()}))


async def _once(home: Home, hello: Mapping[str, Any], text: str, timeout_s: float, *, as_json: bool) -> int:
    line, started = SentLine(text), time.monotonic()
    earlier: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                async with session(home, join_s=timeout_s) as connection:
                    attached = await _attached(connection, hello, timeout_s - (time.monotonic() - started))
                    speech = await _answer(connection, line, earlier, as_json=as_json) if attached else None
                    if attached and speech:
                        ms = round((time.monotonic() - started) * 1000)
                        for notice in speech.get("notices", ()):
                            click.echo(f"note: {safe(notice)}", err=True)
                        _print(speech, attached, earlier, ms, as_json=as_json)
                        await _say_shown(connection, str(speech["key"]))
                        break
                await asyncio.sleep(LOOK_AGAIN_S)
    except TimeoutError:
        if not line.is_heard:
            raise TryAgain(f"the soul of {home.root} was not reached within {timeout_s:g} s: try again") from None
        raise TryAgain(
            f"no reply within {timeout_s:g} s; what you said is kept, and answered at the next `claudius chat`"
        ) from None
    return EXIT_TRY_AGAIN if speech.get("apology") else 0


async def _attached(connection: Connection, hello: Mapping[str, Any], patience_s: float) -> dict[str, Any] | None:
    """Attach to the conversation; None to try again. Raises: HeldBack if the wait would exceed `patience_s`."""
    try:
        return await attach(connection, hello)
    except HeldBack as held:
        if held.wait_s >= patience_s:
            raise
        return None


async def _answer(
    connection: Connection, line: SentLine, earlier: list[dict[str, Any]], *, as_json: bool
) -> dict[str, Any] | None:
    """Send the line and wait for its answer; None if the connection was lost."""
    with contextlib.suppress(ConnectionError):
        await connection.send({"op": "say", "id": line.id, "text": line.text})
        while (frame := await connection.receive()) is not None:
            match frame["event"]:
                case "speech" if line.key in frame["answers"]:
                    return frame
                case "speech":
                    earlier.append({"turn": frame["turn"], "reply": frame["body"]})
                    if not as_json:
                        click.echo(f"(earlier) {safe(frame['body'])}", err=True)
                    await connection.send({"op": "shown", "key": frame["key"]})
                case "heard":
                    line.is_heard = True
                case "refused":
                    raise ClaudiusError(f"not accepted: {frame['message']}")
    return None


async def _say_shown(connection: Connection, key: str) -> None:
    """Report that a reply was shown, and wait for the acknowledgement; without it the reply would be sent again."""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(NOTED_S):
            await connection.send({"op": "shown", "key": key})
            while (frame := await connection.receive()) is not None:
                if frame["event"] == "noted" and frame["key"] == key:
                    return


def _print(
    speech: Mapping[str, Any], attached: Mapping[str, Any], earlier: list[Any], ms: int, *, as_json: bool
) -> None:
    if not as_json:
        click.echo(safe(speech["body"]))
        sys.stdout.flush()
        return
    from claudius.reports.opened import records

    with records(Home.of(os.environ)) as kept:
        turn = kept.turn(speech["turn"]) or {}
    document = {
        "turn": speech["turn"],
        "conversation": attached["conversation"],
        "person": attached["person"],
        "reply": speech["body"],
        "verb": speech["verb"],
        "process": turn.get("process"),
        "provider": turn.get("provider"),
        "model": turn.get("model"),
        "usage": turn.get("usage"),
        "ms": ms,
    }
    if speech.get("apology"):
        document["apology"] = speech["apology"]
    if earlier:
        document["earlier"] = earlier
    print_json(document)


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
        os._exit(130)  # interrupted


class Screen:
    """The display of one reply as it arrives: a thinking indicator, then its words, then its end."""

    def __init__(self, *, is_tty: bool) -> None:
        """Create a screen; the indicator and colours are shown only on a terminal."""
        self._is_tty = is_tty
        self._visible = ""
        self._sign = ""
        self._noticed: tuple[str, ...] = ()

    def notice(self, notices: Sequence[str]) -> None:
        """Show the problems with the soul's files or settings, whenever they change."""
        if tuple(notices) == self._noticed:
            return
        self._noticed = tuple(notices)
        for line in notices:
            click.secho(f"note: {safe(line)}", err=True, fg="yellow")

    def working(self, *, on: bool, line: str = THINKING) -> None:
        """Show that the soul is thinking, in its own words if it has some, or remove the indicator."""
        if not self._is_tty or self._visible:
            return
        sign = safe(line) if on else ""
        if self._sign and sign != self._sign:
            click.echo("\r" + " " * len(self._sign) + "\r", nl=False)
        if sign and sign != self._sign:
            click.secho(sign, nl=False, dim=True)
        self._sign = sign
        sys.stdout.flush()

    def delta(self, text: str) -> None:
        """Show one more piece of the reply."""
        if not self._is_tty:
            return
        self.working(on=False)
        self._visible += text
        click.echo(safe(text), nl=False)
        sys.stdout.flush()

    def speech(self, body: str) -> None:
        """Complete the reply: print the missing rest, or all of it if something else was shown before."""
        self.working(on=False)
        if body.startswith(self._visible):
            click.echo(safe(body[len(self._visible) :]))
        else:
            click.echo(f"\n{safe(body)}")
        self._visible = ""
        sys.stdout.flush()


async def talk(home: Home, hello: Mapping[str, Any]) -> int:
    """Converse until the input ends."""
    is_tty = sys.stdin.isatty() and sys.stdout.isatty()
    screen = Screen(is_tty=is_tty)
    unanswered: SentLine | None = None
    is_first = True
    while True:
        async with session(home) as connection:
            attached = await attach(connection, hello)
            if attached is None:
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            if is_first and is_tty:
                _greet(str(attached["conversation"]), str(attached["person"]))
            is_first = False
            inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
            pump = asyncio.create_task(_pump(connection, inbox), name="frames")
            try:
                while True:
                    line = unanswered or await _next_line(inbox, connection, screen, is_tty=is_tty)
                    if line is None:
                        return 0
                    unanswered = line
                    if not await _exchange(connection, inbox, line, screen):
                        break
                    unanswered = None
            finally:
                pump.cancel()
        await asyncio.sleep(LOOK_AGAIN_S)


async def _pump(connection: Connection, inbox: asyncio.Queue[dict[str, Any] | None]) -> None:
    with contextlib.suppress(ConnectionError):
        while (frame := await connection.receive()) is not None:
            await inbox.put(frame)
    await inbox.put(None)


async def _next_line(
    inbox: asyncio.Queue[dict[str, Any] | None], connection: Connection, screen: Screen, *, is_tty: bool
) -> SentLine | None:
    while not inbox.empty():
        frame = inbox.get_nowait()
        if frame and frame["event"] == "speech":
            await _show(connection, frame, screen)
    while True:
        text = await typed("you › " if is_tty else "")
        if text is None:
            return None
        if text.strip():
            return SentLine(text)


async def _exchange(
    connection: Connection, inbox: asyncio.Queue[dict[str, Any] | None], line: SentLine, screen: Screen
) -> bool:
    """Send one line and show what arrives until its answer; False if the connection was lost."""
    try:
        await connection.send({"op": "say", "id": line.id, "text": line.text})
    except ConnectionError:
        return False
    except FrameTooLong as error:
        _refused(error.message)
        return True
    while (frame := await inbox.get()) is not None:
        match frame["event"]:
            case "working":
                screen.working(on=bool(frame["on"]), line=str(frame.get("text") or THINKING))
            case "delta":
                screen.delta(str(frame["text"]))
            case "speech":
                await _show(connection, frame, screen)
                if line.key in frame["answers"]:
                    return True
            case "refused":
                _refused(str(frame["message"]))
                return True
    return False


def _refused(why: str) -> None:
    click.secho(safe(f"not accepted: {why}"), err=True, fg="red")


async def _show(connection: Connection, frame: Mapping[str, Any], screen: Screen) -> None:
    screen.speech(str(frame["body"]))
    screen.notice(frame.get("notices", ()))
    with contextlib.suppress(ConnectionError):
        await connection.send({"op": "shown", "key": frame["key"]})


def _greet(conversation: str, person: str) -> None:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - enables arrow keys and history at the prompt

    from claudius.reports.opened import records

    with records(Home.of(os.environ)) as kept:
        found = kept.conversation(conversation)
    may_see = (private(person), f"shared:{conversation}")
    spoken = [
        entry
        for entry in (found or {}).get("entries", [])
        if entry["entry_type"] in ("userMessage", "externalDialog") and entry["audience"] in may_see
    ]
    for entry in spoken[-2 * SHOWN_TURNS :]:
        who = "you › " if entry["entry_type"] == "userMessage" else ""
        click.secho(f"{who}{safe(entry['content'])}", dim=True)
    click.secho("(an empty line does nothing; end with Ctrl-D)", dim=True)
