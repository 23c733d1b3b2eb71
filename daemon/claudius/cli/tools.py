"""`claudius tools`: what the soul may do with its hands, whom it asks, and what it did."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from claudius.cli import tool_servers
from claudius.cli.output import Group, json_option, print_result, safe
from claudius.home import Home

SCOPES = ("once", "talk", "channel", "always")


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_context
def tools(context: click.Context, *, as_json: bool) -> None:
    """What the soul may do: its tools, their servers, consents and calls."""
    if context.invoked_subcommand is None:
        context.invoke(tool_servers.list_, as_json=as_json)


@tools.command()
@json_option
def pending(*, as_json: bool) -> None:
    """List what waits for consent, oldest first."""
    from claudius.reports import tool_calls as reports

    found = reports.waiting(Home.of(os.environ))
    print_result(found, list(_lines(found)) or ["nothing waits"], as_json=as_json)


@tools.command()
@click.argument("call", metavar="ID")
@click.option(
    "--for", "scope", type=click.Choice(SCOPES), default="once", show_default=True, help="How far it reaches."
)
def allow(call: str, scope: str) -> None:
    """Allow what waits; the soul does it, and says what came of it."""
    from claudius.reports import tool_calls as reports

    click.echo(safe(reports.decide(Home.of(os.environ), call, "allow" if scope == "once" else scope)))


@tools.command()
@click.argument("call", metavar="ID")
def deny(call: str) -> None:
    """Forbid what waits."""
    from claudius.reports import tool_calls as reports

    click.echo(safe(reports.decide(Home.of(os.environ), call, "deny")))


@tools.command()
@click.option("-n", "most", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@json_option
def calls(most: int, *, as_json: bool) -> None:
    """List what it did with tools, newest first."""
    from claudius.reports import tool_calls as reports

    found = reports.calls(Home.of(os.environ), most)
    print_result(found, list(_lines(found)) or ["it has used no tool yet"], as_json=as_json)


@tools.command()
@click.argument("call", metavar="ID")
@json_option
def show(call: str, *, as_json: bool) -> None:
    """Show one use of a tool: its arguments, who allowed it, what came of it."""
    from claudius.reports import tool_calls as reports

    document = reports.call(Home.of(os.environ), call)
    lines = [f"{name}: {safe(_plain(value))}" for name, value in document.items() if value not in (None, "", ())]
    print_result(document, lines, as_json=as_json)


@tools.command()
@json_option
def grants(*, as_json: bool) -> None:
    """List the consents that are remembered."""
    from claudius.reports import tool_calls as reports

    found = reports.grants(Home.of(os.environ))
    lines = [
        f"{one['id']}  {one['tool']}  {one['scope']}  {one['conversation'] or 'everywhere'}"
        f"  until {one['expires_at'][:16]}  by {one['granted_by']}"
        for one in found
    ]
    print_result(found, [safe(line) for line in lines] or ["nothing is remembered"], as_json=as_json)


@tools.command()
@click.argument("grant", type=int, metavar="ID")
def revoke(grant: int) -> None:
    """End a remembered consent: it asks again."""
    from claudius.reports import tool_calls as reports

    reports.revoke(Home.of(os.environ), grant)
    click.echo(f"revoked: {grant}")


for _command in (tool_servers.list_, tool_servers.add, tool_servers.remove, tool_servers.check, tool_servers.diff):
    tools.add_command(_command)


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        by = f" by {row['allowed_by']}" if row["allowed_by"] else ""
        why = f"  ({row['reason']})" if row["reason"] else ""
        yield safe(
            f"{row['id']}  {row['asked_at'][:16]}  {row['tool']}  {row['state']}{by}  {_plain(row['args'])}{why}"
        )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
