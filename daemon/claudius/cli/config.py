"""`claudius config`: show, check and change the settings."""

from __future__ import annotations

import os
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result
from claudius.config import SECRETS, SETTINGS, check_setting, load, overriding, parse_value, shown, toml
from claudius.config import write_setting as write
from claudius.errors import EXIT_CONFIG, BadConfiguration
from claudius.home import Home
from claudius.reports.opened import noted


@click.group(cls=Group)
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
    lines = [f"{key} = {toml(row['value'])}  ({row['source']})" for key, row in rows.items()]
    print_result(rows, lines, as_json=as_json)


@config.command()
@click.argument("key")
@json_option
def get(key: str, *, as_json: bool) -> None:
    """Print one setting."""
    loaded = load(Home.of(os.environ), os.environ)
    if key in SECRETS:
        document = {"key": key, "value": "set" if key in loaded.secrets else "unset", "source": "secret"}
    else:
        if key not in SETTINGS:
            parse_value(key, "")  # raises: it says which setting may be meant
        document = {"key": key, "value": shown(loaded, key), "source": loaded.sources[key]}
    value = document["value"]
    print_result(document, [value if isinstance(value, str) else toml(value)], as_json=as_json)


@config.command("set")
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set one setting in config.toml; its comments and other lines stay as they are."""
    home = Home.of(os.environ)
    if key in SECRETS:
        raise BadConfiguration("config.toml", key, "is a secret", f"write it into {home.env_file} (mode 0600)")
    parsed = parse_value(key, value)
    write_setting(home, key, parsed)
    override = overriding(home, os.environ, key)
    but = f"; it has no effect while {override[0]} is set ({override[1]})" if override else ""
    click.echo(f"{key} = {toml(parsed)}, in {home.config}{but}")


@config.command()
@json_option
def check(*, as_json: bool) -> int:
    """Check whether config.toml, .env and the environment can be used."""
    errors = []
    try:
        from claudius.compose import check_names

        home = Home.of(os.environ)
        check_names(load(home, os.environ), home)
    except BadConfiguration as error:
        errors.append(error)
    problems = [{"file": one.file, "key": one.key, "detail": one.detail, "fix": one.fix} for one in errors]
    lines = [error.message for error in errors] or ["the configuration can be used"]
    print_result({"ok": not errors, "problems": problems}, lines, as_json=as_json)
    return EXIT_CONFIG if errors else 0


def write_setting(home: Home, key: str, value: Any) -> None:
    """Write one setting to config.toml, and that it was changed into the audit log. Raises: BadConfiguration."""
    from claudius.compose import check_names

    check_setting(home, key, value, lambda loaded: check_names(loaded, home))
    noted(home, "setting", key)
    write(home, key, value, lambda loaded: check_names(loaded, home))
