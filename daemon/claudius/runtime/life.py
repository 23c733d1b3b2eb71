"""The life of the daemon's process: lock, crash backoff, waking, signals.

Reports its state to whoever started it. Source: the reliability design, sections 4 and 11.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from msgspec import Struct

import claudius
from claudius.config.load import Secret
from claudius.errors import AlreadyRunning, BadHome, ClaudiusError
from claudius.foreign import unquoted
from claudius.home import FILE_MODE, Home, discard_incoming, obey, write_all, write_private
from claudius.runtime.control import ControlConnection, ControlSocket, allow_files
from claudius.runtime.logs import PrivateFile, start_log, unheard

log = logging.getLogger(__name__)

Role = Literal["daemon", "command"]
"""What the holder is: the daemon, or a command that woke the soul for as long as it runs."""


class Holder(Struct, frozen=True):
    """What the lock file says of the present or last holder."""

    pid: int
    role: str = ""
    unit: str = ""
    """The supervisor's name for the process; empty if there is none."""


class HomeLock:
    """An exclusive `flock` on `run/claudius.lock`."""

    def __init__(self, home: Home, role: Role = "command", *, unit: str = "") -> None:
        """Acquire the lock and record the holder. Raises: AlreadyRunning if it is held, BadHome on errors."""
        try:
            self._file = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except OSError as error:
            raise BadHome(f"{home.lock} cannot be opened ({error.strerror}): run: chmod u+rwX {home.run}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                found = holder(home)
                raise AlreadyRunning(found.pid if found else None, str(home.root)) from None
            raise BadHome(f"{home.lock}: {error.strerror}: move CLAUDIUS_HOME to a disk that can lock files") from error
        self._record = {"pid": os.getpid(), "role": role, "unit": unit, "version": claudius.__version__}
        self._write(self._record)
        try:
            obey(home.root)
            discard_incoming(home.root)
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def sign(
        self, boot: str, now: datetime, fingerprints: Mapping[str, str], of_environment: Sequence[str] = ()
    ) -> None:
        """Add what is known once the soul wakes: the boot, its instant, and which tokens it holds, and from where."""
        tokens = {"tokens": dict(fingerprints), "of_environment": [*of_environment]}
        self._write({**self._record, "boot": boot, "started_at": now.isoformat(), **tokens})

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._file < 0:
            return
        os.ftruncate(self._file, 0)
        os.close(self._file)
        self._file = -1

    def _write(self, record: Mapping[str, object]) -> None:
        content = json.dumps(record).encode()
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            write_all(self._file, content)
            os.ftruncate(self._file, len(content))
        except OSError as error:
            os.close(self._file)
            self._file = -1
            raise BadHome(f"the lock of this home cannot be written ({error.strerror}): free some space") from error


def fingerprints(secrets: Mapping[str, Secret]) -> dict[str, str]:
    """Return a short hash of each secret, so that two homes with the same token can be detected. Pure."""
    return {name: hashlib.sha256(secret.reveal().encode()).hexdigest()[:8] for name, secret in secrets.items()}


def holder(home: Home) -> Holder | None:
    """Return what the lock file says, or None if it says nothing. Does not tell whether the lock is held."""
    try:
        record = json.loads(home.lock.read_text())
        return Holder(int(record["pid"]), str(record.get("role", "")), str(record.get("unit", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_held(home: Home) -> bool:
    """Return whether a process holds the home now."""
    try:
        file = os.open(home.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


READY_FD = "CLAUDIUS_READY_FD"
"""The environment variable that names the pipe to the process that waits for this one; it is read once."""


class Starter:
    """Whoever started the process: a service manager, or a command that waits at the other end of a pipe."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Remove both addresses from the environment, so that no child process uses them."""
        self._socket = environ.pop("NOTIFY_SOCKET", "")
        descriptor = environ.pop(READY_FD, "")
        self._pipe: int | None = int(descriptor) if descriptor.isdigit() else None
        if self._pipe is not None:
            os.set_inheritable(self._pipe, False)
        self.unit = environ.pop("CLAUDIUS_UNIT", "")
        """The service manager's name for this process."""

    def status(self, line: str) -> None:
        """Report in one line what the process is doing."""
        self._notify(f"STATUS={line}")

    def waits(self, why: str, seconds: float) -> None:
        """Report that the process waits before it wakes; the starting command stops waiting."""
        self._notify(f"STATUS={why}")
        self._tell({"event": "waits", "message": why, "seconds": seconds})

    def ready(self) -> None:
        """Report that the soul is awake."""
        self._notify(f"READY=1\nSTATUS=awake\nMAINPID={os.getpid()}")
        self._tell({"event": "ready"})

    def reloading(self) -> None:
        """Report that the settings were reloaded; reloading takes no time."""
        self._notify("STATUS=the settings were read again")

    def stopping(self) -> None:
        """Report that the process is stopping."""
        self._notify("STOPPING=1\nSTATUS=finishing what was begun")

    def _tell(self, frame: Mapping[str, Any]) -> None:
        """Write one frame to the pipe and close it: whoever waits reads only one."""
        if self._pipe is None:
            return
        pipe, self._pipe = self._pipe, None
        with contextlib.suppress(OSError):
            write_all(pipe, json.dumps(frame).encode() + b"\n")
        os.close(pipe)

    def _notify(self, state: str) -> None:
        """Send one datagram, as sd_notify(3) describes; a missing receiver is no error."""
        if not self._socket:
            return
        address = "\0" + self._socket[1:] if self._socket.startswith("@") else self._socket
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), address)


STARTS = 5
WITHIN_S = 300.0
FIRST_S, LONGEST_S = 2.0, 900.0
KEPT = 20


class Start(Struct, frozen=True):
    """One start of a process that did not end cleanly, and how long it was held back."""

    at_s: float
    held_s: float = 0.0


def starts_lately(starts: Sequence[Start], now_s: float) -> int:
    """Count the starts within the last 300 s, this one included; time spent held back does not count. Pure."""
    count, ran_s, later_s = 1, 0.0, now_s
    for start in reversed(starts):
        ran_s += max(0.0, later_s - start.at_s - start.held_s)
        if ran_s > WITHIN_S:
            break
        count += 1
        later_s = min(start.at_s, later_s)
    return count


def hold_s(starts: Sequence[Start], now_s: float) -> float:
    """Return how long a start at `now_s` is held back: 2, 4, 8 … 900 s from the fifth within 300 s on. Pure."""
    count = starts_lately(starts, now_s)
    return min(LONGEST_S, FIRST_S * 2 ** (count - STARTS)) if count >= STARTS else 0.0


class CrashBackoff:
    """The recent starts of one home, kept in `run/starts`: a process that starts too often waits before it logs in.

    Discord allows 1,000 logins a day and revokes the token beyond that.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Keep the starts in `path`; `clock` gives seconds that are comparable between processes."""
        self._path, self._clock = path, clock
        self._started: Start | None = None
        self.count = 0
        """How many recent starts there were, this one included."""

    def start(self) -> float:
        """Record a start. Returns how many seconds the process must wait before it logs in to any network."""
        now_s, starts = self._clock(), self._read()
        self.count = starts_lately(starts, now_s)
        self._started = Start(now_s, hold_s(starts, now_s))
        self._write([*starts, self._started])
        return self._started.held_s

    def forgive(self) -> None:
        """Remove the record of this start: the process ended cleanly, or before it logged in."""
        self._write([start for start in self._read() if start != self._started])

    @property
    def message(self) -> str:
        """The reason why the process waits, and for how long."""
        held_s = self._started.held_s if self._started else 0.0
        return (
            f"crash-loop brake: {self.count} starts that did not end well within {WITHIN_S:.0f} s; "
            f"waiting {held_s:.0f} s before any network login"
        )

    def _read(self) -> list[Start]:
        try:
            found = [Start(*map(float, json.loads(line))) for line in self._path.read_text("ascii").splitlines()]
        except (OSError, ValueError, TypeError):
            return []
        return found[-KEPT:]

    def _write(self, starts: Sequence[Start]) -> None:
        """Replace the file. A write error loses the record but does not prevent the start."""
        lines = [json.dumps([start.at_s, start.held_s]) + "\n" for start in starts[-KEPT:]]
        with contextlib.suppress(OSError):
            write_private(self._path, "".join(lines))


Pause = Callable[[], Awaitable[None]]
"""Awaited before the first network login."""


class Awake(Protocol):
    """A composed soul: what this process starts, waits for and stops."""

    async def start(self) -> object:
        """Recover, then open every listener."""

    async def ready(self) -> None:
        """Return when every network is connected, or is being retried."""

    async def wait(self) -> None:
        """Wait until something ends the soul from inside."""

    async def stop(self) -> None:
        """Finish what was begun, and release everything."""

    def reread(self) -> None:
        """Read the settings again."""


Waking = Callable[[HomeLock, Pause], Awaitable[Awake]]


class _Asked(Exception):
    """The process was asked to end while it was still waiting."""


class Signals:
    """The signals that the process handles. A second request to end takes effect at once."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Handle signals while the block runs, then restore the previous handlers."""
        loop = asyncio.get_running_loop()
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {kind: signal.getsignal(kind) for kind in kinds}
        for kind in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(kind, self._end)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # until a soul is awake, which reads its settings again
        try:
            yield
        finally:
            for kind in kinds:
                loop.remove_signal_handler(kind)
                signal.signal(kind, before[kind])

    def _end(self) -> None:
        log.info("asked to end")
        self.ending.set()
        for kind in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(kind)
            signal.signal(kind, _leave)


def _leave(number: int, _: object) -> None:
    """End immediately, and kill the process groups led by our children. What is not durable counts as never said."""
    children: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        children = [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()]
    for pid in children:
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
    os._exit(128 + number)


async def live(home: Home, waking: Waking, *, starter: Starter) -> None:
    """Hold `home`, wake the soul that `waking` composes, and keep it awake until a signal or its own end.

    Raises: ClaudiusError if it cannot be woken, or cannot go on.
    """
    threading.excepthook = sys.unraisablehook = unheard
    home.create()
    allow_files()
    signals, backoff = Signals(), CrashBackoff(home.starts)
    with HomeLock(home, "daemon", unit=starter.unit) as lock, signals.heard():
        held_s = backoff.start()

        async def pause() -> None:
            if held_s:
                await _hold(home, held_s, backoff.message, starter, signals)

        try:
            soul = await waking(lock, pause)
        except (_Asked, ClaudiusError) as error:
            backoff.forgive()  # no network was logged in to
            if isinstance(error, _Asked):
                return
            if not any(isinstance(one, PrivateFile) for one in logging.getLogger("claudius").handlers):
                with contextlib.suppress(BadHome):  # its settings may be what is wrong
                    start_log(home.logs, "INFO", ())
            log.critical(error.message)
            raise

        def reread() -> None:
            soul.reread()
            starter.reloading()

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reread)
        try:
            await _awake(soul, starter, signals)
        except BaseException as error:
            log.critical("ended by an error", exc_info=True)
            if isinstance(error, Exception) and not isinstance(error, ClaudiusError):
                raise ClaudiusError(f"ended by an error ({unquoted(error)}); its log says where") from None
            raise
        backoff.forgive()


async def _hold(home: Home, seconds: float, why: str, starter: Starter, signals: Signals) -> None:
    """Wait, and report the wait to whoever asks meanwhile. Raises: _Asked."""
    log.error(why)
    starter.waits(why, seconds)
    until = asyncio.get_running_loop().time() + seconds

    async def status(connection: ControlConnection, _: Mapping[str, Any]) -> None:
        left_s = until - asyncio.get_running_loop().time()
        await connection.send({"brake": {"message": why, "wait_s": round(max(0.0, left_s), 1)}})

    async def later(connection: ControlConnection, _: Mapping[str, Any]) -> None:
        left_s = until - asyncio.get_running_loop().time()
        await connection.send({"event": "later", "message": why, "wait_s": left_s})

    control = ControlSocket(home.socket, {"status": status, "chat": later})
    await control.open()
    try:
        async with asyncio.timeout(seconds):
            await signals.ending.wait()
            raise _Asked
    except TimeoutError:
        log.info("the crash-loop brake is off")
    finally:
        await control.close()


async def _wake(soul: Awake) -> None:
    await soul.start()
    await soul.ready()


async def _awake(soul: Awake, starter: Starter, signals: Signals) -> None:
    """Start the soul, wait, stop it. Raises: ClaudiusError if something ended it from inside."""
    ending = asyncio.create_task(signals.ending.wait(), name="signals")
    failing = asyncio.create_task(soul.wait(), name="soul's end")
    getting_ready = asyncio.create_task(_wake(soul), name="getting ready")
    try:
        await asyncio.wait((getting_ready, ending, failing), return_when=asyncio.FIRST_COMPLETED)
        if getting_ready.done():
            getting_ready.result()
            starter.ready()
        await asyncio.wait((ending, failing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        starter.stopping()
        await soul.stop()
        for task in (ending, getting_ready):
            task.cancel()
        await asyncio.gather(ending, getting_ready, return_exceptions=True)
        failing.cancel()
    if failing.done() and not failing.cancelled():
        failing.result()
