"""A connection in the shape of `sqlite3.Connection`, whichever database it leads to, and named queries on it.

Values become rows and rows values here: instants, JSON, entries, calls. A row that does not decode raises RowInvalid,
which names it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import parse_qs, urlsplit, urlunsplit

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from claudius.decoding import decoder, misshapen
from claudius.errors import RowInvalid, StoreError, StoreFull
from claudius.foreign import unquoted
from claudius.intent import Call
from claudius.memory.packing import PACKED, phrases
from claudius.memory.search import tables
from claudius.prompt import valid
from claudius.provider import Usage
from claudius.recollection import Entry, EntryType


class Cursor(Protocol):
    """The rows that a statement returned."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def fetchone(self) -> Any:
        """Return the next row; None if there is none."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return up to `size` of the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open connection in the shape of `sqlite3.Connection`, as far as the store uses it. Rows have named columns."""

    @property
    def Error(self) -> type[Exception]:  # noqa: N802 - the name of PEP 249
        """What each of its errors is."""

    @property
    def OperationalError(self) -> type[Exception]:  # noqa: N802 - likewise
        """An error of the database, not of a statement."""

    @property
    def IntegrityError(self) -> type[Exception]:  # noqa: N802 - likewise
        """A row that the schema refuses."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    def total_changes(self) -> int:
        """The number of rows changed since it was opened."""

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ..., /) -> Cursor:
        """Run one statement."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> object:
        """Run one statement for each row of values."""

    def close(self) -> None:
        """Close it."""


LAST = "\U0010ffff"
"""No character sorts after it: what begins with a text sorts before the text with this at its end."""
EVERY_NETWORK = "*"
"""In place of a network: the mark of its channel `` is an instant, before which no history is read."""
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Row(Protocol):
    """One row of a query: its values by the names of its columns, never by their numbers."""

    def __getitem__(self, column: str, /) -> Any: ...

    def keys(self) -> Iterable[str]:
        """Return the names of the columns."""


@cache
def load_queries(directory: Path, files: str = "*.sql") -> Mapping[str, str]:
    """Read every `-- name: NAME` block of a directory, once a process. Raises: ValueError for a duplicate name."""
    found: dict[str, str] = {}
    for file in sorted(directory.glob(files)):
        _, *blocks = _NAME.split(file.read_text("utf-8"))
        for name, sql in zip(blocks[::2], blocks[1::2], strict=True):
            if name in found:
                raise ValueError(f"{file}: the query {name} stands twice")
            found[name] = sql.strip().rstrip(";")
    return MappingProxyType(found)


