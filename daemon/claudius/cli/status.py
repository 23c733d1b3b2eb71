"""`claudius status`, `usage` and `stream`: what is running and waits, what it cost, and what happens right now."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import click

from claudius.cli.output import clock, json_option, print_result, safe, table
from claudius.errors import EXIT_FAILED, TryAgain
from claudius.home import Home
from claudius.provider import dollars
from claudius.reports import status as reports

COLOURS = {
    "hear": "cyan",
    "think": "bright_black",
    "gate": "yellow",
    "transition": "magenta",
    "whisper": "blue",
    "speak": "green",
    "error": "red",
}


@click.command()
@json_option
def status(*, as_json: bool) -> int:
    """Show what is running, who speaks, what waits, what failed last and how to mend it, and what is off by default.

    The exit code is 1 if nothing is running.
    """
    document = reports.status(Home.of(os.environ))
    print_result(document, _status(document), as_json=as_json)
    return 0 if document["running"] else EXIT_FAILED


def _status(document: dict[str, Any]) -> Iterator[str]:
    if document["running"]:
        yield from _life(document)
    else:
        yield f"asleep: nothing is running for {document['home']} (`claudius chat` or `claudius daemon start` wakes it)"
    voice = document["provider"]
    yield from _voice(voice)
    wrong = voice.get("last_error") or document["last_failure"]
    if wrong:
        at = f" ({clock(document['last_failure']['at'])})" if document["last_failure"] else ""
        yield click.style(safe(f"last failure{at}: {wrong['detail']}"), fg="yellow")
        yield safe(f"  {wrong['fix']}")
    if document["last_failure"]:
        yield f"  its turn: claudius why {document['last_failure']['turn']}"
    for adapter in document["adapters"]:
        heard = adapter["last_inbound_s"]
        last = "never heard" if heard is None else f"last heard {heard:.0f} s ago"
        ears = "connected" if adapter["connected"] else "not connected"
        detail = f"; {adapter['detail']}" if adapter.get("detail") else ""
        yield f"{adapter['name']}: {ears}, {last}{detail}"
    health = document.get("health") or {"problems": ()}
    for problem in health["problems"]:
        yield f"problem: {problem['subject'] or problem['kind']}: {problem['detail']}"
    yield from _waiting(document)
    if document["store"] == "postgres":
        yield from _served(document)
    if recall := document.get("recall"):
        how = (
            "only by its words: the embedder failed (the log says why)"
            if recall["is_off"]
            else (f"by meaning, {recall['done']:,} of {recall['total']:,} messages so far")
        )
        yield f"memory: found {how}"
    for offer in document["offers"]:
        what = re.split("[;:]", offer["what"])[0]
        yield f"off: {what} (`{offer['command']}`)"


def _waiting(document: dict[str, Any]) -> Iterator[str]:
    if document["paused"]:
        yield "paused: nobody but the terminal is answered (`claudius config set runtime.paused false`)"
    inbox, outbox, turns = document["inbox"], document["outbox"], document["turns"]
    yield f"waiting: {inbox['pending']} to think, {outbox['pending']} to say"
    if inbox["dead"] or outbox["failed"]:
        yield f"given up: {inbox['dead']} heard, {outbox['failed']} said (`claudius doctor` says why)"
    yield f"turns: {turns['total']}, {turns['today']} today"


def _voice(voice: dict[str, Any]) -> Iterator[str]:
    yield (
        f"voice: {voice.get('name')} {voice.get('model') or ''}".rstrip()
        + reports.model_words(voice)
        + reports.slot_words(voice)
    )
    if here := voice.get("home"):
        from claudius.reports.home_model import speed_words

        yield safe(f"  {here['model']} is {here['state']}; {speed_words(here['tokens_per_s'])}")


def _served(document: dict[str, Any]) -> Iterator[str]:
    server, at_work = document["server"], [one for one in document["workers"] if one["state"] == "at work"]
    lanes, standby = server["lanes"], f", standby in sync: {server['standby']}" if server["standby"] else ""
    trip = f", round trip {server['round_trip_ms']} ms" if server["round_trip_ms"] is not None else ""
    yield f"PostgreSQL {server['version']}{trip}{standby}"
    waits = f", the oldest for {lanes['oldest_wait_s']:.0f} s" if lanes["ready"] else ""
    yield f"lanes: {lanes['held']} held, {lanes['ready']} wait for a process{waits}"
    for one in at_work:
        yield safe(f"worker: {one['host']} {one['pid']}, {' '.join(one['holds']) or 'no role'}, {one['lanes']} lanes")
    if document["soul"]:
        said = f"soul: {document['soul']['sha256'][:12]}, pushed from {document['soul']['host']}"
        yield safe(f"{said}; this home's files differ: `claudius soul push`" if document["soul"]["overrules"] else said)
    if document["archive_lag"]:
        yield f"archive: {reports.waiting_for_git(document['archive_lag'])}"


def _life(document: dict[str, Any]) -> Iterator[str]:
    if document["brake"]:
        yield f"held back: process {document['pid']}, home {document['home']}"
        yield f"{document['brake']['message']} ({document['brake']['wait_s']:.0f} s left)"
        return
    yield f"awake: process {document['pid']}, up {document['uptime_s']:.0f} s, home {document['home']}"
    if document["careful"]:
        yield "careful: the last process did not end cleanly; one turn at a time until its work is done"
    if document["disk"]["problem"]:
        yield f"nothing new is accepted: {document['disk']['problem']}"
    if lent := document.get("bridge"):
        yield safe(f"lent: {lent['name']} is at the bench since {clock(lent['since'])}; {lent['waiting']} wait there")


@click.command()
@click.option(
    "--by",
    type=click.Choice(["day", "model", "person", "conversation", "job"]),
    default="day",
    show_default=True,
    help="What each row counts.",
)
@json_option
def usage(by: reports.By, *, as_json: bool) -> None:
    """Count tokens and dollars; what no provider counted is estimated.

    "in" is all that was read: of it "cached" came from the provider's cache, and "written" was put into it. `self` is
    the soul itself, `erased` whoever was erased.
    """
    found = reports.usage(Home.of(os.environ), by)
    heads = (by, "turns", "in", "cached", "written", "out", "cost")
    counted = [*((str(row[by]), row) for row in found["rows"]), ("total", found["total"])]
    lines = [*table(heads, (_usage_cells(name, row) for name, row in counted), right=heads[1:])]
    lines += [
        f"{one['name']}: {dollars(one['spent_usd'])} of ${one['limit_usd']:.2f} ({one['stage']})"
        for one in found["caps"]
        if one["limit_usd"]
    ]
    print_result(found, lines, as_json=as_json)


def _usage_cells(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    cached, written = row["cache_read_tokens"] or 0, row["cache_write_tokens"] or 0
    read = (row["input_tokens"] or 0) + cached + written
    counts = (row["turns"], read, cached, written, row["output_tokens"] or 0)
    cost = dollars(row["cost_usd"], row["unpriced"]) if row["calls"] else ""
    return (safe(name), *(f"{count:,}" for count in counts), cost)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--count",
    type=click.IntRange(1, 2**31 - 1),
    default=None,
    help="End after this many events; pieces of a thought do not count.",
)
def stream(*, as_json: bool, count: int | None) -> None:
    """Watch the running soul hear, think, decide, feel and speak; private thoughts, too.

    With --json, `{"at", "kind", "conversation", "turn", "text"}`: hear, think, gate, transition, whisper, speak, error,
    tool.ask, tool.start, tool.end; and while the model still writes, think.delta for each piece of a private text and
    think.void where the pieces so far do not count, both with "step" and "verb".
    """
    asyncio.run(_show(Home.of(os.environ), as_json=as_json, count=count))


async def _show(home: Home, *, as_json: bool, count: int | None) -> None:
    shown = 0
    async for event in _events(home, deltas=as_json):
        click.echo(json.dumps(event) if as_json else _event_line(event))
        shown += not str(event["kind"]).startswith("think.")
        if shown == count:
            return


async def _events(home: Home, *, deltas: bool) -> AsyncIterator[dict[str, Any]]:
    from claudius.runtime.control import connect

    try:
        async with connect(home.socket) as connection:
            await connection.send({"op": "stream", "deltas": deltas, "typed": deltas})
            first = await connection.receive()
            if not first or first.get("event") != "streaming":
                raise TryAgain("the running process has no stream to show: `claudius daemon restart`")
            click.echo("watching: Ctrl-C ends it", err=True)
            while event := await connection.receive():
                yield event
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise TryAgain("nothing is running here that could be watched: `claudius daemon start`") from error


def _event_line(event: dict[str, Any]) -> str:
    kind = str(event["kind"])
    head = click.style(f"{str(event['at'])[11:19]} {kind:<10}", fg=COLOURS.get(kind), bold=kind == "speak")
    where = f"{event['conversation']} {event['turn']}".strip()
    return f"{head} {safe(' '.join(str(event['text']).split()))}  {click.style(where, dim=True)}"
