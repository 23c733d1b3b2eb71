"""`claudius process`: show the soul's mental processes, their transitions, and each conversation's place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import json_option, print_json
from claudius.cli.records import records
from claudius.errors import ClaudiusError
from claudius.home import Home


@click.group()
def process() -> None:
    """Its mental processes, and where each conversation stands."""


@process.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the processes, those that ship first."""
    found = [_row(one) for one in _known(Home.of(os.environ))]
    if as_json:
        print_json(found)
        return
    for row in found:
        click.echo(f"{row['name']}: {row['description']}")
        click.secho(f"  {', '.join(row['steps']) or 'a function'}; next: {', '.join(row['next']) or '-'}", dim=True)


@process.command()
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Show one process, and the conversations that it is at home in."""
    home = Home.of(os.environ)
    found = next((one for one in _known(home) if one.name == name), None)
    if found is None:
        raise ClaudiusError(f"no process {name!r}: `claudius process list` names them")
    document = _row(found) | {
        "overrides": dict(found.overrides),
        "participation": found.participation.value if found.participation else None,
        "interruption": found.interruption.value,
        "linger_s": found.linger.total_seconds() if found.linger else None,
        "silence_ok": found.silence_ok,
        "may_execute_now": found.may_execute_now,
        "conversations": [row["conversation"] for row in _positions(home) if row["process"] == name],
    }
    if as_json:
        print_json(document)
        return
    for key, value in document.items():
        click.echo(f"{key}: {value}")


@process.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Draw it as an SVG file.")
@json_option
def graph(out: Path | None, *, as_json: bool) -> None:
    """Print the graph of the processes as Mermaid, or draw it with every conversation at its place."""
    from claudius.cli.pictures import mermaid, svg

    home = Home.of(os.environ)
    rows = [_row(one) for one in _known(home)]
    if out is None:
        if as_json:
            print_json({"mermaid": mermaid(rows)})
        else:
            click.echo(mermaid(rows), nl=False)
        return
    try:
        out.write_text(svg(rows, _positions(home)), "utf-8")
    except OSError as error:
        raise ClaudiusError(f"{out} cannot be written ({error.strerror})") from error
    click.echo(f"drawn: {out}")


def _known(home: Home) -> Sequence[Any]:
    from claudius.cognition.processes import find, known_names
    from claudius.cognition.steps import STEPS
    from claudius.home import shipped
    from claudius.soul import SoulSource

    soul = SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS)).current()
    found = (find(name, soul) for name in known_names(soul))
    return [one for one in found if one is not None]


def _row(one: Any) -> dict[str, Any]:
    return {"name": one.name, "steps": list(one.steps), "next": list(one.next or ()), "description": one.description}


def _positions(home: Home) -> Sequence[Mapping[str, Any]]:
    with records(home) as kept:
        return kept.positions()
