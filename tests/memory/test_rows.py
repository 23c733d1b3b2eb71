"""Rows and the values in them: packed, split, read back; one that does not decode is named."""

import json
import re
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from claudius.errors import RowInvalid, StoreError
from claudius.home import Home, shipped
from claudius.intent import Thought
from claudius.memory.database import Decoding, load_queries, pack, parse_object, parse_strings
from claudius.memory.documents import joined, read_state_document, sections, state_document
from claudius.memory.packing import unpacked
from claudius.memory.seen import ERASED, ERASED_SNAPSHOT, KeptTurn, snapshot_of, unpack
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.memory.sqlite.schema import empty_database, load_migrations
from claudius.recollection import EntryType, StateKey
from contracts.store.ground import DM, NOW, heard, taken
from lab.sample import message, said

_COLUMN = re.compile(r"^\s+(\w+)\s+TEXT\b.*-- .*\bJSON\b", re.MULTILINE)


def test_the_doctor_looks_at_every_column_of_json() -> None:
    """The query that finds damaged rows covers every column declared as JSON, and knows every kind of entry."""
    looked_at = load_queries(shipped("memory") / "queries")["rows_invalid"]
    blocks = dict(re.findall(r"SELECT '(\w+)' AS \"table\"(.*?)(?=UNION ALL|LIMIT)", looked_at, re.DOTALL))
    with closing(empty_database(load_migrations(shipped("memory") / "schema"))) as db:
        tables = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()

    missed = [
        f"{table}.{column}"
        for table, body in tables
        for column in _COLUMN.findall(body)
        if column not in blocks.get(table, "")
    ]

    assert missed == []
    assert [one for one in EntryType if f"'{one.value}'" not in blocks["entry"]] == []


@pytest.mark.parametrize(
    ("read", "text"), [(parse_object, "[]"), (parse_object, '{"a'), (parse_strings, "{}"), (parse_strings, "[1]")]
)
def test_a_value_that_does_not_decode_names_its_row_and_does_not_quote_it(read: Any, text: str) -> None:
    """The error names the row, does not quote it, and is not a store error, because the store as a whole is sound."""
    with pytest.raises(RowInvalid) as caught, Decoding("kept", "here", 3):
        read(text)

    assert (caught.value.table, caught.value.row) == ("kept", "here/3")
    assert caught.value.message.startswith("kept here/3 cannot be read: ")
    assert not isinstance(caught.value, StoreError)


def test_an_error_that_quotes_what_it_read_is_not_passed_on() -> None:
    """Rows contain people's words, so errors do not quote them in logs and in `doctor`."""
    with pytest.raises(RowInvalid) as caught, Decoding("entry", 1):
        {"a": 1}["a secret"]

    assert "secret" not in caught.value.message


