"""Every command of `claudius`: how it is killed in tests, or why it is not."""

from collections.abc import Iterator

import click

from claudius.cli import cli
from killing import ADA, BEN, CARL, Change

LOOKS = "reads; the one thing that it writes is a row of the audit log, in one transaction of its own"
READS = "reads"
PRINTS = "prints what it works out, and writes nothing"
ASKS = "asks the running process, which does it in one transaction of a turn's kind: killed in R1 and R2"
STARTS = "starts, ends or asks a process; what that writes is killed in R1, R2 and F1"
ONE_ROW = "one transaction in the server's store: killed in F1 and F2"

NOT_KILLED: dict[str, str] = {
    "daemon logs": READS,
    "daemon status": READS,
    "daemon start": STARTS,
    "daemon run": STARTS,
    "daemon restart": STARTS,
    "daemon stop": STARTS,
    "worker": STARTS,
    "workers": READS,
    "bridge on": ASKS,
    "bridge off": ASKS,
    "bridge next": ASKS,
    "bridge say": ASKS,
    "daimon converse": ASKS,
    "workers drain": ONE_ROW,
    "console": "keeps nothing but the lock and the tickets of this run; what it changes, it changes as commands do",
    "status": READS,
    "doctor": "reads, and makes paths private, each by itself",
    "config check": READS,
    "config get": READS,
    "config show": READS,
    "soul check": READS,
    "soul history": READS,
    "soul push": ONE_ROW,
    "soul show": READS,
    "state show": READS,
    "conversations list": READS,
    "conversations show": LOOKS,
    "users export": LOOKS,
    "users list": READS,
    "users log": LOOKS,
    "users show": LOOKS,
    "pairing approve": ASKS,
    "pairing list": ASKS,
    "pairing revoke": ASKS,
    "process graph": READS,
    "process list": READS,
    "process show": READS,
    "schedule list": READS,
    "daimon list": READS,
    "tools pending": READS,
    "tools calls": READS,
    "tools show": READS,
    "tools grants": READS,
    "tools allow": ASKS,
    "tools deny": ASKS,
    "tools revoke": ONE_ROW,
    "daimon whisper": ASKS,
    "ensoul status": READS,
    "stream": READS,
    "ledger evidence": READS,
    "ledger peers": READS,
    "ledger show": READS,
    "cortex beliefs": READS,
    "cortex history": READS,
    "why": LOOKS,
    "replay": LOOKS,
    "eval": "lives in homes of its own, which it deletes",
    "psyche show": READS,
    "usage": READS,
    "audit": READS,
    "backup list": READS,
    "backup verify": READS,
    "upgrade": PRINTS,
    "slack manifest": PRINTS,
    "discord invite": PRINTS,
    "completion": PRINTS,
    "daemon install": "writes one unit file outside of the home, and asks the service manager; done again, it is whole",
    "daemon uninstall": "deletes that file",
    "mcp": ASKS,
    "tools": READS,
    "model list": READS,
    "model get": "a part file, then one rename: killed in its own test, `tests/cli/test_model.py`",
    "model use": "one file",
    "model rm": "one file",
    "tools list": READS,
    "tools check": "starts servers, and writes nothing",
    "tools add": "one transaction, then one file: what no file names is offered to nobody, and done again it is whole",
    "tools remove": "one file, then one transaction: likewise",
    "migrate": "needs a server: killed in its own test, `tests/cli/test_migrate_closed.py`",
}
"""Commands that are not killed by this table, each with the reason: most change nothing."""

CORTEX = {"CLAUDIUS_CORTEX_ENABLED": "1"}
KOTHAR = {"CLAUDIUS_KOTHAR_ENABLED": "1"}
HOOK = '{"session_id": "11111111-2222-4333-8444-555555555555", "cwd": "/", "source": "startup", "prompt": "/ensoul on"}'
SESSION = "11111111-2222-4333-8444-555555555555"

CHANGES: dict[str, Change] = {
    "onboard": Change(
        ("onboard", "--yes", "--adapters", "terminal", "--providers", "rehearsal"), is_whole=False, few=2
    ),
    "chat": Change(("chat", "--once", "the line"), is_again=False, few=2),
    "config set": Change(("config", "set", "memory.window", "9")),
    "soul edit": Change(("soul", "edit")),
    "state set": Change(("state", "set", "emotionalState", "engaged")),
    "users forget": Change(("users", "forget", BEN, "--yes"), is_whole=False, codes=(0, 1), wakes=True),
    "users link": Change(("users", "link", ADA, BEN), codes=(0, 1)),
    "users unlink": Change(("users", "unlink", CARL), codes=(0, 1)),
    "users revert": Change(("users", "revert", ADA, "1"), codes=(0, 1)),
    "schedule cancel": Change(("schedule", "cancel", "{plan}"), codes=(0, 1)),
    "daimon mute": Change(("daimon", "mute", "kothar"), env=KOTHAR),
    "ensoul hook": Change(("ensoul", "hook", "UserPromptSubmit"), stdin=HOOK),
    "ensoul on": Change(("ensoul", "on", "--session", SESSION)),
    "ensoul off": Change(("ensoul", "off", "--session", SESSION)),
    "ensoul install": Change(("ensoul", "install")),
    "ensoul uninstall": Change(("ensoul", "uninstall")),
    "cortex belief": Change(("cortex", "belief", "ada-builds", "--pin")),
    "cortex belief --delete": Change(("cortex", "belief", "ada-builds", "--delete"), codes=(0, 1)),
    "cortex reflect": Change(("cortex", "reflect"), env=CORTEX),
    "backup create": Change(("backup", "create")),
    "backup create --portable": Change(("backup", "create", "--portable", "{root}/again"), codes=(0, 1)),
    "backup restore --portable": Change(("backup", "restore", "{root}/export", "--yes"), few=5),
    "backup restore": Change(("backup", "restore", "{root}/copy.db", "--yes"), few=4),
    "seed": Change(("seed",), is_whole=False, few=2),
}
"""Commands that change something, each as it is killed."""


def commands(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every command by its words, hidden ones too; a group that does something by itself is one."""
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    if command.invoke_without_command and path:
        yield " ".join(path)
    context = click.Context(command)
    for name in command.list_commands(context):
        if found := command.get_command(context, name):
            yield from commands(found, (*path, name))
