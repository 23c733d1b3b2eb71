"""Who may enter the console: tickets that work once, made as files, and the tokens that pages get for them.

Whoever can write in the home's `run/` is the owner. Source: the console design, W20 to W22.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from claudius.home import DIRECTORY_MODE, FILE_MODE, Home, write_all

TICKET_S = 60.0
UNUSED_S = 12 * 3600.0
"""A token that nobody uses for so long ends."""
A_MINUTE_S = 60.0
WRONG_A_MINUTE = 20
CHANGES_A_MINUTE = 30
_OPENS = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"><title>Claudius</title><p><a href="{address}">Claudius</a>
"""


def directory(home: Home) -> Path:
    """Return the directory of the console's files below `run/`."""
    return home.run / "console"


def mint(home: Home, port: int, now: Callable[[], float] = time.time) -> str:
    """Make a ticket for the console that listens on `port`; return the address that enters with it, once."""
    place = directory(home)
    place.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    for path in place.iterdir():
        with suppress(OSError):
            if path.suffix != ".lock" and now() - path.stat().st_mtime > TICKET_S:
                path.unlink()
    ticket = secrets.token_urlsafe(32)
    os.close(os.open(place / _named(ticket), os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    return f"http://127.0.0.1:{port}/#{ticket}"


def opening(home: Home, address: str) -> Path:
    """Write a private page that leads to an address, so that no command line has to hold it; return its path."""
    page = directory(home) / f"open-{secrets.token_hex(8)}.html"
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w", encoding="utf-8") as file:  # noqa: PTH123 - the mode from the first byte on
        file.write(_OPENS.format(address=address))
    return page


def _named(word: str) -> str:
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()


class ConsoleLock:
    """The mark of a running console: a locked file that names its port, so that `--link` finds it."""

    def __init__(self, home: Home) -> None:
        """Look at the console of `home`."""
        self._path = directory(home) / "console.lock"
        self._file: int | None = None

    def take(self, port: int) -> None:
        """Name this process's port. It is the console until it ends."""
        self._path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(self._file, 0)
        write_all(self._file, json.dumps({"port": port}).encode())

    def port(self) -> int | None:
        """Return the port of the console that runs now; None if none does."""
        try:
            file = os.open(self._path, os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(ValueError, KeyError):
                return int(json.loads(os.pread(file, 200, 0))["port"])
        finally:
            os.close(file)
        return None

    def leave(self) -> None:
        """Take the mark away."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


class Entrance:
    """Takes tickets, gives tokens, and knows them again. Tokens are in this process's memory alone."""

    def __init__(self, home: Home, now: Callable[[], float] = time.monotonic) -> None:
        """Serve the console of `home`; `now` returns seconds that only grow."""
        self._place, self._now = directory(home), now
        self._tokens: dict[str, float] = {}
        self._wrong: deque[float] = deque()
        self._changes: deque[float] = deque()

    def enter(self, ticket: str, wall: Callable[[], float] = time.time) -> str | None:
        """Take a ticket, once; return a token, or None if the ticket is unknown, used, or older than a minute."""
        named = self._place / _named(ticket)
        taken = named.with_suffix(".taken")
        try:
            made_at = named.stat().st_mtime
            named.rename(taken)  # only one of two takers can
        except OSError:
            self._wrong.append(self._now())
            return None
        taken.unlink(missing_ok=True)
        if wall() - made_at > TICKET_S:
            return None
        for page in self._place.glob("open-*.html"):
            page.unlink(missing_ok=True)
        token = secrets.token_urlsafe(32)
        self._tokens[_named(token)] = self._now()
        return token

    def is_refused(self) -> bool:
        """Return whether too many wrong tickets were tried within the last minute."""
        return _within(self._wrong, self._now()) >= WRONG_A_MINUTE

    def knows(self, authorization: str) -> bool:
        """Return whether an Authorization header bears a token in force, and note its use; in constant time."""
        scheme, _, token = authorization.partition(" ")
        given, now, found = _named(token), self._now(), None
        for known, used_at in tuple(self._tokens.items()):
            if now - used_at > UNUSED_S:
                del self._tokens[known]
            elif hmac.compare_digest(known, given):
                found = known
        if found is None or scheme.lower() != "bearer":
            return False
        self._tokens[found] = now
        return True

    def may_change(self) -> bool:
        """Count a change; return whether it is within the limit of a minute."""
        now = self._now()
        if _within(self._changes, now) >= CHANGES_A_MINUTE:
            return False
        self._changes.append(now)
        return True

    def close(self) -> None:
        """End every token: each tab needs a fresh ticket."""
        self._tokens.clear()


def _within(times: deque[float], now: float) -> int:
    while times and now - times[0] > A_MINUTE_S:
        times.popleft()
    return len(times)


def uid_of(peer: tuple[str, int], own: tuple[str, int], tables: Path = Path("/proc/net")) -> int | None:
    """Return the user of the other end of a loopback connection; None where the kernel does not tell.

    `peer` and `own` are the addresses of the two ends as this end sees them.
    """
    is_six = ":" in peer[0]
    wanted = f"{_hex(*peer)} {_hex(*own)}"
    with suppress(OSError, ValueError, IndexError):
        for line in (tables / ("tcp6" if is_six else "tcp")).read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if f"{fields[1]} {fields[2]}" == wanted:
                return int(fields[7])
    return None


def _hex(host: str, port: int) -> str:
    """Write an address as the kernel's table does: words in the machine's own order."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = [packed[n : n + 4][::-1].hex() for n in range(0, len(packed), 4)]
    return f"{''.join(words).upper()}:{port:04X}"
