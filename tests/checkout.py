"""A checkout of the project in which ./setup.sh runs: an installer that only records, and what it would install."""

import os
import shutil
import sys
from pathlib import Path

from tree import REPOSITORY

UV = """#!/bin/sh
echo "$@" >>calls
case "$*" in *--require-hashes*) cp .venv/claudius-requirements asked; {locked} ;; esac
"""
"""Stands in for an installer: records its arguments, and exits as a test wants it to."""


def checkout(at: Path, *, locked: str = "true", claudius: str = "") -> Path:
    """Make a checkout with that installer and that command `claudius`; return it."""
    for name in ("setup.sh", "pyproject.toml", "requirements.lock"):
        shutil.copy(REPOSITORY / name, at / name)
    (at / ".venv" / "bin").mkdir(parents=True)
    (at / ".venv" / "bin" / "python").symlink_to(sys.executable)
    for path, text in ((".venv/bin/claudius", f"#!/bin/sh\n{claudius}\n"), ("bin/uv", UV.format(locked=locked))):
        (at / path).parent.mkdir(exist_ok=True)
        (at / path).write_text(text)
        (at / path).chmod(0o755)
    (at / "bin" / "claude").symlink_to("/bin/false")
    return at


def path_of(at: Path) -> str:
    """Return the PATH on which the checkout's own commands are found first."""
    return f"{at / 'bin'}{os.pathsep}{os.environ['PATH']}"
