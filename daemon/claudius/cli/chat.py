"""`claudius chat`: talk with the soul in this terminal, or send a single line.

On a full terminal the prompt of `claudius.cli.prompt` shows it, elsewhere the printing of `claudius.cli.screen`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from stat import S_ISREG
from typing import Any

import click

from claudius.cli.output import print_json, safe
from claudius.cli.screen import YOU, Notices, Plain, Screen, given_back, show
from claudius.errors import EXIT_TRY_AGAIN, ClaudiusError, TryAgain, UsageProblem
from claudius.home import Home
from claudius.perception import TERMINAL, private
from claudius.reports.session import LOOK_AGAIN_S, HeldBack, SentLine, attach, session
from claudius.runtime.control import ControlConnection, FrameTooLong

NOTED_S = 5.0
SHOWN_TURNS = 3
"""How many of the last exchanges are shown at the start."""
INTERRUPTED = 130
LOCAL = {
    "/help": "what can be typed here",
    "/thoughts on": "show private thoughts before the words",
    "/thoughts off": "hide them again",
    "/quit": "end the conversation, as Ctrl-D does",
}
"""The words that this terminal answers itself."""
HELP = "Here: /thoughts on|off, /quit; Tab completes, Alt-Enter breaks, Ctrl-R finds"
"""What this terminal adds to the help."""
SWITCHED = {
    True: "(its private thoughts are shown to you; /thoughts off hides them)",
    False: "(its private thoughts are hidden; /thoughts on shows them)",
}
LETTERS = {"o": "!allow {}", "t": "!allow {} talk", "n": "!deny {}"}
CHOICES = {True: "[o]nce, this [t]alk, [N]o", False: "[o]nce, [N]o"}
THOUGHTS = "(dim: its private thoughts, shown to you alone; /thoughts off hides them)"


@click.command()
@click.option(
    "--once",
    "text",
    metavar="TEXT",
    help="Say one line, print the reply, and exit; - = what stands on stdin. A text by `< FILE` is shown with it.",
)
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
@click.option(
    "--thoughts/--no-thoughts",
    default=None,
    help="Show its private thoughts before its words (default: in a home's first session).",
)
@click.option("--json", "as_json", is_flag=True, help="With --once: print the whole turn as one JSON document.")
def chat(
    text: str | None, conversation: str, other: str | None, timeout_s: float, *, thoughts: bool | None, as_json: bool
) -> int:
    """Talk with the soul here in the terminal.

    Ctrl-D ends it, Alt-Enter begins a new line, Tab completes a word with `!` or `/`; /help says what else there is. A
    failure is told at once with its remedy: with --once on stderr, and as "failure" in the JSON; an apology ends with
    exit code 75.
    """
    if as_json and text is None:
        raise UsageProblem("--json needs --once TEXT")
    if other is not None and not other.strip():
        raise UsageProblem("--as needs a name: without one you would speak as yourself, with the owner's rights")
    if thoughts and other is not None:
        raise UsageProblem("--thoughts shows what it thinks in your own conversation, not in that of somebody else")
    home = Home.of(os.environ)
    home.create()
    hello = {"op": "chat", "conversation": conversation, "as": other or "", "thoughts": bool(thoughts)}
    hello["locale"] = _locale(os.environ)
    if text is not None:
        line = SentLine(_stdin() if text == "-" else text)
        if not line.text.strip():
            raise UsageProblem("--once needs a text to say")
        # of a pipe nobody knows whether anything comes, or when it ends; a file that a loop reads is not ours
        if text != "-" and sys.stdin and S_ISREG(os.fstat(0).st_mode) and not os.lseek(0, 0, os.SEEK_CUR):
            line.attached = _stdin().strip()
            if line.attached and not as_json:
                click.echo(f"(attached {len(line.attached.encode()) / 1000:.1f} kB from stdin)", err=True)
        return asyncio.run(_once(home, hello, line, timeout_s, as_json=as_json))
    is_tty = sys.stdin.isatty() and sys.stdout.isatty()
    first = greeted(home, other or "") if is_tty and is_new(home) else ""
    if thoughts is None and first and can_edit() and other is None:
        hello["thoughts"] = True
    with given_back():
        return asyncio.run(Conversation(home, hello | {"stream": is_tty}, first, is_tty=is_tty).run())


def _locale(environment: Mapping[str, str]) -> str:
    """Return the locale that an environment sets, as networks write it: `de-DE`; "" for none, or that of C. Pure."""
    name = (environment.get("LC_ALL") or environment.get("LANG") or "").partition(".")[0].partition("@")[0]
    return "" if name in ("C", "POSIX") else name.replace("_", "-")


def _stdin() -> str:
    """Return all that stands on stdin. Raises: UsageProblem."""
    try:
        return sys.stdin.buffer.read().decode().lstrip("\ufeff")
    except UnicodeDecodeError:
        raise UsageProblem("what stands on stdin is no text") from None


async def _once(home: Home, hello: Mapping[str, Any], line: SentLine, timeout_s: float, *, as_json: bool) -> int:
    started = time.monotonic()
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
                        _print(speech, attached, earlier, ms, line.failure, as_json=as_json)
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


async def _attached(
    connection: ControlConnection, hello: Mapping[str, Any], patience_s: float
) -> dict[str, Any] | None:
    """Attach to the conversation; None to try again. Raises: HeldBack if the wait would exceed `patience_s`."""
    try:
        return await attach(connection, hello)
    except HeldBack as held:
        if held.wait_s >= patience_s:
            raise
        return None


async def _answer(
    connection: ControlConnection, line: SentLine, earlier: list[dict[str, Any]], *, as_json: bool
) -> dict[str, Any] | None:
    """Send the line and wait for its answer; None if the connection was lost."""
    shown = Plain(is_tty=False)
    with contextlib.suppress(ConnectionError):
        await connection.send(line.frame)
        while (frame := await connection.receive()) is not None:
            match frame["event"]:
                case "speech" if line.key in frame["answers"]:
                    shown.end_thought()
                    return frame
                case "speech":
                    earlier.append({"turn": frame["turn"], "reply": frame["body"]})
                    if not as_json:
                        click.echo(f"(earlier) {safe(frame['body'])}", err=True)
                    await connection.send({"op": "shown", "key": frame["key"]})
                case "heard":
                    line.is_heard = True
                case "failed" if frame["key"] == line.key:
                    facts = {name: frame[name] for name in ("turn", "kind", "detail", "fix")}
                    line.failure = None if frame["again"] else facts
                    await show(shown, frame)
                case "thinking" | "void":
                    await show(shown, frame)
                case "refused":
                    raise ClaudiusError(f"not accepted: {frame['message']}")
    return None


async def _say_shown(connection: ControlConnection, key: str) -> None:
    """Report that a reply was shown, and wait for the acknowledgement; without it the reply would be sent again."""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(NOTED_S):
            await connection.send({"op": "shown", "key": key})
            while (frame := await connection.receive()) is not None:
                if frame["event"] == "noted" and frame["key"] == key:
                    return


def _print(
    speech: Mapping[str, Any],
    attached: Mapping[str, Any],
    earlier: list[Any],
    ms: int,
    failure: Mapping[str, Any] | None,
    *,
    as_json: bool,
) -> None:
    card = speech.get("card")
    if not as_json:
        asked = [*question(card), f"decide with `claudius tools allow {card['call']}`, or deny"] if card else []
        said = [speech["body"], "\n".join(speech.get("receipts", ())), "\n".join(asked)]
        click.echo(safe("\n\n".join(filter(None, said))))
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
        "receipts": list(speech.get("receipts", ())),
        **({"waiting": [card["call"]]} if card else {}),
        "verb": speech["verb"],
        "process": turn.get("process"),
        "provider": turn.get("provider"),
        "model": turn.get("model"),
        "usage": turn.get("usage"),
        "ms": ms,
    }
    if failure:
        document["failure"] = failure
    if speech.get("apology"):
        document["apology"] = speech["apology"]
    if earlier:
        document["earlier"] = earlier
    print_json(document)


class Conversation:
    """One person's conversation at this terminal: what is typed goes out, and what arrives is shown once."""

    def __init__(self, home: Home, hello: Mapping[str, Any], greeting: str, *, is_tty: bool) -> None:
        """Converse with the soul of `home`; `hello` says in which conversation, as whom, and what is to be shown.

        `greeting` is said first, to somebody new.
        """
        self._home, self._hello, self._greeting, self._is_tty = home, dict(hello), greeting, is_tty
        self._screen: Screen = Plain(is_tty=is_tty)
        self._notices = Notices()
        self._line: asyncio.Task[str | None] | None = None
        self._waiting: dict[str, SentLine] = {}
        """The lines that were sent and are not answered yet, by their key, oldest first."""
        self._asked: Mapping[str, Any] | None = None
        """The question that was shown last: the letter alone as the next line decides it."""
        self._shown: set[str] = set()
        """The keys of the utterances that were shown: one that is offered again is confirmed again, and not shown."""

    async def run(self) -> int:
        """Converse until the input ends; return the exit code."""
        is_first = True
        try:
            while True:
                async with session(self._home) as connection:
                    attached = await attach(connection, self._hello)
                    if attached and is_first:
                        self._screen = await self._opened(attached)
                        is_first = False
                    if attached and await self._converse(connection):
                        self._screen.close()
                        return INTERRUPTED if self._screen.is_interrupted else 0
                await asyncio.sleep(LOOK_AGAIN_S)
        finally:
            if self._line:
                self._line.cancel()
            self._screen.close()

    async def _opened(self, attached: Mapping[str, Any]) -> Screen:
        """Return the screen for this terminal, with the last exchanges on it, or the greeting."""
        if not self._is_tty:
            return Plain(is_tty=False)
        spoken = said_before(self._home, str(attached["conversation"]), str(attached["person"]))
        screen: Screen = Plain(is_tty=True)
        if can_edit():
            from claudius.cli.prompt import LineEditor, history_of
            from claudius.runtime.commands.words import TABLE

            screen = LineEditor({**{f"!{word}": one.about for word, one in TABLE.items()}, **LOCAL}, history_of(spoken))
        for entry in spoken[-2 * SHOWN_TURNS :]:
            is_own = entry["entry_type"] == "userMessage"
            await screen.tell(f"{YOU}{entry['content']}" if is_own else f"{entry['content']}\n", "past")
        if self._greeting:
            await screen.tell(self._greeting)
        await screen.tell("(end with Ctrl-D; /help says what else there is)", "past")
        if self._hello["thoughts"]:
            await screen.tell(THOUGHTS, "past")
        return screen

    async def _converse(self, connection: ControlConnection) -> bool:
        """Converse over one connection. Returns whether the input has ended; False if the connection was lost."""
        frame: asyncio.Task[dict[str, Any] | None] | None = None
        try:
            for line in tuple(self._waiting.values()):
                await self._send(connection, line)
            while True:
                frame = frame or asyncio.create_task(connection.receive(), name="frame")
                if not (self._line or (self._screen.one_by_one and self._waiting)):
                    self._line = asyncio.create_task(self._screen.line(), name="line")
                await asyncio.wait([task for task in (frame, self._line) if task], return_when=asyncio.FIRST_COMPLETED)
                if frame.done():
                    if (arrived := frame.result()) is None:
                        return False
                    frame = None
                    await self._hear(connection, arrived)
                if self._line and self._line.done():
                    text, self._line = self._line.result(), None
                    if await self._is_over(connection, text):
                        return True
        except ConnectionError:
            return False
        finally:
            if frame:
                frame.cancel()

    async def _is_over(self, connection: ControlConnection, text: str | None) -> bool:
        """Send one typed line, or do what it asks of this terminal. Returns whether it ends the conversation."""
        if text is None or (self._is_tty and text.strip() == "/quit"):
            if self._waiting:
                await self._screen.tell("(the answer is kept, and shown at the next `claudius chat`)", "past")
            return True
        await self._say(connection, text)
        return False

    async def _say(self, connection: ControlConnection, text: str) -> None:
        from claudius.runtime.commands.words import STOP, command_in, help_text

        asked, self._asked = self._asked, None
        if asked and (verb := LETTERS.get(text.strip().casefold())):
            text = verb.format(asked["call"])
        if self._is_tty and text.startswith("/"):
            given = f"!{text[1:].strip()}"
            word = command_in(given, is_called=True).partition(" ")[0]
            text = (
                given if given == STOP or word not in ("", "help", "thoughts") else text
            )  # those two are this terminal's
        match text.split():
            case []:
                return
            case ["/help" | "!help" | "help"] if self._is_tty:
                told = help_text(TERMINAL, is_owner=not self._hello["as"])
                await self._screen.tell(f"{told}\n{HELP}", "help")
            case [word] if self._is_tty and word.startswith("/") and word[1:].isalpha():
                await self._screen.tell(f"there is no {word} here: /help says what there is", "help")
            case ["/thoughts", "on" | "off" as switch] if self._is_tty:
                self._hello["thoughts"] = switch == "on"
                await connection.send({"op": "thoughts", "on": switch == "on"})
                if switch == "off":
                    await self._screen.void()
                await self._screen.tell(SWITCHED[switch == "on"], "past")
            case _:
                line = SentLine(text)
                if text.strip().casefold() != STOP:  # nobody answers that
                    self._waiting[line.key] = line
                await self._send(connection, line)

    async def _send(self, connection: ControlConnection, line: SentLine) -> None:
        try:
            await connection.send(line.frame)
        except FrameTooLong as error:
            self._waiting.pop(line.key, None)
            await self._screen.tell(f"not accepted: {error.message}", "wrong")

    async def _hear(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Show what arrived; confirm an utterance once it is on the screen."""
        if frame["event"] != "speech":
            if frame["event"] == "refused":
                self._waiting.pop(SentLine("", id=str(frame["id"])).key, None)
            await show(self._screen, frame)
            return
        if frame["key"] not in self._shown:
            self._shown.add(str(frame["key"]))
            await self._screen.speech(str(frame["turn"]), str(frame["body"]), frame.get("receipts", ()))
            self._asked = frame.get("card") or None
            if self._asked:
                await self._screen.tell("\n".join([*question(self._asked), CHOICES[bool(self._asked["for_talk"])]]))
            await self._notices.tell(self._screen, frame.get("notices", ()))
        for key in frame["answers"]:
            self._waiting.pop(key, None)
        await connection.send({"op": "shown", "key": frame["key"]})


def question(card: Mapping[str, Any]) -> list[str]:
    """Return what the soul asks to be allowed, in lines. Pure."""
    return [str(line) for line in (card["question"], *str(card["args"]).split("\n")) if line]


def said_before(home: Home, conversation: str, person: str) -> list[Mapping[str, Any]]:
    """Return what was said aloud in a conversation that this person may see, oldest first."""
    from claudius.reports.opened import records

    with records(home) as kept:
        found = kept.conversation(conversation)
    may_see = (private(person), f"shared:{conversation}")
    return [
        entry
        for entry in (found or {}).get("entries", [])
        if entry["entry_type"] in ("userMessage", "externalDialog") and entry["audience"] in may_see
    ]


def can_edit() -> bool:
    """Return whether the terminal can do more than print: move the cursor, and show text dimly."""
    return os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def greeted(home: Home, name: str = "") -> str:
    """Return the soul's greeting to somebody new: its own line, with every provider, and no model is asked."""
    from claudius.providers.rehearsal import greeting

    return safe(greeting(home, name))


def is_new(home: Home) -> bool:
    """Return whether nobody has ever spoken to the soul of this home."""
    from claudius.reports.opened import records

    with records(home) as kept:
        return not kept.counts(datetime.now(UTC))["turns"]["total"]