class Database:
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ("connection", "queries")

    def __init__(self, connection: Connection, queries: Mapping[str, str]) -> None:
        """Take an open connection; the caller who opened it closes it."""
        self.connection = connection
        self.queries = queries

    def run(self, query: str, /, **values: Any) -> Cursor:
        """Execute one named query."""
        return self.connection.execute(self.queries[query], values)

    def change(self, query: str, /, **values: Any) -> int:
        """Execute one named query and return how many rows it changed."""
        return self.connection.execute(self.queries[query], values).rowcount

    def one(self, query: str, /, **values: Any) -> Row | None:
        """Return the first row of a named query; None if there is none."""
        row: Row | None = self.connection.execute(self.queries[query], values).fetchone()
        return row

    def all(self, query: str, /, **values: Any) -> list[Row]:
        """Return every row of a named query."""
        return self.connection.execute(self.queries[query], values).fetchall()

    def value(self, query: str, /, **values: Any) -> Any:
        """Return the value of a named query with a single column; None if there is no row."""
        row = self.connection.execute(self.queries[query], values).fetchone()
        return None if row is None else _only(row)

    def values(self, query: str, /, **values: Any) -> list[Any]:
        """Return the values of every row of a named query with a single column."""
        return [_only(row) for row in self.connection.execute(self.queries[query], values)]

    def dicts(self, query: str, /, **values: Any) -> list[dict[str, Any]]:
        """Return every row of a named query as a dict by column name."""
        return [dict(row) for row in self.connection.execute(self.queries[query], values)]

    def each(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute one named query for each row of values."""
        self.connection.executemany(self.queries[query], rows)

    def tables(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return each table's name, its key columns and all its columns; those that refer to others come first."""
        refers = {
            table: self.connection.execute(_REFERS, (table,)).fetchone()["refers"]
            for table, *_ in tables(self.connection)
        }
        return sorted(tables(self.connection), key=lambda one: -refers[one[0]])


def _only(row: Row) -> Any:
    (column,) = row.keys()
    return row[column]


_REFERS = "SELECT count(*) AS refers FROM pragma_foreign_key_list(?)"


log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[..., T], *words: Any) -> T:
    """Run work in a thread. Whoever is cancelled waits until it ends, because its connection is closed after that."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *words))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():  # it may be cancelled twice
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()  # marks it as retrieved
        raise


class Core:
    """One database: its writer and its reader while the store is open. Each topic object is given it."""

    def __init__(
        self, name: str, beside: Callable[[], Connection], translate: Callable[[Exception], StoreError]
    ) -> None:
        """`name` says to people which database it is; `beside` opens another connection that reads.

        `translate` turns the database's own errors into ours.
        """
        self.name = name
        self.translate = translate
        self._beside = beside
        self.boot = ""
        """The boot that leases are taken for; empty until the store is started."""
        self.token = 0
        """The fencing token of the lane for which it writes; 0 = no other process could have it."""
        self._writer: Writer | None = None
        self._reader: Database | None = None

    @property
    def is_open(self) -> bool:
        """Whether the database is open."""
        return self._reader is not None

    def open(self, writer: Writer, reader: Database) -> None:
        """Begin to read and write with these."""
        self._writer, self._reader = writer, reader

    def close(self) -> Writer:
        """Close the reader and return the writer, which is to be stopped."""
        writer, reader = self.writer, self.reader
        self._writer = self._reader = None
        reader.connection.close()
        return writer

    @property
    def writer(self) -> Writer:
        """The writer. Raises: StoreError if the store is not open."""
        if self._writer is None:
            raise self._closed()
        return self._writer

    @property
    def reader(self) -> Database:
        """The reader of the event loop's thread. Raises: StoreError if the store is not open."""
        if self._reader is None:
            raise self._closed()
        return self._reader

    def _closed(self) -> StoreError:
        return StoreError(f"{self.name} is not open")

    async def write(self, run: Callable[[Database], T], covers: Collection[Hashable] = ()) -> T:
        """Run a job in a transaction of the writer; return its result once it is durable. Raises: StoreError."""
        return await self.writer.write(run, covers=covers)

    async def alone(self, run: Callable[[Database], T]) -> T:
        """Run a job with the writer's connection, outside of any transaction."""
        return await self.writer.write(run, is_alone=True)

    async def flush(self) -> None:
        """Return once everything queued so far is durable."""
        await self.write(lambda _: None)

    def look(self, query: str, **values: Any) -> list[Row]:
        """Run one query; a single statement is its own snapshot."""
        return self._ask(Database.all, query, **values)

    def find(self, query: str, **values: Any) -> Row | None:
        """Run one query; return its first row, None if there is none."""
        return self._ask(Database.one, query, **values)

    def values(self, query: str, **values: Any) -> list[Any]:
        """Run one query with a single column; return its values."""
        return self._ask(Database.values, query, **values)

    def value(self, query: str, **values: Any) -> Any:
        """Run one query with a single column; return its first value, None if there is none."""
        return self._ask(Database.value, query, **values)

    def _ask(self, ask: Callable[Concatenate[Database, P], T], *query: P.args, **values: P.kwargs) -> T:
        reader = self.reader
        try:
            return ask(reader, *query, **values)
        except reader.connection.Error as error:
            raise self.translate(error) from error

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        """Yield the reader for several queries that see one state of the database."""
        reader = self.reader
        try:
            reader.connection.execute("BEGIN")
            try:
                yield reader
            finally:
                reader.connection.execute("COMMIT")
        except reader.connection.Error as error:
            raise self.translate(error) from error

    @contextmanager
    def beside(self) -> Iterator[Database]:
        """Yield a separate connection, with which a thread may read while turns go on."""
        reader = self.reader
        try:
            with closing(self._beside()) as connection:
                yield type(reader)(connection, reader.queries)
        except reader.connection.Error as error:
            raise self.translate(error) from error


