"""Every setting by its key, read off the tables of `schema`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from claudius.config.schema import Config
from claudius.config.tables import SettingsTable

ALIASES: Mapping[str, str] = {"anthropic.base_url": "ANTHROPIC_BASE_URL"}
"""Settings that also have a well-known environment name; ours takes precedence over it."""


class Setting(Struct, frozen=True):
    """One setting: its key (`section.name`, or a bare name), type, default and description."""

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
        if isinstance(item.type, type) and issubclass(item.type, SettingsTable):
            yield from _settings(item.type, f"{prefix}{item.name}.")
        elif item.name != "daimons":  # each daimon's keys are listed under the name that the owner gave it
            description = next((meta.description for meta in item.type.__metadata__ if meta.description), "")
            yield Setting(prefix + item.name, item.type, item.default, description)


SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _settings(Config)}
