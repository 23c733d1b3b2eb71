"""The soul as `claudius soul` and `claudius process` print it, and its owner's edits of it.

`save` is the one way in which a soul file is written: only where it still is what its editor saw, whole or not at all,
with the text before it kept. Source: the console design, W28 and W30.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from claudius.cognition.processes import find, known_names
from claudius.cognition.processes.shipped import own_steps, process_problems
from claudius.cognition.reflection import subprocess_problems
from claudius.cognition.steps import STEPS
from claudius.errors import BadSoul, ClaudiusError, UsageProblem, near
from claudius.home import DIRECTORY_MODE, Home, shipped, write_private
from claudius.memory.opening import place_of
from claudius.memory.records import Records
from claudius.reports.doubts import doubts
from claudius.reports.opened import edit, noted, read, records
from claudius.soul import FOLDERS, SoulSource, SoulText, shadowed
from claudius.soul import check as check_soul
from claudius.soul.source import NAME, PushedSoul, differs, own_files, written

if TYPE_CHECKING:
    from claudius.memory.store import Store

KEPT_TEXTS = 20
"""How many earlier texts of each file are kept."""
LONGEST_NAME = 200
_STAMP = "%Y%m%dT%H%M%S.%fZ"


class NoSoulFile(UsageProblem):
    """No soul file has this name."""


class ChangedMeanwhile(ClaudiusError):
    """A soul file was changed by somebody else since it was read."""

    def __init__(self, file: str, text: str, sha256: str) -> None:
        super().__init__(f"{file} was changed meanwhile: look at what it says now")
        self.text, self.sha256 = text, sha256


def current(home: Home) -> SoulText:
    """Return the soul as the next turn will read it: where several machines share a store, what was pushed there."""
    found = pushed(home)
    return _read_soul(written(home.soul, found) if found else home.soul)


def _read_soul(directory: Path) -> SoulText:
    return SoulSource(directory, shipped("soul"), steps=STEPS).current()


def pushed(home: Home) -> PushedSoul | None:
    """Return the soul that was pushed into a store that several machines share; None if there is none."""
    if not place_of(home).is_postgres:
        return None
    with records(home) as kept:
        return kept.pushed_soul()


def push(home: Home) -> dict[str, Any]:
    """Put the home's soul files in force for every process that shares its store.

    Returns `{"sha256", "files", "changed"}`: the hash of the whole soul, the home's own files, and those of them that
    the last push did not have so. Raises: UsageProblem if the store is a file; BadSoul if a file could not be used.
    """
    if not place_of(home).is_postgres:
        raise UsageProblem("this home has its store to itself, so its files are the soul: there is nobody to push to")
    if problems := problems_of(home):
        raise problems[0]
    text, before = _read_soul(home.soul), pushed(home)
    files, there = own_files(text, home.soul), before.files if before else {}
    changed = [name for name in sorted({*files, *there}) if files.get(name) != there.get(name)]
    for name in changed or ["push"]:
        noted(home, "soul", name)

    async def pushing(store: Store) -> None:
        await store.leases.souls.push(files, text.sha256)

    edit(home, pushing)
    return {"sha256": text.sha256, "files": list(files), "changed": changed}


def own_again(home: Home, found: PushedSoul, now: datetime) -> list[str]:
    """Make the soul that was pushed this home's own, and keep the text of what it replaces.

    Returns the names of the files that are other than before, or gone. Raises: BadSoul, OSError.
    """
    own = own_files(_read_soul(home.soul), home.soul)
    changed = [name for name in sorted({*own, *found.files}) if own.get(name) != found.files.get(name)]
    for name in filter(NAME.fullmatch, changed):
        path = home.soul / name
        if path.is_file():
            _keep(home, name, path.read_bytes(), now)
        if name in found.files:
            path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            write_private(path, found.files[name])
        else:
            path.unlink()
    return changed


def overruled(home: Home) -> bool:
    """Return whether a home has soul files of its own that are not in force, because others were pushed."""
    found = pushed(home)
    try:
        return found is not None and differs(_read_soul(home.soul), home.soul, found)
    except (BadSoul, OSError):
        return True


def texts(home: Home, file: str | None = None) -> dict[str, Any]:
    """Return the soul's files, or one of them. Raises: UsageProblem if there is no such file."""
    found = current(home)
    chosen = {name: item for name, item in sorted(found.files.items()) if file in (None, name)}
    if not chosen:
        nearest = near(file or "", found.files)
        raise NoSoulFile(f"there is no soul file {file!r}{nearest}: choose one of {', '.join(sorted(found.files))}")
    return {
        name: {"text": item.text, "source": str(item.source), "sha256": item.sha256} for name, item in chosen.items()
    }


