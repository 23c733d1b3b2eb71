"""What people say of themselves: shown as long as it holds, found again by other words, and gone when it is to be."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest

from acted import Acted, acting, acts, block, id_of
from case_rows import Row, rows
from claudius.home import Home
from minds import SMALL_TALK

CLOCK = "2026-03-25T09:00:00Z"
NEVER = timedelta(days=9999)


def told(row: Row) -> Iterator[list[tuple[str, str]]]:
    """Yield what holds after each line, as kinds and words: what ended before the last line held until then."""
    holds, ended = (
        row.right["in_force"],
        row.right.get("ended") or [["taste", one] for one in row.right.get("deleted", ())],
    )
    lines = len(row.input["says"])
    states = [holds, ended, holds][-lines:] if ended else [holds] * lines
    return iter([[(kind, words) for kind, words in state] for state in states])


def changes(row: Row, was: list[tuple[str, str]], now: list[tuple[str, str]], tail: str) -> Iterator[Mapping[str, Any]]:
    """Yield the acts by which an obedient model keeps what holds now; the ids it reads in its prompt."""
    gone, new = [one for one in was if one not in now], [one for one in now if one not in was]
    until = {"until": row.right["until"]} if "until" in row.right else {}
    for kind, words in new:
        text = words if kind == "name" else f"It is so: {words}"
        old = next((one for one in gone if one[0] == kind), None)
        instead = {"instead_of": id_of(block(tail, "Known"), old[1])} if old else {}
        gone = [one for one in gone if one != old]
        yield {"do": "know", "kind": kind, "text": text, "keys": [words, "news"], **instead, **until}
    for _, words in gone:
        yield {"do": "forget" if "deleted" in row.right else "no_longer", "fact": id_of(block(tail, "Known"), words)}


async def after(it: Acted, **by: float) -> None:
    """Let time pass."""
    await it.until(it.now() + timedelta(**by), NEVER)


@pytest.mark.parametrize("row", rows("facts", "fact", every=5))
async def test_a_fact_is_in_force_until_it_ends(home: Home, row: Row) -> None:
    """What holds is shown as such, what ended only with its dates, what was denied, quoted or supposed never."""
    row.knows_only("in_force", "ended", "never_in_force", "name", "until", "found_by", "deleted")
    right, was = row.right, list[tuple[str, str]]()
    clock = row.input.get("clock", CLOCK)
    async with acting(home, row.id, clock=clock) as it:
        for line, now in zip(row.input["says"], told(row), strict=True):

            def write(tail: str, was: list[tuple[str, str]] = was, now: list[tuple[str, str]] = now) -> str:
                """Write what an obedient model does at this line."""
                return acts(*changes(row, was, now, tail))

            await it.says(line, acts=write)
            was = now
            await after(it, days=7 if line == row.input["says"][-1] else 14)
        asks = row.input["says"][:1] if "ended" in right else ["my day"]
        tail = await it.says(f"What of {' and '.join(asks)}?")
        person = it.soul.records().person(right.get("found_by", "Ana Alvarez"))
        if "until" in right:
            await it.until(datetime.fromisoformat(f"{right['until']}T23:59:00Z") + timedelta(days=1), NEVER)
            assert right["in_force"][0][1] not in block(await it.says("And now?"), "Known")
        kept = everything(home)

    known = block(tail, "Known")
    assert not [words for _, words in right["in_force"] if words not in known], known
    assert not [words for _, words in right.get("ended", ()) if words in known], known
    assert not [words for _, words in right.get("ended", ()) if words not in block(tail, "Remembered")]
    assert not [words for words in right.get("never_in_force", ()) if words in known], known
    assert person, "whoever told a name is found by it"
    assert "name" not in right or person.name.startswith("Ana")
    assert not [
        words for words in right.get("deleted", ()) if words in tail.partition("## Current")[0] or words in kept
    ]


UNFOUND = ("compound", "kana")
"""Told without keys, and asked in a form that only a dictionary leads back to it."""


def everything(home: Home) -> str:
    """Return what prompts are made of, the conversations aside: those expire."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as db:
        return repr([db.execute(f"SELECT * FROM {one}").fetchall() for one in ("fact", "moment", "user_model")])  # noqa: S608 - fixed names


