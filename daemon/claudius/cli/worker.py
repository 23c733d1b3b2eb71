"""`claudius worker` and `claudius workers`: several processes think for one soul, on a database server they share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from claudius.cli.output import json_option, print_result, table
from claudius.errors import UsageProblem
from claudius.home import Home


@click.command()
@click.option("--roles", default="", help="What it may do, with commas; else what `worker.roles` says, or lanes.")
def worker(*, roles: str) -> None:
    """Think and speak beside the daemon, on this or another machine. Ends on SIGTERM or Ctrl-C.

    It listens to nobody unless `--roles` or `worker.roles` says so. It needs `store.url = postgres://…`, and a home of
    its own with the same settings and tokens.
    """
    import asyncio
    import re

    from claudius.config.tables import ROLE
    from claudius.runtime.life import Awake, HomeLock, Pause, Starter, live

    home, wanted = Home.of(os.environ), tuple(filter(None, roles.replace(" ", "").split(",")))
    for role in wanted:
        if not re.fullmatch(ROLE, role):
            raise UsageProblem(
                f"{role!r} is no role: all, lanes, listen, listen/slack, listen/discord, clock, cortex or archive"
            )

    async def waking(lock: HomeLock, pause: Pause) -> Awake:
        from claudius.compose import compose
        from claudius.config.load import load

        kept = load(home, os.environ).config.worker.roles
        roles = wanted or (("lanes",) if "all" in kept else kept)
        return await compose(home, networks=True, lock=lock, pause=pause, roles=roles)

    asyncio.run(live(home, waking, starter=Starter(os.environ)))


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def workers(context: click.Context, *, as_json: bool) -> None:
    """List the processes that take turns of one soul: where each runs, what it does, and how many lanes it holds."""
    if context.invoked_subcommand:
        return
    from claudius.reports.opened import read
    from claudius.reports.status import workers_of

    home = Home.of(os.environ)
    found = read(home, workers_of)
    print_result(found, _lines(found, home), as_json=as_json)


@workers.command()
@click.argument("name")
def drain(name: str) -> None:
    """Let one process end its turns and leave, within a third of `worker.lease_s`; another takes what comes after."""
    from claudius.reports import status as reports

    if not reports.drain(Home.of(os.environ), name):
        raise UsageProblem(f"no process {name} is at work: `claudius workers` lists them")
    click.echo(f"{name} ends its turns and leaves")


def _lines(found: list[dict[str, Any]], home: Home) -> Iterator[str]:
    from claudius.memory.opening import place_of
    from claudius.reports.server_checks import closed

    if line := closed(home):
        yield line
    elif not place_of(home).is_postgres:
        yield "one process at a time takes turns of this home: `store.url` names no database server"
    elif not found:
        yield "nobody has begun at this server yet"
    if not found:
        return
    yield from table(
        ("worker", "host", "pid", "may", "has", "lanes", "since", "last seen", "state"),
        [
            (one["worker"], one["host"], str(one["pid"]), one["roles"], " ".join(one["holds"]) or "–",
             str(one["lanes"]), f"{one['up_s']:.0f} s ago", f"{one['seen_s']:.0f} s ago", one["state"])
            for one in found
        ],
    )  # fmt: skip
    souls = sorted({one["soul"] for one in found if one["state"] == "at work" and one["soul"]})
    if len(souls) > 1:
        yield f"they think with different souls ({', '.join(souls)}): `claudius doctor` says who"