class _Job(Struct):
    run: Callable[[Database], Any]
    future: asyncio.Future[Any] | None
    about: Hashable = None
    writes: Hashable = None
    covers: Collection[Hashable] = ()
    is_last: bool = False
    is_alone: bool = False
    result: Any = None
    error: Exception | None = None


class Writer:
    """Group commits in one thread until stopped. Jobs run in the order they were given.

    Awaited jobs are committed at once, with everything that is queued by then: jobs queued in one step of the event
    loop reach the thread together. The others are committed with the next awaited one, or alone after `linger_s`
    seconds. The thread starts with the first job and wakes only for a commit.
    """

    def __init__(
        self,
        database: Database,
        translate: Callable[[Exception], StoreError],
        linger_s: float,
        *,
        relieve: Callable[[], bool] | None = None,
    ) -> None:
        """Own an open database from now on; `translate` turns its errors into ours.

        If a transaction finds the disk full and `relieve` frees space, it is written a second time.
        """
        self._database = database
        self._translate = translate
        self._linger_s = linger_s
        self._riding: list[_Job] = []
        """Jobs that nobody waits for and that the thread does not have yet."""
        self._alone: asyncio.TimerHandle | None = None
        """Commits these jobs if no awaited job comes."""
        self._soon: asyncio.Handle | None = None
        """Commits these jobs once everything that can run now has run."""
        self._jobs: queue.SimpleQueue[list[_Job]] = queue.SimpleQueue()
        self._relieve = relieve or (lambda: False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._unwritten: Counter[Hashable] = Counter()
        """What the jobs are about that are not durable yet; None of those that somebody waits for."""

    async def write(
        self, run: Callable[[Database], T], *, is_alone: bool = False, covers: Collection[Hashable] = ()
    ) -> T:
        """Run a job and return its result once it is durable. Raises what the job raised, or StoreError.

        A job with `is_alone` runs outside a transaction, after what was queued before it. What it `covers` it writes
        itself: the job of that need not run if it is committed in the same transaction.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Job(run, future, is_alone=is_alone, covers=covers))
        return await future

    def later(self, run: Callable[[Database], Any], about: Hashable = None, writes: Hashable = None) -> None:
        """Queue a job that nobody waits for; its failure is logged. A `flush` of `about` waits for it.

        `writes`: what one that is awaited may cover.
        """
        self._unwritten[about] += 1
        self._riding.append(_Job(run, None, about, writes))
        if self._alone is None:
            self._alone = asyncio.get_running_loop().call_later(self._linger_s, self._hand_over)

    async def flush(self, *about: Hashable) -> bool:
        """Return True once what was queued about these, or about anything, is durable; False if nothing is, at once."""
        if self._unwritten.keys().isdisjoint(about or self._unwritten):
            return False
        await self.write(lambda _: None)
        return True

    async def stop(self, last: Callable[[Database], object] | None = None) -> None:
        """Commit what is queued and then `last`, close the database, end the thread."""
        if self._thread is None and last is None:
            self._database.connection.close()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(_Job(last or (lambda _: None), future, is_last=True))
        try:
            await future
        finally:
            if self._thread is not None:
                self._thread.join()

    def _put(self, job: _Job) -> None:
        """Queue a job without waking the thread for it alone: a waking thread takes the interpreter from the lanes."""
        self._unwritten[job.about] += 1
        self._riding.append(job)
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        for handle in (self._alone, self._soon):
            if handle is not None:
                handle.cancel()
        self._alone = self._soon = None
        self._loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="claudius-store-writer", daemon=True)
            self._thread.start()
        self._jobs.put(self._riding)
        self._riding = []

    def _live(self) -> None:
        is_last = False
        while not is_last:
            batch = self._jobs.get()
            while not self._jobs.empty():
                batch += self._jobs.get()
            is_last = bool([job for job in batch if job.is_last])
            try:
                self._commit(batch)
            except Exception as error:  # noqa: BLE001 - it belongs to the callers, who would wait for ever
                for job in batch:
                    job.error = job.error or error
            if is_last:
                self._database.connection.close()
            assert self._loop is not None  # noqa: S101 - the caller of the first job set it
            try:
                self._loop.call_soon_threadsafe(self._deliver, batch)
            except RuntimeError:  # the loop is closed: nobody waits any more, and what is written stays written
                log.debug("the event loop ended before the writer")

    def _commit(self, batch: list[_Job]) -> None:
        """Make a batch durable in one transaction; a job that fails is undone, and its caller gets the error."""
        self._try([job for job in batch if not job.is_alone])
        for job in batch:
            if job.is_alone:
                try:
                    job.result = job.run(self._database)
                except Exception as error:  # noqa: BLE001 - it belongs to the caller who waits for the job
                    job.error = self._told(error)
        unwritten = [job for job in batch if isinstance(job.error, StoreFull) and not job.is_alone]
        if unwritten and self._relieve():
            for job in unwritten:
                job.error = None
            self._try(unwritten)

    def _try(self, batch: list[_Job]) -> None:
        connection = self._database.connection
        try:
            if not self._run_together(batch):
                connection.execute("BEGIN IMMEDIATE")
                for job in batch:
                    self._run_apart(job)
                connection.execute("COMMIT")
        except connection.Error as error:
            if connection.in_transaction:
                with suppress(connection.Error):  # a connection that is lost holds nothing
                    connection.execute("ROLLBACK")
            translated = self._translate(error)
            for job in batch:
                job.error = job.error or translated

    def _run_together(self, batch: list[_Job]) -> bool:
        """Run and commit a batch as a whole, the usual case; if any job fails, undo everything and return False."""
        connection = self._database.connection
        connection.execute("BEGIN IMMEDIATE")
        covered = set(chain.from_iterable([job.covers for job in batch]))
        try:
            for job in batch:
                if job.writes not in covered:
                    job.result = job.run(self._database)
        except Exception:  # noqa: BLE001 - each job is run again and then gets its own error
            if connection.in_transaction:
                with suppress(connection.Error):  # likewise
                    connection.execute("ROLLBACK")
            return False
        connection.execute("COMMIT")
        return True

    def _run_apart(self, job: _Job) -> None:
        """Run a job in its own savepoint, so that its failure affects no other job."""
        connection = self._database.connection
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.run(self._database)
        except Exception as error:  # it belongs to the caller who waits for the job
            if not connection.in_transaction:  # the whole transaction was rolled back: no job of the batch holds
                raise (
                    error if isinstance(error, connection.Error) else connection.OperationalError(unquoted(error))
                ) from error
            connection.execute("ROLLBACK TO job")
            job.error = self._told(error)
        connection.execute("RELEASE job")

    def _told(self, error: Exception) -> Exception:
        return self._translate(error) if isinstance(error, self._database.connection.Error) else error

    def _deliver(self, batch: list[_Job]) -> None:
        for job in batch:
            self._unwritten[job.about] -= 1
            if not self._unwritten[job.about]:
                del self._unwritten[job.about]
            if job.future is not None:
                if job.error is not None and not job.future.done():
                    job.future.set_exception(job.error)
                elif not job.future.done():
                    job.future.set_result(job.result)
            elif job.error is not None:
                log.warning("a write that nobody waits for failed: %s", unquoted(job.error), exc_info=job.error)


SQLITE = "sqlite"
AS_STORE = "store.url"
_POSTGRES = ("postgres:", "postgresql:")


class StorePlace(Struct, frozen=True):
    """Where a home's store is."""

    url: str = SQLITE
    password: str = ""
    called: str = ""
    """What messages call it; empty = its URL."""
    listen_url: str = AS_STORE
    """The way to the same server for notices, if another; empty = none are wanted."""

    @property
    def is_postgres(self) -> bool:
        """Whether it is a PostgreSQL server."""
        return self.url.startswith(_POSTGRES)

    @property
    def notices_url(self) -> str:
        """Where notices are heard; empty = nowhere."""
        return self.url if self.listen_url == AS_STORE else self.listen_url

    @property
    def shown(self) -> str:
        """The URL without what may be secret: its password and its parameters; of a service, its name."""
        if self.called:
            return self.called
        parts = urlsplit(self.url)
        if not parts.netloc and (service := parse_qs(parts.query).get("service")):
            return f"{parts.scheme}://?service={service[0]}"
        user, at, host = parts.netloc.rpartition("@")
        return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))


