"""F19: what a database server refuses for a moment is tried again, or waited for; none of it shows in a reply."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from claudius.errors import StoreFull
from workers import Send, World, met

ERRORS = (
    "DeadlockDetected", "SerializationFailure", "LockNotAvailable", "QueryCanceled", "TooManyConnections",
    "AdminShutdown",
)  # fmt: skip
POINTS = (1, 9, 21, 33)
"""Before which statements of the writer it is refused: in WRITE 1, at the taking, in WRITE 2, in WRITE 3."""


class Refusing:
    """Has the server refuse one statement of each number in `points`."""

    def __init__(self, error: str) -> None:
        self.error, self.sent, self.is_on, self.refused = error, 0, False, 0
        self.points: Sequence[int] = POINTS
        self.is_full = False
        """Whether it refuses every statement, and not one here and there."""

    def meet(self, connection: Any, sql: str, send: Send) -> Any:
        """Send a statement, or say what the server would."""
        import psycopg  # noqa: PLC0415 - an extra

        if connection.is_writer and self.is_on and connection.in_transaction and sql != "ROLLBACK":
            self.sent += 1
            if self.sent in self.points or self.is_full:
                self.refused += 1
                with suppress(psycopg.Error):
                    send("SELECT 1/0")  # so that the transaction has failed, as on the server
                raise getattr(psycopg.errors, self.error)("refused")
        return send()


@pytest.mark.parametrize("error", ERRORS)
async def test_scale_f19_what_is_refused_for_a_moment_is_done_again(
    error: str, postgres_url: str, tmp_path: Path
) -> None:
    """Every message gets its one answer, in order; no one is told of the trouble."""
    world, trouble = World(postgres_url, tmp_path), Refusing(error)
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, prepare=met(trouble.meet))
        trouble.is_on = True
        for n in range(3):
            await world.until_accepted(soul, world.post(1, n))
        await world.answered()

    world.judge()
    assert trouble.refused == len(POINTS)


async def test_scale_f19_a_server_whose_disk_is_full(postgres_url: str, tmp_path: Path) -> None:
    """Nothing is accepted and no model is asked until it takes writes again; then everything goes on, once.

    What a person said meanwhile is not acknowledged, so their network delivers it again.
    """
    world, trouble = World(postgres_url, tmp_path), Refusing("DiskFull")
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, prepare=met(trouble.meet))
        disk = soul.resources.disk
        await world.offer(soul, world.post(1, 0))
        await world.answered()
        await soul.idle()
        trouble.is_on = trouble.is_full = True
        message = world.post(1, 1)
        with pytest.raises(StoreFull):
            await world.offer(soul, message)
        asked = world.calls()
        await asyncio.to_thread(disk.look)
        assert disk.shut
        with pytest.raises(StoreFull):
            await world.offer(soul, message)

        trouble.is_on = False
        await asyncio.to_thread(disk.look)

        assert not disk.shut
        assert world.calls() == asked
        await world.until_accepted(soul, message)
        await world.answered()

    world.judge()


@pytest.mark.slow
@pytest.mark.parametrize("point", range(1, 60, 6))
async def test_scale_f19_the_servers_disk_fills_at_any_statement(point: int, postgres_url: str, tmp_path: Path) -> None:
    """Whatever was refused is done once there is room; no one is told of it in a reply."""
    world, trouble = World(postgres_url, tmp_path), Refusing("DiskFull")
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, prepare=met(trouble.meet))
        trouble.points = range(point, point + 3)
        trouble.is_on = True
        for n in range(2):
            await world.until_accepted(soul, world.post(1, n))
        await world.answered()

    world.judge()
