"""Files that are replaced together: all of them or none, whatever fails, and no one looks in between."""

import json
import threading
from pathlib import Path

import pytest

from claudius.errors import BadHome
from claudius.home import Home, incoming, note_of, obey, replace


def put(path: Path, text: str) -> Path:
    """Write a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def everything(home: Home) -> dict[str, str]:
    """Return every file of a home with its text."""
    return {str(path.relative_to(home.root)): path.read_text() for path in home.root.rglob("*") if path.is_file()}


@pytest.fixture
def fresh(home: Home) -> dict[Path, Path | None]:
    """Return what is to be put in place of two files and a directory; for the log there is nothing new."""
    put(home.database, "old"), put(home.config, "old"), put(home.soul / "soul.md", "old"), put(home.logs / "log", "old")
    made = incoming(home.root)
    put(made / "soul" / "soul.md", "new")
    return {
        home.database: put(made / "claudius.db", "new"),
        home.soul: made / "soul",
        home.config: put(made / "config.toml", "new"),
        home.logs / "log": None,
    }


def test_what_was_there_is_set_aside_and_the_fresh_ones_stand_in_its_place(
    home: Home, fresh: dict[Path, Path | None]
) -> None:
    """Files, directories, and a place that stays empty; no note is left."""
    replace(home.root, fresh, home.backups / "aside")

    assert everything(home) == {
        "state/claudius.db": "new", "soul/soul.md": "new", "config.toml": "new",
        "backups/aside/claudius.db": "old", "backups/aside/soul/soul.md": "old",
        "backups/aside/config.toml": "old", "backups/aside/log": "old",
    }  # fmt: skip


def test_where_one_cannot_be_moved_nothing_is(home: Home, fresh: dict[Path, Path | None]) -> None:
    """Whatever was moved before is back in its place, and no start tries it again."""
    before = everything(home)
    nowhere = put(home.state / "more", "new")
    with pytest.raises(OSError, match="No such file"):
        replace(home.root, fresh | {home.root / "no" / "such" / "place": nowhere}, home.backups / "aside")
    nowhere.unlink()

    assert everything(home) == before


def test_a_start_that_cannot_finish_it_ends_with_78(home: Home) -> None:
    """It names the note and what is wrong; once that is mended, the next start finishes."""
    put(home.state / "incoming" / "claudius.db", "new")
    put(home.root / "wall", "")
    put(note_of(home.root), json.dumps([["state/incoming/claudius.db", "wall/claudius.db"]]))

    with pytest.raises(BadHome, match=r"replacing\.json.*File exists") as refused:
        home.create()
    (home.root / "wall").unlink()
    home.create()

    assert refused.value.exit_code == 78
    assert everything(home) == {"wall/claudius.db": "new"}


def test_a_start_meanwhile_waits(home: Home, monkeypatch: pytest.MonkeyPatch, fresh: dict[Path, Path | None]) -> None:
    """A person who opens the home while files are moved sees none of it before all of it is done."""
    seen = list[str]()
    starts = threading.Thread(target=lambda: (obey(home.root), seen.append(home.database.read_text())))
    rename = Path.rename

    def slowly(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        if self == home.database:
            starts.start()
        return moved

    monkeypatch.setattr(Path, "rename", slowly)
    replace(home.root, fresh, home.backups / "aside")
    starts.join(20)

    assert seen == ["new"]
