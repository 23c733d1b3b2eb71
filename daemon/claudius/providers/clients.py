"""Several HTTP clients of one server, since one is slow with many calls under way.

The library looks through all connections of a client whenever a call begins or ends. With httpcore 1.0.9 that took more
than half of the CPU of each of 250 calls (bench/p20_company.py), and the 101st waits for one to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

CALLS = 32
"""How many calls a client has at once, at most."""

C = TypeVar("C")


class Clients(Generic[C]):
    """As many clients as the calls under way need."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]], *, first: C | None = None) -> None:
        """Build clients by `make`, in a thread, beside the `first` if there is one already."""
        self._make, self._close, self._first = make, close, first
        self._calls: dict[asyncio.Future[C], int] = {}
        """The calls under way of each client, oldest client first."""

    async def first(self) -> C:
        """Return the first client, which is built once, whoever waits for it."""
        return await asyncio.shield(next(iter(self._calls), None) or self._add())

    @asynccontextmanager
    async def one(self) -> AsyncIterator[C]:
        """Yield a client for one call: the oldest that has room, so that connections are used again."""
        client = next((one for one, calls in self._calls.items() if calls < CALLS), None) or self._add()
        self._calls[client] += 1
        try:
            yield await asyncio.shield(client)
        finally:
            if client in self._calls:
                self._calls[client] -= 1
            await self._shrink()

    async def aclose(self) -> None:
        """Close every client."""
        for client in [*self._calls]:
            await self._close(await client)

    async def _shrink(self) -> None:
        """Close the newest client while it is idle and the one before it has room for half of its calls."""
        while len(self._calls) > 1:
            (_, before), (newest, calls) = [*self._calls.items()][-2:]
            if calls or before > CALLS // 2 or not newest.done():  # one that is being built serves the next call
                return
            del self._calls[newest]
            await self._close(newest.result())

    def _add(self) -> asyncio.Future[C]:
        client: asyncio.Future[C] = asyncio.get_running_loop().create_future()
        if self._first is None or self._calls:
            client = asyncio.ensure_future(asyncio.to_thread(self._make))
            client.add_done_callback(self._drop_failed)
        else:
            client.set_result(self._first)
        self._calls[client] = 0
        return client

    def _drop_failed(self, client: asyncio.Future[C]) -> None:
        """Keep no client that could not be built: the next call has another try."""
        if client.cancelled() or client.exception():
            self._calls.pop(client, None)