_OBJECT = decoder(dict[str, Any])
_STRINGS = decoder(tuple[str, ...])
_ENTRY_TYPES = {kind.value: kind for kind in EntryType}
_UNREADABLE = (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError)
"""Exceptions that decoding a damaged value may raise."""


class Decoding:
    """A context in which one row is decoded.

    Raises: RowInvalid, naming the row, if one of its values does not decode.
    """

    __slots__ = ("_row", "_table")

    def __init__(self, table: str, *row: object) -> None:
        """`table` and the row's primary key identify the row."""
        self._table, self._row = table, row

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Convert a decoding error into RowInvalid; let any other pass."""
        if isinstance(error, _UNREADABLE):
            # Errors other than the decoder's own quote the value that they fail on, so only their type is reported.
            detail = misshapen(error) if isinstance(error, msgspec.MsgspecError) else type(error).__name__
            raise RowInvalid(self._table, "/".join(map(str, self._row)), detail) from error


Readers = Mapping[str, Callable[[Any], Any]]
"""How the values of a row become a struct's, by field; any other is taken as it is."""
RENAMED = {"cls": "class", "grant": "grant_id"}
"""Columns whose names are not their fields'."""
S = TypeVar("S", bound=Struct)


def struct_of(kind: type[S], row: Row, readers: Readers) -> S:
    """Decode a row into the struct whose fields are its columns. Pure. Call it inside `Decoding`."""
    found = ((name, row[RENAMED.get(name, name)]) for name in kind.__struct_fields__)
    return kind(**{name: readers[name](value) if name in readers else value for name, value in found})


