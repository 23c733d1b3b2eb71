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
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any
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
_LEAF = 13
"""The first byte of a leaf page of a table with rowids."""
_WAL_HEAD, _FRAME_HEAD = 32, 24


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

    def places_in(self, data: bytes) -> Iterator[int]:
        """Yield the offsets of needles in the bytes of a database file.

        Ids need not be whole words here, because nothing separates one value from the next.
        """
        for needle in (*self._ids, *self._folders, *self.excerpts_in(data)):
            at = data.find(needle)
            while at >= 0:
                yield at
                at = data.find(needle, at + 1)


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
    """Return the files, and the database rows and pages, that contain any needle; and what could not be read."""
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
    pages = _stale(database, needles) if database.exists() and not rows else {}
    if rows or pages or _logged(Path(f"{database}-wal"), needles):
        found.add(str(database))
    return {"whole": True, "found": sorted(found), "unread": sorted(unread), "rows": rows[:MOST_HITS], "pages": pages}


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
        if any(needles.are_in(block) for _, block in _blocks(file, needles)):
            return True
        file.seek(0)
        if file.read(2) != b"\x1f\x8b":
            return False
        file.seek(0)
        with gzip.GzipFile(fileobj=file) as inner:
            return any(needles.are_in(block) for _, block in _blocks(inner, needles))


def _blocks(file: Any, needles: Needles) -> Iterator[tuple[int, bytes]]:
    """Yield a file's bytes as (offset, block); blocks overlap by the length of the longest needle."""
    at, rest = 0, b""
    while block := file.read(BLOCK):
        yield at - len(rest), rest + block
        at, rest = at + len(block), (rest + block)[-needles.longest - 1 :]


def _git_holds(git: dict[str, Any], needles: Needles) -> bool:
    """Search every git object, reachable or not, as git unpacks it. Raises: OSError, CalledProcessError."""
    command = ["git", *GIT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=git["env"]) as running:
        hit = False
        for _, block in _blocks(running.stdout, needles):  # read to the end, else git fails
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


def _stale(database: Path, needles: Needles) -> dict[str, list[int]]:
    """Return where needles are left outside of every row: by table or index, the rows that share such a page.

    SQLite zeroes deleted content (`secure_delete`), but not the copy of a row that it once moved to another page.
    """
    found: dict[str, list[int]] = {}
    with database.open("rb") as file:
        pages = Pages(file)
        hits: dict[int, list[int]] = {}
        for at, block in _blocks(file, needles):
            for place in needles.places_in(block):
                hits.setdefault((at + place) // pages.bytes + 1, []).append((at + place) % pages.bytes)
        owners = _owners(database, pages) if hits else {}
        free = pages.free() if hits.keys() - owners.keys() else set()
        for number, places in sorted(hits.items()):
            page = pages.read(number)
            if number in owners:
                live = list(pages.cells(page, number))
                if all(any(first <= place < end for first, end in live) for place in places):
                    continue
            elif number not in free:
                continue  # a row's overflow page is part of that row
            found.setdefault(owners.get(number, ""), []).extend(_rowids(page))
    return found


def _logged(wal: Path, needles: Needles) -> bool:
    """Return whether any page in a write-ahead log contains a needle outside of every row."""
    with suppress(FileNotFoundError), wal.open("rb") as file:
        head = file.read(_WAL_HEAD)
        pages = Pages(file, int.from_bytes(head[8:12], "big") or _WAL_HEAD)
        while len(frame := file.read(_FRAME_HEAD + pages.bytes)) == _FRAME_HEAD + pages.bytes:
            page, number = frame[_FRAME_HEAD:], int.from_bytes(frame[:4], "big")
            live = list(pages.cells(page, number))
            if any(not any(first <= place < end for first, end in live) for place in needles.places_in(page)):
                return True
    return False


class Pages:
    """The pages of a database file, as https://sqlite.org/fileformat2.html describes them."""

    def __init__(self, file: IO[bytes], size: int = 0) -> None:
        """Read pages from an open file; `size` is the page size in bytes if the file has no header that states it."""
        self._file = file
        head = file.read(100) if not size else b""
        self._head = head
        said = size or int.from_bytes(head[16:18], "big")
        self.bytes = 65536 if said == 1 else said
        self._usable = self.bytes - (head[20] if head else 0)
        if not size:
            file.seek(0)

    def read(self, number: int) -> bytes:
        """Return one page, numbered from 1."""
        self._file.seek((number - 1) * self.bytes)
        return self._file.read(self.bytes)

    def free(self) -> set[int]:
        """Return the numbers of the free pages."""
        found, trunk = set(), int.from_bytes(self._head[32:36], "big")
        while trunk and trunk not in found:
            page = self.read(trunk)
            count = min(int.from_bytes(page[4:8], "big"), len(page) // 4 - 2)
            found |= {trunk, *(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * count, 4))}
            trunk = int.from_bytes(page[:4], "big")
        return found

    def children(self, page: bytes, number: int) -> list[int]:
        """Return the pages that an interior page of a tree points to."""
        at = _offset(number)
        if page[at : at + 1] not in (b"\x02", b"\x05"):
            return []
        return [int.from_bytes(page[place : place + 4], "big") for place in (*_pointers(page, at), at + 8)]

    def cells(self, page: bytes, number: int) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each cell of a page."""
        at = _offset(number)
        kind = page[at]
        if kind not in (2, 10, 13):
            return
        most = self._usable - 35 if kind == _LEAF else (self._usable - 12) * 64 // 255 - 23
        least = (self._usable - 12) * 32 // 255 - 23
        for place in _pointers(page, at):
            size, begin = _varint(page, place + 4 * (kind == 2))
            if kind == _LEAF:
                _, begin = _varint(page, begin)
            if size > most:
                here = least + (size - least) % (self._usable - 4)
                size = (here if here <= most else least) + 4
            yield place, begin + size


def _offset(number: int) -> int:
    return 100 if number == 1 else 0


def _pointers(page: bytes, at: int) -> list[int]:
    count, first = int.from_bytes(page[at + 3 : at + 5], "big"), at + (12 if page[at] in (2, 5) else 8)
    places = (int.from_bytes(page[one : one + 2], "big") for one in range(first, first + 2 * count, 2))
    return [one for one in places if one < len(page) - 4]


def _owners(database: Path, pages: Pages) -> dict[int, str]:
    """Return the name of the table or index that each page belongs to."""
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as connection:
        roots = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    owners: dict[int, str] = {}
    for name, root in (("sqlite_master", 1), *roots):
        waiting = [root]
        while waiting:
            number = waiting.pop()
            page = pages.read(number) if number not in owners else b""
            if len(page) == pages.bytes:
                owners[number] = name
                waiting += pages.children(page, number)
    return owners


def _rowids(page: bytes) -> list[int]:
    """Return the lowest and the highest rowid of a leaf; empty for any page but a leaf of a table with rowids. Pure."""
    found = [_varint(page, _varint(page, at)[1])[0] for at in _pointers(page, 0)] if page[0] == _LEAF else []
    return [min(found), max(found)] if found else []


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint of one to nine bytes; return it and its end. The result is meaningless if the data are short.

    Pure.
    """
    value = 0
    for place in range(at, min(at + 8, len(data))):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[min(at + 8, len(data) - 1)], at + 9


def main() -> None:
    """Read the request from stdin, write the answer to stdout."""
    os.nice(NICE)
    sys.stdout.write(json.dumps(search(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
