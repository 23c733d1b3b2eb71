"""Define and install the service that keeps the daemon running: a systemd user unit, or a launchd agent."""

from __future__ import annotations

import hashlib
import os
import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from claudius.errors import EXIT_CONFIG, ClaudiusError
from claudius.home import FILE_MODE, Home

_SYSTEMD = """\
[Unit]
Description=Claudius, a soul that lives in your chat ({home})
Documentation=man:systemd.service(5)
# a crash loop is held back by Claudius itself, before any network login
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={argv}
ExecReload=/bin/kill -HUP $MAINPID
Environment={home_setting}
Environment={path_setting}
Environment=CLAUDIUS_UNIT=%n
EnvironmentFile=-{env_file}
WorkingDirectory={home}
Restart=always
RestartSec=1
# an error that only the owner can fix: the log says what
RestartPreventExitStatus={exit_config}
TimeoutStartSec=infinity
TimeoutStopSec=20
KillMode=mixed
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


class Unit(Struct, frozen=True):
    """A service definition: its name, its file, and the commands that start and stop it."""

    name: str
    path: Path
    text: str
    begin: Sequence[Sequence[str]]
    end: Sequence[Sequence[str]]
    forget: Sequence[Sequence[str]] = ()


def unit_of(home: Home, env: Mapping[str, str], platform: str = sys.platform) -> Unit:
    """Return the service that keeps the daemon of `home` running on this platform. Pure. Raises: ClaudiusError."""
    user = Path(env.get("HOME") or "~").expanduser()
    if platform == "darwin":
        return _launchd(home, user, env)
    if platform.startswith("linux"):
        return _systemd(home, user, env)
    raise ClaudiusError(
        f"services on {platform} are not supported: have your own service manager run `claudius daemon run`"
    )


def write_unit(unit: Unit) -> None:
    """Write the service's file and start the service. Raises: ClaudiusError."""
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, "utf-8")
        unit.path.chmod(FILE_MODE)
    except OSError as error:
        raise ClaudiusError(f"{unit.path} cannot be written: {error.strerror}") from error
    for argv in unit.begin:
        _run(argv)


def remove_unit(unit: Unit) -> bool:
    """Stop the service and remove its file; False if there is none. Raises: ClaudiusError."""
    if not unit.path.exists():
        return False
    for argv in unit.end:
        _run(argv)
    unit.path.unlink()
    for argv in unit.forget:
        _run(argv)
    return True


def _systemd(home: Home, user: Path, env: Mapping[str, str]) -> Unit:
    name = f"{_name(home, user)}.service"
    configured = Path(env.get("XDG_CONFIG_HOME") or user / ".config")
    text = _SYSTEMD.format(
        argv=" ".join(_quoted(word).replace("$", "$$") for word in _argv()),
        home=_escaped(str(home.root)),
        home_setting=_quoted(f"CLAUDIUS_HOME={home.root}"),
        path_setting=_quoted(f"PATH={env.get('PATH', os.defpath)}"),
        env_file=_escaped(str(home.env_file)),
        exit_config=EXIT_CONFIG,
    )
    systemctl = ("systemctl", "--user")
    return Unit(
        name,
        configured / "systemd" / "user" / name,
        text,
        begin=((*systemctl, "daemon-reload"), (*systemctl, "enable", "--now", name)),
        end=((*systemctl, "disable", "--now", name),),
        forget=((*systemctl, "daemon-reload"),),
    )


def _launchd(home: Home, user: Path, env: Mapping[str, str]) -> Unit:
    label = f"local.{_name(home, user)}"
    path = user / "Library" / "LaunchAgents" / f"{label}.plist"
    agent = {
        "Label": label,
        "ProgramArguments": list(_argv()),
        "EnvironmentVariables": {"CLAUDIUS_HOME": str(home.root), "PATH": env.get("PATH", os.defpath)},
        "WorkingDirectory": str(home.root),
        "RunAtLoad": True,
        # launchd has no exit code for "do not restart": a clean exit ends the job, any other restarts it, no sooner
        # than after ThrottleInterval; the crash backoff handles the rest
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 20,
        "Umask": 0o077,
        "ProcessType": "Background",
        "StandardOutPath": os.devnull,
        "StandardErrorPath": os.devnull,
    }
    domain = f"gui/{os.getuid()}"
    return Unit(
        label,
        path,
        plistlib.dumps(agent).decode(),
        begin=(("launchctl", "bootstrap", domain, str(path)),),
        end=(("launchctl", "bootout", f"{domain}/{label}"),),
    )


def _argv() -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", "claudius", "daemon", "run")


def _name(home: Home, user: Path) -> str:
    """Return the service's name: plain for the default home, with a suffix for any other."""
    if home.root == user / ".claudius":
        return "claudius"
    return f"claudius-{hashlib.sha256(str(home.root).encode()).hexdigest()[:8]}"


def _escaped(text: str) -> str:
    return text.replace("%", "%%")  # systemd: `%` starts a specifier


def _quoted(text: str) -> str:
    escaped = _escaped(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _run(argv: Sequence[str]) -> None:
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClaudiusError(f"{' '.join(argv)}: {error}") from error
    if ran.returncode:
        raise ClaudiusError(f"{' '.join(argv)}: {ran.stderr.strip() or f'exit code {ran.returncode}'}")