def stamp(at: datetime) -> str:
    """Format an aware instant as UTC text that sorts by time: `2026-01-01T00:00:00.000000Z`. Pure."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def instant(text: str) -> datetime:
    """Parse what `stamp` wrote, as an aware UTC datetime. Pure."""
    return datetime.fromisoformat(text)


def maybe_instant(text: str | None) -> datetime | None:
    """Parse an instant that may be missing. Pure."""
    return datetime.fromisoformat(text) if text else None


def dump(value: Any) -> str:
    """Encode a value as JSON. Strings must be valid Unicode. Pure."""
    return msgspec.json.encode(value).decode()


def pack(document: Any) -> bytes:
    """Write a value as compressed JSON, which `unpacked` reads."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zdict=phrases())
    return PACKED + compressor.compress(msgspec.json.encode(document, enc_hook=dict)) + compressor.flush()


def parse(text: str | bytes) -> Any:
    """Decode JSON. Pure."""
    return msgspec.json.decode(text)


def parse_object(text: str) -> dict[str, Any]:
    """Decode a JSON object. Pure. Raises: msgspec.DecodeError for anything else."""
    return _OBJECT.decode(text)


def parse_strings(text: str) -> tuple[str, ...]:
    """Decode a JSON list of strings. Pure. Raises: msgspec.DecodeError for anything else."""
    return _STRINGS.decode(text)


def dump_valid(value: Any) -> str:
    """Encode a value as JSON: its texts made `valid`, nothing else changed. Pure."""
    try:
        encoded = dump(value)
    except UnicodeEncodeError:
        return dump(_valid(msgspec.to_builtins(value)))
    return dump(_valid(msgspec.to_builtins(value))) if "\\u0000" in encoded else encoded


def call_row(turn: str, call: Call, at: str, conversation: str, person: str) -> dict[str, Any]:
    """Return the values of one model call's row. Pure."""
    whose = {"turn": turn, "at": at, "conversation": conversation, "person": person}
    return {**whose, **asdict(call), **asdict(call.usage), "response": valid(call.response)}


def call_of(row: Row) -> Call:
    """Decode a row of the query `calls`. Pure."""
    usage = {name: row[name] for name in Usage.__struct_fields__} | {"estimated": bool(row["estimated"])}
    call = {name: row[name] for name in Call.__struct_fields__ if name != "usage"}
    return Call(**call, usage=Usage(**usage))


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, Mapping):
        return {valid(key): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    return value


def entry_of(row: Row) -> Entry:
    """Decode a row of working memory. Pure. Its errors name no row, so call it inside `Decoding`."""
    return Entry(
        entry_type=_ENTRY_TYPES[row["entry_type"]],
        content=row["content"],
        at=instant(row["at"]),
        verb=row["verb"],
        person=row["person"],
        name=row["name"],
        metadata=parse_object(row["metadata"]) if row["metadata"] else {},
        position=row["position"],
        stems=row["stems"],
    )
