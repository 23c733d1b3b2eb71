"""`claudius tools`: what the soul may do with its hands, whom it asks, and what it did."""

from __future__ import annotations

import click

from claudius.cli import tool_calls
from claudius.cli.output import Group


@click.group(cls=Group)
def tools() -> None:
    """What the soul may do: its tools, their servers, consents and calls."""


for _command in (
    tool_calls.pending, tool_calls.allow, tool_calls.deny, tool_calls.calls, tool_calls.show, tool_calls.grants,
    tool_calls.revoke,
):  # fmt: skip
    tools.add_command(_command)
