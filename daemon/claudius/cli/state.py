"""What goes on in the soul: `claudius state`, `psyche`, `process`, `schedule` and `daimon`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_json, print_result, safe
from claudius.cognition.steps import read_state
from claudius.config.schema import KOTHAR
from claudius.errors import ClaudiusError, TryAgain, UsageProblem
from claudius.home import Home
from claudius.perception import SELF, private
from claudius.receipts import repeated
from claudius.recollection import MOODS, STATE_DEFAULTS, StateKey
from claudius.reports import clock, life
from claudius.reports import soul as soul_reports
from claudius.reports.opened import edit, noted, read
from claudius.runtime.control import ControlConnection, connect


@click.group(cls=Group)
def state() -> None:
    """The soul's own state of mind."""


@state.command("show")
@click.option("--all", "every", is_flag=True, help="Every audience's values, not only the newest.")
@json_option
def show_state(*, every: bool, as_json: bool) -> None:
    """Print the soul's state: per key the newest value."""
    found = read(Home.of(os.environ), lambda kept: kept.state(every_audience=every))
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


@psyche.command("show")
@json_option
def show_numbers(*, as_json: bool) -> None:
    """Print the numbers as they are now, each with its words."""
    document = life.psyche(Home.of(os.environ), life.clock_now())
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
    for one in document["appraisals"]:
        yield f"{one['at']}  {one['kind']}, {one['strength']}, of {safe(one['person'])}"


@click.group(cls=Group)
def process() -> None:
    """Its mental processes, and where each conversation stands."""


@process.command("list")
@json_option
def list_processes(*, as_json: bool) -> None:
    """List the processes, shipped ones first."""
    found = soul_reports.processes(Home.of(os.environ))
    lines = []
    for row in found:
        steps = f"  {', '.join(row['steps']) or 'a function'}; next: {', '.join(row['next']) or '-'}"
        lines += [f"{row['name']}: {row['description']}", click.style(steps, dim=True)]
    print_result(found, lines, as_json=as_json)


@process.command("show")
@click.argument("name")
@json_option
def show_process(name: str, *, as_json: bool) -> None:
    """Show one process, and the conversations that are in it now."""
    document = soul_reports.process(Home.of(os.environ), name)
    print_result(document, [f"{key}: {value}" for key, value in document.items()], as_json=as_json)


@process.command()
@json_option
def graph(*, as_json: bool) -> None:
    """Print as JSON the graph of the processes, a Mermaid state diagram."""
    if not as_json:
        raise UsageProblem("`claudius process list` says which follows which; --json prints the graph")
    print_json({"mermaid": mermaid(soul_reports.processes(Home.of(os.environ)))})


