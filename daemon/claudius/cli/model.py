"""`claudius model`: list, get, use and remove models that think on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, table
from claudius.config import load
from claudius.errors import ClaudiusError, UsageProblem, near
from claudius.home import DIRECTORY_MODE, Home
from claudius.providers.home import models

AUTO = "auto"
HOME = "home"


@click.group(cls=Group)
def model() -> None:
    """A mind at home: models on this machine, without a key or an account."""


@model.command("list")
@click.option("--fits", is_flag=True, help="Only the one to take here, if no model is attached yet.")
@json_option
def list_(*, fits: bool, as_json: bool) -> None:
    """List the models that are here, and those that can be downloaded."""
    home = Home.of(os.environ)
    if fits:
        found = offered(home)
        print_result(found, [found.told] if found else [], as_json=as_json)
        return
    used = models.in_use(load(home, os.environ), home)
    rows: list[dict[str, Any]] = [
        {"name": path.stem, "here": True, "bytes": path.stat().st_size, "used": path == used, "tried": True}
        for path in models.files(home)
    ]
    here = {row["name"] for row in rows}
    for one in models.known_models():
        if one.name not in here:
            known = {"memory": one.memory, "languages": one.languages, "licence": one.licence, "repo": one.repo}
            rows.append(
                {"name": one.name, "here": False, "bytes": one.bytes, "used": False, "tried": one.tried, **known}
            )
    names = ("name", "size", "memory", "languages", "licence", "")
    lines = table(names, map(_row, rows), right=("size", "memory"))
    print_result(rows, lines, as_json=as_json)


def _row(row: dict[str, Any]) -> list[str]:
    state = ("here, in use" if row["used"] else "here") if row["here"] else "" if row["tried"] else "not tried by us"
    memory = models.gigabytes(row.get("memory") or row["bytes"] + models.BESIDE)
    return [
        row["name"],
        models.gigabytes(row["bytes"]),
        memory,
        row.get("languages", ""),
        row.get("licence", ""),
        state,
    ]


@model.command()
@click.argument("which", metavar="NAME|PATH|REPO/FILE")
def get(which: str) -> None:
    """Fetch a model: one of `claudius model list`, a GGUF file that is here, or OWNER/REPO/FILE of a hub."""
    fetch(Home.of(os.environ), which)


def fetch(home: Home, which: str) -> None:
    """Fetch a model, have it think, and say how quick it is. Raises: ClaudiusError."""
    home.create()
    home.models.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    known = {one.name: one for one in models.known_models()}
    if which in known:
        taken = _downloaded(home, known[which].repo, known[which].file, which)
    elif Path(which).expanduser().is_file():
        taken = models.take(home, Path(which).expanduser().absolute())
    elif which.count("/") == 2 and which.endswith(models.SUFFIX) and which[0] not in "/.~":
        owner, repo, file = which.split("/")
        taken = _downloaded(home, f"{owner}/{repo}", file, file.removesuffix(models.SUFFIX))
    else:
        raise UsageProblem(f"{which} is neither a known model nor a file{near(which, known)}: `claudius model list`")
    click.echo(f"{taken.stem} is here ({models.gigabytes(taken.stat().st_size)})")
    click.echo(_who_thinks(home, taken))


def _downloaded(home: Home, repo: str, file: str, name: str) -> Path:
    from claudius.providers.home.downloading import download

    return download(home, repo, file, name, is_shown=sys.stderr.isatty())


def _who_thinks(home: Home, taken: Path) -> str:
    """Say who speaks now that a model is here."""
    from claudius.providers.chain import choose

    if not models.can_think():
        return f"llama.cpp is still missing: {models.INSTALL}"
    loaded = load(home, os.environ)
    if choose(loaded, home)[0] != HOME or models.in_use(loaded, home) != taken:
        return f"`claudius model use {taken.stem}` has it speak"
    from claudius.reports.home_model import measured, speed_words

    try:
        speed = asyncio.run(measured(home))
    except ClaudiusError as error:
        raise ClaudiusError(f"{error.message}: `claudius model rm {taken.stem}` deletes it") from error
    return f"it thinks from the next message on; {speed_words(speed)}"


@model.command()
@click.argument("name")
def use(name: str) -> None:
    """Have a model that is here speak from the next message on."""
    from claudius.cli.config import write_setting

    home = Home.of(os.environ)
    models.get(home, name)
    write_setting(home, "home.model", name)
    named = load(home, os.environ).config.providers
    if HOME not in named:
        write_setting(home, "providers", [HOME, *(one for one in named if one != AUTO)])
    click.echo(f"{name} speaks from the next message on")


@model.command()
@click.argument("name")
def rm(name: str) -> None:
    """Delete a model's file."""
    home = Home.of(os.environ)
    path = models.get(home, name)
    if load(home, os.environ).config.home.model == name:
        raise ClaudiusError(f"{name} is in use: `claudius config set home.model ''` first, or use another")
    size = path.stat().st_size
    path.unlink()
    click.echo(f"{name} is deleted: {models.gigabytes(size)} are free again")


def offered(home: Home) -> models.KnownModel | None:
    """Return the model to offer where `auto` finds none and none is here; None if this machine holds none."""
    from claudius.providers.chain import choose
    from claudius.providers.current import UNREAL

    loaded = load(home, os.environ)
    if AUTO not in loaded.config.providers or models.files(home) or choose(loaded, home)[0] not in UNREAL:
        return None
    return models.fitting()
