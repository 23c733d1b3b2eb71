"""The export of portraits and soul state as files, with their history in git.

The database remains the source of truth.
"""

from claudius.memory.archive.remote import Remote
from claudius.memory.archive.repository import GitFailed
from claudius.memory.archive.worker import Archive, Round

__all__ = ["Archive", "GitFailed", "Remote", "Round"]
