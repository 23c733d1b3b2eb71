"""Settings and secrets."""

from claudius.config.load import Loaded, load, parse_value, shown
from claudius.config.schema import ALIASES, SETTINGS, Budget, Config, Model, Section, Setting
from claudius.config.secrets import SECRETS, Secret, blot, held, read_env_file, take_secrets

__all__ = [
    "ALIASES",
    "SECRETS",
    "SETTINGS",
    "Budget",
    "Config",
    "Loaded",
    "Model",
    "Secret",
    "Section",
    "Setting",
    "blot",
    "held",
    "load",
    "parse_value",
    "read_env_file",
    "shown",
    "take_secrets",
]
