"""The export of portraits and soul state as files, with their history in git. Truth stays in the database."""

from claudius.memory.archive.repository import GitFailed
from claudius.memory.archive.worker import Archive, Round

__all__ = ["Archive", "GitFailed", "Round"]
