"""`claudius psyche`: show the psyche's current numbers, and plot how they changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import click

from claudius.cli.output import json_option, print_json, safe
from claudius.cli.records import records
from claudius.home import Home

DAYS = 7


@click.group()
def psyche() -> None:
    """The numbers below language: mood, needs, energy, relations."""


@psyche.command()
@json_option
def show(*, as_json: bool) -> None:
    """Print the numbers as they stand now, each beside its words."""
    from claudius.psyche.personality import Kernel, kernel_hash
    from claudius.psyche.showing import shown

    with records(Home.of(os.environ)) as kept:
        found, traits = kept.psyche()
    name = kernel_hash(Kernel(*traits)) if traits else ""
    document = shown(found, traits, name, _now().timestamp())
    if as_json:
        print_json(document)
        return
    mood = document["mood"]
    click.echo(f"mood    {mood['words']} ({document['emotional_state']})  {mood['valence']:+.2f} {mood['arousal']:.2f}")
    click.echo(f"energy  {document['energy']:.2f}")
    for drive, told in document["drives"].items():
        click.echo(f"{drive:<12} {told['level']:.2f}  {told['words']}")
    for one in document["relationships"]:
        numbers = f"warmth {one['warmth']:+.2f} trust {one['trust']:+.2f} tension {one['tension']:.2f}"
        click.echo(f"{safe(one['name'] or one['person'])}: {one['words']}  {numbers}")
    for arc in document["arcs"]:
        click.echo(f"{safe(arc['label'])}: {arc['words'] or 'nearly forgotten'}  {arc['intensity']:.2f}")
    for aim in document["intentions"]:
        click.echo(f"means to {aim['type']} {safe(aim['target'])}: {safe(aim['description'])}")


@psyche.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write an SVG picture to this file.")
@click.option("--days", type=click.FloatRange(0.01, 3660), default=DAYS, show_default=True, help="How far back.")
@json_option
def plot(out: Path | None, days: float, *, as_json: bool) -> None:
    """Draw how the numbers moved, with the turns that moved them: an SVG, or lines in the terminal."""
    from claudius.psyche.plot import moves_of, sparks
    from claudius.psyche.plot import plot as draw

    now = _now()
    from_s, to_s = (now - timedelta(days=days)).timestamp(), now.timestamp()
    with records(Home.of(os.environ)) as kept:
        rows = kept.psyche_moves(now - timedelta(days=days))
        names = {row["person"]: row["name"] for row in kept.people()}
        names |= {arc.arc: arc.label for arc in kept.psyche()[0].arcs}
    inside = [row for row in rows if row["inputs"]["at_s"] >= from_s]
    if inside and rows[0] is inside[0]:  # nothing changed before: the plot begins with the soul's first moment
        first_s = inside[0]["inputs"]["at_s"]
        from_s = max(from_s, first_s - max(60.0, (to_s - first_s) / 30))
    if as_json:
        print_json(inside)
        return
    moves = moves_of(rows)
    if out:
        out.write_text(draw(moves, names, from_s, to_s, _zone()), "utf-8")
        click.echo(f"{out}: {len(inside)} turn(s)")
        return
    for line in sparks(moves, names, from_s, to_s):
        click.echo(safe(line))
    if not inside:
        click.echo("nothing moved in that time")


def _zone() -> tzinfo:
    return datetime.now().astimezone().tzinfo or UTC


def _now() -> datetime:
    given = os.environ.get("CLAUDIUS_CLOCK", "")
    return max(datetime.now(UTC), datetime.fromisoformat(given)) if given else datetime.now(UTC)
