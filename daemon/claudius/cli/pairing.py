"""`claudius pairing`: list, approve and revoke strangers who ask to be let in. This is never done from chat."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from claudius.cli.output import json_option, print_json, safe
from claudius.cli.session import ask
from claudius.errors import ClaudiusError
from claudius.home import Home


@click.group()
def pairing() -> None:
    """Let strangers in who write to the soul directly, or let them in no longer."""


@pairing.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List who asks to be let in, each with the code that the network showed to them alone."""
    answer = asyncio.run(ask(Home.of(os.environ), "pairing_list"))
    open_ = answer["open"] if answer else []
    if as_json:
        print_json(open_)
        return
    for one in open_:
        click.echo(f"{one['code']}  {one['person']}  {safe(one['name'])}  until {one['expires_at']}")
    for person in answer["paired"] if answer else ():
        click.echo(f"let in:   {person}")
    if not answer:
        click.echo("no daemon runs: requests live in its memory alone")
    elif not open_:
        click.echo("nobody asks to be let in")


@pairing.command()
@click.argument("code")
def approve(code: str) -> None:
    """Let in whoever was shown CODE."""
    answer = _asked("pairing_approve", code=code)
    click.echo(f"{answer['person']} ({safe(str(answer['name']))}) is let in")


@pairing.command()
@click.argument("person")
def revoke(person: str) -> None:
    """Let PERSON in no longer."""
    _asked("pairing_revoke", person=person)
    click.echo(f"{person} is let in no longer")


def _asked(op: str, **words: str) -> dict[str, Any]:
    answer = asyncio.run(ask(Home.of(os.environ), op, **words))
    if answer is None:
        raise ClaudiusError("no daemon runs, and only it knows who asks: start it with `claudius daemon start`")
    if answer.get("event") == "error":
        raise ClaudiusError(str(answer["message"]))
    return answer
