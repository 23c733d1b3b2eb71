"""`claudius tools`: what the soul may do with its hands, whom it asks, and what it did."""

from __future__ import annotations

import click

from claudius.cli import tool_calls, tool_servers
from claudius.cli.output import Group, json_option


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_context
def tools(context: click.Context, *, as_json: bool) -> None:
    """What the soul may do: its tools, their servers, consents and calls."""
    if context.invoked_subcommand is None:
        context.invoke(tool_servers.list_, as_json=as_json)


for _command in (
    tool_calls.pending, tool_calls.allow, tool_calls.deny, tool_calls.calls, tool_calls.show, tool_calls.grants,
    tool_calls.revoke, tool_servers.list_, tool_servers.add, tool_servers.remove, tool_servers.check, tool_servers.diff,
):  # fmt: skip
    tools.add_command(_command)
