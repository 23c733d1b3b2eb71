"""`claudius upgrade --check`: whether there is a newer release, and whether this one can open the database.

The only command that asks a package index, and only when it is typed.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import quote

import click

import claudius
from claudius.cli.output import json_option, print_result
from claudius.config import load
from claudius.errors import EXIT_FAILED, EXIT_TRY_AGAIN, StoreError, UsageProblem
from claudius.home import Home, shipped
from claudius.memory.opening import MISSING, StorePlace, place_of

NAME = "claudius-daemon"
TIMEOUT_S = 10.0
HOW = "docs/operate.md leads through it: a backup first, then the new release, then `claudius daemon restart`"


@click.command()
@click.option("--check", is_flag=True, help="Ask the package index; change nothing.")
@json_option
def upgrade(*, check: bool, as_json: bool) -> int:
    """Say whether a newer release is there, and whether this one fits the database."""
    if not check:
        raise UsageProblem(f"it only checks, with --check; {HOW}")
    home = Home.of(os.environ)
    place = place_of(home)
    here, oldest, known = _at_server(place) if place.is_postgres else _in_file(home)
    latest, problem = _latest(load(home, os.environ).config.upgrade.index_url)
    is_newest = latest is not None and _parts(latest) <= _parts(claudius.__version__)
    fits = oldest <= known
    document: dict[str, Any] = {
        "version": claudius.__version__,
        "latest": latest,
        "schema": here,
        "schema_known": known,
        "ok": is_newest and fits,
        "problem": problem or None,
    }
    where = place.shown if place.is_postgres else "the database"
    lines = [f"this is {NAME} {claudius.__version__}, which knows schema {known}; {where} has {here or 'none yet'}"]
    if not fits:
        lines.append(
            "a later release wrote the database: this one does not open it; install that one, or restore a backup"
        )
    if problem:
        lines.append(problem)
    elif not is_newest:
        lines.append(f"{latest} is there: {HOW}")
    else:
        lines.append("it is the newest release")
    print_result(document, lines, as_json=as_json)
    return 0 if document["ok"] else EXIT_TRY_AGAIN if problem and fits else EXIT_FAILED


def _latest(index_url: str) -> tuple[str | None, str]:
    """Return the newest release that the index names, or None and why it names none."""
    import httpx

    url = f"{index_url.rstrip('/')}/{NAME}/json"
    try:
        answer = httpx.get(url, timeout=TIMEOUT_S, follow_redirects=True)
        answer.raise_for_status()
        return str(answer.json()["info"]["version"]), ""
    except httpx.HTTPStatusError as error:
        return None, f"{url} answered {error.response.status_code}: the index does not know it, or refuses"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        return None, f"{url} could not be asked ({type(error).__name__}): try again, or see upgrade.index_url"


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


def _parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparing. Pure."""
    found = re.match(r"[\d.]*", version)
    return tuple(int(part) for part in (found[0] if found else "").split(".") if part)
