"""Define and install the service that keeps the daemon running: a systemd unit, of the user or the machine, or launchd.

Source: systemd.exec(5), "Sandboxing" and "System call filtering"; `systemd-analyze security` judges the result.
"""

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
Environment=CLAUDIUS_UNIT={scope}%n
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
{more}
[Install]
WantedBy={wanted_by}
"""
_HARDENED = """\
User={account}
Group={account}
# the home is all that it may write to
ProtectSystem=strict
ProtectHome={protect_home}
ReadWritePaths={home}
PrivateTmp=yes
PrivateDevices=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
CapabilityBoundingSet=
AmbientCapabilities=
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
# no MemoryDenyWriteExecute: the Claude CLI compiles while it runs
"""
_MAC_PATH = "{}:/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SYSTEM = "system:"
"""In `CLAUDIUS_UNIT`, before the name of a unit of the machine."""
SYSTEM_HOME, ACCOUNT = Path("/var/lib/claudius"), "claudius"
"""The home of the machine's own soul, and the user that runs it."""
BOOTED = Path("/run/systemd/system")
"""There while systemd runs the machine: sd_booted(3)."""
NO_SHELL = "/usr/sbin/nologin"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for, whatever shell the service was installed from."""


class Unit(Struct, frozen=True):
    """A service definition: its name, its file, and the commands that start and stop it."""

    name: str
    path: Path
    text: str
    begin: Sequence[Sequence[str]]
    end: Sequence[Sequence[str]]
    forget: Sequence[Sequence[str]] = ()
    mode: int = FILE_MODE


def unit_of(home: Home, env: Mapping[str, str], platform: str = sys.platform, *, account: str = "") -> Unit:
    """Return the service that keeps the daemon of `home` running on this platform. Raises: ClaudiusError.

    `account`: the user that runs it as a service of the machine; empty = a service of this user.
    """
    if account and not platform.startswith("linux"):
        raise ClaudiusError(
            f"--system is for systemd: on {platform}, have your service manager run `claudius daemon run`"
        )
    if account:
        return _system(home, account)
    user = Path(env.get("HOME") or "~").expanduser()
    if platform == "darwin":
        return _launchd(home, user)
    if platform.startswith("linux"):
        return _systemd(home, user, env)
    raise ClaudiusError(
        f"services on {platform} are not supported: have your own service manager run `claudius daemon run`"
    )


def installed(home: Home, env: Mapping[str, str]) -> str:
    """Return the systemd unit that is installed for `home`, as its `CLAUDIUS_UNIT` says; empty if there is none."""
    if not BOOTED.is_dir():
        return ""
    user = Path(env.get("HOME") or "~").expanduser()
    units = (("", _systemd(home, user, env)), (SYSTEM, _system(home, ACCOUNT)))
    return next((scope + unit.name for scope, unit in units if unit.path.exists()), "")


def write_unit(unit: Unit) -> None:
    """Write the service's file and start the service. Raises: ClaudiusError."""
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, "utf-8")
        unit.path.chmod(unit.mode)
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


def _text(home: Home, path: str, *, more: str, scope: str, wanted_by: str) -> str:
    return _SYSTEMD.format(
        argv=" ".join(_quoted(word).replace("$", "$$") for word in _argv()),
        home=_escaped(str(home.root)),
        home_setting=_quoted(f"CLAUDIUS_HOME={home.root}"),
        path_setting=_quoted(f"PATH={path}"),
        env_file=_escaped(str(home.env_file)),
        exit_config=EXIT_CONFIG,
        more=more,
        scope=scope,
        wanted_by=wanted_by,
    )


def _system(home: Home, account: str) -> Unit:
    """Return a hardened service of the machine, and what makes its user and home."""
    name = f"{_name(home, SYSTEM_HOME)}.service"
    ours = (home.root, Path(sys.executable))
    is_at_home = any(path.is_relative_to(top) for path in ours for top in ("/home", "/root", "/run/user"))
    more = _HARDENED.format(
        account=account, home=_quoted(str(home.root)), protect_home="read-only" if is_at_home else "yes"
    )
    text = _text(home, USUAL_PATH, more=more, scope=SYSTEM, wanted_by="multi-user.target")
    useradd = ("useradd", "--system", "--user-group", "--home-dir", str(home.root), "--shell", NO_SHELL, account)
    return Unit(
        name,
        Path("/etc/systemd/system") / name,
        text,
        begin=(
            *(() if _is_known(account) else (useradd,)),
            ("install", "-d", "-m", "0700", "-o", account, "-g", account, str(home.root)),
            ("systemctl", "daemon-reload"),
            ("systemctl", "enable", "--now", name),
        ),
        end=(("systemctl", "disable", "--now", name),),
        forget=(("systemctl", "daemon-reload"),),
        mode=0o644,
    )


def _is_known(account: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True


def check_system(home: Home) -> None:
    """Check that a service of the machine could run here. Raises: ClaudiusError."""
    if os.geteuid() != 0:
        raise ClaudiusError("a service of the machine is installed by root: run it with sudo")
    closed = [path for path in Path(sys.executable).parents if not path.stat().st_mode & 0o001]
    if closed:
        raise ClaudiusError(
            f"only its owner may enter {closed[-1]}, so the service's user could not run {sys.executable}: install "
            "claudius where everyone can read it (docs/operate.md, Install)"
        )
    if home.root.exists() and not home.root.is_dir():
        raise ClaudiusError(f"{home.root} is no directory")


def _systemd(home: Home, user: Path, env: Mapping[str, str]) -> Unit:
    name = f"{_name(home, user / '.claudius')}.service"
    configured = Path(env.get("XDG_CONFIG_HOME") or user / ".config")
    path = f"{Path(sys.executable).parent}:{user / '.local' / 'bin'}:{USUAL_PATH}"
    text = _text(home, path, more="", scope="", wanted_by="default.target")
    systemctl = ("systemctl", "--user")
    return Unit(
        name,
        configured / "systemd" / "user" / name,
        text,
        begin=((*systemctl, "daemon-reload"), (*systemctl, "enable", "--now", name)),
        end=((*systemctl, "disable", "--now", name),),
        forget=((*systemctl, "daemon-reload"),),
    )


def _launchd(home: Home, user: Path) -> Unit:
    label = f"local.{_name(home, user / '.claudius')}"
    path = user / "Library" / "LaunchAgents" / f"{label}.plist"
    agent = {
        "Label": label,
        "ProgramArguments": list(_argv()),
        "EnvironmentVariables": {"CLAUDIUS_HOME": str(home.root), "PATH": _MAC_PATH.format(user / ".local" / "bin")},
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


def _name(home: Home, usual: Path) -> str:
    """Return the service's name: plain for the default home, with a suffix for any other."""
    if home.root == usual:
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
