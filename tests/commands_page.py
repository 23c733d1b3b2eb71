"""Write docs/commands.md from the commands: `python tests/commands_page.py`."""

import importlib
from collections.abc import Iterator

import click

from claudius.cli import COMMANDS
from tree import REPOSITORY

PAGE = REPOSITORY / "docs" / "commands.md"
HEAD = REPOSITORY / "tests" / "cases" / "commands_head.md"
"""What the page says before its commands: what no command says of itself."""


def loaded() -> Iterator[tuple[str, click.Command]]:
    """Yield every command that users see, each group before its own commands, by what is typed."""
    for name in COMMANDS:
        module, _, attribute = COMMANDS[name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        if command.hidden:
            continue
        yield f"claudius {name}", command
        if isinstance(command, click.Group):
            yield from ((f"claudius {name} {sub}", one) for sub, one in sorted(command.commands.items()))


def page() -> str:
    """Return the whole page."""
    return HEAD.read_text("utf-8") + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for typed, command in loaded():
        if len(typed.split()) == 2:
            yield f"\n## {typed}\n"
            if isinstance(command, click.Group) and not command.invoke_without_command:
                yield f"{_said(command.help)}\n"
                continue
        yield f"- `{' '.join([typed, *_arguments(command)])}`: {_said(command.help)}"
        options = (one for one in command.params if isinstance(one, click.Option) and not one.hidden)
        yield from (f"  - {_names(one)}: {_said(one.help)}" for one in options if one.opts != ["--json"])


def _arguments(command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    yield from (one.make_metavar(context) for one in command.params if isinstance(one, click.Argument))


def _said(text: str | None) -> str:
    return " ".join((text or "").replace("\b", "").split())


def _names(one: click.Option) -> str:
    metavar = one.make_metavar(click.Context(click.Command("claudius")))
    kind = "N" if metavar.startswith(("INTEGER", "FLOAT")) else metavar.strip("[]")
    value = "" if one.is_flag or one.count else f" {kind}"
    return ", ".join(f"`{name}{value}`" for name in (*one.opts, *one.secondary_opts))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