def mermaid(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the graph as a Mermaid state diagram. Pure."""
    lines = ["stateDiagram-v2", "  [*] --> greeting: never met", "  [*] --> main_process"]
    lines += [f"  {row['name']} --> {to}" for row in rows for to in row["next"]]
    lines += [f"  state {row['name']}" for row in rows if not row["next"]]
    return "\n".join(lines) + "\n"


@click.group(cls=Group)
def schedule() -> None:
    """What the soul has planned for later."""


@schedule.command("list")
@json_option
def list_plans(*, as_json: bool) -> None:
    """List plans and the clock's own jobs in local time, soonest first; also plans that lapsed."""
    found = clock.schedule(Home.of(os.environ), datetime.now(UTC))
    lines = []
    for row in found:
        late = "  lapsed: it came too late" if row["lapsed_at"] else ""
        late += f"  waits for {row['waits_for']}" if row["waits_for"] else ""
        place, process = row["conversation"] or row["kind"], row["process"] or "-"
        at = datetime.fromisoformat(row["due_local"])
        again = f"  {repeated(row['repeat'])}" if row["repeat"] else ""
        lines.append(f"{row['id']}  {at:%a %Y-%m-%d %H:%M}{again}  {place}  {process}  {safe(row['what'])}{late}")
    print_result(found, lines or ["nothing is planned"], as_json=as_json)


@schedule.command()
@click.argument("plan", metavar="ID")
def cancel(plan: str) -> None:
    """Cancel a plan."""
    clock.cancel(Home.of(os.environ), plan)
    click.echo(f"cancelled: {plan}")


@click.group(cls=Group)
def daimon() -> None:
    """Who whispers to the soul."""


@daimon.command("list")
@click.option("--whispers", is_flag=True, help="What was whispered, newest first, and what became of each.")
@click.option("-n", "most", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many whispers.")
@json_option
def list_daimons(most: int, *, whispers: bool, as_json: bool) -> None:
    """List daimons: on or off, how each speaks, when it last did, and why it is paused."""
    if whispers:
        said = read(Home.of(os.environ), lambda kept: kept.whispers(most))
        fates = [f"felt by turn {one['used_turn']}" if one["used_turn"] else one["state"] for one in said]
        told = [
            f"{one['at'][:16]}  {one['daimon']}: {safe(one['text'])}  [{fate}]"
            for one, fate in zip(said, fates, strict=True)
        ]
        print_result(said, told or ["nobody has whispered yet"], as_json=as_json)
        return
    found = clock.daimons(Home.of(os.environ), datetime.now(UTC))
    lines = []
    for row in found:
        state = f"on, {row['mode']}, over {row['transport']}" if row["enabled"] else "off"
        word = "rests" if row["rests_until"] else "lately"
        rests = f"; {word}: {safe(row['problem'])}" if row["problem"] else ""
        lines.append(f"{row['name']}  {state}  last whisper: {row['last_whisper_at'] or 'never'}{rests}")
    print_result(found, lines, as_json=as_json)


@daimon.command()
@click.argument("name", default=KOTHAR)
@json_option
def whisper(name: str, *, as_json: bool) -> int:
    """Ask a daimon now; what it whispers is felt at the next turn."""
    record = asyncio.run(clock.whisper(Home.of(os.environ), name))
    line = safe(record["whisper"]) or f"{name} says nothing: {safe(record['reason'])}"
    print_result(record, [line], as_json=as_json)
    return 0 if record["stored"] or record["reason"] == "it is silent" else 1


@daimon.command()
@click.argument("name")
@click.option("--turns", type=click.IntRange(1, 5), default=4, show_default=True, help="How often each side speaks.")
@click.option("--topic", default="", help="What to speak of.")
@json_option
def converse(name: str, turns: int, topic: str, *, as_json: bool) -> None:
    """Talk with another soul, shown as it happens; `!stop` and Enter ends it.

    Each side hears the other as a bot and is shown nothing of any person's. The talk is kept as a conversation.
    """
    asked = {"op": "converse", "name": name, "turns": turns, "topic": topic}
    has_keyboard = os.isatty(0) or Path("/dev/stdin").is_fifo()  # a file is none, nor is /dev/null
    asyncio.run(_converse(Home.of(os.environ), asked, as_json=as_json, has_keyboard=has_keyboard))


async def _converse(home: Home, asked: Mapping[str, Any], *, as_json: bool, has_keyboard: bool) -> None:
    try:
        async with connect(home.socket) as connection:
            await connection.send(asked)
            stopping = asyncio.create_task(_stopped(connection) if has_keyboard else asyncio.sleep(0), name="!stop")
            while frame := await connection.receive():
                if frame["event"] == "error":
                    raise ClaudiusError(str(frame["message"]))
                line = f"{frame['by'] or 'it'}: {frame['text']}" if frame["event"] == "said" else frame["reason"]
                print_result(frame, [safe(line)], as_json=as_json)
            stopping.cancel()
    except (FileNotFoundError, ConnectionError) as error:
        raise TryAgain("no soul is awake: `claudius daemon start`") from error


async def _stopped(connection: ControlConnection) -> None:
    """End the talk once `!stop` is typed."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip() == b"!stop":
            await connection.send({"op": "stop"})


@daimon.command()
@click.argument("name", default=KOTHAR)
@click.option("--mode", type=click.Choice(["whisper", "speak", "both", "off"]), default="off", help="Another mode.")
def mute(name: str, mode: str) -> None:
    """Mute a daimon everywhere until you change it; with --mode, set another mode."""
    clock.set_mode(Home.of(os.environ), name, mode)
    click.echo(f"{name}: {mode}")
