"""Watch the soul's files: stat those of a home at every look, and keep the last good version of each in force.

A soul that one of several machines pushed into the store they share is in force for all of them: `SoulInForce`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from claudius.errors import BadSoul, near
from claudius.foreign import unquoted
from claudius.home import DIRECTORY_MODE, write_private
from claudius.soul.files import SoulFile, Stamp, StepText, bytes_of, parse, step_text

log = logging.getLogger(__name__)

PERSONALITY_TOKENS = 900
FOLDERS = ("steps", "processes", "subprocesses", "daimons", "dossiers")
COMPLETED = "rehearsal.md"
"""The file of which a home's own holds only what it changes: the shipped one completes it."""
NEEDED = ("soul.md", "reading.md", "tail.md", "reask.md", "more.md")
"""The files, besides the steps, that every prompt needs."""

DOSSIER_TOKENS = 1000
"""The most tokens of dossiers in the prompt."""
_FRESH_NS = 100_000_000
"""A file that changed this shortly before it was read is read again: coarse timestamps may hide a second change."""


class SoulText(Struct, frozen=True, dict=True):
    """A consistent snapshot of every soul file. A turn uses the same one from start to end."""

    files: Mapping[str, SoulFile]
    steps: Mapping[str, StepText]
    """By step name, in `STEPS` order; then the owner's own."""
    sha256: str
    """The hash of all names and contents; it identifies an epoch of the system prompt."""

    @property
    def derived(self) -> dict[Any, Any]:
        """A cache of what callers computed from this value; a changed copy starts with an empty one."""
        return self.__dict__

    def text(self, name: str) -> str:
        """Return a file's text; empty if there is none."""
        found = self.files.get(name)
        return found.text if found else ""


class Source(Protocol):
    """Where the soul's texts come from."""

    @property
    def problems(self) -> tuple[BadSoul, ...]:
        """The files that are broken or gone and not in force."""

    def current(self) -> SoulText:
        """Return the current soul: the same object while nothing has changed. Raises: BadSoul."""


class _Reading(Struct, frozen=True):
    """The result of reading one file at one stamp."""

    stamp: Stamp
    file: SoulFile | None
    problem: BadSoul | None
    settled: bool
    """False: read it again next time, whatever its stamp is."""


