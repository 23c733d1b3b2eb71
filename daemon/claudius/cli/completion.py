"""`claudius completion`: the lines that let a shell complete commands and options with Tab."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import PurePath

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CLAUDIUS_COMPLETE"
WHERE = {
    "bash": """Tab completes commands with this in ~/.bashrc: eval "$({command} completion bash)\"""",
    "zsh": """Tab completes commands with this in ~/.zshrc: eval "$({command} completion zsh)\"""",
    "fish": "Tab completes commands after: {command} completion fish > ~/.config/fish/completions/claudius.fish",
}
"""How each shell is given the lines by `command`."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the lines that let a shell complete commands with Tab; without SHELL, say how to install them."""
    from click.shell_completion import get_completion_class

    from claudius.cli import cli

    if shell is None:
        own = PurePath(os.environ.get("SHELL", "")).name
        for name in (own,) if own in SHELLS else SHELLS:
            click.echo(WHERE[name].format(command="claudius" if shutil.which("claudius") else sys.argv[0]))
        return
    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows each of SHELLS
        raise click.UsageError(f"{shell} cannot be completed for")
    click.echo(kind(cli, {}, "claudius", VARIABLE).source())
