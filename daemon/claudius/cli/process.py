"""`claudius process`: show the soul's mental processes, their transitions, and each conversation's place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_json, print_result
from claudius.errors import UsageProblem
from claudius.home import Home
from claudius.reports import soul as reports


@click.group(cls=Group)
def process() -> None:
    """Its mental processes, and where each conversation stands."""


@process.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the processes, shipped ones first."""
    found = reports.processes(Home.of(os.environ))
    lines = []
    for row in found:
        steps = f"  {', '.join(row['steps']) or 'a function'}; next: {', '.join(row['next']) or '-'}"
        lines += [f"{row['name']}: {row['description']}", click.style(steps, dim=True)]
    print_result(found, lines, as_json=as_json)


@process.command()
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Show one process, and the conversations that are in it now."""
    document = reports.process(Home.of(os.environ), name)
    print_result(document, [f"{key}: {value}" for key, value in document.items()], as_json=as_json)


@process.command()
@json_option
def graph(*, as_json: bool) -> None:
    """Print as JSON the graph of the processes, a Mermaid state diagram."""
    if not as_json:
        raise UsageProblem("`claudius process list` says which follows which; --json prints the graph")
    print_json({"mermaid": mermaid(reports.processes(Home.of(os.environ)))})


def mermaid(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the graph as a Mermaid state diagram. Pure."""
    lines = ["stateDiagram-v2", "  [*] --> greeting: never met", "  [*] --> main_process"]
    lines += [f"  {row['name']} --> {to}" for row in rows for to in row["next"]]
    lines += [f"  state {row['name']}" for row in rows if not row["next"]]
    return "\n".join(lines) + "\n"
