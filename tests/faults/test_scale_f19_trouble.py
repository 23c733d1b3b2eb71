"""F19: what a database server refuses for a moment is tried again, or waited for; none of it shows in a reply."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from workers import World

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore

ERRORS = (
    "DeadlockDetected",
    "SerializationFailure",
    "LockNotAvailable",
    "QueryCanceled",
    "TooManyConnections",
    "AdminShutdown",
)
POINTS = (1, 9, 21, 33)
"""Before which statements of the writer it is refused: in WRITE 1, at the taking, in WRITE 2, in WRITE 3."""


class Refusing:
    """Has the server refuse one statement of each number in `points`."""

    def __init__(self, error: str) -> None:
        self.error, self.sent, self.is_on, self.refused = error, 0, False, 0

    def prepare(self, store: PostgresStore) -> None:
        """Have the store's connections be refused."""
        import psycopg  # noqa: PLC0415 - an extra

        from claudius.memory.postgres.connection import PostgresConnection  # noqa: PLC0415 - an extra

        trouble = self

        class Refused(PostgresConnection):
            """A connection whose server is in trouble."""

            is_writer = False

            def execute(self, sql: str, values: Any = (), /) -> Any:
                """Send a statement, or say what the server would."""
                self.is_writer = self.is_writer or sql == "BEGIN IMMEDIATE"
                if self.is_writer and trouble.is_on and self.in_transaction:
                    trouble.sent += 1
                    if trouble.sent in POINTS:
                        trouble.refused += 1
                        super().execute("SELECT 1/0")  # a transaction in which something failed, as on the server
                        raise getattr(psycopg.errors, trouble.error)("refused")
                return super().execute(sql, values)

        store._connect = store.core._beside = lambda: Refused(store._place)  # type: ignore[assignment]  # the same shape


@pytest.mark.parametrize("error", ERRORS)
async def test_scale_f19_what_is_refused_for_a_moment_is_done_again(
    error: str, postgres_url: str, tmp_path: Path
) -> None:
    """Every message gets its one answer, in order; nobody is told of the trouble."""
    world, trouble = World(postgres_url, tmp_path), Refusing(error)
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, prepare=trouble.prepare)
        trouble.is_on = True
        for n in range(3):
            await world.until_accepted(soul, world.post(1, n))
        await world.answered()

    world.judge()
    assert trouble.refused == len(POINTS)
