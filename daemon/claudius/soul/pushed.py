"""The soul that one of several machines has pushed into the store they share: it is in force for all of them."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from claudius.errors import BadSoul
from claudius.foreign import unquoted
from claudius.home import DIRECTORY_MODE, write_private
from claudius.soul.source import SoulSource, SoulText

log = logging.getLogger(__name__)

OVERRULED = "the soul files of this home are not in force: another soul was pushed"
FIX = "`claudius soul push` puts this home's files in force on every machine"
NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
"""The name of a soul's file: nothing of what a store holds is written elsewhere."""
PLACE = ".pushed"
"""Where a home keeps what was pushed, below `soul/`."""


class PushedSoul(Struct, frozen=True, kw_only=True):
    """The own files of a home when its soul was pushed; what it did not have is each release's."""

    number: int
    """Grows with each push."""
    sha256: str
    """The hash of the whole soul, with the files of the release that pushed it."""
    host: str
    at: datetime
    files: Mapping[str, str]
    """By name, as `steps/recall.md`."""


def written(home_soul: Path, pushed: PushedSoul) -> Path:
    """Write what was pushed below a home's own files, where nobody edits it; return its directory. Raises: OSError."""
    place = home_soul / PLACE / _named(pushed)
    if not place.is_dir():
        fresh = place.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=DIRECTORY_MODE, parents=True)
        for name, text in pushed.files.items():
            if not NAME.fullmatch(name):
                log.error("a pushed file is left out: it has no name of a soul's file", extra={"file": name[:80]})
                continue
            path = fresh / name
            path.parent.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
            write_private(path, text)
        fresh.rename(place)
    return place


def _named(pushed: PushedSoul) -> str:
    """Return the directory's name: a number may be given again after a restore."""
    texts = sha256(repr(sorted(pushed.files.items())).encode()).hexdigest()
    return f"{pushed.number}-{texts[:16]}"


class SoulInForce:
    """The soul that was pushed, if one was; else the home's own."""

    def __init__(
        self,
        home_soul: Path,
        of: Callable[[Path], SoulSource],
        newest: Callable[[], PushedSoul | None],
        tell: Callable[[str], None],
    ) -> None:
        """Read directories by `of`; `newest` asks the store; `tell` is told the hash of what is in force."""
        self._home_soul, self._of, self._newest, self._tell = home_soul, of, newest, tell
        self._own = of(home_soul)
        self._pushed: tuple[PushedSoul, SoulSource] | None = None
        self._warned = ""

    @property
    def problems(self) -> tuple[BadSoul, ...]:
        """The files that are broken or gone and not in force."""
        return self._source.problems

    @property
    def _source(self) -> SoulSource:
        return self._pushed[1] if self._pushed else self._own

    def look(self) -> bool:
        """Ask the store what was pushed last; the next turn thinks with it. Raises: StoreError.

        Returns False if the home cannot be written to: then what was in force stays so.
        """
        newest, before = self._newest(), self._pushed[0] if self._pushed else None
        if newest and (before is None or newest.number != before.number):
            try:
                self._pushed = newest, self._of(written(self._home_soul, newest))
            except OSError as error:
                log.error("a pushed soul cannot be kept here", extra={"error": unquoted(error)})  # noqa: TRY400 - no trace
                return False
            log.info("a pushed soul is in force", extra={"sha256": newest.sha256[:12], "host": newest.host})
            with suppress(BadSoul):
                self._tell(self._source.current().sha256)
            for old in (self._home_soul / PLACE).iterdir():
                if old.name != _named(newest):
                    shutil.rmtree(old, ignore_errors=True)
        return True

    def current(self) -> SoulText:
        """Return the soul in force: the same object while nothing has changed. Raises: BadSoul."""
        text = self._source.current()
        self._tell(text.sha256)
        if self._pushed:
            with suppress(BadSoul, OSError):  # what is wrong there is not in force
                self._compare(self._own.current())
        return text

    def _compare(self, own: SoulText) -> None:
        if self._pushed is None or own.sha256 == self._warned:
            return
        self._warned = own.sha256
        if differs(own, self._home_soul, self._pushed[0]):
            log.warning(
                "%s; %s",
                OVERRULED,
                FIX,
                extra={"host": self._pushed[0].host, "pushed_at": self._pushed[0].at.isoformat()},
            )


def own_files(text: SoulText, home_soul: Path) -> dict[str, str]:
    """Return the files of a home by name, as they are on disk. Raises: OSError."""
    found = {name: file.source for name, file in text.files.items() if file.source.is_relative_to(home_soul)}
    return {name: path.read_bytes().decode() for name, path in sorted(found.items())}


def differs(own: SoulText, home_soul: Path, pushed: PushedSoul) -> bool:
    """Return whether a home has soul files of its own, and others than were pushed. Raises: OSError."""
    files = own_files(own, home_soul)
    return bool(files) and files != dict(pushed.files)
