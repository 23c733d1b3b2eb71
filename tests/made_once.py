"""What every test would make anew and is the same each time, made once a process: an empty database, texts of the soul."""

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from claudius.home import shipped
from claudius.memory.sqlite import schema
from claudius.memory.sqlite.file import private_files, siblings
from claudius.soul import source
from claudius.soul.files import parse

_create = schema.create_database
_FRESH: dict[tuple[str, ...], bytes] = {}


def create_database(path: Path, migrations: Mapping[int, str]) -> None:
    """Create a database by its migrations, or copy the one that they made before: they take as long as ten turns."""
    made = tuple(migrations.values())
    if made not in _FRESH:
        _create(path, migrations)
        _FRESH[made] = path.read_bytes()
        return
    aside = path.with_name(f".new-{path.name}")
    with private_files():
        for file in (aside, *siblings(aside)):
            file.unlink(missing_ok=True)
        try:
            aside.write_bytes(_FRESH[made])
        except OSError:  # what it says of a full disk, the database says
            aside.unlink()
            _create(path, migrations)
            return
        aside.rename(path)


def install(*, at_once: bool = False) -> None:
    """Have this process make them once; `at_once`: now, for those that are forked from it."""
    schema.create_database = create_database
    source.parse = lru_cache(parse)  # type: ignore[attr-defined] # the name that the source calls
    if at_once:
        with tempfile.TemporaryDirectory() as made:
            create_database(Path(made) / "claudius.db", schema.load_migrations(shipped("memory") / "schema"))