class SoulSource:
    """The soul on disk. After each `current`, `problems` lists the files that are broken or gone and not in force."""

    def __init__(
        self,
        home_soul: Path,
        shipped: Path,
        steps: Sequence[str],
        now_ns: Callable[[], int] = time.time_ns,
        kept: Path | None = None,
        judge: Callable[[SoulFile, Collection[str]], None] = lambda _file, _names: None,
        shipped_s: float = 0.0,
    ) -> None:
        """Watch two directories for the named steps; nothing is read until `current` is called.

        `shipped_s`: how long a look at the shipped files holds, which only a new release changes.

        `kept`: where the home's last good files are copied, so that a new process has them too; None = nowhere.
        `judge` raises BadSoul for a file that can be read but not used, given all names that there are; its caller
        knows what the file is for.
        """
        self._home, self._shipped, self._steps, self._now_ns = home_soul, shipped, tuple(steps), now_ns
        self._kept, self._judge = kept, judge
        self._readings: dict[Path, _Reading] = {}
        self._names: Collection[str] = ()
        self._stamps: tuple[Mapping[str, Stamp], Mapping[str, Stamp]] | None = None
        self._holds_ns, self._looked_ns = int(1e9 * shipped_s), 0
        self._release: Mapping[str, Stamp] = {}
        self._text = SoulText({}, {}, "")
        self.problems: tuple[BadSoul, ...] = ()

    def current(self) -> SoulText:
        """Return the current soul: the same object while nothing has changed.

        If a file of the home breaks or vanishes, its last good version stays in force (for one broken before the start:
        the kept copy, else the shipped file). Only dossiers are dropped when deleted. Raises: BadSoul if no version of
        a needed file is readable.
        """
        home, shipped = _stamps(self._home), self._of_release()
        unsettled = [reading for reading in self._readings.values() if not reading.settled]
        if (home, shipped) == self._stamps and not unsettled:
            return self._text
        known = {name for name in home if "/" in name} | shipped.keys() | self._text.files.keys()
        self._names = known
        problems = list(_closed(self._home))
        files: dict[str, SoulFile] = {}
        for name in sorted(known):
            if found := self._choose(name, home.get(name), shipped.get(name), problems):
                files[name] = found
        live = {root / name for root, names in ((self._home, home), (self._shipped, shipped)) for name in names}
        self._readings = {path: reading for path, reading in self._readings.items() if path in live}
        self._text = self._assemble(files, problems)
        for problem in problems:
            if problem.message not in {one.message for one in self.problems}:
                log.warning("a soul file is not in force", extra={"problem": problem.message})
        self._stamps, self.problems = (home, shipped), tuple(problems)
        return self._text

    def _of_release(self) -> Mapping[str, Stamp]:
        now = self._now_ns()
        if not 0 <= now - self._looked_ns < self._holds_ns:
            self._release, self._looked_ns = _stamps(self._shipped), now
        return self._release

    def _choose(self, name: str, home: Stamp | None, shipped: Stamp | None, problems: list[BadSoul]) -> SoulFile | None:
        last = self._text.files.get(name)
        passing = name.startswith("dossiers/")
        if not home and not passing and last and last.source.is_relative_to(self._home):
            fix = "put it back, or restart to use the shipped one"
            problems.append(BadSoul(str(last.source), 0, "is gone; its last version stays in force", fix))
            return last
        for root, stamp in ((self._home, home), (self._shipped, shipped)):
            if stamp:
                reading = self._read(root, name, stamp)
                if reading.problem:
                    problems.append(reading.problem)
                if found := reading.file or last or (self._copy(name) if root == self._home else None):
                    return found
        return None if passing else last

    def _read(self, root: Path, name: str, stamp: Stamp) -> _Reading:
        path = root / name
        kept = self._readings.get(path)
        if not kept or kept.stamp != stamp or not kept.settled:
            try:
                file = parse(name, path, bytes_of(path, stamp))
                self._judge(file, self._names)
                kept = _Reading(stamp, file, None, abs(self._now_ns() - stamp[0]) > _FRESH_NS)
                if root == self._home:
                    self._keep(path, name)
            except BadSoul as problem:
                kept = _Reading(stamp, None, problem, settled=False)
            self._readings[path] = kept
        return kept

    def _keep(self, path: Path, name: str) -> None:
        """Copy a good file of the home; a failed copy is ignored."""
        if self._kept is None or name.startswith("dossiers/"):
            return
        copy = self._kept / name.replace("/", "-")
        try:
            data = path.read_bytes()
            if copy.is_file() and copy.read_bytes() == data:
                return
            self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = copy.with_suffix(".new")
            fresh.write_bytes(data)
            fresh.chmod(0o600)
            fresh.replace(copy)
        except OSError:
            return

    def _copy(self, name: str) -> SoulFile | None:
        """Return the stored copy of a home's file; None if there is none that can be used."""
        if self._kept is None:
            return None
        copy = self._kept / name.replace("/", "-")
        try:
            found = copy.stat()
            return parse(name, copy, bytes_of(copy, (found.st_mtime_ns, found.st_size, found.st_ino)))
        except (OSError, BadSoul):
            return None

    def _assemble(self, files: dict[str, SoulFile], problems: list[BadSoul]) -> SoulText:
        for needed in (*NEEDED, *(f"steps/{step}.md" for step in self._steps)):
            if needed not in files:
                fault = next((problem for problem in problems if problem.file.endswith(needed)), None)
                raise fault or BadSoul(str(self._shipped / needed), 0, "is missing", "install Claudius again")
        digest = hashlib.sha256()
        for name, file in files.items():
            digest.update(f"{name}\0{file.sha256}\n".encode("utf-8", "surrogateescape"))
        if digest.hexdigest() == self._text.sha256:
            return self._text
        steps = {step: step_text(files[f"steps/{step}.md"]) for step in self._steps}
        own = [step_text(file) for name, file in files.items() if name.startswith("steps/")] if self._steps else []
        steps |= {step.name: replace(step, on_demand=True) for step in own if step.name not in steps}
        return SoulText(files, steps, digest.hexdigest())


