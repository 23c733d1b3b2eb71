"""`claudius chat`: talk with the soul in this terminal, or send a single line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from claudius.cli.output import print_json, safe
from claudius.cli.session import LOOK_AGAIN_S, HeldBack, Line, attach, session
from claudius.errors import EXIT_TRY_AGAIN, ClaudiusError, TryAgain, UsageProblem
from claudius.home import Home
from claudius.runtime.control import Connection

NOTED_S = 5.0


@click.command()
@click.option("--once", "text", metavar="TEXT", help="Say one line, print the reply, and leave.")
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
            raise UsageProblem("--once needs some words to say")
        return asyncio.run(_once(home, hello, text, timeout_s, as_json=as_json))
    from claudius.cli.talk import given_back, talk

    with given_back():
        return asyncio.run(talk(home, hello | {"stream": sys.stdin.isatty() and sys.stdout.isatty()}))


async def _once(home: Home, hello: Mapping[str, Any], text: str, timeout_s: float, *, as_json: bool) -> int:
    line, started = Line(text), time.monotonic()
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
                        _print(home, speech, attached, earlier, ms, as_json=as_json)
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
    connection: Connection, line: Line, earlier: list[dict[str, Any]], *, as_json: bool
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
    home: Home, speech: Mapping[str, Any], attached: Mapping[str, Any], earlier: list[Any], ms: int, *, as_json: bool
) -> None:
    if not as_json:
        click.echo(safe(speech["body"]))
        sys.stdout.flush()
        return
    from claudius.cli.records import records

    with records(home) as kept:
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
