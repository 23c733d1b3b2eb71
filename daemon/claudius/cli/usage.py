"""`claudius usage`: report tokens and dollars used."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any, Literal

import click

from claudius.cli.output import json_option, print_json
from claudius.cli.records import records
from claudius.cognition.mind import stage
from claudius.config import load
from claudius.home import Home


@click.command()
@click.option(
    "--by",
    type=click.Choice(["day", "model", "person", "conversation", "job"]),
    default="day",
    show_default=True,
    help="What each row counts.",
)
@json_option
def usage(by: Literal["day", "model", "person", "conversation", "job"], *, as_json: bool) -> None:
    """Count tokens and dollars."""
    home = Home.of(os.environ)
    limit = load(home, os.environ).config.budget.daily_usd
    with records(home) as kept:
        found: dict[str, Any] = dict(kept.usage(by))
        today = datetime.now(UTC).date().isoformat()
        spent = next((row["cost_usd"] for row in kept.usage("day")["rows"] if row["day"] == today), None) or 0.0
    found["budget"] = {"limit_usd": limit or None, "spent_usd": spent, "stage": stage(limit, spent).value}
    if as_json:
        print_json(found)
        return
    for row in found["rows"]:
        click.echo(_line(str(row[by]), row))
    click.echo(_line("total", found["total"]))
    if limit:
        click.echo(f"today: ${spent:.4f} of ${limit:.2f} ({found['budget']['stage']})")


def _line(name: str, row: dict[str, Any]) -> str:
    cost = "price unknown" if row["cost_usd"] is None else f"${row['cost_usd']:.4f}"
    read = row["cache_read_tokens"]
    return f"{name}: {row['turns']} turns, {row['input_tokens']} in + {read} cached, {row['output_tokens']} out, {cost}"