async def test_what_is_given_up_is_dead_with_its_reason_and_stands_in_nobodys_way(home: Home) -> None:
    """After one message is given up, the next one is the oldest; a failure before it was taken counts as an attempt."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    first = await taken(store, heard(n=1))
    await store.inbox.accept((heard(n=2),), NOW)
    await store.inbox.give_up(first.seq, "no apology could be made")
    second = await store.inbox.oldest(DM)
    assert second is not None
    await store.inbox.postpone(second.seq, NOW + timedelta(seconds=1), "RuntimeError", 2)
    again = await store.inbox.oldest(DM)
    await store.close(clean=True)
    records = SqliteRecords(home.database)

    assert (second.perception.key, second.attempts, again and again.attempts) == (heard(n=2).key, 0, 2)
    assert records.counts(NOW)["inbox"] == {"pending": 1, "dead": 1}
    assert [row["reason"] for row in records.dead()] == ["no apology could be made"]
    records.close()


@given(st.text(max_size=5000))
def test_whatever_is_packed_is_read_again(text: str) -> None:
    """Packing and unpacking a value returns its JSON."""
    assert json.loads(unpacked(pack(text))) == text


def test_a_kept_turn_comes_back_as_it_was() -> None:
    """Lines, thoughts, changes, replies and snapshot are read back as they were; empty parts take no space."""
    turn = KeptTurn(
        entries=(message("Why?"), said()),
        snapshot=Raw(b'{"turn":1}'),
        attention={"outcome": "think"},
        changes={"user_model": {"version": 2}},
        thoughts=(Thought(step="internal_monologue", content="Hm."),),
        steps=("internal_monologue",),
        prompt_sha256="p",
        responses={"0": ("r", "Because.")},
    )

    assert unpack(pack(turn)) == turn
    assert snapshot_of(turn) == b'{"turn":1}'
    assert unpacked(pack(KeptTurn())) == b"{}"


def test_a_record_without_a_snapshot_says_why() -> None:
    """The reason is that no model was asked, or that the snapshot was erased."""
    assert snapshot_of(KeptTurn()) == b""
    assert snapshot_of(KeptTurn(snapshot=ERASED_SNAPSHOT)) == ERASED


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x02abc", b"\x01abc", pack("A" * 300)[:-4]])
def test_a_damaged_record_is_refused(damage: bytes) -> None:
    """A record that this code did not pack, or that is cut short, is an error and never half a record."""
    with pytest.raises(ValueError, match="packed document"):
        unpacked(damage)


WORDS = st.text(st.characters(categories=("L", "N"), include_characters=" .,"), max_size=30).map(str.strip)
BODIES = st.dictionaries(WORDS.filter(bool), WORDS, max_size=4)


def portrait(bodies: dict[str, str]) -> str:
    """Return a portrait with these sections."""
    return "# Tom\n\n" + "\n\n".join(f"## {heading}\n{body}" for heading, body in bodies.items()) + "\n"


@given(BODIES)
def test_a_portrait_is_taken_apart_at_its_headings(bodies: dict[str, str]) -> None:
    """Each level-2 heading begins a section, in order; text before the first heading is kept too."""
    assert sections(portrait(bodies)) == {"": "# Tom"} | bodies


@given(BODIES, BODIES)
def test_joining_two_portraits_loses_nothing(mine: dict[str, str], theirs: dict[str, str]) -> None:
    """The joined portrait contains every heading and every text of both portraits."""
    whole = joined(portrait(mine), portrait(theirs))

    assert all(body in whole for body in (*mine.values(), *theirs.values()))
    names = re.findall(r"^## +(.+?) *$", whole, re.MULTILINE)
    assert len({name.casefold() for name in names}) == len({name.casefold() for name in (*mine, *theirs)})


@given(BODIES)
def test_joining_a_portrait_with_itself_says_nothing_twice(bodies: dict[str, str]) -> None:
    """Text that both portraits contain appears once."""
    assert sections(joined(portrait(bodies), portrait(bodies))) == sections(portrait(bodies))


@given(
    st.dictionaries(st.tuples(st.sampled_from([key.value for key in StateKey]), WORDS.filter(bool)), WORDS.filter(bool))
)
def test_the_state_document_can_be_read_back(values: dict[tuple[str, str], str]) -> None:
    """Reading the soul state document back from git gives the same state."""
    rows = [(key, audience, value, "2026-01-01T00:00:00.000000Z") for (key, audience), value in values.items()]

    found = read_state_document(state_document(rows))

    assert {(key, audience): value for audience, key, value in found} == values


def test_a_line_added_by_hand_needs_no_instant() -> None:
    """A person writes `- key: value`; keys match in any case, and unknown keys are ignored."""
    text = (
        "# Soul state\n\n## self\n- EMOTIONALSTATE: focused\n* currentTopic: rust (the metal)\n- colour: blue\nmore\n"
    )

    assert read_state_document(text) == [
        ("self", "emotionalState", "focused"),
        ("self", "currentTopic", "rust (the metal)"),
    ]


def test_the_blueprint_has_the_seven_sections() -> None:
    """A portrait starts from the seven headings of the seed."""
    headings = list(sections((shipped("memory") / "user_model.md").read_text("utf-8")))

    assert headings[1:] == [
        "Persona", "Speaking Style", "Conversational Context", "Worldview", "Interests & Domains", "Working Patterns",
        "Most Potent Memories",
    ]  # fmt: skip
