"""Who the soul is: its text files, the owner's over the shipped ones, read again whenever one changes."""

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
