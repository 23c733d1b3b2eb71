"""Search a home for text that must no longer occur anywhere; `run` starts the search in a separate process.

A separate process is needed because opening and closing the database file in the daemon would drop SQLite's locks on
it, and because the search takes seconds of one core. If it fails in any way, an incomplete answer counts as none.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from claudius.memory.packing import PACKED, unpacked

GRAM, STRIDE = 8, 17
NEEDLE_BYTES = GRAM + STRIDE - 1
"""Any run of this many bytes contains an 8-gram at a multiple of the stride, so only those are looked up."""
BLOCK = 2**18
CACHE_KIB = 256
ROWS = 32
NICE = 10
"""Answering people has priority."""
MOST_HITS = 2000
GIT = ("cat-file", "--batch-all-objects", "--batch", "--unordered", "--buffer")
_GRAMS = re.compile(rb"(?s)(.{8}).{9}")
_ESCAPE = re.compile(r"\\u[0-9a-f]{4}")


class Needles:
    """What to search for: ids as whole words, excerpts anywhere; each as UTF-8 and as JSON escapes."""

    def __init__(self, ids: Sequence[str], folders: Sequence[str], excerpts: Sequence[str]) -> None:
        """`folders`: parts of folder names, separated from the rest of the name by a hyphen."""
        grams: dict[bytes, set[bytes]] = {}
        for needle in (form for excerpt in excerpts for form in forms(excerpt)):
            for at in range(STRIDE):
                grams.setdefault(needle[at : at + GRAM], set()).add(needle)
        self._grams = grams
        self._ids = tuple(form for one in ids for form in forms(one))
        self._folders = tuple(one.encode() for one in folders)
        self.longest = max(map(len, (*self._ids, *(one for found in grams.values() for one in found))), default=1)
        words = [*(_word(one, rb"[\w.@-]") for one in self._ids), *(_word(one, rb"\w") for one in self._folders)]
        self._words = re.compile(b"|".join(words) or rb"(?!)")

    def excerpts_in(self, data: bytes) -> list[bytes]:
        """Return the excerpts that occur in these bytes."""
        seen = self._grams.keys() & set(_GRAMS.findall(data + bytes(STRIDE)))
        return [one for one in {one for gram in seen for one in self._grams[gram]} if one in data]

    def are_in(self, data: bytes) -> bool:
        """Return whether any needle occurs in these bytes."""
        named = any(one in data for one in (*self._ids, *self._folders)) and self._words.search(data)
        return bool(named or self.excerpts_in(data))


def forms(text: str) -> set[bytes]:
    """Return how a text may appear in a file: as it is, as ASCII-only JSON, and as that within JSON. Pure."""
    escaped = json.dumps(text)[1:-1]
    upper = _ESCAPE.sub(lambda found: "\\u" + found[0][2:].upper(), escaped)
    twice = (one.replace("\\", "\\\\") for one in (escaped, upper))
    return {one.encode("utf-8", "replace") for one in (text, escaped, upper, *twice)}


def run(asked: dict[str, Any], *, within_s: float) -> dict[str, Any] | None:
    """Search in a separate process; None if it did not finish. Blocks."""
    command = [sys.executable, "-I", "-m", "claudius.memory.search"]
    try:
        ran = subprocess.run(
            command, input=json.dumps(asked).encode(), capture_output=True, timeout=within_s, check=True
        )
        answer: dict[str, Any] = json.loads(ran.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return answer if answer.get("whole") is True else None


def search(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the files, and the rows of the database, that contain any needle; and what could not be read."""
    needles = Needles(asked["ids"], asked["folders"], asked["excerpts"])
    found: set[str] = set()
    unread: set[str] = set()
    database = Path(asked["database"])
    left_out = {*asked["left_out"], *(f"{database}{end}" for end in ("", "-shm", "-wal"))}
    for path in _files(asked["places"], unread):
        if str(path) not in left_out:
            try:
                if _holds(path, needles):
                    found.add(str(path))
            except FileNotFoundError:
                continue
            except (OSError, EOFError, zlib.error) as error:
                unread.add(f"{path}: {type(error).__name__}")
    if asked["git"] and _git_holds(asked["git"], needles):
        found.add("git")
    rows = list(_rows(database, needles, unread)) if database.exists() else []
    if rows:
        found.add(str(database))
    return {"whole": True, "found": sorted(found), "unread": sorted(unread), "rows": rows[:MOST_HITS]}


