"""`claudius soul`: show, check and edit the soul's files."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from claudius.cli.output import json_option, print_result
from claudius.cli.records import noted
from claudius.cognition.processes import process_problems
from claudius.cognition.steps import STEPS
from claudius.config import load
from claudius.errors import EXIT_FAILED, BadSoul, UsageProblem
from claudius.home import DIRECTORY_MODE, Home, shipped, write_private
from claudius.soul import FOLDERS, SoulSource, SoulText, shadowed
from claudius.soul import check as check_soul


@click.group()
def soul() -> None:
    """Read, check and edit who the soul is."""


@soul.command()
@click.argument("file", required=False)
@json_option
def show(file: str | None, *, as_json: bool) -> None:
    """Print the soul's files, or one of them, as the next turn will read them."""
    found = _current(Home.of(os.environ))
    chosen = {name: item for name, item in sorted(found.files.items()) if file in (None, name)}
    if not chosen:
        raise UsageProblem(f"there is no soul file {file!r}: choose one of {', '.join(sorted(found.files))}")
    document = {
        name: {"text": item.text, "source": str(item.source), "sha256": item.sha256} for name, item in chosen.items()
    }
    lines: list[str] = []
    for name, item in chosen.items():
        lines += [click.style(f"── {name}  ({item.source})", dim=True), item.text.rstrip() + "\n"]
    print_result(document, lines, as_json=as_json)


def _current(home: Home) -> SoulText:
    return SoulSource(home.soul, shipped("soul"), steps=tuple(STEPS)).current()


@soul.command()
@json_option
def check(*, as_json: bool) -> int:
    """Check whether every soul file can be used."""
    from claudius.psyche.personality import BadPersonality, Fingerprint

    home = Home.of(os.environ)
    tokens = load(home, os.environ).config.soul.dossier_tokens
    problems = check_soul(home.soul, shipped("soul"), tokens, tuple(STEPS))
    current = _current(home)
    problems += process_problems(current)
    personality = current.files["soul.md"]
    try:
        Fingerprint.of(personality.head)
    except BadPersonality as error:
        fix = "correct it; until then the default personality is used"
        problems.append(BadSoul(str(personality.source), 1, f"its head: {error}", fix))
    shadows = shadowed(home.soul, shipped("soul"))
    document = {
        "ok": not problems,
        "problems": [{"file": p.file, "line": p.line, "detail": p.detail, "fix": p.fix} for p in problems],
        "shadows": [{"file": str(own), "shadowed": str(other)} for own, other in shadows],
    }
    lines = [problem.message for problem in problems] or ["every soul file can be used"]
    lines += [f"{own} is read instead of {other}: edits of that one change nothing" for own, other in shadows]
    print_result(document, lines, as_json=as_json)
    return EXIT_FAILED if problems else 0


@soul.command()
@click.argument("file", default="soul.md")
def edit(file: str) -> None:
    """Open one of the soul's files in your editor; the shipped text is the start of your own."""
    home = Home.of(os.environ)
    home.create()
    source = _current(home)
    own = (home.soul / file).resolve()
    is_read = file in source.files or file.rpartition("/")[0] in FOLDERS
    if not is_read or not own.is_relative_to(home.soul.resolve()) or own.suffix != ".md":
        raise UsageProblem(f"{file!r} is not a soul file: name one as `claudius soul show` does, or dossiers/NAME.md")
    own.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    start = own if own.exists() else source.files[file].source if file in source.files else None
    before = start.read_text("utf-8") if start else ""
    with TemporaryDirectory(prefix="edit-", dir=home.state) as aside:  # so that no turn reads what is half written
        copy = Path(aside) / own.name
        copy.write_text(before, "utf-8")
        click.edit(filename=str(copy))
        after = copy.read_text("utf-8") if copy.exists() else before
    if after != before:
        noted("soul", file)
        write_private(own, after)
    click.echo(f"{own}: {'changed; the next turn reads it' if after != before else 'unchanged'}")