@pytest.fixture(scope="module")
def recalled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the prompt of each question about what was told among sixty other lines."""
    home = Home(tmp_path_factory.mktemp("recall") / "home")
    home.create()
    return asyncio.run(prompts(home, [one.values[0] for one in rows("facts", "recall")]))


async def prompts(home: Home, wanted: list[Row]) -> Mapping[str, str]:
    """Tell everything that is to be found again, and ask for it a week later."""
    async with acting(home, "recall", clock=CLOCK) as it:
        for n, row in enumerate(wanted):
            fact = {"do": "know", "kind": "other", "text": row.input["told"], "keys": row.input.get("keys")}
            await it.says(row.input["told"], acts=acts(*[fact][: "keys" in row.input]))
            await it.says(f"{SMALL_TALK[n % len(SMALL_TALK)]} That was day {n}.")
            await it.says(f"{SMALL_TALK[(n + 5) % len(SMALL_TALK)]} And again, {n}.")
        await after(it, days=7)
        return {row.id: await it.says(row.input["asks"]) for row in wanted}


@pytest.mark.parametrize("row", rows("facts", "recall", later=UNFOUND, why="found by neither stem nor key"))
def test_what_was_told_is_found_by_its_words_and_by_its_keys(recalled: Mapping[str, str], row: Row) -> None:
    """It stands in the prompt of the question, whatever the script, with a word in common or none."""
    row.knows_only("prompt_has")
    tail = recalled[row.id]
    assert row.right["prompt_has"] in block(tail, "Remembered") + block(tail, "Known")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", rows("more_acts", "weeks"))
async def test_seven_weeks_of_talk(home: Home, row: Row) -> None:
    """Of every fact that changed the new form stands in the prompt that asks for it, and the old one not as in force."""
    row.knows_only("new_shown", "changed", "asked")
    facts, given = row.input["facts"], row.input
    wrong: list[str] = []
    async with acting(home, row.id, clock=given["clock"], zone=given["zone"], network="slack") as it:
        for one in facts:
            know = {"do": "know", "kind": one["kind"], "text": one["old"], "keys": one.get("old_keys", [])}
            await it.says(one["old_says"], acts=acts(know))
            await after(it, hours=18)
        for one in facts:
            if "new" in one:

                def instead(tail: str, one: Mapping[str, Any] = one) -> str:
                    """Write a fact that takes the place of the one that the prompt shows."""
                    try:
                        old = {"instead_of": id_of(block(tail, "Known"), one["old"])}
                    except AssertionError:
                        wrong.append(f"{one['id']}: the old fact stands not in the prompt that changes it")
                        old = {}
                    return acts(
                        {
                            "do": "know",
                            "kind": one["new_kind"],
                            "text": one["new"],
                            "keys": one.get("new_keys", []),
                            **old,
                        }
                    )

                await it.says(one["new_says"], acts=instead)
                await after(it, hours=18)
        await after(it, days=7)
        for one in facts:
            for asks in one["asks"]:
                tail = await it.says(asks)
                known = block(tail, "Known")
                await after(it, minutes=30)
                if one.get("new", one["old"]) not in known:
                    wrong.append(f"{one['id']}: in force, but not shown for {asks!r}")
                if "new" in one and one["old"] in known.replace(one["new"], ""):
                    wrong.append(f"{one['id']}: the old one is shown as in force for {asks!r}")

    assert sum("new" in one for one in facts) == row.right["changed"]
    assert sum(len(one["asks"]) for one in facts) == row.right["asked"]
    assert wrong == []


@pytest.mark.parametrize("row", rows("more_acts", "matter", every=2))
async def test_an_open_matter_is_thought_about_and_closed(home: Home, row: Row) -> None:
    """From its day on it stands in the prompt, a bare word after it is no small talk, and closed it is gone."""
    row.knows_only("prompt_has", "thought_about", "gone_after")
    given, right = row.input, row.right
    async with acting(home, row.id, clock=given["clock"], zone=given["zone"]) as it:
        await it.says(given["says"], acts=acts(*given["acts"]))
        await after(it, hours=given["gap_h"])
        tail = await it.says(given["then"], acts=acts(*given["then_acts"]))
        assert bool(tail) is right["thought_about"]
        assert right["prompt_has"] in block(tail, "Open")
        gone = await it.says("And what is there for supper?")
        assert (right["prompt_has"] not in block(gone, "Open")) is right["gone_after"]
