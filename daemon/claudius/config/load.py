"""Load the settings: `config.toml`, strictly validated, overridden by `.env`, then by the environment.

`Settings` holds those in force, and reloads them when their files change. Secrets are read from `.env` and the
environment only, and kept out of our files, logs, prompts and command lines.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from claudius.config.retired import WORDS, keys, leave_out, named, read_old_places, why
from claudius.config.schema import ALIASES, DAIMON_PREFIX, KOTHAR, SETTINGS, Config, DaimonSettings, Setting
from claudius.decoding import ready
from claudius.errors import BadConfiguration, BadHome
from claudius.home import Home, write_private

log = logging.getLogger(__name__)

SECRETS = (
    *("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDIUS_OPENAI_API_KEY", "CLAUDIUS_TRANSCRIPTION_API_KEY"),
    *("GROQ_API_KEY", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DISCORD_TOKEN", "CLAUDIUS_KOTHAR_AUTH_TOKEN"),
    *("CLAUDIUS_HTTP_TOKEN", "CLAUDIUS_STORE_PASSWORD", "CLAUDIUS_ARCHIVE_TOKEN"),
)

BLOT_CHARS = 6
"""A shorter secret is not redacted: it would match in ordinary words."""
_DAIMON_KEYS = sorted((item.name for item in msgspec.structs.fields(DaimonSettings)), key=len, reverse=True)
"""A daimon's settings, longest first, so that `groq_enabled` is not taken for `enabled`."""
PERCEIVE_TOKEN = "CLAUDIUS_PERCEIVE_TOKEN"  # noqa: S105 - the name of it
_TOKEN = re.compile(rf"{DAIMON_PREFIX}.+_AUTH_TOKEN|{PERCEIVE_TOKEN}(_.+)?")
_PASSWORD = re.compile(r"\w+://[^/@]*:[^/@]*@")
_PASSWORDS = {"password", "sslpassword"}
_OWN_IT = "make it a text file that you own"
OF_A_MACHINE = {"ensoul", "http", "log", "storage", "store", "worker"}
"""Sections that may differ between the machines of one soul."""
READ_ONCE = {
    *("adapters", "archive.remote", "discord.api_url", "discord.gateway_url", "discord.typing", "observers"),
    *("pipeline.steps", "slack.api_url", "slack.status"),
}
"""Settings that a process reads only when it starts, besides those of a machine."""
_NAMED = ("tools.own.", "tools.servers.", "perceive.")
"""Tables of what the owner names."""
_KINDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "array": "a list",
    "object": "a table",
}


class Secret:
    """A value that never prints itself. Only `reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, to pass to a client library."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__


class Loaded(Struct, frozen=True):
    """A configuration, the source of each value, and the secrets."""

    config: Config
    sources: Mapping[str, str]
    secrets: Mapping[str, Secret]

    def secret(self, name: str) -> str:
        """Return a secret's value; empty if it is not set."""
        found = self.secrets.get(name)
        return found.reveal() if found else ""


def load(home: Home, env: Mapping[str, str], text: str | None = None) -> Loaded:
    """Read config.toml and .env of a home, overridden by `env`. Raises: BadConfiguration, one line each.

    `text`: what config.toml is going to hold, read in its place.
    """
    tree = _read_toml(home.config, text)
    for key in leave_out(tree):
        facts = {"setting": key, "file": str(home.config), "why": why(key)}
        log.warning("a setting has no effect any more", extra=facts)
    dotenv = read_env_file(home.env_file)
    read_old_places(tree, dotenv, env)
    sources = dict.fromkeys(SETTINGS, "default") | dict.fromkeys(keys(tree), "config.toml")
    _check(tree, str(home.config))
    for source, values in ((".env", dotenv), ("environment", env)):
        for setting in SETTINGS.values():
            for name in (ALIASES.get(setting.key, ""), setting.env):
                if given := values.get(name):
                    _put(tree, setting, _parse(setting, given, (source, name)))
                    sources[setting.key] = source
        for daimon, key, given in _of_daimons(values):
            setting, name = SETTINGS[f"kothar.{key}"], f"CLAUDIUS_DAIMON_{daimon}_{key}".upper()
            _put(tree, setting, _parse(setting, given, (source, name)), f"daimons.{daimon}")
    config, source, zone = _check(tree, str(home.config)), sources["clock.timezone"], SETTINGS["clock.timezone"]
    names = [*secret_names(env, dotenv), *(name for server in config.tools.servers.values() for name in server.env)]
    secrets = {name: Secret(value) for name in names if (value := env.get(name) or dotenv.get(name))}
    in_file = source not in (".env", "environment")
    _check_zone(config.clock.timezone, *((str(home.config), zone.key) if in_file else (source, zone.env)))
    urls = (
        ("store.url", config.store.url, "STORE_PASSWORD"),
        ("store.listen_url", config.store.listen_url, "STORE_PASSWORD"),
        ("archive.remote", config.archive.remote, "ARCHIVE_TOKEN"),
    )
    for key, url, name in urls:
        if holds_password(url):
            raise BadConfiguration(sources[key], key, "holds a password", f"put it into .env as CLAUDIUS_{name}")
    _check_tokens(config, str(home.config))
    return Loaded(config, sources, secrets)


