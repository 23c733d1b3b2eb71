"""The command `claudius` as a process of its own, forked from one that has imported it.

Only the imports are shared, and what `made_once` makes.

One such process serves a whole test session; run as a program, this file is that process.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

IMPORTED_LATER = {"__main__", "adapters", "claude_code", "console", "eval", "testing"}
"""What few commands need: whoever does imports it, as ever."""
ONE_BY_ONE = threading.Lock()


class Forked(subprocess.Popen[Any]):
    """`subprocess.Popen([claudius, …], env=…)`, but that the new process finds its modules imported."""

    def _execute_child(self, args: Sequence[str], *plan: Any) -> None:  # type: ignore[override] # Popen's own, by place
        env, pipes, (umask, is_leader) = plan[5], plan[9:15], plan[19:21]
        ours, report = os.pipe()
        wanted = {"args": [os.fspath(one) for one in args], "env": {**(os.environ if env is None else env)}}
        wanted |= {"cwd": os.fspath(plan[4] or Path.cwd()), "umask": umask, "is_leader": is_leader}
        with tempfile.TemporaryFile() as order, ONE_BY_ONE:
            order.write(json.dumps(wanted).encode())
            order.flush()
            ends = [pipes[0], pipes[3], pipes[5]]
            fds = [standard if end < 0 else end for standard, end in enumerate(ends)]
            socket.send_fds(_stem(), [b"!"], [order.fileno(), report, *fds])
        os.close(report)
        self._report = os.fdopen(ours, "rb", buffering=0)
        self.pid = int(self._report.read(12))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined] # private to subprocess

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        return self._ended(0)

    def _wait(self, timeout: float | None) -> int:
        code = self._ended(None if timeout is None else timeout * 1000)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _ended(self, within_ms: float | None) -> int | None:
        if self.returncode is None:
            end = select.poll()
            end.register(self._report, select.POLLIN)
            if end.poll(within_ms):
                self.returncode = int(self._report.read(12) or -signal.SIGKILL)
                self._report.close()
        return self.returncode


def popen(args: Sequence[str], **given: Any) -> subprocess.Popen[Any]:
    """Start `claudius …`, forked where its environment asks for no other interpreter."""
    env = given.get("env") or {}
    is_same = env.get("LANG") == "C.UTF-8" and not any(name.startswith(("PYTHON", "LC_")) for name in env)
    return (Forked if is_same and Path(args[0]).name == "claudius" else subprocess.Popen)(args, **given)


@functools.cache
def _stem() -> socket.socket:
    ours, theirs = socket.socketpair()
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
    argv = [sys.executable, "-P", __file__, str(theirs.fileno())]
    process = subprocess.Popen(argv, env=env, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(process.wait, 20)
    atexit.register(ours.close)
    return ours


def _serve(asked: socket.socket) -> None:
    """Fork a process for each order, and report its id and its end; return in the new processes only."""
    _import_all("claudius")
    sys.path.append(str(Path(__file__).parent))
    importlib.import_module("made_once").install(at_once=True)
    sys.path.pop()
    gc.collect()
    gc.freeze()
    reports = dict[int, int]()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        if woken in select.select([asked, woken], [], [])[0]:
            os.read(woken, 4096)
            _report_ends(reports)
            continue
        _, fds, *_ = socket.recv_fds(asked, 1, 5)
        if not fds:
            os._exit(0)
        order, report, *standard = fds
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (asked.detach(), woken, wakes, report, *reports.values()):
                os.close(fd)
            return _become(order, standard)
        _tell(report, pid)
        reports[pid] = report
        for fd in (order, *standard):
            os.close(fd)


def _report_ends(reports: dict[int, int]) -> None:
    for pid in list(reports):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _tell(reports[pid], os.waitstatus_to_exitcode(status))
            os.close(reports.pop(pid))


def _tell(report: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(report, f"{number:>12}".encode())


def _import_all(package: str) -> None:
    for one in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if one.name not in IMPORTED_LATER:
            importlib.import_module(f"{package}.{one.name}")
            if one.ispkg:
                _import_all(f"{package}.{one.name}")


def _become(order: int, standard: Sequence[int]) -> None:
    """Make this process what `exec` would have made it."""
    with open(order, "rb") as file:
        file.seek(0)
        wanted = json.load(file)
    if wanted["is_leader"]:
        os.setsid()
    for number, fd in enumerate(standard):
        os.dup2(fd, number)
    for fd in set(standard) - {0, 1, 2}:
        os.close(fd)
    os.chdir(wanted["cwd"])
    if wanted["umask"] >= 0:
        os.umask(wanted["umask"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    if "SSL_CERT_FILE" in os.environ and (made := sys.modules.get("aiohttp.connector")):
        made._SSL_CONTEXT_VERIFIED = made._make_ssl_context(verified=True)  # it is made at import, of that environment
    tempfile.tempdir = None
    sys.argv = wanted["args"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new = open(number, "w" if number else "r", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115 - open as long as the process
        new.reconfigure(line_buffering=number == 2 or new.isatty())
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _main() -> NoReturn:
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from claudius.cli import main  # noqa: PLC0415 - the stem alone needs it

    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type] # there is one
        code = 1
    threading._shutdown()  # type: ignore[attr-defined] # what the interpreter does at its end, but the freeing of memory
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _main()
