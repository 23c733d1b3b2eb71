"""The command `claudius`: one file per command group, named by an import string and loaded only when it is used."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

import claudius
from claudius.cli.output import Group
from claudius.errors import EXIT_FAILED, EXIT_USAGE, BadConfiguration, BadHome, ClaudiusError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_TABLE: dict[str, tuple[str, str]] = {
    "onboard": ("onboard:onboard", "set it up: who speaks, which networks, their tokens, each tried for real"),
    "model": ("model:model", "a mind at home: models on this machine, without a key or an account"),
    "chat": ("chat:chat", "talk with the soul here in the terminal"),
    "daemon": ("daemon:daemon", "the soul as a process of its own: start, stop, run, install"),
    "worker": ("worker:worker", "think beside the daemon, on this or another machine"),
    "workers": ("worker:workers", "which processes take turns, and what each holds"),
    "console": ("claudius.console.server:console", "look at the soul in your browser"),
    "status": ("status:status", "what is running, who speaks, what waits"),
    "doctor": ("doctor:doctor", "find what is not set up correctly, and how to fix it"),
    "config": ("config:config", "show, check and change the settings"),
    "soul": ("soul:soul", "read, check and edit who the soul is"),
    "state": ("state:state", "the soul's own state of mind"),
    "conversations": ("conversations:conversations", "what was said, conversation by conversation"),
    "users": ("users:users", "what the soul knows of each person, and its history"),
    "pairing": ("networks:pairing", "strangers who ask to be let in"),
    "process": ("state:process", "its mental processes, and where each conversation stands"),
    "tools": ("tools:tools", "what the soul may do: its tools, their servers, what it asked and did"),
    "schedule": ("state:schedule", "what the soul has planned for later, and what its clock does"),
    "daimon": ("state:daimon", "who whispers to the soul"),
    "ensoul": ("ensoul:ensoul", "the soul in Claude Code"),
    "bridge": ("bridge:bridge", "lend the soul your own Claude Code, which thinks in its place"),
    "mcp": ("mcp:mcp", "lend the soul to programs that speak MCP"),
    "stream": ("status:stream", "watch it hear, think, decide, feel and speak"),
    "ledger": ("ledger:ledger", "whom the soul deals with, and how its trust changed"),
    "cortex": ("ledger:cortex", "what the second mind believes, when it reflected, and what you decide about that"),
    "why": ("conversations:why", "one turn explained: what it knew, asked, thought and said"),
    "replay": ("conversations:replay", "rebuild a turn's prompt, with the same or another soul"),
    "eval": ("eval:eval_", "measure the soul: scenes, checks, figures"),
    "psyche": ("state:psyche", "mood, needs and relations, as they are"),
    "usage": ("status:usage", "tokens and dollars"),
    "audit": ("doctor:audit", "who decided or looked at what, when, and from where"),
    "backup": ("backup:backup", "verified copies of the database, and how to restore one"),
    "migrate": ("migrate:migrate", "move the soul to a database server, or back to a file"),
    "upgrade": ("doctor:upgrade", "whether this release fits the database, and how to look for a newer one"),
    "slack": ("networks:slack", "what Slack needs to let the soul in"),
    "discord": ("networks:discord", "the address that brings the bot into a server"),
    "completion": ("doctor:completion", "complete commands with Tab, in bash, zsh and fish"),
    "seed": ("seed:seed", ""),
}
"""Each command's module, here or in full, with its name there, and one-line help; a command without one is hidden."""
COMMANDS = {
    name: target if target.startswith("claudius.") else f"claudius.cli.{target}" for name, (target, _) in _TABLE.items()
}
MOVED = {
    "backup export": "`claudius backup create --portable`",
    "backup import": "`claudius backup restore`",
    "cortex delete": "`claudius cortex belief KEY --delete`",
    "cortex dispute": "`claudius cortex belief KEY --dispute`",
    "cortex pin": "`claudius cortex belief KEY --pin`",
    "daimon whispers": "`claudius daimon list --whispers`",
    "ensoul whoami": "`claudius ensoul status --me`",
    "eval --locomo": "`bench/locomo.py PATH`, in a checkout,",
    "ledger show --out": "drawn by `claudius console`",
    "process graph --out": "`claudius process graph --json`",
    "psyche plot": "drawn by `claudius console`, under Life",
    "tools add --sandbox": "what goes before its command (`claudius tools add NAME -- bwrap … COMMAND`)",
    "tools diff": "`claudius tools check NAME`",
    "users blame": "`claudius users log PERSON --blame`",
    "users diff": "`claudius users log PERSON --diff`",
}
"""What stands now in the place of a command or option that went: these words, the options anywhere behind them."""
HELP = {name: line for name, (_, line) in _TABLE.items() if line}


