"""Load the soul's text files: the owner's override the shipped ones, and each is reloaded when it changes."""

from claudius.soul.files import SoulFile, StepText, StepValue
from claudius.soul.source import FOLDERS, SoulSource, SoulText, Source, check, dossiers, shadowed, tokens

__all__ = [
    "FOLDERS", "SoulFile", "SoulSource", "SoulText", "Source", "StepText", "StepValue", "check", "dossiers",
    "shadowed", "tokens",
]  # fmt: skip
