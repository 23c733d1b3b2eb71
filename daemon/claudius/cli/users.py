"""`claudius users`: show, revert, link, export and erase what the soul knows of each person."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher, unified_diff
from typing import Any

import click

from claudius.cli.output import json_option, print_result, safe
from claudius.cli.records import edit, noted, records
from claudius.cli.session import wake_and_ask
from claudius.errors import EXIT_FAILED, ClaudiusError, UsageProblem
from claudius.home import Home
from claudius.memory.records import Records


@click.group()
def users() -> None:
    """What the soul knows of each person, and its history."""


@users.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List everyone the soul has met."""
    with records() as kept:
        found = kept.people()
    lines = [
        f"{row['person']}  {safe(row['name'])}  {row['versions']} version(s)  {row['updated_at'] or 'no model yet'}"
        for row in found
    ]
    print_result(found, lines or ["nobody was met yet: `claudius chat`"], as_json=as_json)


@users.command()
@click.argument("person")
@json_option
def show(person: str, *, as_json: bool) -> None:
    """Show what the soul knows of a person, for each audience it was learned in."""
    with records() as kept:
        found = _person(kept, person)
    noted("read", found["person"])
    lines = _models(found["models"], f"{found['person']} in ") if found["models"] else [_nothing(safe(found["name"]))]
    print_result(found, lines, as_json=as_json)


def _models(models: Sequence[Mapping[str, Any]], whose: str = "") -> Iterator[str]:
    for model in models:
        yield click.style(f"── {whose}{model['audience']}, version {model['version']}", dim=True)
        yield safe(model["markdown"]).rstrip() + "\n"


def _nothing(person: str) -> str:
    return f"nothing has been written about {person} yet"


@users.command()
@click.argument("person")
@json_option
def log(person: str, *, as_json: bool) -> None:
    """List the versions of a person's models, newest first, each with its note."""
    with records() as kept:
        whose = _person(kept, person)["person"]
        rows = kept.versions(whose)
    noted("read", whose)
    keys = ("version", "at", "note", "commit", "turn", "audience", "author", "suspect")
    found = [{key: row.get(key) for key in keys} for row in reversed(rows)]
    lines = []
    for row in found:
        mark, commit = " (suspect)" if row["suspect"] else "", (row["commit"] or "not in git")[:10]
        lines.append(f"{row['version']}  {row['at']}  {safe(row['note'])}{mark}  {commit}")
    print_result(found, lines or [_nothing(repr(person))], as_json=as_json)


@users.command()
@click.argument("person")
@click.argument("old", type=int, required=False)
@click.argument("new", type=int, required=False)
@click.option("--audience", default="", help="Which of the person's models, where there are several.")
@json_option
def diff(person: str, old: int | None, new: int | None, audience: str, *, as_json: bool) -> None:
    """Show what changed between two versions (default: the newest and the one before)."""
    with records() as kept:
        rows = _of_one_audience(_versions(kept, person), audience)
    noted("read", rows[-1]["person"])
    latest = rows[-1]["version"]
    new = latest if new is None else new
    old = new - 1 if old is None else old
    before, after = (_markdown(rows, version).splitlines() for version in (old, new))
    lines = list(unified_diff(before, after, f"version {old}", f"version {new}", lineterm=""))
    document = {"person": rows[-1]["person"], "audience": rows[-1]["audience"], "old": old, "new": new, "diff": lines}
    colours = {"+": "green", "-": "red"}
    print_result(document, (click.style(safe(line), fg=colours.get(line[0])) for line in lines), as_json=as_json)


@users.command()
@click.argument("person")
@click.option("--audience", default="", help="Which of the person's models, where there are several.")
@json_option
def blame(person: str, audience: str, *, as_json: bool) -> None:
    """Show which version, turn and note added each line of a person's model."""
    with records() as kept:
        whose = _person(kept, person)["person"]
        rows = kept.versions(whose)
    noted("read", whose)
    found = _blame(_of_one_audience(rows, audience) if rows else ())
    lines = [f"{row['version']:>4}  {(row['turn'] or 'by hand'):16}  {safe(row['line'])}" for row in found]
    print_result(found, lines or [_nothing(repr(person))], as_json=as_json)


@users.command()
@click.argument("person")
@click.argument("version", type=int)
@click.option("--audience", default="", help="Which of the person's models, where there are several.")
def revert(person: str, version: int, audience: str) -> None:
    """Make an earlier version the newest again."""
    with records() as kept:
        rows = _of_one_audience(_versions(kept, person), audience)
    markdown, note, now = _markdown(rows, version), f"back to version {version}", datetime.now(UTC)
    whose, where = rows[-1]["person"], rows[-1]["audience"]
    noted("revert", whose)
    made = edit(lambda store: store.documents.set_model(whose, where, markdown, note, "revert", now))
    click.echo(f"{whose}: version {made} is version {version} again")


@users.command()
@click.argument("person")
@click.argument("other")
def link(person: str, other: str) -> None:
    """Make two ids one person: whoever has either is shown, exports and erases what both said in private."""
    with records() as kept:
        for one in (person, other):
            _person(kept, one)
    for one in (person, other):
        noted("link", one)
    edit(lambda store: store.people.link(person, other))
    click.echo(
        f"{other} and {person} are one person now: whoever has either id is shown what both said in private, and can "
        f"export or erase it; `claudius users unlink {person}` undoes this"
    )


