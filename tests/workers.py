"""Several workers of one soul in one process, on one PostgreSQL, and the people who talk to it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claudius.errors import StoreError
from claudius.home import Home
from claudius.memory.database import AS_STORE, StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.perception import Kind, Perception, private
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter, Visible
from ear import echo

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore

Send = Callable[..., Any]
Meet = Callable[[Any, str, Send], Any]
LEASE_S = 3.0
TIMES = LeaseTimes(lease_s=LEASE_S, renew_s=LEASE_S / 3, look_s=0.1)
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class World:
    """What people posted, and what became visible, whichever worker showed it."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root, self.visible, self.said = url, root, list[Visible](), list[Perception]()
        self.born = 0
        self.voices = list[Scripted]()

    def post(self, conversation: int, n: int) -> Perception:
        """Have a person post a message in a conversation of theirs."""
        who, place = f"rehearsal:t:p{conversation}", f"rehearsal:t:dm-p{conversation}:"
        made = Perception(
            key=f"{place}#{n}",
            conversation=place,
            audience=private(who),
            person=who,
            name=f"P{conversation}",
            text=f"{conversation}/{n}",
            at=START + timedelta(seconds=len(self.said)),
            position=f"{n:020d}",
            kind=Kind.MESSAGE,
        )
        self.said.append(made)
        return made

    async def worker(  # noqa: PLR0913 - all but one have a default
        self,
        stack: AsyncExitStack,
        *,
        clean: bool = True,
        network: RehearsalAdapter | None = None,
        prepare: Callable[[PostgresStore], None] = lambda _: None,
        settings: Mapping[str, str] | None = None,
        times: LeaseTimes = TIMES,
        listen_url: str = AS_STORE,
        url: str = "",
        clock: Callable[[], datetime] | None = None,
    ) -> Alive:
        """Start a worker that speaks into this world; `prepare` may change its store before it is opened.

        `listen_url`: for notices; empty: it hears none and sends none. `url`: its own way to the store; `clock`: its
        wall clock.
        """
        from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

        self.born += 1
        home, network = Home(self.root / f"w{self.born}"), network or RehearsalAdapter()
        home.create()
        network.visible = self.visible
        store = PostgresStore(
            StorePlace(url or self.url, listen_url=listen_url), times=times, roles="lanes", home=str(home.root)
        )
        prepare(store)
        self.voices.append(Scripted(default=echo))
        soul = alive(home, self.voices[-1], network=network, store=store, clean=clean, settings=settings, clock=clock)
        return await stack.enter_async_context(soul)

    def calls(self) -> int:
        """Return how often a model was asked, by all workers."""
        return sum(len(voice.requests) for voice in self.voices)

    def past(self, *souls: Alive) -> None:
        """Let every lease be past, as time does: on the server, and by the own clocks of these souls."""
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(self.url, autocommit=True) as server:
            server.execute("UPDATE lane SET lease_until = clock_timestamp() - interval '1 s' WHERE worker IS NOT NULL")
        for soul in souls:
            leases: Any = soul.mind.store.leases
            for held in leases._held.values():
                held.until_s = 0.0

    async def offer(self, soul: Alive, perception: Perception) -> None:
        """Deliver a message to one worker."""
        assert soul.network._accept
        await soul.network._accept(perception)

    async def until_accepted(self, soul: Alive, perception: Perception) -> None:
        """Deliver a message again and again, as a network does, until it is acknowledged."""
        async with asyncio.timeout(60):
            while True:
                try:
                    return await self.offer(soul, perception)
                except (StoreError, ConnectionAbortedError):
                    await asyncio.sleep(0.1)

    async def until_visible(self, count: int) -> None:
        """Wait until people see this many answers."""
        async with asyncio.timeout(60):
            while len(self.visible) < count:
                await asyncio.sleep(0.005)

    async def answered(self, within_s: float = 60.0) -> None:
        """Wait until everything is answered."""
        wanted = {f"re {one.text}" for one in self.said}
        async with asyncio.timeout(within_s):
            while not wanted <= {one.text for one in self.visible if one.is_complete}:
                await asyncio.sleep(0.02)

    def judge(self) -> None:
        """O1 to O3: each message has one answer, in its own conversation, in the order of the messages there."""
        texts = [one.text for one in self.visible]
        assert sorted(texts) == sorted(f"re {one.text}" for one in self.said)
        by_place = defaultdict(list)
        for one in self.visible:
            by_place[one.conversation].append(one.text)
        for place, found in by_place.items():
            assert found == [f"re {one.text}" for one in self.said if one.conversation == place]


def met(meet: Meet, connect: Callable[[], None] = lambda: None) -> Callable[[PostgresStore], None]:
    """Return what has a store's statements meet something: the connection, the SQL, and how it, or another, is sent."""

    def prepare(store: PostgresStore) -> None:
        from claudius.memory.postgres.connection import PostgresConnection  # noqa: PLC0415 - an extra

        class Met(PostgresConnection):
            """A connection whose statements pass by the test."""

            is_writer = False

            def execute(self, sql: str, values: Any = (), /) -> Any:
                """Send a statement, as the test allows."""
                self.is_writer = self.is_writer or sql == "BEGIN IMMEDIATE"
                execute = super().execute
                return meet(self, sql, lambda other=sql: execute(other, values))

            def _connect(self) -> Any:
                connect()
                return super()._connect()

        store._connect = store.core._beside = lambda: Met(store.place)  # type: ignore[assignment]  # the same shape

    return prepare
