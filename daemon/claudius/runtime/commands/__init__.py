"""What people ask of the soul in so many words: about themselves, about where it takes part, about being quiet."""

from claudius.runtime.commands.commands import Commands

__all__ = ["Commands"]