@users.command()
@click.argument("person")
@json_option
def unlink(person: str, *, as_json: bool) -> None:
    """Separate the ids of a person again: each is shown, exports and erases only its own."""
    with records() as kept:
        known = _person(kept, person)
    if not known["ids"]:
        raise ClaudiusError(f"{known['person']} is not linked with another id")
    noted("unlink", known["person"])
    ids = edit(lambda store: store.people.unlink(known["person"], datetime.now(UTC)))
    line = f"{' and '.join(ids)} are separate again; what was said in one place while they were linked stays there"
    print_result({"person": ids[0], "unlinked": list(ids[1:])}, [line], as_json=as_json)


@users.command()
@click.argument("person")
@json_option
def export(person: str, *, as_json: bool) -> None:
    """Print everything that is kept of a person: portraits, what was said and answered, what was learned from it."""
    with records() as kept:
        found = _person(kept, person)
        said = kept.personal((found["person"], *found["ids"]))
    noted("export", found["person"])
    document = {"person": found["person"], "name": found["name"], "models": found["models"], **said}
    lines = list(_models(document["models"]))
    for line in document["messages"]:
        who = "I" if line["person"] is None else line["person"]
        lines.append(f"{line['at']}  {line['conversation']}  {who}: {safe(line['content'])}")
    lines += [f"{value['key']} = {safe(value['value'])}" for value in document["state"]]
    print_result(document, lines, as_json=as_json)


@users.command()
@click.argument("person")
@click.option("--yes", is_flag=True, help="Really erase; nothing brings it back.")
@json_option
def forget(person: str, *, yes: bool, as_json: bool) -> int:
    """Erase a person: rows, git history, logs and backups; print the receipt."""
    if not yes:
        raise UsageProblem(f"this erases all that is kept of {person}, including backups: repeat it with --yes")
    with records() as kept:
        known = _person(kept, person)["person"]
    answer = asyncio.run(wake_and_ask(Home.of(os.environ), "forget", person=known))
    if answer.get("event") != "forgotten":
        raise ClaudiusError(str(answer.get("message") or "the daemon stopped meanwhile: repeat the command"))
    receipt = answer["receipt"]
    rows = ", ".join(f"{table} {count}" for table, count in receipt["rows"].items())
    lines = [
        f"{receipt['person']} is forgotten. Rows: {rows or 'none'}.",
        f"git: {receipt['git']} versions; log: {receipt['logs']} lines; old backups: {receipt['backups']}.",
    ]
    if receipt["kept"]:
        lines.append(f"Not made by Claudius, so left as they are: {', '.join(map(safe, receipt['kept']))}.")
    where = ", ".join(receipt["left"])
    lines += [
        "Searched, and found nowhere." if receipt["verified"] else f"STILL FOUND in {where}: repeat the command.",
        f"Not mine to erase: {'; '.join(receipt['not_ours'])}.",
    ]
    print_result(receipt, lines, as_json=as_json)
    return 0 if receipt["verified"] else EXIT_FAILED


def _person(kept: Records, person: str) -> Mapping[str, Any]:
    found = kept.person(person)
    if found is None:
        raise ClaudiusError(f"nobody is known as {person!r}: `claudius users list` lists everyone")
    return found


def _versions(kept: Records, person: str) -> Sequence[Mapping[str, Any]]:
    found = kept.versions(_person(kept, person)["person"])
    if not found:
        raise ClaudiusError(_nothing(repr(person)))
    return found


def _of_one_audience(rows: Sequence[Mapping[str, Any]], audience: str) -> Sequence[Mapping[str, Any]]:
    audiences = sorted({row["audience"] for row in rows})
    if not audience and len(audiences) > 1:
        raise UsageProblem(f"there are several models: choose one with --audience: {', '.join(audiences)}")
    chosen = [row for row in rows if row["audience"] == (audience or audiences[0])]
    if not chosen:
        raise UsageProblem(f"no model in {audience!r}: choose one of {', '.join(audiences)}")
    return chosen


def _markdown(rows: Sequence[Mapping[str, Any]], version: int) -> str:
    if version == 0:
        return ""
    found = next((row for row in rows if row["version"] == version), None)
    if found is None:
        raise UsageProblem(f"there is no version {version}: 1 to {rows[-1]['version']}")
    return str(found["markdown"])


def _blame(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Trace each line of the newest version to the version that introduced it. Pure."""
    lines: list[tuple[str, Mapping[str, Any]]] = []
    for row in rows:
        fresh = str(row["markdown"]).splitlines()
        matcher = SequenceMatcher(None, [line for line, _ in lines], fresh, autojunk=False)
        traced: list[tuple[str, Mapping[str, Any]]] = []
        for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
            traced += lines[old_from:old_to] if tag == "equal" else [(line, row) for line in fresh[new_from:new_to]]
        lines = traced
    return [
        {"line": line, "version": row["version"], "turn": row.get("turn"), "note": row["note"]} for line, row in lines
    ]
