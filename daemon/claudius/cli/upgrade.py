"""`claudius upgrade --check`: whether this release can open the database, and how to look for a newer one.

It asks no package index: which one there is, and by which way this release came, is known to whoever installed it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import quote

import click

import claudius
from claudius.cli.output import json_option, print_result
from claudius.errors import EXIT_FAILED, StoreError, UsageProblem
from claudius.home import Home, shipped
from claudius.memory.database import StorePlace
from claudius.memory.opening import MISSING, place_of

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
    here, oldest, known = _at_server(place) if place.is_postgres else _in_file(home)
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


def _at_server(place: StorePlace) -> tuple[int | None, int, int]:
    """Return the same of a server, as it says itself. Raises: StoreError."""
    try:
        from claudius.memory.postgres.schema import known, released
    except ImportError as error:
        raise StoreError(MISSING) from error
    schema, oldest = released(place)
    return schema, oldest, known(shipped("memory"))
