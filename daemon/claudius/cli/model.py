"""`claudius model`: list, get, use and remove models that think on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, table
from claudius.config.load import load
from claudius.errors import ClaudiusError, UsageProblem, near
from claudius.home import DIRECTORY_MODE, Home
from claudius.providers.home import models
from claudius.reports import mind


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
    rows = mind.model_rows(home)
    names = ("name", "size", "memory", "languages", "licence", "")
    lines = table(names, map(_row, rows), right=("size", "memory"))
    print_result(rows, lines, as_json=as_json)


def _row(row: dict[str, Any]) -> list[str]:
    state = ("here, in use" if row["used"] else "here") if row["here"] else "" if row["tried"] else "not tried by us"
    size, memory = map(models.gigabytes, (row["bytes"], row.get("memory") or row["bytes"] + models.BESIDE))
    return [row["name"], size, memory, row.get("languages", ""), row.get("licence", ""), state]


@model.command()
@click.argument("which", metavar="NAME|PATH|REPO/FILE")
def get(which: str) -> None:
    """Fetch a model: one of `claudius model list`, a GGUF file that is here, or OWNER/REPO/FILE of a hub."""
    fetch(Home.of(os.environ), which)


def fetch(home: Home, which: str) -> None:
    """Fetch a model, have it think, and say how quick it is. Raises: ClaudiusError."""
    home.create()
    home.models.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    known, is_shown = {one.name: one for one in models.known_models()}, sys.stderr.isatty()
    if which in known:
        taken = mind.download(home, known[which].repo, known[which].file, which, is_shown=is_shown)
    elif Path(which).expanduser().is_file():
        taken = models.take(home, Path(which).expanduser().absolute())
    elif which.count("/") == 2 and which.endswith(models.SUFFIX) and which[0] not in "/.~":
        owner, repo, file = which.split("/")
        taken = mind.download(home, f"{owner}/{repo}", file, file.removesuffix(models.SUFFIX), is_shown=is_shown)
    else:
        raise UsageProblem(f"{which} is neither a known model nor a file{near(which, known)}: `claudius model list`")
    click.echo(f"{taken.stem} is here ({models.gigabytes(taken.stat().st_size)})")
    click.echo(asyncio.run(mind.who_thinks(home, taken)))


@model.command()
@click.argument("name")
def use(name: str) -> None:
    """Have a model that is here speak from the next message on."""
    mind.use(Home.of(os.environ), name)
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
    if mind.AUTO not in loaded.config.providers or models.files(home) or choose(loaded, home)[0] not in UNREAL:
        return None
    return models.fitting()
