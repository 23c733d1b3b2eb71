"""`claudius soul`: show, check and edit the soul's files."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256

import click

from claudius.cli.output import json_option, print_json
from claudius.cognition.processes import process_problems
from claudius.cognition.steps import STEPS
from claudius.config import load
from claudius.errors import EXIT_FAILED, BadSoul, UsageProblem
from claudius.home import Home, shipped
from claudius.soul import FOLDERS, SoulSource, shadowed
from claudius.soul import check as check_soul


@click.group()
def soul() -> None:
    """Read, check and edit who the soul is."""


@soul.command()
@click.argument("file", required=False)
@json_option
def show(file: str | None, *, as_json: bool) -> None:
    """Print the soul's files, or one of them, as the next turn will read them."""
    home = Home.of(os.environ)
    source = SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS))
    found = source.current()
    chosen = {name: item for name, item in found.files.items() if file in (None, name)}
    if not chosen:
        raise UsageProblem(f"there is no soul file {file!r}: one of {', '.join(sorted(found.files))}")
    if as_json:
        print_json(
            {
                name: {"text": item.text, "source": str(item.source), "sha256": item.sha256}
                for name, item in sorted(chosen.items())
            }
        )
        return
    for name, item in sorted(chosen.items()):
        click.secho(f"── {name}  ({item.source})", dim=True)
        click.echo(item.text.rstrip() + "\n")


@soul.command()
@json_option
def check(*, as_json: bool) -> int:
    """Tell whether every soul file can be used."""
    home = Home.of(os.environ)
    tokens = load(home, os.environ).config.soul.dossier_tokens
    problems = check_soul(home.soul, shipped("soul"), tokens, tuple(STEPS))
    problems += process_problems(SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS)).current())
    problems += _check_temper(home)
    shadows = shadowed(home.soul, shipped("soul"))
    if as_json:
        print_json(
            {
                "ok": not problems,
                "problems": [{"file": p.file, "line": p.line, "detail": p.detail, "fix": p.fix} for p in problems],
                "shadows": [{"file": str(own), "shadowed": str(other)} for own, other in shadows],
            }
        )
    for problem in [] if as_json else problems:
        click.echo(problem.message)
    if not as_json and not problems:
        click.echo("every soul file can be used")
    for own, other in [] if as_json else shadows:
        click.echo(f"{own} is read instead of {other}: edits of that one change nothing")
    return EXIT_FAILED if problems else 0


def _check_temper(home: Home) -> list[BadSoul]:
    """Return the problems in soul.md's front matter."""
    from claudius.psyche.personality import BadPersonality, Fingerprint

    file = SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS)).current().files["soul.md"]
    try:
        Fingerprint.of(file.head)
    except BadPersonality as error:
        return [
            BadSoul(str(file.source), 1, f"its head: {error}", "mend it; until then the default temper is in force")
        ]
    return []


@soul.command()
@click.argument("file", default="soul.md")
def edit(file: str) -> None:
    """Open one of the soul's files in your editor; the shipped text is the start of your own."""
    home = Home.of(os.environ)
    home.create()
    source = SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS)).current()
    own = (home.soul / file).resolve()
    is_read = file in source.files or file.rpartition("/")[0] in FOLDERS
    if not is_read or not own.is_relative_to(home.soul.resolve()) or own.suffix != ".md":
        raise UsageProblem(f"{file!r} is no soul file: name one as `claudius soul show` does, or dossiers/NAME.md")
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not own.exists() and (known := source.files.get(file)):
        shutil.copyfile(known.source, own)
        own.chmod(0o600)
    before = own.read_bytes() if own.exists() else b""
    click.edit(filename=str(own))
    after = own.read_bytes() if own.exists() else b""
    changed = sha256(before).digest() != sha256(after).digest()
    click.echo(f"{own}: {'changed; the next turn reads it' if changed else 'unchanged'}")
