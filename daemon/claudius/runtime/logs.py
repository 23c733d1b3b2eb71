"""The log: JSON lines in `logs/claudius.log`, one event per line, without message texts or secrets.

Of an exception it holds the class and the places, and the message only if it is one of ours: any other may quote what
somebody said. So may whatever a library logs, of which the log says where it happened.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import logging.handlers
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

from claudius.config.load import blot
from claudius.errors import BadHome
from claudius.foreign import traced, unquoted

LOG = "claudius.log"
MAX_BYTES, KEPT_FILES = 10 * 2**20, 5
OURS = "claudius"
"""The logger of the package, and of everything in it."""
LIBRARY = "library"
"""How the logger is named, below ours, that a library is given."""
COPIED_BYTES = 32 * 2**10
"""How much of a log is examined before the interpreter lock is released."""
_WORDS = re.compile(r"[A-Za-z ]*")
"""What asyncio says of an error, without the arguments of the callback that it names."""
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


COMPLAINT = "a library complains: {0.module}.{0.funcName}, line {0.lineno}"
"""All that is written of what a library logs: its words may hold anything."""


class JsonLines(logging.Formatter):
    """Formats an event as one JSON object; escapes control characters and redacts secrets."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self._secrets = secrets  # the list itself: it grows when a key is edited

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        logger = record.name.split(".")
        is_ours = logger[0] == OURS and logger[-1] != LIBRARY
        event = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "event": _said(record) if is_ours else COMPLAINT.format(record),
        }
        if is_ours:
            event |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info and record.exc_info[1]:
            event["traceback"] = "".join(traced(record.exc_info[1]))
        line = json.dumps(event, default=_plain, ensure_ascii=True)
        return blot(line, [json.dumps(secret)[1:-1] for secret in self._secrets])


def _said(record: logging.LogRecord) -> str:
    if isinstance(record.args, tuple) and record.args:
        return str(record.msg) % tuple(_plain(one) if isinstance(one, BaseException) else one for one in record.args)
    return record.getMessage()


def _plain(value: object) -> str:
    return unquoted(value) if isinstance(value, BaseException) else str(value)


class PrivateFile(logging.handlers.RotatingFileHandler):
    """A rotating log file readable only by its owner; a full disk loses the line, never the turn."""

    dropped = 0
    """How many lines could not be written."""
    is_rewritten = False
    """Whether the files are being rewritten now."""

    def _open(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the library's own type differs by version
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        return super()._open()

    def leave_out(self, is_left_out: Callable[[str], bool]) -> int:
        """Rewrite this log and its older files without some lines. Returns how many were removed. Raises: OSError.

        Blocks, so it runs in its own thread: lines logged meanwhile wait only while the last ones are copied.
        """
        here, gone = Path(self.baseFilename), 0
        self.is_rewritten = True
        try:
            for path in sorted(here.parent.glob(here.name + ".*")):
                gone += _leave_out(path, is_left_out)
            with here.open("rb") as old, _fresh(here) as new:
                gone += _copy(old, new, is_left_out)
                with self.lock or nullcontext():
                    if self.stream:
                        self.stream.flush()
                    gone += _copy(old, new, is_left_out)
                    new.flush()
                    if self.stream:
                        self.stream.close()
                    _aside(here).replace(here)
                    self.stream = self._open()  # type: ignore[no-untyped-call]  # its type differs by version
        finally:
            self.is_rewritten = False
        return gone

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: ARG002, N802 - the library's name
        """Rotate a full file, but not while the files are being rewritten.

        The library's own way is to format each line a second time, to see whether it would still fit.
        """
        if self.is_rewritten or self.stream is None or not self.stream.seekable():
            return False
        return self.stream.tell() >= self.maxBytes

    def close(self) -> None:
        """Close the file, and hear no library any more."""
        logging.getLogger().removeHandler(self)
        super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the library's name
        """Drop the line, and count it."""
        self.dropped += 1


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _fresh(path: Path) -> IO[bytes]:
    return open(os.open(_aside(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")  # noqa: PTH123 - the mode from the first byte on


def _leave_out(path: Path, is_left_out: Callable[[str], bool]) -> int:
    is_zipped = path.suffix == ".gz"
    with (
        path.open("rb") as before,
        _fresh(path) as after,
        gzip.open(before) if is_zipped else before as old,
        gzip.open(after, "wb") if is_zipped else after as new,
    ):
        gone = _copy(old, new, is_left_out)
    if gone:
        _aside(path).replace(path)
    else:
        _aside(path).unlink()
    return gone


def _copy(old: IO[bytes] | BufferedIOBase, new: IO[bytes] | BufferedIOBase, is_left_out: Callable[[str], bool]) -> int:
    """Copy the lines from the position of `old` to its end, except those left out. Returns how many were left out."""
    gone = 0
    while lines := old.readlines(COPIED_BYTES):
        kept = [line for line in lines if not is_left_out(line.decode("utf-8", "replace"))]
        gone += len(lines) - len(kept)
        new.writelines(kept)
        time.sleep(0)  # lets the event loop run
    return gone


def lost(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task received: asyncio would print it to a stderr that nobody reads."""
    logging.getLogger("claudius.loop").error(
        "an error that nobody heard",
        extra={"what": _WORDS.match(str(context["message"]))[0]},  # type: ignore[index]  # it matches anything
        exc_info=context.get("exception"),
    )


def unheard(context: Any) -> None:
    """Log an error that ended a thread or an object: Python would print its words to stderr."""
    logging.getLogger("claudius.loop").error("an error that nobody heard", exc_info=context.exc_value)


def start_log(directory: Path, level: str, secrets: Sequence[str]) -> PrivateFile:
    """Log to a file in `directory`. Returns the handler, which the caller closes. Raises: BadHome."""
    path = directory / LOG
    try:
        handler = PrivateFile(path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    except OSError as error:
        raise BadHome(f"{path} cannot be opened ({error.strerror}): run: chmod u+rwX {directory}") from error
    handler.setFormatter(JsonLines(secrets))
    ours, everybody = logging.getLogger(OURS), logging.getLogger()
    for earlier in [one for one in ours.handlers if getattr(one, "baseFilename", "") == handler.baseFilename]:
        ours.removeHandler(earlier)  # left by a soul that was awake in this process before
        earlier.close()
    ours.setLevel(level)
    ours.propagate = False
    ours.addHandler(handler)
    everybody.addHandler(handler)  # a library would print what it was told to stderr
    return handler
