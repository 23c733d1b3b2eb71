"""`claudius schedule`: what the soul has planned to notice later."""

from __future__ import annotations

import asyncio
import os

import click

from claudius.cli.output import json_option, print_json, safe
from claudius.cli.records import records
from claudius.errors import ClaudiusError
from claudius.home import Home


@click.group()
def schedule() -> None:
    """What the soul has planned for later."""


@schedule.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List plans, soonest first; those that came too late, too."""
    with records(Home.of(os.environ)) as kept:
        found = kept.plans()
    if as_json:
        print_json(found)
        return
    for row in found:
        late = "  lapsed: it came too late" if row["lapsed_at"] else ""
        click.echo(
            f"{row['id']}  {row['due_at']}  {row['conversation']}  {row['process'] or '-'}  {safe(row['text'])}{late}"
        )
    if not found:
        click.echo("nothing is planned")


@schedule.command()
@click.argument("plan", metavar="ID", type=int)
def cancel(plan: int) -> None:
    """Take a plan back."""
    if not asyncio.run(_cancel(Home.of(os.environ), plan)):
        raise ClaudiusError(f"no plan {plan}: `claudius schedule list` names them")
    click.echo(f"cancelled: {plan}")


async def _cancel(home: Home, plan: int) -> bool:
    from claudius.memory.sqlite import SqliteStore

    if not home.database.exists():
        return False
    store = SqliteStore(home.database)
    await store.open()
    try:
        return await store.cancel(plan)
    finally:
        await store.close(clean=False)
