"""Load, validate and hold the settings and secrets."""

from claudius.config.daimons import KOTHAR, Daimon, Mode, all_daimons, modes_of, token_name
from claudius.config.load import Loaded, load, overriding, parse_value, shown, toml
from claudius.config.schema import ALIASES, SETTINGS, Budget, Config, Consult, Cortex, Model, Setting
from claudius.config.secrets import SECRETS, Secret, blot, held, read_env_file, take_secrets
from claudius.config.section import Section


def daimon_modes(config: Config) -> dict[str, str]:
    """Return the modes of the enabled daimons. Pure."""
    return modes_of(config.kothar, config.daimons)


def daimons(config: Config) -> dict[str, Daimon]:
    """Return every configured daimon, Kothar first. Pure."""
    return all_daimons(config.kothar, config.daimons)


__all__ = [
    "ALIASES",
    "KOTHAR",
    "SECRETS",
    "SETTINGS",
    "Budget",
    "Config",
    "Consult",
    "Cortex",
    "Daimon",
    "Loaded",
    "Mode",
    "Model",
    "Secret",
    "Section",
    "Setting",
    "blot",
    "daimon_modes",
    "daimons",
    "held",
    "load",
    "overriding",
    "parse_value",
    "read_env_file",
    "shown",
    "take_secrets",
    "token_name",
    "toml",
]
