"""`claudius config`: show, check and change the settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from claudius.cli.output import Group, json_option, print_result
from claudius.config.load import SECRETS, load, parse_value, retired, shown, toml
from claudius.config.schema import SETTINGS
from claudius.errors import EXIT_CONFIG, BadConfiguration
from claudius.home import Home
from claudius.memory.opening import place_of
from claudius.reports import mind
from claudius.reports.opened import edit, noted

if TYPE_CHECKING:
    from claudius.memory.store import Store


@click.group(cls=Group)
def config() -> None:
    """Show, check and change the settings."""


@config.command()
@json_option
def show(*, as_json: bool) -> None:
    """Print every setting, its value, and where that came from."""
    rows = mind.settings(Home.of(os.environ))
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


@config.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set one setting in config.toml; its comments and other lines stay as they are."""
    home = Home.of(os.environ)
    if key in SECRETS:
        raise BadConfiguration("config.toml", key, "is a secret", f"write it into {home.env_file} (mode 0600)")
    parsed = parse_value(key, value)
    if key == "runtime.paused" and (place := place_of(home)).is_postgres:
        _pause(home, is_paused=parsed)
        click.echo(f"{key} = {toml(parsed)}, for every process of {place.shown}")
        if parsed or not load(home, os.environ).config.runtime.paused:
            return
    mind.write_setting(home, key, parsed)
    but = mind.overridden(home, key)
    click.echo(f"{key} = {toml(parsed)}, in {home.config}{but and '; '}{but}")


@config.command()
@json_option
def check(*, as_json: bool) -> int:
    """Check whether config.toml, .env and the environment can be used."""
    errors: list[BadConfiguration] = []
    notes: tuple[str, ...] = ()
    try:
        from claudius.compose import check_names

        home = Home.of(os.environ)
        check_names(load(home, os.environ), home)
        notes = retired(home, os.environ)
    except BadConfiguration as error:
        errors.append(error)
    problems = [{"file": one.file, "key": one.key, "detail": one.detail, "fix": one.fix} for one in errors]
    lines = [error.message for error in errors] or ["the configuration can be used", *notes]
    print_result({"ok": not errors, "problems": problems}, lines, as_json=as_json)
    return EXIT_CONFIG if errors else 0


def _pause(home: Home, *, is_paused: bool) -> None:
    """Pause or resume every process that shares the store, and note it in the audit log. Raises: StoreError."""

    async def change(store: Store) -> None:
        await (store.leases.pause() if is_paused else store.leases.resume())

    noted(home, "pause" if is_paused else "resume")
    edit(home, change)
