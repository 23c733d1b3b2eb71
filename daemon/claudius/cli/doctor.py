"""`claudius doctor`, `audit`, `upgrade` and `completion`: is it set up well, who did what, does the database fit."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import click

import claudius
from claudius.cli.output import json_option, print_checks, print_json, print_result, safe, table
from claudius.errors import EXIT_FAILED, UsageProblem
from claudius.home import Home, shipped
from claudius.memory.opening import place_of
from claudius.reports import doctor as reports
from claudius.reports.opened import read
from claudius.reports.status import EVERY


@click.command()
@click.option("--live", is_flag=True, help="Also ask the networks how they are set up, and the model for one word.")
@click.option("--security", is_flag=True, help="Only what concerns who may read and do what.")
@json_option
def doctor(*, live: bool, security: bool, as_json: bool) -> int:
    """Find what is not set up correctly, and how to fix it."""
    found = reports.checks(Home.of(os.environ), live=live, security=security)
    document = reports.doctor(found)
    if as_json:
        print_json(document)
    else:
        print_checks(found)
    return 0 if document["ok"] else EXIT_FAILED


MOST_SHOWN = 50


@click.command()
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="From this time on, in UTC.")
@click.option("-n", "most", type=click.IntRange(1, 10**9), help="The newest so many [default: 50; with --json, all].")
@json_option
def audit(since: datetime | None, most: int | None, *, as_json: bool) -> None:
    """List settings changed, approvals, erasures, portraits read, soul files edited, and commands of owners."""
    start = since.replace(tzinfo=UTC).isoformat() if since else ""
    many = most or (EVERY if as_json else MOST_SHOWN)
    found = read(Home.of(os.environ), lambda kept: kept.audit(start, many))
    names = ("at", "who", "act", "target", "from")
    lines = table(names, ([safe(str(row[name])) for name in names] for row in found))
    print_result(found, lines if found else ["nothing is recorded yet"], as_json=as_json)


NAME = "claudius-daemon"
HOW = "docs/operate.md leads through it: a backup first, then the new release, then `claudius daemon restart`"
LOOK = f"a newer release? `pip index versions {NAME}` lists them, or `git fetch --tags && git tag` in a checkout"


@click.command()
@click.option("--check", is_flag=True, help="Look at the database; ask nobody, change nothing.")
@json_option
def upgrade(*, check: bool, as_json: bool) -> int:
    """Say whether this release fits the database, and how to look for a newer one."""
    if not check:
        raise UsageProblem(f"it only checks, with --check; {HOW}")
    home = Home.of(os.environ)
    place = place_of(home)
    if place.is_postgres:
        from claudius.reports.server_checks import schema_at

        here, oldest, known = schema_at(place)
    else:
        here, oldest, known = _in_file(home)
    is_fit = oldest <= known
    document: dict[str, Any] = {
        "version": claudius.__version__,
        "latest": None,
        "schema": here,
        "schema_known": known,
        "ok": is_fit,
    }
    where = place.shown if place.is_postgres else "the database"
    lines = [f"this is {NAME} {claudius.__version__}, which knows schema {known}; {where} has {here or 'none yet'}"]
    if not is_fit:
        lines.append(
            "a later release wrote the database: this one does not open it; install that one, or restore a backup"
        )
    print_result(document, [*lines, LOOK, HOW], as_json=as_json)
    return 0 if is_fit else EXIT_FAILED


def _in_file(home: Home) -> tuple[int | None, int, int]:
    """Return the schema of the file (None: there is none), the oldest that may write to it, and the one we know."""
    known = len([*(shipped("memory") / "schema").glob("*.sql")])
    if not home.database.exists():
        return None, 0, known
    with closing(sqlite3.connect(f"file:{quote(str(home.database))}?mode=ro", uri=True)) as database:
        here = int(database.execute("PRAGMA user_version").fetchone()[0])
    return here, here, known


SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CLAUDIUS_COMPLETE"
WHERE = {
    "bash": """Tab completes commands with this in ~/.bashrc: eval "$({command} completion bash)\"""",
    "zsh": """Tab completes commands with this in ~/.zshrc: eval "$({command} completion zsh)\"""",
    "fish": "Tab completes commands after: {command} completion fish > ~/.config/fish/completions/claudius.fish",
}
"""How each shell is given the lines by `command`."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the lines that let a shell complete commands with Tab; without SHELL, say how to install them."""
    from click.shell_completion import get_completion_class

    from claudius.cli import cli

    if shell is None:
        own = PurePath(os.environ.get("SHELL", "")).name
        for name in (own,) if own in SHELLS else SHELLS:
            click.echo(WHERE[name].format(command="claudius" if shutil.which("claudius") else sys.argv[0]))
        return
    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows each of SHELLS
        raise click.UsageError(f"{shell} cannot be completed for")
    click.echo(kind(cli, {}, "claudius", VARIABLE).source())
