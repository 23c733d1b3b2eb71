"""`claudius ensoul`: install and remove the Claude Code plugin, ensoul sessions, and serve the plugin's hooks."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.errors import ClaudiusError, UsageProblem
from claudius.foreign import unquoted
from claudius.home import Home


@click.group(cls=Group)
def ensoul() -> None:
    """The soul in Claude Code."""


@ensoul.command()
def install() -> None:
    """Install the plugin in Claude Code; if that is not found, print the commands that do it."""
    from claudius.claude_code.install import Plugin

    plugin = Plugin.of(_home(create=True), os.environ)
    if not plugin.claude:
        plugin.write()
        click.echo("Claude Code was not found. Where it is installed, run:")
        for command in plugin.commands():
            click.echo(f"  claude {' '.join(command)}")
        return
    plugin.install()
    click.echo("installed: type /ensoul in a new session of Claude Code")


@ensoul.command()
def uninstall() -> None:
    """Remove the plugin from Claude Code, with every trace of it."""
    from claudius.claude_code.install import Plugin

    Plugin.of(_home(), os.environ).uninstall()
    click.echo("removed: Claude Code is as it was before")


@ensoul.command()
@click.option("--me", is_flag=True, help="What the soul knows of you: from you alone, unless `ensoul.shared` is set.")
@json_option
def status(*, me: bool, as_json: bool) -> None:
    """Show whether the plugin is installed, and which sessions are ensouled."""
    if me:
        _tell_of_me(as_json=as_json)
        return
    from datetime import UTC, datetime

    from claudius.claude_code.hooks import Sessions
    from claudius.claude_code.install import Plugin

    home = _home()
    document: dict[str, Any] = {
        "installed": Plugin.of(home, os.environ).is_installed,
        "sessions": [
            {
                "session": one.session,
                "title": one.title,
                "project": one.project,
                "on": one.on,
                "last_at": datetime.fromtimestamp(one.last_at, UTC),
            }
            for one in Sessions(home).every()
        ],
    }
    lines = ["installed" if document["installed"] else "not installed: `claudius ensoul install`"]
    for one in document["sessions"]:
        state = "on" if one["on"] else "off"
        line = f"{one['session']}  {state}  {safe(one['project'])}  {one['last_at']:%F %R}  {safe(one['title'])}"
        lines.append(line.rstrip())
    print_result(document, lines, as_json=as_json)


@ensoul.command()
@click.option("--session", default="", help="The session's id.")
@click.option("--all", "every", is_flag=True, help="Every session that is known.")
def on(session: str, *, every: bool) -> None:
    """Ensoul a session, from its next prompt on."""
    _switch(session, every=every, is_on=True)


@ensoul.command()
@click.option("--session", default="", help="The session's id.")
@click.option("--all", "every", is_flag=True, help="Every session that is known.")
def off(session: str, *, every: bool) -> None:
    """End the soul's presence in a session; the session is told so once."""
    _switch(session, every=every, is_on=False)


@ensoul.command(hidden=True)
@click.argument("event")
def hook(event: str) -> None:
    """Serve one hook of the plugin. It never fails, and never says more than it should."""
    try:
        from claudius.claude_code.hooks import Hook

        given = json.loads(sys.stdin.buffer.read(4_000_000))
        text = Hook(Home.of(os.environ), os.environ).run(event, given) if isinstance(given, dict) else ""
    except Exception as error:  # a hook that fails would stand in the way of somebody's session
        if os.environ.get("CLAUDIUS_HOOK_DEBUG"):
            raise ClaudiusError(unquoted(error)) from error
        return
    if text:
        click.echo(text)


def _tell_of_me(*, as_json: bool) -> None:
    from msgspec import to_builtins

    from claudius.adapters.terminal import own_person
    from claudius.cli.users import written
    from claudius.config.load import load
    from claudius.memory.facts import greeted
    from claudius.reports.opened import records

    is_shared = load(_home(), os.environ).config.ensoul.shared
    with records(_home()) as kept:
        found = kept.person(own_person(), own_only=not is_shared)  # this is printed into a session that can run tools
    if found is None:
        print_result(
            {"person": own_person(), "name": "", "models": []}, ["nothing yet: `claudius chat`"], as_json=as_json
        )
    else:
        print_result(to_builtins(found), [safe(greeted(found)), *written(found)], as_json=as_json)


def _switch(session: str, *, every: bool, is_on: bool) -> None:
    from dataclasses import replace

    from claudius.claude_code.hooks import Session, Sessions, is_session

    if bool(session) == every or (session and not is_session(session)):
        raise UsageProblem("name one session with --session ID, or use --all")
    sessions = Sessions(_home(create=True))
    chosen = list(sessions.every()) if every else [sessions.find(session) or Session(session=session)]
    for one in chosen:
        sessions.keep(replace(one, on=is_on, owed=is_on or one.on or one.owed, prompt=""))
    word = "on" if is_on else "off"
    click.echo(f"{word}: {len(chosen)} session{'' if len(chosen) == 1 else 's'}, from the next prompt on")


def _home(*, create: bool = False) -> Home:
    home = Home.of(os.environ)
    if create:
        home.create()
    return home
