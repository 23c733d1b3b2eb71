"""Settings: `config.toml`, strictly checked, under the environment; and secrets, which stand in no log."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from claudius.errors import BadConfiguration
from claudius.home import Home

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of config.toml. Each field's description is its documentation."""


class Anthropic(Section, frozen=True):
    """The Anthropic API."""

    model: Annotated[str, Meta(description="model asked by anthropic_api")] = "claude-sonnet-4-5"
    base_url: Annotated[str, Meta(description="another server than Anthropic's; also ANTHROPIC_BASE_URL")] = ""
    cache_ttl: Annotated[Literal["5m", "1h"], Meta(description="how long the system part stays cached")] = "5m"


class Claude(Section, frozen=True):
    """The Claude Code CLI and the Agent SDK."""

    model: Annotated[str, Meta(description="model asked by agent_sdk and claude_cli")] = "sonnet"
    cli_path: Annotated[str, Meta(description="the claude command; empty = the bundled one, else PATH")] = ""
    pool: Annotated[Positive, Meta(description="warm Agent SDK clients kept")] = 4


class OpenAI(Section, frozen=True):
    """Any chat-completions server."""

    base_url: Annotated[str, Meta(description="e.g. http://127.0.0.1:11434/v1; empty = a local Ollama if one runs")] = (
        ""
    )
    model: Annotated[str, Meta(description="model asked; empty = the server's first")] = ""


class Model(Section, frozen=True):
    """How every model is asked."""

    first_byte_s: Annotated[Seconds, Meta(description="seconds until the first delta")] = 60.0
    idle_s: Annotated[Seconds, Meta(description="seconds between two deltas")] = 60.0
    total_s: Annotated[Seconds, Meta(description="seconds for a whole call")] = 300.0
    retries: Annotated[NotNegative, Meta(description="retries on one provider before the first delta")] = 3


class SoulState(Section, frozen=True):
    """The soul's own state."""

    interval: Annotated[
        NotNegative, Meta(description="check it every N turns of a conversation; 0 = only while idle")
    ] = 3


class UserModel(Section, frozen=True):
    """Portraits of people."""

    interval: Annotated[NotNegative, Meta(description="turn the soul's eye to the model every N turns; 0 = off")] = 5
    max_bytes: Annotated[Positive, Meta(description="largest model kept")] = 8192
    shrink_floor: Annotated[float, Meta(ge=0, le=1, description="a rewrite must keep this share of the old length")] = (
        0.6
    )


class Memory(Section, frozen=True):
    """Working memory."""

    window: Annotated[Positive, Meta(description="newest entries that are never compacted")] = 20
    ttl_hours: Annotated[float, Meta(gt=0, description="hours until entries are summarised and let go")] = 72.0


class History(Section, frozen=True):
    """The history part of the prompt."""

    budget_tokens: Annotated[Positive, Meta(description="tokens (characters / 4) before the oldest turns leave")] = 8000
    summary_chars: Annotated[Positive, Meta(description="longest summary")] = 1500


class Soul(Section, frozen=True):
    """The soul's files."""

    dossier_tokens: Annotated[NotNegative, Meta(description="tokens of dossiers in the prompt")] = 1000


class Pipeline(Section, frozen=True):
    """One turn of thought."""

    mode: Annotated[Literal["fused"], Meta(description="fused = all steps in one model call")] = "fused"
    repairs: Annotated[int, Meta(ge=0, le=1, description="repair calls for a reply that cannot be spoken")] = 1
    stream: Annotated[tuple[str, ...], Meta(description="adapters that stream")] = ("terminal",)
    max_tokens: Annotated[Positive, Meta(description="longest reply asked of a provider")] = 4096


class Reply(Section, frozen=True):
    """What is said."""

    post_chars: Annotated[int, Meta(ge=200, description="size of one post; longer replies are split")] = 3000