def own_path(home: Home, file: str) -> Path:
    """Return where the owner's own text of a soul file is, whether it is there or not. Raises: NoSoulFile."""
    wrong = f"{file!r} is not a soul file: name one as `claudius soul show` does, or dossiers/NAME.md"
    folder, _, leaf = file.rpartition("/")
    if "\0" in file or len(file) > LONGEST_NAME or leaf.startswith("."):
        raise NoSoulFile(wrong)
    own = (home.soul / file).resolve()
    is_read = folder in FOLDERS or file in current(home).files
    if not is_read or not own.is_relative_to(home.soul.resolve()) or own.suffix != ".md":
        raise NoSoulFile(wrong)
    return own


def history(home: Home, file: str) -> dict[str, Any]:
    """Return a file whole, as an editor needs it, and its earlier texts, newest first. Raises: UsageProblem.

    `{"file", "is_own", "sha256", "text", "shipped", "history": [{"at", "sha256", "text"}]}`; `shipped` is null for a
    file that only this home has.
    """
    own, given = own_path(home, file), shipped("soul") / file
    data = _read(own, given)
    return {
        "file": file,
        "is_own": own.is_file(),
        "sha256": _sha256(data),
        "text": data.decode("utf-8", "replace"),
        "shipped": given.read_text("utf-8") if given.is_file() else None,
        "history": [
            {
                "at": datetime.strptime(path.stem, f"{_STAMP[:-1]}%z"),
                "sha256": _sha256(path.read_bytes()),
                "text": path.read_text("utf-8", "replace"),
            }
            for path in _kept(home, file)
        ],
    }


def save(home: Home, file: str, text: str, was_sha256: str | None, now: datetime, *, origin: str) -> dict[str, Any]:
    """Write one of the soul's files, and keep the text before it; the next turn reads it.

    `was_sha256` is the hash of what its editor saw; None writes whatever it is by now, and unchecked. Raises:
    ChangedMeanwhile, BadSoul if it could not be used, UsageProblem if there is no such file.
    """
    own = own_path(home, file)
    with _alone(home):
        before = _read(own, shipped("soul") / file)
        if was_sha256 is not None:
            if was_sha256 != _sha256(before):
                raise ChangedMeanwhile(file, before.decode("utf-8", "replace"), _sha256(before))
            _check_draft(home, file, text, own)
        noted(home, "soul", file, origin)
        if before:
            _keep(home, file, before, now)
        own.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        write_private(own, text)
    return {"file": file, "sha256": _sha256(own.read_bytes()), "kept": len(_kept(home, file))}


def _check_draft(home: Home, file: str, text: str, own: Path) -> None:
    """Raise BadSoul for what a draft would add to what is wrong with the soul, or leave wrong in its own file."""
    known = {problem.message for problem in problems_of(home)}
    with _drafted(home, {file: text}) as drafted:
        for problem in problems_of(home, drafted):
            where = problem.file.replace(str(drafted), str(home.soul))
            told = BadSoul(where, problem.line, problem.detail, problem.fix)
            if where in (str(own), str(home.soul / file)) or told.message not in known:
                raise told


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold off every other writer of soul files for a block."""
    place = home.state / "soul"
    place.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    held = os.open(place / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _read(own: Path, given: Path) -> bytes:
    return next((path.read_bytes() for path in (own, given) if path.is_file()), b"")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _kept(home: Home, file: str) -> list[Path]:
    """Return a file's earlier texts, newest first."""
    return sorted((home.state / "soul" / "history" / file.replace("/", "-")).glob("*.md"), reverse=True)


def _keep(home: Home, file: str, data: bytes, now: datetime) -> None:
    place = home.state / "soul" / "history" / file.replace("/", "-")
    place.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    write_private(place / f"{now.strftime(_STAMP)}.md", data.decode("utf-8", "replace"))
    for old in _kept(home, file)[KEPT_TEXTS:]:
        old.unlink()


