"""The connection of the event loop after a look that failed: neither names nor errors are left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from claudius.memory.opening import StorePlace

if TYPE_CHECKING:
    from claudius.memory.postgres.connection import PostgresConnection

PREPARED_AFTER = 5
"""How often the driver runs a statement before it has the server keep it."""
LOOKS: list[tuple[str, dict[str, object]]] = [(f"TABLE looked LIMIT {n}", {}) for n in range(4)]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[PostgresConnection]:
    """Return a connection whose statements are given up soon, and a table to look at."""
    from claudius.memory.postgres.connection import PostgresConnection  # noqa: PLC0415 - an extra

    with closing(PostgresConnection(StorePlace(postgres_url))) as made:
        made.script("CREATE TABLE looked ()")
        made.limit(0.3)
        yield made


def seen(connection: PostgresConnection) -> list[int]:
    """Look at everything in one round trip; return how many rows each look has found."""
    return [len(cursor.fetchall()) for cursor in connection.together(LOOKS)]


def test_scale_a_look_that_fails_while_it_is_prepared_spoils_none_after_it(
    connection: PostgresConnection, postgres_url: str
) -> None:
    """A table is locked just when the driver would have the server keep the statements: the next look is as any."""
    import psycopg  # noqa: PLC0415 - an extra

    for _ in range(PREPARED_AFTER):
        seen(connection)
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE looked")
        with pytest.raises(psycopg.Error):
            seen(connection)

    assert [seen(connection) for _ in range(3)] == [[0, 0, 0, 0]] * 3


def test_scale_a_look_that_fails_while_others_are_sent_spoils_none_after_it(connection: PostgresConnection) -> None:
    """The failure of one question may show while the next is sent: what is asked afterwards is answered."""
    import psycopg  # noqa: PLC0415 - an extra

    with pytest.raises(psycopg.Error):
        connection.together([("SELECT 1 / 0 AS n", {})] + LOOKS * 20)[-1].fetchall()

    assert seen(connection) == [0, 0, 0, 0]


def test_scale_a_snapshot_that_fails_spoils_none_after_it(connection: PostgresConnection) -> None:
    """A transaction that only reads and fails is over at its end."""
    import psycopg  # noqa: PLC0415 - an extra

    connection.execute("BEGIN")
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT 1 / 0 AS n").fetchall()
    connection.execute("COMMIT")

    assert seen(connection) == [0, 0, 0, 0]
    connection.execute("BEGIN")
    assert len(connection.execute("SELECT 1 AS n").fetchall()) == 1
    connection.execute("COMMIT")