class Runtime(Section, frozen=True):
    """The daemon's life."""

    patience_s: Annotated[Seconds, Meta(description="seconds a message waits for a model before the apology")] = 600.0
    attempts: Annotated[Positive, Meta(description="tries of a turn that raises before the apology")] = 3


class Storage(Section, frozen=True):
    """The disk."""

    reserve_mb: Annotated[NotNegative, Meta(description="free megabytes below which nothing is accepted")] = 64


class Budget(Section, frozen=True):
    """What it may cost."""

    daily_usd: Annotated[float, Meta(ge=0, description="dollars a day; 0 = no cap")] = 0.0
    person_per_minute: Annotated[Positive, Meta(description="messages of one person a minute")] = 20
    person_per_day: Annotated[Positive, Meta(description="messages of one person a day")] = 500
    conversation_per_hour: Annotated[Positive, Meta(description="messages of one conversation an hour")] = 200


class Clock(Section, frozen=True):
    """Local time."""

    timezone: Annotated[str, Meta(description="IANA zone; empty = the system's")] = ""


class Log(Section, frozen=True):
    """The log."""

    level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], Meta(description="least severe line kept")] = "INFO"


class Config(Section, frozen=True):
    """Every setting there is."""

    providers: Annotated[
        tuple[str, ...], Meta(min_length=1, description="who speaks, then its fallbacks; auto = the first there is")
    ] = ("auto",)
    adapters: Annotated[tuple[str, ...], Meta(description="networks listened to; auto = those with tokens")] = ("auto",)
    owners: Annotated[tuple[str, ...], Meta(description="person ids with owner's rights, e.g. slack:T1:U1")] = ()
    anthropic: Anthropic = Anthropic()
    claude: Claude = Claude()
    openai: OpenAI = OpenAI()
    model: Model = Model()
    soul_state: SoulState = SoulState()
    user_model: UserModel = UserModel()
    memory: Memory = Memory()
    history: History = History()
    soul: Soul = Soul()
    pipeline: Pipeline = Pipeline()
    reply: Reply = Reply()
    runtime: Runtime = Runtime()
    storage: Storage = Storage()
    budget: Budget = Budget()
    clock: Clock = Clock()
    log: Log = Log()


ALIASES: Mapping[str, str] = {"anthropic.base_url": "ANTHROPIC_BASE_URL"}
"""Settings that the world already has an environment name for; it is read after our own."""

SECRETS = (
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDIUS_OPENAI_API_KEY",
    "GROQ_API_KEY",
    "SLACK_BOT_TOKEN",
    "SLACK_APP_TOKEN",
    "DISCORD_TOKEN",
)


_BOOLEANS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


class Secret:
    """A value that never shows itself. `reveal` is the one way to it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Keep the value."""
        self._value = value

    def reveal(self) -> str:
        """Return the value, to hand it to a client library."""
        return self._value

    def __repr__(self) -> str:
        """Show nothing."""
        return "***"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting's place: its key (`section.name`, or a bare name), type, default and documentation."""

    key: str
    type: Any
    default: Any
    description: str

    @property
    def env(self) -> str:
        """Its environment name: `CLAUDIUS_SECTION_KEY`."""
        return "CLAUDIUS_" + self.key.replace(".", "_").upper()


def _settings(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[Setting]:
    for item in msgspec.structs.fields(struct):
        if isinstance(item.type, type) and issubclass(item.type, Section):
            yield from _settings(item.type, f"{item.name}.")
        else:
            description = next((meta.description for meta in item.type.__metadata__ if meta.description), "")
            yield Setting(prefix + item.name, item.type, item.default, description)


SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _settings(Config)}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, where each value came from, and the secrets."""

    config: Config
    sources: Mapping[str, str]
    secrets: Mapping[str, Secret] = field(repr=False)

    def secret(self, name: str) -> str:
        """Return a secret's value; empty where it is not set."""
        found = self.secrets.get(name)
        return found.reveal() if found else ""