@contextmanager
def _drafted(home: Home, files: Mapping[str, str]) -> Iterator[Path]:
    """Yield a directory with the home's soul files, some of them with another text. Raises: UsageProblem."""
    if not files:
        yield home.soul
        return
    home.create()
    with TemporaryDirectory(prefix="draft-", dir=home.state) as aside:
        drafted = Path(aside) / "soul"
        shutil.copytree(home.soul, drafted, ignore_dangling_symlinks=True)
        for name, text in files.items():
            own_path(home, name)
            path = drafted / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        yield drafted


def checked(home: Home, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return whether every soul file can be used, each problem with its fix, and what may be doubted.

    `files` are drafts, not yet saved.
    """
    with _drafted(home, files or {}) as drafted:
        problems = problems_of(home, drafted)
        shadows = shadowed(drafted, shipped("soul"))
        doubted = doubts(_read_soul(drafted), _read_soul(shipped("soul")))

    def told(path: str) -> str:
        return path.replace(str(drafted), str(home.soul))

    return {
        "ok": not problems,
        "problems": [{"file": told(p.file), "line": p.line, "detail": p.detail, "fix": told(p.fix)} for p in problems],
        "doubts": [to_builtins(one) for one in doubted],
        "shadows": [{"file": told(str(own)), "shadowed": str(other)} for own, other in shadows],
    }


def problems_of(home: Home, drafted: Path | None = None) -> list[BadSoul]:
    """Return what is wrong with the soul's files, processes, rehearsed lines and personality.

    `drafted` is read in place of the home's files.
    """
    from claudius.psyche.personality import BadPersonality, Fingerprint

    own = drafted or home.soul
    found = SoulSource(own, shipped("soul"), steps=STEPS).current()
    problems = list(check_soul(own, shipped("soul"), STEPS, own_steps(found)))
    problems += [*process_problems(found), *subprocess_problems(found), *_misfits(own)]
    personality = found.files["soul.md"]
    try:
        Fingerprint.of(personality.head)
    except BadPersonality as error:
        fix = "correct it; until then the default personality is used"
        problems.append(BadSoul(str(personality.source), 1, f"its head: {error}", fix))
    return problems


def _misfits(directory: Path) -> Iterator[BadSoul]:
    """Yield what does not fit in a home's own rehearsed lines: why they are not in force, or what is never used."""
    from claudius.providers.rehearsal import FILE
    from claudius.providers.rehearsal.lines import Lines, sections_of

    found = [SoulSource(one, shipped("soul"), ()).current().files.get(FILE) for one in (directory, shipped("soul"))]
    own, soul = found
    if own is None or soul is None or own.source == soul.source:
        return
    try:
        Lines(own, soul)
    except BadSoul as problem:
        yield problem
        return
    file, known, sections = str(own.source), sections_of(soul), sections_of(own)
    if not (sections or own.head):
        yield BadSoul(file, own.line, "nothing in it is used: it has no section", "begin one with `## ` and its name")
    for name, section in sections.items():
        if name not in known and not section.cues:
            detail = f"## {name} is never said: there is no such section, and it has no `>` line"
            yield BadSoul(file, section.line, detail, f"correct its name, or give it one{near(name, known)}")
        for line in section.stray:
            detail = "is not used: it begins with none of `>`, `~` and `-`"
            yield BadSoul(file, line, detail, "begin it with `- ` to have it said")


def processes(home: Home) -> list[dict[str, Any]]:
    """Return the mental processes, shipped ones first."""
    return [_row(one) for one in _known(home)]


def process(home: Home, name: str) -> dict[str, Any]:
    """Return one process, and the conversations that are in it now. Raises: ClaudiusError."""
    found = next((one for one in _known(home) if one.name == name), None)
    if found is None:
        nearest = near(name, [one.name for one in _known(home)])
        raise ClaudiusError(f"no process {name!r}{nearest}: `claudius process list` names them")
    return _row(found) | {
        "overrides": dict(found.overrides),
        "participation": found.participation.value if found.participation else None,
        "interruption": found.interruption.value,
        "linger_s": found.linger.total_seconds() if found.linger else None,
        "silence_ok": found.silence_ok,
        "may_execute_now": found.may_execute_now,
        "conversations": [row["conversation"] for row in read(home, Records.positions) if row["process"] == name],
    }


def _known(home: Home) -> Sequence[Any]:
    soul = current(home)
    found = (find(name, soul) for name in known_names(soul))
    return [one for one in found if one is not None]


def _row(one: Any) -> dict[str, Any]:
    return {"name": one.name, "steps": list(one.steps), "next": list(one.next or ()), "description": one.description}