class Lazy(Group):
    """A click group whose commands are import strings, so that `--help` loads none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the name of every command, hidden ones included."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        import logging  # loaded late: it costs a tenth of `--help`'s time

        logging.getLogger("claudius").addHandler(logging.NullHandler())
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was typed. Raises: UsageError if there is none, or no longer."""
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        typed = {one.partition("=")[0] for one in args[: [*args, "--"].index("--")]}
        for old, new in MOVED.items():
            words = [one for one in old.split() if not one.startswith("-")]
            if args[: len(words)] == words and typed.issuperset(old.split()):
                ctx.fail(f"`claudius {old}` is {new} now")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, without loading any."""
        if not incomplete or incomplete[0].isalnum():
            from click.shell_completion import CompletionItem

            return [CompletionItem(name, help=line) for name, line in HELP.items() if name.startswith(incomplete)]
        return super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands with their one-line help, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(HELP.items()))


class _Secrets:
    """The secrets of this command's environment and home, looked up only when something is about to be printed."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def blot(self, text: str) -> str:
        from claudius.config.load import blot, held

        return blot(text, held(self._env))

    def excepthook(self, _: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
        from claudius.foreign import traced

        click.echo(self.blot("".join(traced(error))), err=True, nl=False)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(claudius.__version__, prog_name="claudius")
@click.option("--home", metavar="PATH", default="", help="Another soul's home than ~/.claudius; also CLAUDIUS_HOME.")
def cli(*, home: str) -> None:
    """Claudius: a soul that lives in your chat."""
    if home:
        os.environ["CLAUDIUS_HOME"] = home
    from claudius.home import Home, obey

    try:
        root = Home.of(os.environ).root
    except BadHome:
        return  # a command that needs one says so
    obey(root)
    _unify_proxies(root / ".env")


def _unify_proxies(env_file: Path) -> None:
    from claudius.proxies import unify

    dotenv: Mapping[str, str] = {}
    if env_file.exists():
        from claudius.config.load import read_env_file

        with suppress(BadConfiguration):  # a command that needs the file says so
            dotenv = read_env_file(env_file)
    unify(os.environ, dotenv)


def main(argv: list[str] | None = None) -> None:
    """Run the command line. An expected error prints one line on stderr and has its own exit code."""
    os.umask(0o077)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)  # a terminal with a narrow encoding still shows every character, escaped
    secrets = _Secrets(dict(os.environ))
    sys.excepthook = secrets.excepthook
    try:
        result: Any = cli.main(args=argv, prog_name="claudius", standalone_mode=False)
    except ClaudiusError as error:
        click.echo(f"claudius: {secrets.blot(error.message)}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except (OSError, UnicodeError) as error:
        message, code = _from_outside(error, argv or sys.argv)
        click.echo(f"claudius: {secrets.blot(message)}", err=True)
        sys.exit(code)
    sys.exit(result if isinstance(result, int) else 0)


def _from_outside(error: OSError | UnicodeError, argv: Sequence[str]) -> tuple[str, int]:
    """Describe a file or argument error, with its exit code; an error from neither is a bug and is raised again."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}: make sure that you may read and write there", EXIT_FAILED
    if isinstance(error, UnicodeEncodeError) and any("\udc80" <= sign <= "\udcff" for sign in "".join(argv)):
        return f"an argument is not UTF-8 text: {error.object!r}", EXIT_USAGE
    if isinstance(error, UnicodeDecodeError):
        return f"the file is not UTF-8 text ({error.reason}): save it as UTF-8", EXIT_USAGE
    raise error