def _word(word: bytes, part: bytes) -> bytes:
    return rb"(?<!" + part + rb")" + re.escape(word) + rb"(?!" + part + rb")"


def _files(places: Iterable[str], unread: set[str]) -> Iterator[Path]:
    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unread.add(f"{error.filename}: {error.strerror}")

    for place in places:
        if Path(place).is_file():
            yield Path(place)
            continue
        for directory, _, names in os.walk(place, onerror=note):
            yield from (Path(directory, name) for name in names)


def _holds(path: Path, needles: Needles) -> bool:
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    if needles.are_in(os.fsencode(path)):
        return True
    with path.open("rb") as file:
        if any(map(needles.are_in, _blocks(file, needles))):
            return True
        file.seek(0)
        if file.read(2) != b"\x1f\x8b":
            return False
        file.seek(0)
        with gzip.GzipFile(fileobj=file) as inner:
            return any(map(needles.are_in, _blocks(inner, needles)))


def _blocks(file: Any, needles: Needles) -> Iterator[bytes]:
    """Yield a file's bytes in blocks that overlap by the length of the longest needle."""
    rest = b""
    while block := file.read(BLOCK):
        yield rest + block
        rest = (rest + block)[-needles.longest - 1 :]


def _git_holds(git: dict[str, Any], needles: Needles) -> bool:
    """Search every git object, reachable or not, as git unpacks it. Raises: OSError, CalledProcessError."""
    command = ["git", *GIT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=git["env"]) as running:
        hit = False
        for block in _blocks(running.stdout, needles):  # read to the end, else git fails
            hit = hit or needles.are_in(block)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return hit


def _rows(database: Path, needles: Needles, unread: set[str]) -> Iterator[dict[str, Any]]:
    """Yield each row that contains a needle: its table, its key, and the columns. A damaged one goes into `unread`."""
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as connection:
        connection.execute("PRAGMA busy_timeout = 5000")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")  # each page is read once
        for table, key, columns in tables(connection):
            names = ", ".join(f'"{one}"' for one in (*key, *columns))
            cursor = connection.execute(f'SELECT {names} FROM "{table}"')  # noqa: S608 - names of our own schema
            while page := cursor.fetchmany(ROWS):
                texts = [[plain(value) for value in row[len(key) :]] for row in page]
                for row, values in zip(page, texts, strict=True):
                    if None in values:
                        unread.add(f"{database}: {table} {'/'.join(map(str, row[: len(key)]))}")
                if needles.are_in(b"\0".join(value or b"" for values in texts for value in values)):
                    for row, values in zip(page, texts, strict=True):
                        held = [one for one, value in zip(columns, values, strict=True) if needles.are_in(value or b"")]
                        if held:
                            yield {"table": table, "key": dict(zip(key, row, strict=False)), "columns": held}


def tables(connection: Any) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return, for each table with rows of its own, its name, its key columns, and all its columns."""
    listed = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    virtual = tuple(name for name, sql in listed if (sql or "").startswith("CREATE VIRTUAL"))
    found = []
    for name, sql in listed:
        if name.startswith(("sqlite_", *virtual)):
            continue
        columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        keys = tuple(column for column, pk in sorted(columns, key=lambda one: one[1]) if pk)
        has_rowid = "WITHOUT ROWID" not in sql.rpartition(")")[2].upper()
        found.append((name, ("rowid",) if has_rowid else keys, tuple(column for column, _ in columns)))
    return found


def plain(value: object) -> bytes | None:
    """Return a value's bytes for searching, unpacked if we packed them; None if damaged. Pure."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bytes):
        return b""
    if value[:1] == PACKED:
        try:
            return unpacked(value)
        except ValueError:
            return None
    return value


def main() -> None:
    """Read the request from stdin, write the answer to stdout."""
    os.nice(NICE)
    sys.stdout.write(json.dumps(search(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