TOKENS: Mapping[str, tuple[str, ...]] = {"slack": ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"), "discord": ("DISCORD_TOKEN",)}
"""The secrets that a network needs; `adapters = ["auto"]` enables each network that has all of them."""


def networks_on(loaded: Loaded) -> list[str]:
    """Return the networks to hear beside the terminal, `auto` resolved to those whose tokens are set. Pure."""
    names: list[str] = []
    for asked in loaded.config.adapters:
        ready = [network for network, tokens in TOKENS.items() if set(tokens) <= set(loaded.secrets)]
        names += ready if asked == "auto" else [asked]
    return list(dict.fromkeys(name for name in names if name != "terminal"))


def retired(home: Home, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each setting of an earlier version that is still given. Raises: BadConfiguration."""
    envs = {".env": read_env_file(home.env_file), "environment": env}
    return named(_read_toml(home.config, None), str(home.config), envs)


class Settings:
    """The settings in force: reloaded when their files change. A broken edit keeps the last good settings."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        self._home, self._env = home, env
        self._files = (home.config, home.env_file)
        self._seen: tuple[tuple[int, int, int], ...] = self._stamps()
        self.loaded: Loaded = load(home, env)
        self.problem: BadConfiguration | None = None

    def current(self) -> Config:
        """Return the configuration currently in force."""
        stamp = self._stamps()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self.loaded, self.problem = load(self._home, self._env), None
            except BadConfiguration as error:
                self.problem = error
                log.warning("broken settings are not in force", extra={"problem": error.message})
        return self.loaded.config

    def reread(self) -> None:
        """Force a reload at the next `current`, whatever the files' times are."""
        self._seen = ()

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        stamps = []
        for path in self._files:
            try:
                found = os.stat(path)  # noqa: PTH116 - a hot path
            except OSError:
                stamps.append((0, 0, 0))
            else:
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
        return tuple(stamps)


def shown(loaded: Loaded, key: str) -> Any:
    """Return a setting's value in JSON form. Raises: KeyError for an unknown key."""
    value = attrgetter(SETTINGS[key].key)(loaded.config)
    return list(value) if isinstance(value, tuple) else value


def overriding(home: Home, env: Mapping[str, str], key: str) -> tuple[str, str] | None:
    """Return the variable that overrides a setting in config.toml, and where it is set; None if there is none."""
    for source, values in (("environment", env), (".env", read_env_file(home.env_file))):
        for name in (SETTINGS[key].env, ALIASES.get(key, "")):
            if values.get(name):
                return name, source
    return None


def common(loaded: Loaded, began: Loaded | None = None) -> str:
    """Return a hash of the settings that all processes of one soul should share: all but a machine's own. Pure.

    `began`: the settings with which the process began, for those that it reads only then.
    """
    import hashlib  # noqa: PLC0415 - only where several processes share a store

    shared = [key for key in sorted(SETTINGS) if key.partition(".")[0] not in OF_A_MACHINE]
    values = {key: toml(shown(began if began and key in READ_ONCE else loaded, key)) for key in shared}
    return hashlib.sha256("\n".join(f"{key} = {value}" for key, value in values.items()).encode()).hexdigest()[:12]


def parse_value(key: str, text: str) -> Any:
    """Parse a setting's value as a person types it. Raises: BadConfiguration."""
    if key not in SETTINGS:
        raise BadConfiguration("config.toml", key, "is not a setting", _did_you_mean(key))
    return _parse(SETTINGS[key], text, ("config.toml", key))


def holds_password(url: str) -> bool:
    """Return whether a URL holds a password, before its host or as a parameter of libpq. Pure."""
    parameters = url.partition("?")[2].replace("&", " ").split()
    names = {unquote(one.partition("=")[0]).lower() for one in parameters}
    return bool(_PASSWORD.match(url) or names & _PASSWORDS)


def _read_toml(path: Path, text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig") if text is None else text)
    except FileNotFoundError:
        return {}
    except RecursionError as error:
        fix = "no setting is nested that deep: correct it"
        raise BadConfiguration(str(path), "", "is nested too deep", fix) from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(str(path), "", f"is not TOML: {error}", "correct that line") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(str(path), "", f"cannot be read ({error})", _OWN_IT) from error


def _check(tree: Mapping[str, Any], file: str) -> Config:
    for key in keys(tree):
        section, _, rest = key.partition(".")
        name, _, own = rest.partition(".")
        is_of_a_daimon = section == "daimons" and name.isidentifier() and own in _DAIMON_KEYS
        if key not in SETTINGS and not is_of_a_daimon and not key.startswith(_NAMED):
            raise BadConfiguration(file, key, "is not a setting", _did_you_mean(key))
    try:
        return msgspec.convert(tree, ready(Config), strict=True)
    except msgspec.ValidationError as error:
        detail, _, where = _detail(error).partition(" - at `$.")
        key = re.sub(r"\[\.*\d*\]", "", where.rstrip("`"))
        setting = SETTINGS.get(key)
        fix = f"{_remedy(setting)} (default {toml(setting.default)})" if setting else "see docs/configuration.md"
        raise BadConfiguration(file, key, detail, fix) from error


def _check_zone(name: str, file: str, key: str) -> None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - only needed if a zone is set

    try:
        ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        fix = "write an IANA name, such as Europe/Rome"
        raise BadConfiguration(file, key, f"there is no zone {name!r}", fix) from error


def _check_tokens(config: Config, file: str) -> None:
    taken: dict[str, str] = {}
    tokens = [(f"daimons.{one}", token_name(one)) for one in config.daimons]
    for table, token in (*tokens, *[(f"perceive.{one}", f"{PERCEIVE_TOKEN}_{one.upper()}") for one in config.perceive]):
        if (first := taken.setdefault(token, table)) != table:
            raise BadConfiguration(file, table, f"shares {token} with {first}", "give it another name")


def _parse(setting: Setting, text: str, where: tuple[str, str]) -> Any:
    """Parse a value as a person writes it; `where` is its source (a file or the environment) and its name there."""
    value: Any = text
    if setting.default is None or isinstance(setting.default, tuple):  # None = a list that is not set
        value = [part.strip() for part in text.strip().removeprefix("[]").split(",") if part.strip()]
    elif isinstance(setting.default, bool):
        value = WORDS.get(text.strip().lower(), text)
    try:
        return msgspec.to_builtins(msgspec.convert(value, setting.type, strict=False))
    except msgspec.ValidationError as error:
        found = "" if holds_password(text) else f" (found {text!r})"
        raise BadConfiguration(*where, f"{_detail(error)}{found}", _remedy(setting)) from error


def _detail(error: msgspec.ValidationError) -> str:
    """Return what msgspec says of a value in plain words. Pure."""
    text = re.sub(r"Expected `str` matching regex '.*?'(?= - at|$)", "has the wrong format", str(error))
    return re.sub(r"Expected `(\w+)`(?:, got `\w+`)?", lambda found: f"must be {_KINDS.get(found[1], found[1])}", text)


def _of_daimons(env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the settings of further daimons in an environment: name, key, value as text. Pure."""
    for name, value in env.items():
        if not name.startswith(DAIMON_PREFIX) or not value:
            continue
        rest = name.removeprefix(DAIMON_PREFIX).lower()
        key = next((one for one in _DAIMON_KEYS if rest.endswith(f"_{one}")), "")
        daimon = rest.removesuffix(f"_{key}")
        if key and daimon:
            yield daimon, key, value


def _put(tree: dict[str, Any], setting: Setting, value: Any, table: str = "") -> None:
    sections, _, name = setting.key.rpartition(".")
    for section in filter(None, (table or sections).split(".")):
        tree = tree.setdefault(section, {})
    tree[name] = value


def _remedy(setting: Setting) -> str:
    """Return what a setting is, and its allowed words if only some are allowed. Pure."""
    kind = msgspec.inspect.type_info(setting.type)
    kind = kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind
    words = [str(one) for one in kind.values] if isinstance(kind, msgspec.inspect.LiteralType) else []
    return f"it is: {setting.description}" + (f"; one of {', '.join(words)}" if words else "")


def _did_you_mean(key: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only needed for a typo

    near = get_close_matches(key, SETTINGS, n=1)
    return f"did you mean {near[0]}?" if near else "see docs/configuration.md for all settings"


def toml(value: Any) -> str:
    """Format a value as TOML; null, which TOML lacks, is a setting that is not set. Pure."""
    return msgspec.json.encode(value).decode()


def secret_names(*sources: Iterable[str]) -> tuple[str, ...]:
    """Return the name of every secret in some environments: the fixed ones, and each daimon's and program's. Pure."""
    found = {name for source in sources for name in source if _TOKEN.fullmatch(name)}
    return (*SECRETS, *sorted(found))


def token_name(daimon: str) -> str:
    """Return the environment name of a daimon's token. Pure."""
    return "CLAUDIUS_KOTHAR_AUTH_TOKEN" if daimon == KOTHAR else f"{DAIMON_PREFIX}{daimon.upper()}_AUTH_TOKEN"


def perceive_tokens(loaded: Loaded) -> dict[str, str]:
    """Return the token of each program that may wake the soul, by name. The name may be left out of a single one's."""
    names = loaded.config.perceive
    alone = loaded.secret(PERCEIVE_TOKEN) if len(names) == 1 else ""
    return {name: loaded.secret(f"{PERCEIVE_TOKEN}_{name.upper()}") or alone for name in names}


def take_secrets(environ: MutableMapping[str, str]) -> dict[str, str]:
    """Move the secrets out of a process environment, so that no child inherits them; return the original as a copy."""
    whole = dict(environ)
    for name in secret_names(whole):
        environ.pop(name, None)
    return whole


def read_env_file(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines; allows quotes, `export`, comments. Raises: BadConfiguration if others may read it."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(str(path), "", f"cannot be read ({error})", _OWN_IT) from error
    if mode & 0o077:
        raise BadConfiguration(str(path), "", f"others may read it (mode {mode:04o})", f"run: chmod 600 {path}")
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", line)
        if not match:
            raise BadConfiguration(str(path), f"line {number}", "is not NAME=value", "correct or remove that line")
        value = match[2]
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[match[1]] = value
    return found


def held(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return every secret's value in an environment and its home's `.env`, even if others may read that file."""
    try:
        dotenv = read_env_file(Home.of(env).env_file)
    except (BadConfiguration, BadHome):
        dotenv = {}
    return tuple(value for name in secret_names(env, dotenv) for source in (env, dotenv) if (value := source.get(name)))


def blot(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret replaced by `***`. Pure."""
    for secret in secrets:
        if len(secret) >= BLOT_CHARS:
            text = text.replace(secret, "***")
    return text


def write_setting(home: Home, key: str, value: Any, check: Callable[[Loaded], None] = lambda _: None) -> None:
    """Write one setting to config.toml after checking that it can be read back. Raises: BadConfiguration.

    `check` looks at all settings, and raises BadConfiguration if the file is to stay as it was.
    """
    home.create()
    write_private(home.config.resolve(), check_setting(home, key, value, check))


def write_table(home: Home, table: str, values: Mapping[str, Any] | None) -> None:
    """Put a table of config.toml in the place of the one of that name; None = it goes. Raises: BadConfiguration.

    Other lines stay as they are. Values are texts, numbers, lists, and tables of these.
    """
    home.create()
    file = home.config.resolve()
    lines = file.read_text("utf-8-sig").splitlines() if file.exists() else []
    kept, is_of_it = [], False
    for line in lines:
        if header := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            is_of_it = header[1] == table or header[1].startswith(f"{table}.")
        kept += [] if is_of_it else [line]
    while kept and not kept[-1].strip():
        kept.pop()
    if values is not None:
        kept += ["", f"[{table}]", *(f"{name} = {_inline(value)}" for name, value in values.items())]
    text = "\n".join(kept).lstrip("\n") + "\n"
    load(home, {}, text)
    write_private(file, text)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(name)} = {toml(one)}" for name, one in value.items()) + "}"
    return toml(value)


def check_setting(home: Home, key: str, value: Any, check: Callable[[Loaded], None] = lambda _: None) -> str:
    """Check that a setting can be written to config.toml and read back; return the file's new text.

    Writes nothing. Raises: BadConfiguration, also by `check`; BadHome.
    """
    file = home.config.resolve()  # it may be a symlink to where the owner keeps such files
    _read_toml(file, None)  # raises: it says what cannot be read there
    if file.parent.exists() and not os.access(file.parent, os.W_OK):
        raise BadHome(f"{file.parent} cannot be written to: {key} is set there")
    text = _with(file.read_text("utf-8-sig") if file.exists() else "", key, toml(value))
    check(load(home, {}, text))
    return text


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
