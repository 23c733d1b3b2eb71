"""`claudius state` and `claudius psyche`: the soul's state in words, and the psyche's numbers below it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_json, print_result, safe
from claudius.cognition.reply.parser import read_state
from claudius.errors import UsageProblem
from claudius.home import Home
from claudius.perception import SELF, private
from claudius.recollection import MOODS, STATE_DEFAULTS, StateKey
from claudius.reports import feeling, life
from claudius.reports.opened import edit, noted


@click.group(cls=Group)
def state() -> None:
    """The soul's own state of mind."""


@state.command("show")
@click.option("--all", "every", is_flag=True, help="Every audience's values, not only the newest.")
@json_option
def show_state(*, every: bool, as_json: bool) -> None:
    """Print the soul's state: per key the newest value."""
    found = feeling.state(Home.of(os.environ), every_audience=every)
    lines = []
    for key, default in STATE_DEFAULTS.items():
        rows = found.get(key) or []
        rows = rows if isinstance(rows, list) else [rows]
        lines += [f"{key} = {safe(row['value'])}  ({row['audience']}, {row['updated_at']})" for row in rows]
        lines += [] if rows else [f"{key} = {default}  (default)"]
    print_result(found, lines, as_json=as_json)


@state.command("set")
@click.argument("key", type=click.Choice([key.value for key in StateKey], case_sensitive=False))
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set one value by hand."""
    from claudius.adapters.terminal import own_person

    is_mood = key == StateKey.EMOTIONAL_STATE
    if is_mood and value not in MOODS:
        raise UsageProblem(f"{value!r} is not a mood: choose one of {', '.join(MOODS)}")
    value = read_state(f"{key}: {value}").get(key, "")
    home = Home.of(os.environ)
    home.create()
    audience = SELF if is_mood else private(own_person())
    noted(home, "state", key)
    edit(home, lambda store: store.documents.set_state(key, value, audience, datetime.now(UTC)))
    click.echo(f"{key} = {value}")


@click.group(cls=Group)
def psyche() -> None:
    """The numbers below language: mood, needs, energy, relations."""


@psyche.command()
@json_option
def show(*, as_json: bool) -> None:
    """Print the numbers as they are now, each with its words."""
    document = feeling.psyche(Home.of(os.environ), life.clock_now())
    print_result(document, _numbers(document), as_json=as_json)


def _numbers(document: Mapping[str, Any]) -> Iterator[str]:
    mood = document["mood"]
    yield f"mood    {mood['words']} ({document['emotional_state']})  {mood['valence']:+.2f} {mood['arousal']:.2f}"
    yield f"energy  {document['energy']:.2f}"
    for drive, told in document["drives"].items():
        yield f"{drive:<12} {told['level']:.2f}  {told['words']}"
    for one in document["relationships"]:
        numbers = f"warmth {one['warmth']:+.2f} trust {one['trust']:+.2f} tension {one['tension']:.2f}"
        yield f"{safe(one['name'] or one['person'])}: {one['words']}  {numbers}"
    for arc in document["arcs"]:
        yield f"{safe(arc['label'])}: {arc['words'] or 'nearly forgotten'}  {arc['intensity']:.2f}"
    for aim in document["intentions"]:
        yield f"means to {aim['type']} {safe(aim['target'])}: {safe(aim['description'])}"


@psyche.command()
@click.option("--days", type=click.FloatRange(0.01, 3660), default=7, show_default=True, help="How far back.")
@click.option("--px", type=click.IntRange(2, 2000), default=800, help="The width that it is drawn in.")
@json_option
def plot(days: float, px: int, *, as_json: bool) -> None:
    """Print as JSON how the numbers changed, with the turns that changed them; the console draws it."""
    if not as_json:
        raise UsageProblem("`claudius console` draws it now, under Life; with --json its numbers are printed")
    now = life.clock_now()
    print_json(life.life(Home.of(os.environ), now - timedelta(days=days), now, px))
