"""`claudius soul`: show, check and edit the soul's files, and read their earlier texts."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from claudius.cli.output import Group, json_option, print_result
from claudius.errors import EXIT_FAILED, BadSoul
from claudius.home import Home
from claudius.memory.audit import CLI
from claudius.reports import soul as reports
from claudius.soul.source import FIX, OVERRULED


@click.group(cls=Group)
def soul() -> None:
    """Read, check and edit who the soul is."""


@soul.command()
@click.argument("file", required=False)
@json_option
def show(file: str | None, *, as_json: bool) -> None:
    """Print the soul's files, or one of them, as the next turn will read them."""
    document = reports.texts(Home.of(os.environ), file)
    lines: list[str] = []
    for name, item in document.items():
        lines += [click.style(f"── {name}  ({item['source']})", dim=True), item["text"].rstrip() + "\n"]
    print_result(document, lines, as_json=as_json)


@soul.command()
@json_option
def check(*, as_json: bool) -> int:
    """Check whether every soul file can be used."""
    document = reports.checked(Home.of(os.environ))
    lines = [BadSoul(**problem).message for problem in document["problems"]] or ["every soul file can be used"]
    lines += ["doubt: {file}: {detail}: {fix}".format(**one) for one in document["doubts"]]
    read_instead = "{file} is read instead of {shadowed}: edits of that one change nothing"
    lines += [read_instead.format(**one) for one in document["shadows"]]
    print_result(document, lines, as_json=as_json)
    return 0 if document["ok"] else EXIT_FAILED


@soul.command()
@click.argument("file", default="soul.md")
def edit(file: str) -> None:
    """Open one of the soul's files in your editor; the shipped text is the start of your own."""
    home = Home.of(os.environ)
    home.create()
    own, before = reports.own_path(home, file), reports.history(home, file)["text"]
    with TemporaryDirectory(prefix="edit-", dir=home.state) as aside:  # so that no turn reads what is half written
        copy = Path(aside) / own.name
        copy.write_text(before, "utf-8")
        click.edit(filename=str(copy))
        after = copy.read_text("utf-8") if copy.exists() else before
    if after != before:
        reports.save(home, file, after, None, datetime.now(UTC), origin=CLI)
    click.echo(f"{own}: {'changed; the next turn reads it' if after != before else 'unchanged'}")
    if reports.overruled(home):
        click.echo(f"{OVERRULED}; {FIX}")


@soul.command()
@json_option
def push(*, as_json: bool) -> None:
    """Put this home's soul files in force on every machine that shares its store; each next turn thinks with them."""
    document = reports.push(Home.of(os.environ))
    changed = ", ".join(document["changed"]) or "nothing has changed"
    lines = [f"soul {document['sha256'][:12]} is in force for every next turn: {changed}"]
    print_result(document, lines, as_json=as_json)


@soul.command()
@click.argument("file", default="soul.md")
@json_option
def history(file: str, *, as_json: bool) -> None:
    """Print the earlier texts of one of the soul's files, newest first."""
    document = reports.history(Home.of(os.environ), file)
    lines: list[str] = []
    for item in document["history"]:
        lines += [
            click.style(f"── {file} until {item['at']:%Y-%m-%d %H:%M:%S} UTC", dim=True),
            item["text"].rstrip() + "\n",
        ]
    print_result(document, lines or [f"{file}: no earlier text is kept"], as_json=as_json)
