"""The model at home: which one, whether it is loaded, and how quick it is on this machine."""

from __future__ import annotations

import fcntl
import http.client
import os
import socket
from contextlib import suppress
from typing import Any, Literal

from claudius.config.load import load
from claudius.home import Home
from claudius.provider import Done, Request
from claudius.providers.home import LOCK, build, known_at_home
from claudius.providers.home.models import in_use
from claudius.providers.home.serving import SOCKET
from claudius.runtime.control import socket_address

QUICK = 5.0
"""Tokens a second that feel like a talk: about as fast as people read aloud."""
PROBE_S = 2.0
_COUNT = "Write the numbers from one to thirty as words, one after another."
_TOKENS = 48

State = Literal["ready", "loading", "asleep"]


def at_home(home: Home) -> dict[str, Any] | None:
    """Return `{"model", "tokens_per_s", "state"}` of the model that thinks at home; None if there is none.

    `tokens_per_s` is None until it has spoken; `state` is ready, loading, or asleep: it wakes at the next thought.
    """
    if not home.models.is_dir():
        return None
    loaded = load(home, os.environ)
    model = in_use(loaded, home)
    if model is None:
        return None
    _, facts = known_at_home(loaded, home)
    speed = round(facts.spoken_per_s, 1) or None
    return {"model": model.stem, "tokens_per_s": speed, "state": _state(home)}


def _state(home: Home) -> State:
    with suppress(OSError, http.client.HTTPException), socket_address(home.run / SOCKET) as address:
        asking = http.client.HTTPConnection("home.localhost", timeout=PROBE_S)
        asking.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asking.sock.settimeout(PROBE_S)
        try:
            asking.sock.connect(address)
            asking.request("GET", "/health")
            return "ready" if asking.getresponse().status == http.client.OK else "loading"
        finally:
            asking.close()
    with suppress(OSError), (home.run / LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "loading"
    return "asleep"


async def measured(home: Home) -> float:
    """Have the model in use write. Returns tokens a second; 0.0 if it wrote too few. Raises: ClaudiusError."""
    loaded = load(home, os.environ)
    voice = build(loaded, home)
    try:
        asked = Request(system="", history=(), tail=_COUNT, max_tokens=_TOKENS, purpose="doctor")
        async for event in voice.complete(asked):
            if isinstance(event, Done):
                break
    finally:
        await voice.aclose()
    return known_at_home(loaded, home)[1].spoken_per_s


def speed_words(tokens_per_s: float | None) -> str:
    """Say how quick a model is, and whether that will do to talk. Pure."""
    if not tokens_per_s:
        return "how quick it is here is told once it has spoken"
    told = f"{tokens_per_s:.1f} tokens a second on this machine"
    if tokens_per_s >= QUICK:
        return f"{told}: quick enough to talk to"
    return f"{told}: slow to talk to; a smaller model is quicker, and so is a machine with less to do"
