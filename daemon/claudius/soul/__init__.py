"""Load the soul's text files: the owner's override the shipped ones, and each is reloaded when it changes."""

from claudius.soul.source import FOLDERS, SoulSource, check, shadowed
from claudius.soul.texts import SoulFile, SoulText, StepText, StepValue, dossiers, tokens

__all__ = [
    "FOLDERS",
    "SoulFile",
    "SoulSource",
    "SoulText",
    "StepText",
    "StepValue",
    "check",
    "dossiers",
    "shadowed",
    "tokens",
]
