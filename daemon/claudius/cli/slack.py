"""`claudius slack`: print the app manifest that Slack needs."""

from __future__ import annotations

import json

import click

from claudius.adapters.slack.manifest import manifest as manifest_of
from claudius.errors import UsageProblem

NAME_CHARS = 35
"""The longest app name that Slack allows."""


@click.group()
def slack() -> None:
    """Set Slack up; docs/slack.md leads through it."""


@slack.command()
@click.option("--name", default="Claudius", show_default=True, help="What the app is called in Slack.")
@click.option("--json", "as_json", is_flag=True, help="Print it in one line; it is JSON anyhow.")
def manifest(name: str, *, as_json: bool) -> None:
    """Print the app manifest that Slack's form takes."""
    if not (name.strip() and name.isprintable() and len(name) <= NAME_CHARS):
        raise UsageProblem(f"--name: {name!r} cannot be an app's name: 1 to {NAME_CHARS} printable characters")
    click.echo(json.dumps(manifest_of(name.strip()), ensure_ascii=False, indent=None if as_json else 2))
