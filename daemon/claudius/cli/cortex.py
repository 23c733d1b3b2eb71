"""`claudius cortex`: show the cortex's beliefs and cycles, start a cycle, and let the owner change beliefs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from claudius.cli.output import json_option, print_result, safe
from claudius.cli.records import edit, noted, records
from claudius.cli.session import wake_and_ask
from claudius.errors import ClaudiusError, TryAgain
from claudius.home import Home
from claudius.ledger_types import OwnersHand


@click.group()
def cortex() -> None:
    """What the second mind believes, when it reflected, and what you decide about that."""


@cortex.command()
@json_option
def beliefs(*, as_json: bool) -> None:
    """Print what it believes now, and how long each belief will last."""
    now = _now()
    with records() as kept:
        found = kept.beliefs(now)
    last = found["last_reflection_at"]
    lines = [f"last reflection: {_span(now - last)} ago" if last else "it has not reflected yet"]
    for one in found["beliefs"]:
        whom, life = f" ({one['peer']})" if one["peer"] else "", one["state"]
        if life == "active":
            life = f"{_span(now - one['created_at'])} ago, {_span(one['expires_at'] - now)} left"
        lines.append(f"{safe(one['key'])}{whom}: {safe(one['value'])}  [{life}]")
    print_result(found, lines, as_json=as_json)


@cortex.command()
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="How many cycles.")
@json_option
def history(count: int, *, as_json: bool) -> None:
    """Print its last cycles, newest first: what started each, and its outcome."""
    with records() as kept:
        found = kept.reflections(count)
    lines = [line for one in found for line in _cycle(one)]
    print_result(found, lines or ["it has not reflected yet"], as_json=as_json)


@cortex.command()
@json_option
def reflect(*, as_json: bool) -> None:
    """Run one cycle now and print its record."""
    answer = asyncio.run(wake_and_ask(Home.of(os.environ), "reflect"))
    if not answer:
        raise TryAgain("the soul stopped while it was reflecting: try again")
    if answer["event"] == "error":
        raise ClaudiusError(str(answer["message"]))
    print_result(answer["record"], _cycle(answer["record"]), as_json=as_json)


@cortex.command()
@click.argument("key")
@json_option
def pin(key: str, *, as_json: bool) -> None:
    """Keep a belief for good: it does not expire, and no newer one displaces it."""
    _change(key, "pin", "pinned", as_json=as_json)


@cortex.command()
@click.argument("key")
@json_option
def dispute(key: str, *, as_json: bool) -> None:
    """Reject a belief: it is shown nowhere, and the cortex is told that you rejected it."""
    _change(key, "dispute", "disputed", as_json=as_json)


@cortex.command()
@click.argument("key")
@json_option
def delete(key: str, *, as_json: bool) -> None:
    """Delete a belief; the cortex may form it again."""
    _change(key, "delete", "deleted", as_json=as_json)


def _change(key: str, hand: OwnersHand, done: str, *, as_json: bool) -> None:
    with records() as kept:
        known = {one["key"] for one in kept.beliefs(_now())["beliefs"]}
    noted("belief", hand)  # not its key, which a model chose
    if key not in known or not edit(lambda store: store.ledger.set_belief(key, hand)):
        raise ClaudiusError(f"there is no belief {key!r}: `claudius cortex beliefs` lists them")
    print_result({"key": key, "state": done}, [f"{key} is {done}"], as_json=as_json)


def _now() -> datetime:
    """Return the same clock time as the daemon's: `CLAUDIUS_CLOCK` sets where it starts."""
    given = os.environ.get("CLAUDIUS_CLOCK", "")
    return datetime.fromisoformat(given) if given else datetime.now(UTC)


def _cycle(one: Mapping[str, Any]) -> Iterator[str]:
    at = one["at"] if isinstance(one["at"], str) else f"{one['at']:%Y-%m-%d %H:%M}"
    counts = f"{one['assessments']} assessed, {one['beliefs']} beliefs, {one['directives']} directives"
    yield f"{one['cycle']}  {at}  {one['trigger']}  {one['duration_s']:.1f} s  {counts}  {one['outcome']}"
    if one["summary"]:
        yield f"   {safe(one['summary'])}"


def _span(span: timedelta) -> str:
    minutes = max(0, int(span.total_seconds() // 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} d"
