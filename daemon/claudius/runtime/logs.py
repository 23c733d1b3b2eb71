"""The log: JSON lines in `logs/claudius.log`, one event a line, no message text, no secret."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.handlers
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from claudius.config import blot
from claudius.errors import BadHome

LOG = "claudius.log"
MAX_BYTES, KEPT_FILES = 10 * 2**20, 5
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One event as one JSON object; control characters are escaped, secrets blotted out."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """Blot out the values in `secrets`."""
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        event |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        line = json.dumps(event, default=str, ensure_ascii=True)
        return blot(line, [json.dumps(secret)[1:-1] for secret in self._secrets])


class PrivateFile(logging.handlers.RotatingFileHandler):
    """A rotating log file that only its owner reads; a full disk costs the line, never the turn."""

    dropped = 0
    """How many lines found no room."""

    def _open(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the library's own type differs by version
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        return super()._open()

    def leave_out(self, is_left_out: Callable[[str], bool]) -> int:
        """Write this log and its older files anew without some lines; return how many those were. Raises: OSError."""
        if self.lock is None:  # pragma: no cover - every handler has one
            return 0
        with self.lock:
            if self.stream:
                self.stream.close()
            here = Path(self.baseFilename)
            gone = sum(_leave_out(path, is_left_out) for path in sorted(here.parent.glob(here.name + "*")))
            self.stream = self._open()  # type: ignore[no-untyped-call]  # its type differs by version
        return gone

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the library's name
        """Drop the line, and count it."""
        self.dropped += 1


def _leave_out(path: Path, is_left_out: Callable[[str], bool]) -> int:
    lines = path.read_text("utf-8", "replace").splitlines(keepends=True)
    kept = [line for line in lines if not is_left_out(line)]
    if len(kept) < len(lines):
        fresh = path.with_name(f".{path.name}.new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123 - the mode from the first byte on
            file.writelines(kept)
        fresh.replace(path)
    return len(lines) - len(kept)


def lost(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task was there to hear: an event loop would tell a stderr that nobody reads."""
    logging.getLogger("claudius.loop").error(
        "an error that nobody heard", extra={"what": str(context["message"])}, exc_info=context.get("exception")
    )


def start_log(directory: Path, level: str, secrets: Sequence[str]) -> PrivateFile:
    """Write what Claudius logs to a file in `directory`; return the handler, to be closed. Raises: BadHome."""
    path = directory / LOG
    try:
        handler = PrivateFile(path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    except OSError as error:
        raise BadHome(f"{path} cannot be opened ({error.strerror}): run: chmod u+rwX {directory}") from error
    handler.setFormatter(JsonLines(secrets))
    root = logging.getLogger("claudius")
    for earlier in [one for one in root.handlers if getattr(one, "baseFilename", "") == handler.baseFilename]:
        root.removeHandler(earlier)  # of a soul that was awake in this process before
        earlier.close()
    root.setLevel(level)
    root.propagate = False
    root.addHandler(handler)
    return handler
