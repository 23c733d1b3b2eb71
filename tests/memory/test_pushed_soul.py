"""A soul that one process pushes into a store is in force for the others, from their next turn on."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from claudius.cognition.mind import lately
from claudius.cognition.steps import STEPS
from claudius.home import shipped
from claudius.memory.database import StorePlace
from claudius.memory.leases import SoulStore
from claudius.soul import SoulSource
from claudius.soul.source import PushedSoul, SoulInForce, own_files, written
from contracts.store.ground import NOW


def of(directory: Path) -> SoulSource:
    """Return the soul of a directory, over the shipped one."""
    return SoulSource(directory, shipped("soul"), steps=STEPS)


def in_force(home_soul: Path, souls: SoulStore) -> SoulInForce:
    """Return the soul as a process of this home thinks with it."""
    soul = SoulInForce(home_soul, of, souls.newest, partial(setattr, souls, "in_force"))
    souls.pushed = soul.look
    soul.look()
    soul.current()
    return soul


async def test_scale_a_push_is_in_force_with_the_next_news(
    postgres_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A turn keeps the soul that it began with; the next one has what was pushed, and so has a process that starts."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    one, other = PostgresStore(StorePlace(postgres_url)), PostgresStore(StorePlace(postgres_url))
    mine, theirs = tmp_path / "one", tmp_path / "two"
    for directory, text in ((mine, "I am one."), (theirs, "I am two.")):
        (directory / "steps").mkdir(parents=True)
        (directory / "soul.md").write_bytes(text.encode() + b"\r\n")
    try:
        await one.open()
        await other.open()
        assert one.leases
        assert other.leases
        soul = in_force(mine, one.leases.souls)
        began_with = soul.current()
        whole = of(theirs).current()
        with caplog.at_level(logging.INFO, "claudius"):
            await other.leases.souls.push(own_files(whole, theirs), whole.sha256)
            before_news = soul.current()
            one.leases.news()
            after = soul.current()
            soul.current()
        said = [record.message for record in caplog.records]
        (mine / "soul.md").write_text("I am two.\r\n", newline="")
        await other.leases.souls.push({}, of(tmp_path / "none").current().sha256)
        await one.leases.renew()
        empty = soul.current()
        newcomer = in_force(tmp_path / "three", other.leases.souls).current()

        assert before_news is began_with
        assert "I am one." in began_with.text("soul.md")
        assert after.sha256 == whole.sha256
        assert one.leases.souls.in_force == empty.sha256 == newcomer.sha256
        assert empty.text("soul.md") == of(tmp_path / "none").current().text("soul.md")
        assert sum("claudius soul push" in line for line in said) == 1
        assert len(list((mine / ".pushed").iterdir())) == 1
    finally:
        await one.close(clean=False)
        await other.close(clean=False)


def pushed(number: int, files: dict[str, str]) -> PushedSoul:
    """Return a push as a store holds it."""
    return PushedSoul(number=number, sha256="0" * 64, host="far", at=NOW, files=files)


def test_scale_a_pushed_file_stays_in_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A person who can write to the store cannot have a file written elsewhere on another machine."""
    names = ("../up.md", "/tmp/up.md", "a/../../up.md", "steps/a/b.md", ".hidden", "", "a\0b", "steps/..")  # noqa: S108 - written nowhere
    place = written(tmp_path / "soul", pushed(1, {"soul.md": "I am.", **dict.fromkeys(names, "no")}))

    found = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert found == [str((place / "soul.md").relative_to(tmp_path))]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * len(names)


def test_scale_a_number_that_is_given_again_is_another_push(tmp_path: Path) -> None:
    """After a restore of the store a number may name other files: they are written beside the first ones."""
    first, second = (written(tmp_path, pushed(1, {"soul.md": text})) for text in ("I am one.", "I am two."))

    assert (first / "soul.md").read_text() == "I am one."
    assert (second / "soul.md").read_text() == "I am two."


def test_scale_a_push_does_not_wait_until_a_look_is_old() -> None:
    """What is read at most every so often is read at once when a push has moved its mark, even by that reading."""
    marks, read = ["a"], iter(["one", "two", "three"])
    soul = lately(lambda: next(read), 60.0, lambda: 0.0, lambda: marks[-1])

    before = soul(), soul()
    marks.append("b")

    assert before == ("one", "one")
    assert (soul(), soul()) == ("two", "two")
