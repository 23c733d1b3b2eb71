"""S18: no name leads a portrait's file out of its directory, and no two portraits share a file."""

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claudius.memory.archive import files
from claudius.memory.documents import USERS, model_path, short_id, slug

NAMES = st.text(max_size=300)
HOSTILE = (
    "../../etc/passwd",
    ".git",
    "-x",
    "CON",
    "nul.md",
    "a\0b",
    "x" * 300,
    "李",
    "王",
    "Sam",
    "sam",
    "ſam",
    " ",
    "",
)


@given(person=NAMES, name=NAMES, audience=NAMES)
@example(person="../../..", name="../..", audience="/etc/passwd")
@example(person=".git", name=".git", audience=".git/hooks/post-commit")
@example(person="-x", name="--output=x", audience="-x")
def test_s18_a_path_stays_inside_users(person: str, name: str, audience: str) -> None:
    """Any text yields three parts, the first `users`, each of plain letters, none hidden and none an option."""
    path = model_path(person, name, audience)

    first, folder, file = path.parts
    assert first == USERS
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,60}", folder)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,60}\.md", file)
    assert folder.split("-")[0] not in ("con", "nul", "git") or "-" in folder


@given(st.lists(st.tuples(NAMES, NAMES), unique=True, min_size=2, max_size=6), NAMES)
def test_s18_a_path_belongs_to_one_person_and_audience(pairs: list[tuple[str, str]], name: str) -> None:
    """Two people, or two audiences, never share a file, even with the same display name."""
    assert len({model_path(person, name, audience) for person, audience in pairs}) == len(pairs)


def test_s18_people_with_equal_or_non_latin_names_have_their_own_folders() -> None:
    """Sam and Sam, 李 and 王 are four people with four folders. The folder of a renamed person keeps the id."""
    people = {"slack:T:1": "Sam", "slack:T:2": "Sam", "slack:T:3": "李", "slack:T:4": "王"}

    assert len({model_path(person, name, "a").parent for person, name in people.items()}) == 4
    assert model_path("slack:T:1", "Sam", "a").parent != model_path("slack:T:1", "Samantha", "a").parent
    assert str(model_path("slack:T:1", "李", "a").parent).endswith(short_id("slack:T:1"))


@given(NAMES)
def test_s18_a_slug_is_short_plain_and_stable(name: str) -> None:
    """A slug has at most 40 of a-z 0-9 -, none of them a hyphen at the ends, and the slug of a slug is itself."""
    assert re.fullmatch(r"(?:[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)?", slug(name))
    assert slug(slug(name)) == slug(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_s18_hostile_names_write_inside_the_directory(tmp_path: Path, name: str) -> None:
    """A file with a hostile name is written below the directory, and nothing else is written."""
    root = tmp_path / "memory"
    root.mkdir()

    files.write(root, str(model_path(name, name, name)), b"text")

    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == 1
    assert made[0].resolve().is_relative_to(root.resolve())


@pytest.mark.parametrize("planted", ["folder", "file", "users"])
def test_s18_a_planted_link_is_never_followed(tmp_path: Path, planted: str) -> None:
    """A symbolic link in place of a folder or file is replaced or skipped, and its target is untouched."""
    root, outside = tmp_path / "memory", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    path = model_path("slack:T:1", "Sam", "private:slack:T:1")
    victim = outside / path.name
    victim.write_text("precious")
    place = {"users": root / USERS, "folder": root / path.parent, "file": root / path}[planted]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim if planted == "file" else outside)

    assert files.read(root, str(path), 0.0) is None
    files.write(root, str(path), b"ours")
    files.remove(root, str(path))

    assert victim.read_text() == "precious"
    assert [one.name for one in outside.iterdir()] == [victim.name]


@pytest.mark.parametrize("path", ["../x.md", "/etc/x.md", "users/../../x.md"])
def test_s18_a_path_that_leaves_is_refused(tmp_path: Path, path: str) -> None:
    """Even a path of our own making is refused if it leaves the directory."""
    with pytest.raises(ValueError, match="not below"):
        files.write(tmp_path, path, b"")
    assert PurePosixPath(path).name == "x.md"
