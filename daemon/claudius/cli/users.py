"""`claudius users`: show, revert, link, export and erase what the soul knows of each person."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
from msgspec import to_builtins

from claudius.cli.output import Group, clock, json_option, print_result, safe
from claudius.cognition.timing import known_zone
from claudius.config.load import load
from claudius.errors import EXIT_FAILED, UsageProblem
from claudius.home import Home
from claudius.memory.facts import Knowledge, told
from claudius.memory.records import Records
from claudius.reports import people as reports
from claudius.reports.opened import read
from claudius.runtime import receipts


@click.group(cls=Group)
def users() -> None:
    """What the soul knows of each person, and its history.

    PERSON is an id as `list` prints it, or a name that only one of them has.
    """


@users.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List everyone the soul has met."""
    found = read(Home.of(os.environ), Records.people)
    lines = [
        f"{row['person']}  {safe(row['name'])}  {row['versions']} version{'' if row['versions'] == 1 else 's'}"
        f"  {clock(row['updated_at']) if row['updated_at'] else 'no portrait yet'}"
        for row in found
    ]
    print_result(found, lines or ["nobody was met yet: `claudius chat`"], as_json=as_json)


@users.command()
@click.argument("person")
@json_option
def show(person: str, *, as_json: bool) -> None:
    """Show what the soul knows of a person, for each audience it was learned in."""
    found = reports.person(Home.of(os.environ), person)
    head = "  ".join([found.person, safe(found.name), *found.ids]).strip()
    print_result(to_builtins(found), [head, *written(found)], as_json=as_json)


def written(found: Knowledge) -> Iterator[str]:
    """Yield the document of who a person is to the soul, below its first line, as the terminal shows it."""
    own = load(Home.of(os.environ), os.environ).config.clock.timezone
    for line in told(found, known_zone(found.zone, own)):
        yield safe(re.sub(r"<#([^<>]*)>", r"\1", line))


@users.command()
@click.argument("person")
@click.argument("versions", type=click.IntRange(1, 2**31 - 1), nargs=-1)
@click.option("--diff", "is_diff", is_flag=True, help="What changed between two VERSIONS, or by the newest.")
@click.option("--blame", "is_blame", is_flag=True, help="Which version, turn and note added each line.")
@click.option("--audience", default="", help="Which of the person's models, where there are several.")
@json_option
def log(person: str, versions: tuple[int, ...], audience: str, *, is_diff: bool, is_blame: bool, as_json: bool) -> None:
    """List the versions of a person's models, newest first, each with its note."""
    if (is_diff and is_blame) or len(versions) > 2 * is_diff:
        raise UsageProblem("give --diff, with up to two versions, or --blame, or neither")
    home = Home.of(os.environ)
    found: Any
    if is_diff:
        old, new, *_ = (*versions, None, None)
        found = reports.diff(home, person, old, new, audience)
        colours = {"+": "green", "-": "red"}
        lines = [click.style(safe(line), fg=colours.get(line[0])) for line in found["diff"]]
    elif is_blame:
        found = reports.blame(home, person, audience)
        lines = [f"{row['version']:>4}  {(row['turn'] or 'by hand'):16}  {safe(row['line'])}" for row in found]
    else:
        found, lines = reports.log(home, person), []
        for row in found:
            if "diary" in row:
                lines.append(f"diary  {row['at']}  {safe(row['diary'])}")
                continue
            mark, commit = " (suspect)" if row["suspect"] else "", (row["commit"] or "not in git")[:10]
            lines.append(f"{row['version']}  {row['at']}  {safe(row['note'])}{mark}  {commit}")
    print_result(found, lines or ([] if is_diff else [reports.nothing_of(repr(person))]), as_json=as_json)


@users.command()
@click.argument("person")
@click.argument("version", type=click.IntRange(1, 2**31 - 1))
@click.option("--audience", default="", help="Which of the person's models, where there are several.")
def revert(person: str, version: int, audience: str) -> None:
    """Make an earlier version the newest again."""
    made = reports.revert(Home.of(os.environ), person, version, audience, datetime.now(UTC))
    click.echo(f"{made['person']}: version {made['version']} is version {version} again")


@users.command()
@click.argument("person")
@click.argument("other")
def link(person: str, other: str) -> None:
    """Make two ids one person: whoever has either is shown, exports and erases what both said in private."""
    ids = reports.link(Home.of(os.environ), person, other)
    click.echo(
        f"{ids['linked']} and {ids['person']} are one person now: whoever has either id is shown what both said in "
        f"private, and can export or erase it; `claudius users unlink {ids['person']}` undoes this"
    )


@users.command()
@click.argument("person")
@json_option
def unlink(person: str, *, as_json: bool) -> None:
    """Separate the ids of a person again: each is shown, exports and erases only its own."""
    document = reports.unlink(Home.of(os.environ), person, datetime.now(UTC))
    ids = " and ".join([document["person"], *document["unlinked"]])
    line = f"{ids} are separate again; what was said in one place while they were linked stays there"
    print_result(document, [line], as_json=as_json)


@users.command()
@click.argument("person")
@json_option
def export(person: str, *, as_json: bool) -> None:
    """Print everything that is kept of a person: portraits, what was said and answered, what was learned from it."""
    document = reports.export(Home.of(os.environ), person)
    lines = [
        f"{one['audience']}, version {one['version']}\n{safe(one['markdown']).rstrip()}\n" for one in document["models"]
    ]
    for line in document["messages"]:
        who = "I" if line["person"] is None else line["person"]
        lines.append(f"{line['at']}  {line['conversation']}  {who}: {safe(line['content'])}")
    lines += [f"{value['key']} = {safe(value['value'])}" for value in document["state"]]
    print_result(document, lines, as_json=as_json)


@users.command()
@click.argument("person")
@click.option("--yes", is_flag=True, help="Really erase; nothing brings it back.")
@click.option("--now", is_flag=True, help="Overwrite at once what would wait for a quiet hour; others may wait.")
@json_option
def forget(person: str, *, yes: bool, now: bool, as_json: bool) -> int:
    """Erase a person: rows, git history, logs and backups; print the receipt."""
    if not yes:
        raise UsageProblem(f"this erases all that is kept of {person}, including backups: repeat it with --yes")
    receipt = asyncio.run(reports.forget(Home.of(os.environ), person, at_once=now))
    print_result(receipt, map(safe, receipts.of(receipt)), as_json=as_json)
    return EXIT_FAILED if receipt["left"] else 0