def check(home_soul: Path, shipped: Path, steps: Sequence[str] = (), own: Collection[str] = ()) -> list[BadSoul]:
    """List the problems of a home's soul: broken files, files that nothing reads, texts over their size limit.

    `steps` are the registered step names, by default the shipped ones; `own` those that the owner's code asks.
    """
    known = tuple(steps) or tuple(sorted(path.stem for path in (shipped / "steps").glob("*.md")))
    source = SoulSource(home_soul, shipped, known)
    text = source.current()
    found = [*source.problems, *_unused(home_soul, shipped, (*known, *own))]
    personality = text.files["soul.md"]
    if (size := tokens(personality.text)) > PERSONALITY_TOKENS:
        detail = f"is {size} tokens long, {PERSONALITY_TOKENS} are its limit"
        found.append(BadSoul(str(personality.source), 0, detail, "all of it is sent in every turn: shorten it"))
    for dossier in dossiers(text)[1]:
        detail = f"is left out: {tokens(dossier.text)} tokens do not fit into what is left of {DOSSIER_TOKENS}"
        found.append(BadSoul(str(dossier.source), 0, detail, "shorten it"))
    return found


def _unused(home_soul: Path, shipped: Path, steps: Collection[str]) -> Iterator[BadSoul]:
    ours = sorted(name for name in _stamps(shipped) if "/" not in name)
    for path in sorted(home_soul.rglob("*")):
        folder, slash, leaf = path.relative_to(home_soul).as_posix().rpartition("/")
        if path.is_dir() or any(part.startswith(".") for part in path.relative_to(home_soul).parts):
            continue
        if not (leaf.endswith(".md") and folder in FOLDERS if slash else leaf in ours):
            known = ", ".join([*ours, *(f"{folder}/*.md" for folder in FOLDERS)])
            yield BadSoul(str(path), 0, "nothing reads it", f"the soul's files are {known}")
        elif folder == "steps" and path.stem not in steps:
            detail = f"is unused: no process of yours asks a step {path.stem!r}{near(path.stem, steps)}"
            fix = f"the steps are {', '.join(steps)}; docs/extend.md shows one of your own"
            yield BadSoul(str(path), 0, detail, fix)


def _closed(root: Path) -> Iterator[BadSoul]:
    """Yield a problem for each folder that may not be read: files in it would be missed silently."""
    for folder in ("", *FOLDERS):
        path = os.path.join(root, folder)  # noqa: PTH118 - a Path raises for a folder within an unreadable one
        if os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK):  # noqa: PTH112 - as above
            yield BadSoul(path, 0, "cannot be read, nor can the files in it", f"run: chmod u+rwX {path}")


def shadowed(home_soul: Path, shipped: Path) -> list[tuple[Path, Path]]:
    """Return each file of a home that is read instead of a shipped one, with the shipped one, by name."""
    names = sorted((_stamps(home_soul).keys() & _stamps(shipped).keys()) - {COMPLETED})
    return [(home_soul / name, shipped / name) for name in names]


def _stamps(root: Path) -> dict[str, Stamp]:
    """Stat every text file of a soul directory: (mtime in ns, size, inode) by name."""
    found: dict[str, Stamp] = {}
    for folder in ("", *FOLDERS):
        try:
            entries = os.scandir(os.path.join(root, folder))  # noqa: PTH118 - at every look
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.name.endswith(".md") and not entry.name.startswith("."):
                    try:
                        seen = entry.stat()
                    except OSError:
                        continue
                    if stat.S_ISREG(seen.st_mode):
                        name = f"{folder}/{entry.name}" if folder else entry.name
                        found[name] = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
    return found


def dossiers(text: SoulText, budget_tokens: int = DOSSIER_TOKENS) -> tuple[tuple[SoulFile, ...], tuple[SoulFile, ...]]:
    """Split the dossiers, in name order, into those that fit the budget together and those left out. Pure."""
    included: list[SoulFile] = []
    left_out: list[SoulFile] = []
    for name in sorted(name for name in text.files if name.startswith("dossiers/")):
        size = tokens(text.files[name].text)
        fits = size <= budget_tokens
        budget_tokens -= size if fits else 0
        (included if fits else left_out).append(text.files[name])
    return tuple(included), tuple(left_out)


def tokens(text: str) -> int:
    """Estimate a text's tokens: characters / 4, rounded up. Pure."""
    return -(-len(text) // 4)


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
