"""Who thinks, with which model, key and budget: shown and set, at the terminal or in the console."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from claudius.children import in_own_thread
from claudius.config.load import SECRETS, load, overriding, parse_value, read_env_file, shown
from claudius.config.load import write_setting as write
from claudius.config.schema import SETTINGS
from claudius.errors import BadConfiguration, ClaudiusError, UsageProblem, near
from claudius.home import DIRECTORY_MODE, Home, write_private
from claudius.memory.audit import CLI
from claudius.memory.database import StorePlace
from claudius.providers.home import models
from claudius.reports.opened import noted_after
from claudius.runtime.life import is_held

AUTO = "auto"
HOME = "home"
SET_ON_THE_PAGE = (
    *("providers", "anthropic.model", "claude.model", "openai.base_url", "openai.model", "home.model"),
    *("budget.daily_usd", "budget.monthly_usd"),
)
KEYS = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDIUS_OPENAI_API_KEY")
OF_TESTS = "scripted"
LOOK_S = 0.3
_KEY = re.compile(r"[!-~]{8,500}")


def settings(home: Home) -> dict[str, Any]:
    """Return every setting with its value and its source, and of every secret only whether it is set."""
    loaded = load(home, os.environ)
    held = {*loaded.secrets, *of_environment(home)}
    rows: dict[str, Any] = {
        key: {"value": shown(loaded, key), "source": loaded.sources[key]} for key in sorted(SETTINGS)
    }
    return rows | {name: {"value": "set" if name in held else "unset", "source": "secret"} for name in SECRETS}


def write_setting(home: Home, key: str, value: Any, origin: str = CLI) -> None:
    """Write one setting to config.toml, and that it was changed into the audit log. Raises: BadConfiguration.

    The audit log is that of the store before the change, because the new one may have a password still to come.
    """
    from claudius.compose import check_names
    from claudius.memory.opening import place_of

    before: StorePlace | None = None
    with suppress(BadConfiguration):
        before = place_of(home)
    write(home, key, value, lambda loaded: check_names(loaded, home))
    noted_after(home, before, "setting", key, origin)


def write_secrets(home: Home, secrets: dict[str, str]) -> None:
    """Write secrets into .env, mode 0600, and remove those that are empty; its other lines stay. Raises: OSError."""
    home.create()
    lines = home.env_file.read_text("utf-8").splitlines() if home.env_file.exists() else []
    kept = [line for line in lines if line.split("=")[0].replace("export", "").strip() not in secrets]
    write_private(
        home.env_file, "\n".join([*kept, *(f"{name}={value}" for name, value in secrets.items() if value), ""])
    )


def set_on_the_page(home: Home, key: str, text: str, origin: str, env: Mapping[str, str]) -> None:
    """Set one of the few settings that the console may set. Raises: UsageProblem, BadConfiguration.

    Who thinks is one of ours, never a program or a module that a name could lead to; and a key goes to no other server
    than the one that it was given for. `env` is the environment with which this process began.
    """
    from claudius.compose import PROVIDERS

    if key not in SET_ON_THE_PAGE:
        raise UsageProblem(f"the console does not set {key}: `claudius config set` does")
    value = parse_value(key, text)
    known = (AUTO, *(name for name in PROVIDERS if name != OF_TESTS))
    if key == "providers" and (not value or any(name not in known for name in value)):
        raise UsageProblem(f"who thinks is one of {', '.join(known)}")
    if key == "home.model" and value:
        models.get(home, value)
    if key == "openai.base_url":
        _keep_key_from(home, value, env)
    write_setting(home, key, value, origin)


def _keep_key_from(home: Home, url: str, env: Mapping[str, str]) -> None:
    """Forget the key of a chat-completions server before another one is asked. Raises: UsageProblem."""
    name = "CLAUDIUS_OPENAI_API_KEY"
    before = load(home, os.environ).config.openai.base_url
    if server_of(url) == server_of(before) or overridden(home, "openai.base_url"):
        return
    if outranked(home, name, env):
        raise UsageProblem(f"{name} of the environment would go to another server: change both there")
    if read_env_file(home.env_file).get(name):
        write_secrets(home, {name: ""})


def server_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address; of what is none, itself and no host. Pure."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url, "", None


def of_environment(home: Home) -> frozenset[str]:
    """Return the names of the secrets that the process that holds the home has of its environment alone."""
    with suppress(OSError, ValueError, AttributeError):
        if is_held(home):
            return frozenset(json.loads(home.lock.read_text()).get("of_environment", ()))
    return frozenset()


def outranked(home: Home, name: str, env: Mapping[str, str]) -> str:
    """Say why a key in .env has no effect; empty if it has. `env` is that with which this process began."""
    if not (env.get(name) or os.environ.get(name) or name in of_environment(home)):
        return ""
    return f"it has no effect while {name} is set (environment)"


def keep_key(home: Home, name: str, value: str, origin: str) -> None:
    """Keep a key, or remove it where it is empty; nothing gives it back. Raises: UsageProblem."""
    from claudius.reports.network_checks import misplaced

    if name not in KEYS:
        raise UsageProblem(f"the console keeps no {name}: write it into .env")
    if value and (why := misplaced(name, value) or ("" if _KEY.fullmatch(value) else "it has other signs than a key")):
        raise UsageProblem(f"that is no {name}: {why}")
    write_secrets(home, {name: value})
    noted_after(home, None, "setting", name, origin)


def overridden(home: Home, key: str) -> str:
    """Say why a setting in config.toml has no effect; empty if it has."""
    found = overriding(home, os.environ, key)
    return f"it has no effect while {found[0]} is set ({found[1]})" if found else ""


def model_rows(home: Home) -> list[dict[str, Any]]:
    """Return the models that are here, then those that can be downloaded."""
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
    return rows


def use(home: Home, name: str, origin: str = CLI) -> None:
    """Have a model that is here speak from the next message on. Raises: UsageProblem."""
    models.get(home, name)
    write_setting(home, "home.model", name, origin)
    named = load(home, os.environ).config.providers
    if HOME not in named:
        write_setting(home, "providers", [HOME, *(one for one in named if one != AUTO)], origin)


def download(home: Home, repo: str, file: str, name: str, *, is_shown: bool) -> Path:
    """Download a model file into the home. Raises: ClaudiusError."""
    from claudius.providers.home import downloading

    home.create()
    home.models.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    return downloading.download(home, repo, file, name, is_shown=is_shown)


async def downloaded(home: Home, name: str) -> AsyncGenerator[dict[str, Any], None]:
    """Download a model of `soul/models.toml`; yield how many bytes are here, and at the end who thinks.

    Raises: UsageProblem, ClaudiusError.
    """
    known = {one.name: one for one in models.known_models()}
    if (one := known.get(name)) is None:
        raise UsageProblem(f"{name!r} is no known model{near(name, known)}: `claudius model list`")
    get = partial(download, home, one.repo, one.file, name, is_shown=False)
    work = asyncio.ensure_future(in_own_thread(get, "download"))  # it holds up no Ctrl-C
    work.add_done_callback(lambda one: one.cancelled() or one.exception())  # whoever looked may have gone
    while not work.done():
        await asyncio.sleep(LOOK_S)
        parts = home.models.glob(f".{name}{models.SUFFIX}.*.part")
        yield {"bytes": max([path.stat().st_size for path in parts if path.exists()], default=0), "of": one.bytes}
    taken = work.result()
    yield {"bytes": taken.stat().st_size, "of": one.bytes, "said": await who_thinks(home, taken)}


async def who_thinks(home: Home, taken: Path) -> str:
    """Say who speaks now that a model is here. Raises: ClaudiusError if it cannot be loaded."""
    from claudius.providers.chain import choose
    from claudius.reports.home_model import measured, speed_words

    if not models.can_think():
        return f"llama.cpp is still missing: {models.INSTALL}"
    loaded = load(home, os.environ)
    if choose(loaded, home)[0] != HOME or models.in_use(loaded, home) != taken:
        return f"`claudius model use {taken.stem}` has it speak"
    try:
        speed = await measured(home)
    except ClaudiusError as error:
        raise ClaudiusError(f"{error.message}: `claudius model rm {taken.stem}` deletes it") from error
    return f"it thinks from the next message on; {speed_words(speed)}"
