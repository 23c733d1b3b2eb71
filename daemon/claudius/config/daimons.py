"""Define the settings of daimons (Kothar and further ones by name) and of the HTTP endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from claudius.config.section import Positive, Seconds, Section, Url

Mode = Literal["whisper", "speak", "both", "off"]
"""Where a whisper goes: into the prompt, aloud after the soul's reply, both, or nowhere."""
KOTHAR = "kothar"
PREFIX = "CLAUDIUS_DAIMON_"
"""The prefix of a further daimon's environment names: `CLAUDIUS_DAIMON_<NAME>_<KEY>`."""
GROQ = "https://api.groq.com/openai/v1"


class Daimon(Section, frozen=True):
    """Another mind that counsels the soul in one line; its token stands in .env."""

    enabled: Annotated[bool, Meta(description="ask it over HTTP: POST /api/whisper")] = False
    groq_enabled: Annotated[bool, Meta(description="ask a model in its name; with both, HTTP first")] = False
    host: Annotated[str, Meta(description="where it listens")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65535, description="where it listens")] = 3033
    tls: Annotated[bool, Meta(description="it listens with TLS")] = False
    provider: Annotated[str, Meta(description="any provider's name, for the model in its name")] = "openai_compat"
    base_url: Annotated[Url, Meta(description="that model's server, where it is a chat-completions server")] = GROQ
    model: Annotated[str, Meta(description="that model; empty = the provider's own")] = "llama-3.3-70b-versatile"
    soul_md: Annotated[str, Meta(description="its character, below soul/; empty = daimons/NAME.md")] = ""
    mode: Annotated[
        Mode, Meta(description="whisper = felt in the prompt; speak = aloud after the reply; both; off")
    ] = "whisper"
    interval_min: Annotated[Positive, Meta(description="minutes between two askings")] = 45
    jitter: Annotated[float, Meta(ge=0, le=0.9, description="share by which that varies")] = 0.2
    daily_max: Annotated[Positive, Meta(description="whispers a day")] = 24
    timeout_s: Annotated[Seconds, Meta(description="seconds for an asking over HTTP")] = 5.0
    llm_timeout_s: Annotated[Seconds, Meta(description="seconds for the model in its name")] = 10.0
    ttl_hours: Annotated[float, Meta(gt=0, le=8760, description="hours after which an unused whisper fades")] = 24.0
    temperature: Annotated[float, Meta(ge=0, le=2, description="of that model")] = 0.9
    max_tokens: Annotated[Positive, Meta(description="of that model")] = 150
    monologue_chars: Annotated[int, Meta(ge=0, le=2000, description="how much of a thought it is told")] = 200
    share_private: Annotated[bool, Meta(description="tell it thoughts from others' direct messages, too")] = False

    @property
    def is_on(self) -> bool:
        """Whether it is asked at all."""
        return self.enabled or self.groq_enabled


class Http(Section, frozen=True):
    """The soul's own endpoint, beside the control socket; its token stands in .env."""

    listen: Annotated[str, Meta(description="HOST:PORT for /api/whisper, /health and /metrics; empty = none")] = ""


KEYS: tuple[str, ...] = tuple(item.name for item in msgspec.structs.fields(Daimon))


def all_daimons(kothar: Daimon, further: Mapping[str, Daimon]) -> dict[str, Daimon]:
    """Return every configured daimon, Kothar first. Pure."""
    return {KOTHAR: kothar, **dict(sorted(further.items()))}


def further_keys(env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the settings of further daimons in an environment: name, key, value as text. Pure."""
    for name, value in env.items():
        if not name.startswith(PREFIX) or not value:
            continue
        rest = name.removeprefix(PREFIX).lower()
        key = next((one for one in sorted(KEYS, key=len, reverse=True) if rest.endswith(f"_{one}")), "")
        daimon = rest.removesuffix(f"_{key}")
        if key and daimon:
            yield daimon, key, value


def is_daimon_token(name: str) -> bool:
    """Return whether an environment name is the token of a further daimon. Pure."""
    return name.startswith(PREFIX) and name.endswith("_AUTH_TOKEN") and len(name) > len(PREFIX) + len("_AUTH_TOKEN")


def token_name(daimon: str) -> str:
    """Return the environment name of a daimon's token. Pure."""
    return "CLAUDIUS_KOTHAR_AUTH_TOKEN" if daimon == KOTHAR else f"{PREFIX}{daimon.upper()}_AUTH_TOKEN"


def modes_of(kothar: Daimon, further: Mapping[str, Daimon]) -> dict[str, str]:
    """Return the modes of the enabled daimons. Pure."""
    if not kothar.is_on and not further:
        return {}
    return {name: one.mode for name, one in all_daimons(kothar, further).items() if one.is_on}
