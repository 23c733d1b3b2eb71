"""`claudius conversations`: list conversations and show what was said in them."""

from __future__ import annotations

import os

import click

from claudius.cli.output import json_option, print_json, safe
from claudius.cli.records import records
from claudius.errors import ClaudiusError
from claudius.home import Home

_SHORT = {
    "userMessage": "said",
    "internalMonologue": "thought",
    "externalDialog": "answered",
    "mentalQuery": "judged",
    "perception": "noticed",
    "daimonSpeech": "was joined by a daimon",
}


@click.group()
def conversations() -> None:
    """What was said, conversation by conversation."""


@conversations.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List conversations, latest first."""
    with records(Home.of(os.environ)) as kept:
        found = kept.conversations()
    if as_json:
        print_json(found)
        return
    for row in found:
        click.echo(f"{row['conversation']}  {row['entries']} entries  {row['process']}  {row['last_at']}")
    if not found:
        click.echo("nothing was said yet: `claudius chat`")


@conversations.command()
@click.argument("conversation")
@json_option
def show(conversation: str, *, as_json: bool) -> None:
    """Show one conversation, oldest first, thoughts included."""
    with records(Home.of(os.environ)) as kept:
        found = kept.conversation(conversation)
    if found is None:
        raise ClaudiusError(f"no conversation {conversation!r}: `claudius conversations list` names them")
    if as_json:
        print_json(found)
        return
    click.secho(f"{found['conversation']}  audience {found['audience']}  in {found['process']}", dim=True)
    for entry in found["entries"]:
        is_daimons = entry["entry_type"] == "daimonSpeech"
        who = (
            not is_daimons and entry["person"]
        ) or f"Claudius {entry['verb'] or _SHORT.get(entry['entry_type'], entry['entry_type'])}"
        spoken = entry["entry_type"] in ("userMessage", "externalDialog")
        click.secho(f"{entry['at']}  {safe(who)}: ", nl=False, bold=spoken, dim=not spoken)
        click.secho(safe(entry["content"]), dim=not spoken)
