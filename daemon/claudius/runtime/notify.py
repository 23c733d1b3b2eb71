"""Telling whoever started the process how it goes: the service manager, and `claudius daemon start`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping, MutableMapping
from typing import Any

READY_FD = "CLAUDIUS_READY_FD"
"""The environment's name for the pipe to whoever waits for this process; it is read once."""


class Starter:
    """Who started us: perhaps a service manager, perhaps a command that waits at the other end of a pipe."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Take both addresses out of the environment, so that no child believes that it was meant."""
        self._socket = environ.pop("NOTIFY_SOCKET", "")
        descriptor = environ.pop(READY_FD, "")
        self._pipe: int | None = int(descriptor) if descriptor.isdigit() else None
        if self._pipe is not None:
            os.set_inheritable(self._pipe, False)
        self.unit = environ.pop("CLAUDIUS_UNIT", "")
        """The service manager's name for us."""

    def status(self, line: str) -> None:
        """Say in one line what we are doing."""
        self._notify(f"STATUS={line}")

    def waits(self, why: str, seconds: float) -> None:
        """Say that we wait before we wake; whoever waits for us need not wait as long."""
        self._notify(f"STATUS={why}")
        self._tell({"event": "waits", "message": why, "seconds": seconds})

    def ready(self) -> None:
        """Say that we are awake."""
        self._notify(f"READY=1\nSTATUS=awake\nMAINPID={os.getpid()}")
        self._tell({"event": "ready"})

    def reloading(self) -> None:
        """Say that the settings are read again, which is done at once."""
        self._notify("STATUS=the settings were read again")

    def stopping(self) -> None:
        """Say that we are going to sleep."""
        self._notify("STOPPING=1\nSTATUS=finishing what was begun")

    def _tell(self, frame: Mapping[str, Any]) -> None:
        """Write one frame to the pipe and close it: there is one thing to be told."""
        if self._pipe is None:
            return
        pipe, self._pipe = self._pipe, None
        with contextlib.suppress(OSError):
            os.write(pipe, json.dumps(frame).encode() + b"\n")
        os.close(pipe)

    def _notify(self, state: str) -> None:
        """Send one datagram, as sd_notify(3) describes; nobody there is no error."""
        if not self._socket:
            return
        address = "\0" + self._socket[1:] if self._socket.startswith("@") else self._socket
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), address)
