"""Import what somebody else wrote: whatever a module of theirs raises is one kind of error."""

from __future__ import annotations

import importlib
from types import ModuleType


def module_of(name: str) -> ModuleType:
    """Import a module. Raises: ImportError, with the cause in one line, whatever running it raised."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise
    except Exception as error:
        raise ImportError(f"{name}: {type(error).__name__}: {error}") from error
