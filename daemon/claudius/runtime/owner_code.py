"""The code by which somebody becomes an owner: `claudius onboard` makes it, and the first to say it directly is one.

It is kept as a hash in a file of the home, because the process that makes it is not the one that hears it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from datetime import datetime
from pathlib import Path

from claudius.home import Home, write_private
from claudius.memory.codes import ALPHABET, CODE_CHARS, LIFE, WRONG_TRIES


class OwnerCode:
    """The one open code of a home."""

    def __init__(self, home: Home) -> None:
        """Keep it in the home's state; nothing is read yet."""
        self._path: Path = home.state / "owner_code.json"

    def make(self, now: datetime) -> str:
        """Return a new code, good for an hour; an older one is void. Raises: OSError."""
        code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
        self._keep({"sha256": _hash(code), "until": (now + LIFE).isoformat(), "wrong": 0})
        return code

    def redeem(self, code: str, now: datetime) -> bool:
        """Return whether this is the code. It is void afterwards, and also after a few wrong tries."""
        try:
            kept = json.loads(self._path.read_text("utf-8"))
            is_open = now < datetime.fromisoformat(kept["until"])
            is_it = hmac.compare_digest(str(kept["sha256"]), _hash(code.strip().upper())) and is_open
            wrong = int(kept["wrong"]) + 1
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if is_it or wrong >= WRONG_TRIES or not is_open:
            self.void()
        else:
            self._keep(kept | {"wrong": wrong})
        return is_it

    def void(self) -> None:
        """Void the open code, if there is one."""
        self._path.unlink(missing_ok=True)

    def _keep(self, kept: dict[str, str | int]) -> None:
        write_private(self._path, json.dumps(kept))


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
