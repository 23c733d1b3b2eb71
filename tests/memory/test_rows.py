"""Rows that do not decode: their own error names them, and `doctor` checks every JSON column."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from claudius.errors import RowInvalid, StoreError
from claudius.home import Home, shipped
from claudius.memory.database import Decoding, load_queries, parse_object, parse_strings
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.memory.sqlite.schema import empty_database, load_migrations
from claudius.recollection import EntryType
from contracts.store.ground import DM, NOW, heard, taken

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
