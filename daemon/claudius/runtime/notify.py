"""Reports the state of the process to whoever started it: the service manager, or `claudius daemon start`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping, MutableMapping
from typing import Any

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
        """Write one frame to the pipe and close it; there is only one."""
        if self._pipe is None:
            return
        pipe, self._pipe = self._pipe, None
        with contextlib.suppress(OSError):
            os.write(pipe, json.dumps(frame).encode() + b"\n")
        os.close(pipe)

    def _notify(self, state: str) -> None:
        """Send one datagram, as sd_notify(3) describes; a missing receiver is no error."""
        if not self._socket:
            return
        address = "\0" + self._socket[1:] if self._socket.startswith("@") else self._socket
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), address)
