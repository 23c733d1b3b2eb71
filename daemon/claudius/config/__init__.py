"""Settings and secrets."""

from claudius.config.cortex import Consult, Cortex
from claudius.config.load import Loaded, load, parse_value, shown
from claudius.config.schema import ALIASES, SETTINGS, Budget, Config, Model, Setting
from claudius.config.secrets import SECRETS, Secret, blot, held, read_env_file, take_secrets
from claudius.config.section import Section

__all__ = [
    "ALIASES",
    "SECRETS",
    "SETTINGS",
    "Budget",
    "Config",
    "Consult",
    "Cortex",
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
