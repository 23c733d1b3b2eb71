"""`claudius config`: show, check and change the settings."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import json_option, print_json
from claudius.config import SECRETS, SETTINGS, load, overriding, parse_value, shown, toml
from claudius.errors import EXIT_CONFIG, BadConfiguration
from claudius.home import FILE_MODE, Home


@click.group()
def config() -> None:
    """Show, check and change the settings."""


@config.command()
@json_option
def show(*, as_json: bool) -> None:
    """Print every setting, its value, and where that came from."""
    loaded = load(Home.of(os.environ), os.environ)
    rows: dict[str, Any] = {
        key: {"value": shown(loaded, key), "source": loaded.sources[key]} for key in sorted(SETTINGS)
    }
    rows |= {name: {"value": "set" if name in loaded.secrets else "unset", "source": "secret"} for name in SECRETS}
    if as_json:
        print_json(rows)
        return
    for key, row in rows.items():
        click.echo(f"{key} = {toml(row['value'])}  ({row['source']})")


@config.command()
@click.argument("key")
@json_option
def get(key: str, *, as_json: bool) -> None:
    """Print one setting."""
    loaded = load(Home.of(os.environ), os.environ)
    if key in SECRETS:
        document = {"key": key, "value": "set" if key in loaded.secrets else "unset", "source": "secret"}
    else:
        _known(key)
        document = {"key": key, "value": shown(loaded, key), "source": loaded.sources[key]}
    if as_json:
        print_json(document)
    else:
        click.echo(document["value"] if isinstance(document["value"], str) else toml(document["value"]))


@config.command("set")
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set one setting in config.toml; its comments and other lines stay as they are."""
    home = Home.of(os.environ)
    if key in SECRETS:
        raise BadConfiguration("config.toml", key, "is a secret", f"write it into {home.env_file} (mode 0600)")
    _known(key)
    parsed = parse_value(key, value)
    write_setting(home, key, parsed)
    stands = overriding(home, os.environ, key)
    but = f"; it changes nothing while {stands[0]} is set ({stands[1]})" if stands else ""
    click.echo(f"{key} = {toml(parsed)}, in {home.config}{but}")


@config.command()
@json_option
def check(*, as_json: bool) -> int:
    """Tell whether config.toml, .env and the environment can be used."""
    problems = []
    try:
        from claudius.compose import check_names

        check_names(load(Home.of(os.environ), os.environ))
    except BadConfiguration as error:
        problems.append({"file": error.file, "key": error.key, "detail": error.detail, "fix": error.fix})
    if as_json:
        print_json({"ok": not problems, "problems": problems})
    for problem in [] if as_json else problems:
        where = f"{problem['file']}: {problem['key']}" if problem["key"] else problem["file"]
        click.echo(f"{where}: {problem['detail']}; {problem['fix']}")
    if not as_json and not problems:
        click.echo("the configuration can be used")
    return EXIT_CONFIG if problems else 0


def write_setting(home: Home, key: str, value: Any) -> None:
    """Write one setting to config.toml after checking that it can be read back. Raises: BadConfiguration."""
    home.create()
    before = home.config.read_text("utf-8-sig") if home.config.exists() else ""
    _write(home.config, _with(before, key, toml(value)))
    try:
        from claudius.compose import check_names

        check_names(load(home, {}))
    except BadConfiguration:
        _write(home.config, before)
        raise


def _known(key: str) -> None:
    if key not in SETTINGS:
        parse_value(key, "")


def _with(text: str, key: str, value: str) -> str:
    """Set `key` in TOML text without changing any other line."""
    table, _, name = key.rpartition(".")
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*\[", line)]
    if table:
        header = next((i for i in starts if re.fullmatch(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?", lines[i])), None)
        if header is None:
            return "\n".join([*lines, *([""] if lines else []), f"[{table}]", f"{name} = {value}"]) + "\n"
        first, last = header + 1, next((i for i in starts if i > header), len(lines))
    else:
        first, last = 0, starts[0] if starts else len(lines)
    for place in range(first, last):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[place]):
            return "\n".join([*lines[:place], f"{name} = {value}", *lines[place + 1 :]]) + "\n"
    for place in range(first, last):
        if re.match(rf"\s*#\s*{re.escape(name)}\s*=", lines[place]):
            return "\n".join([*lines[: place + 1], f"{name} = {value}", *lines[place + 1 :]]) + "\n"
    return "\n".join([*lines[:first], f"{name} = {value}", *lines[first:]]) + "\n"


def _write(path: Path, text: str) -> None:
    path = path.resolve()  # it may be a symlink to where the owner keeps such files
    fresh = path.with_suffix(".new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "w", encoding="utf-8") as file:  # noqa: PTH123 - opened by descriptor, to set its mode
        file.write(text)
    fresh.replace(path)
