"""Open the store and the records of a home, in the database that `store.url` names. Loads only what that one needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from claudius.errors import StoreError
from claudius.home import FILE_MODE, Home
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore
    from claudius.memory.records import Records
    from claudius.memory.sqlite import SqliteStore
    from claudius.memory.store import Store

PASSWORD = "CLAUDIUS_STORE_PASSWORD"  # noqa: S105 - the name of the variable
MISSING = "store.url names PostgreSQL, but its driver is not installed: pip install 'claudius-daemon[postgres]'"


def place_of(home: Home) -> StorePlace:
    """Return where a home's store is, by this process's environment and the home's files. Raises: BadConfiguration.

    The settings are loaded only if some source of them speaks of PostgreSQL.
    """
    spoken = [os.environ.get("CLAUDIUS_STORE_URL", "").encode()]
    for path in (home.config, home.env_file):
        with suppress(OSError):
            spoken.append(path.read_bytes())
    if not any(b"postgres" in one for one in spoken):
        return StorePlace()
    from claudius.config.load import load  # noqa: PLC0415 - not for SQLite

    loaded = load(home, os.environ)
    secret, settings = loaded.secrets.get(PASSWORD), loaded.config.store
    return StorePlace(settings.url, secret.reveal() if secret else "", listen_url=settings.listen_url)


def open_store(
    home: Home,
    place: StorePlace,
    relieve: Callable[[], bool] = lambda: False,
    *,
    roles: str = "all",
    times: LeaseTimes | None = None,
) -> SqliteStore | PostgresStore:
    """Return the store of a home, not opened yet; `relieve` frees space when the disk is full.

    `roles`: `all`, or `lanes` for a worker; one process at a time has all. `times`: of its leases. Raises: StoreError.
    """
    if place.is_postgres:
        try:
            from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise StoreError(MISSING) from error
        own = str(home.root.resolve())
        return PostgresStore(place, memory_files=home.memory, relieve=relieve, roles=roles, times=times, home=own)
    from claudius.memory.sqlite import SqliteStore  # noqa: PLC0415 - not for PostgreSQL's records

    return SqliteStore(home.database, relieve=relieve)


def set_aside(home: Home, store: Store) -> Iterator[tuple[str, SqliteStore | PostgresStore, Path]]:
    """Yield what restores, imports and moves have set aside: its name, the store, not opened yet, and its file.

    Of a database server, the file is the home's. An import may have set portraits aside where there was no database.
    """
    from claudius.memory.sqlite import SqliteStore  # noqa: PLC0415 - not for PostgreSQL's records
    from claudius.memory.sqlite.backups import SET_ASIDE  # noqa: PLC0415 - likewise

    for aside in sorted(home.backups.glob(f"{SET_ASIDE}*")):
        file = aside / home.database.name
        if file.exists():
            file.chmod(FILE_MODE)  # one that a move has left is read-only
        if file.exists() or (aside / home.memory.name).exists():
            yield str(aside.relative_to(home.root)), SqliteStore(file, backups=home.backups), file
    if store.is_shared:
        from claudius.memory.postgres import moving  # noqa: PLC0415 - an extra
        from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - likewise

        for place in moving.set_aside(store.place) if isinstance(store, PostgresStore) else ():
            yield place.shown, PostgresStore(place), home.database


def open_records(home: Home, *, is_lasting: bool = False) -> Records:
    """Open a home's records, read-only; empty if nothing was ever stored. Raises: StoreError, BadConfiguration.

    `is_lasting`: they stay open while others write.
    """
    place = place_of(home)
    if place.is_postgres:
        try:
            from claudius.memory.postgres.store import PostgresRecords  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise StoreError(MISSING) from error
        return PostgresRecords(place, home.memory)
    from claudius.memory.sqlite import SqliteRecords  # noqa: PLC0415 - likewise

    return SqliteRecords(home.database, is_lasting=is_lasting)
