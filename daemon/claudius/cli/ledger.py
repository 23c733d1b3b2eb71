"""`claudius ledger`: list the soul's peers; show what passed between them, and how its trust changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import json_option, print_json, safe
from claudius.cli.pictures import bar, picture
from claudius.cli.records import records
from claudius.errors import ClaudiusError
from claudius.home import Home


@click.group()
def ledger() -> None:
    """Whom the soul deals with, and what it makes of them."""


@ledger.command()
@json_option
def peers(*, as_json: bool) -> None:
    """List everyone it deals with, latest first."""
    with records(Home.of(os.environ)) as kept:
        found = kept.peers()
    if as_json:
        print_json(found)
        return
    for one in found:
        click.echo(_line(one))


@ledger.command()
@click.argument("peer")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Draw the trust over time as an SVG file.")
@json_option
def show(peer: str, out: Path | None, *, as_json: bool) -> None:
    """Print one peer: every assessment as a drawing of trust over time, and the latest of what passed.

    PEER is an id as `peers` prints it, or a name that only one of them has.
    """
    with records(Home.of(os.environ)) as kept:
        found = kept.peer(peer)
    if found is None:
        raise ClaudiusError(f"nobody is known as {peer!r}: `claudius ledger peers` names everyone")
    if out:
        out.write_text(picture(found["name"] or found["peer"], found["assessments"]), "utf-8")
    if as_json:
        print_json(found)
        return
    click.echo(_line(found))
    for one in found["assessments"]:
        click.echo(
            f"{one['at']:%Y-%m-%d %H:%M}  {bar(one['trust'])}  information {one['info_score']}/10, {one['author']}"
        )
        click.echo(f"    {safe(one['rationale'])}")
    for one in found["timeline"]:
        sign = "»" if one["direction"] == "in" else "«"
        click.echo(f"{one['at']:%Y-%m-%d %H:%M}  {sign} {safe(one['preview'])}  ({one['channel_type']})")
    if out:
        click.echo(f"drawn: {out}")


def _line(one: Mapping[str, Any]) -> str:
    trust = "not yet assessed" if one["trust"] is None else f"trust {one['trust']:+d}"
    many = f"{one['interactions']} message(s)"
    return f"{one['peer']}  {safe(one['name'])}  {many}  information {one['info_score']}/10  {trust}"