def load(home: Home, env: Mapping[str, str]) -> Loaded:
    """Read config.toml and .env of a home under an environment. Raises: BadConfiguration, one line each."""
    tree = _read_toml(home.config)
    sources = dict.fromkeys(SETTINGS, "default") | dict.fromkeys(_keys(tree), "config.toml")
    dotenv = read_env_file(home.env_file)
    _check(tree, str(home.config))
    for source, values in ((".env", dotenv), ("environment", env)):
        for setting in SETTINGS.values():
            for name in (ALIASES.get(setting.key, ""), setting.env):
                if given := values.get(name):
                    _put(tree, setting, _parse(setting, given, f"{source}: {name}"))
                    sources[setting.key] = source
    secrets = {name: Secret(value) for name in SECRETS if (value := env.get(name) or dotenv.get(name))}
    return Loaded(_check(tree, str(home.config)), sources, secrets)


def take_secrets(environ: MutableMapping[str, str]) -> dict[str, str]:
    """Move the secrets out of a process environment, so that no child inherits them; return the whole as it was."""
    whole = dict(environ)
    for name in SECRETS:
        environ.pop(name, None)
    return whole


def read_env_file(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines; quotes, `export`, comments allowed. Raises: BadConfiguration if others may read it."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(str(path), "", f"cannot be read ({error})", "make it a text file of your own") from error
    if mode & 0o077:
        raise BadConfiguration(str(path), "", f"others may read it (mode {mode:04o})", f"run: chmod 600 {path}")
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", line)
        if not match:
            raise BadConfiguration(str(path), f"line {number}", "is not NAME=value", "mend or remove that line")
        value = match[2]
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[match[1]] = value
    return found


def shown(loaded: Loaded, key: str) -> Any:
    """Return a setting's value as JSON takes it. Raises: KeyError for an unknown key."""
    node: Any = loaded.config
    for name in SETTINGS[key].key.split("."):
        node = getattr(node, name)
    return list(node) if isinstance(node, tuple) else node


def parse_value(key: str, text: str) -> Any:
    """Read a setting's value as a person types it. Raises: BadConfiguration."""
    if key not in SETTINGS:
        raise BadConfiguration("config.toml", key, "is not a setting", _did_you_mean(key))
    return _parse(SETTINGS[key], text, key)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(str(path), "", f"is not TOML: {error}", "mend that line") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(str(path), "", f"cannot be read ({error})", "make it a text file of your own") from error


def _keys(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _check(tree: Mapping[str, Any], file: str) -> Config:
    for key in _keys(tree):
        if key not in SETTINGS:
            raise BadConfiguration(file, key, "is not a setting", _did_you_mean(key))
    try:
        return msgspec.convert(tree, Config, strict=True)
    except msgspec.ValidationError as error:
        detail, _, where = str(error).partition(" - at `$.")
        key = re.sub(r"\[\.*\d*\]", "", where.rstrip("`"))
        setting = SETTINGS.get(key)
        fix = (
            f"it is: {setting.description} (default {_toml(setting.default)})"
            if setting
            else "see docs/configuration.md"
        )
        raise BadConfiguration(file, key, detail, fix) from error


def _parse(setting: Setting, text: str, where: str) -> Any:
    value: Any = text
    if isinstance(setting.default, tuple):
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif isinstance(setting.default, bool):
        value = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }.get(text.strip().lower(), text)
    try:
        return msgspec.to_builtins(msgspec.convert(value, setting.type, strict=False))
    except msgspec.ValidationError as error:
        raise BadConfiguration(where, "", f"{error} (found {text!r})", f"it is: {setting.description}") from error


def _put(tree: dict[str, Any], setting: Setting, value: Any) -> None:
    *sections, name = setting.key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
    tree[name] = value


def _did_you_mean(key: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for a person's typo

    near = get_close_matches(key, SETTINGS, n=1)
    return f"did you mean {near[0]}?" if near else "see docs/configuration.md for all settings"


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()
