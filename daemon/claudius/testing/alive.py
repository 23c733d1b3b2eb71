"""Run a complete soul in a test: real store, real lanes, a scripted provider, an in-memory network."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from claudius.cognition.hooks import Hooks
from claudius.cognition.mind import Mind, lately
from claudius.cognition.steps import STEPS
from claudius.config.load import Settings
from claudius.home import Home, shipped
from claudius.memory.archive import Archive
from claudius.memory.records import Records
from claudius.memory.sqlite import SqliteStore
from claudius.memory.store import Store
from claudius.provider import Provider, Slot
from claudius.runtime.adapter import Adapter
from claudius.runtime.attachments import transcriber
from claudius.runtime.background_services import BackgroundServices, SecondMind
from claudius.runtime.hands import IdleHands
from claudius.runtime.life import HomeLock
from claudius.runtime.process_resources import Clock, Disk, ProcessResources, running_s
from claudius.runtime.server import Server
from claudius.soul import SoulSource
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import Tool

OWNER = "rehearsal:t:owner"
"""The owner of the home that a test's soul runs in."""
UNHURRIED = {
    "CLAUDIUS_BUDGET_PERSON_PER_MINUTE": "1000000",
    "CLAUDIUS_BUDGET_PERSON_PER_DAY": "1000000",
    "CLAUDIUS_BUDGET_CONVERSATION_PER_HOUR": "1000000",
}
"""Raised rate limits: a test talks faster than a person may."""


class Shows(Protocol):
    """Where people see what the soul says."""

    async def until_visible(self, count: int, /) -> object:
        """Wait until this many whole messages are visible."""


@dataclass(frozen=True, slots=True)
class Alive:
    """A running soul, with the parts that a test inspects."""

    home: Home
    server: Server
    mind: Mind
    network: RehearsalAdapter
    resources: ProcessResources
    records: Callable[[], Records]
    """Returns what commands read, read-only, open until it or the soul is closed."""
    second: SecondMind | None = None
    services: BackgroundServices | None = None

    async def idle(self) -> None:
        """Wait until no conversation has work to do."""
        async with asyncio.timeout(20):
            while self.server.busy:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.002)

    async def until_said(self, count: int, on: Shows | None = None) -> Any:
        """Wait until so many messages are visible on a network, by default its own, until no work is left."""
        seen = await (on or self.network).until_visible(count)
        await self.idle()
        return seen


@asynccontextmanager
async def alive(  # noqa: PLR0913 - all but two have a default, and a test names the one that it means
    home: Home,
    provider: Provider,
    *,
    settings: Mapping[str, str] | None = None,
    clock: Callable[[], datetime] | None = None,
    running: Callable[[], float] = running_s,
    network: RehearsalAdapter | None = None,
    adapter: Adapter | None = None,
    beside: Sequence[Adapter] = (),
    clean: bool = True,
    resources: ProcessResources | None = None,
    store: Store | None = None,
    reflects: bool = False,
    keeps_clock: bool = False,
    archives: bool = False,
    alerts: bool = False,
    tools: Callable[[], Sequence[Tool]] | None = None,
    nonce: Callable[[], str] = lambda: secrets.token_hex(16),
) -> AsyncIterator[Alive]:
    """Start a soul in `home` with `provider`; stop it at the end, or drop it as in a crash if not `clean`.

    It listens to `network`, an in-memory network, or to a real `adapter` instead; and to those in `beside`.
    `archives`: write changes as files and commit them, at the latest at the end.
    `keeps_clock`: run its scheduled jobs and open its HTTP endpoint, as a running daemon does.
    `reflects`: run a cortex, as a running daemon does.
    `alerts`: tell the owners when something is wrong, as a running daemon does.
    `settings`: as environment names, e.g. `{"CLAUDIUS_RUNTIME_PATIENCE_S": "1"}`. `running`, in seconds, says how much
    time has really passed of what the wall `clock` shows; without it, a jump of the clock means that someone set it.
    `tools`: what turns may use; None = there are none. `nonce`: makes the markers of each prompt.
    """
    kept = Settings(home, UNHURRIED | dict(settings or {}))
    config = lately(kept.current)
    network = network or RehearsalAdapter()
    resources = resources or ProcessResources(
        clock=Clock(clock or (lambda: datetime.now(UTC)), running), disk=Disk(home, lambda: 0)
    )
    if store is None:
        store = SqliteStore(home.database, relieve=resources.disk.release)
    hooks, soul = Hooks(), lately(SoulSource(home.soul, shipped("soul"), steps=STEPS).current)
    second, slot = None, Slot()
    if reflects:
        second = SecondMind(
            store=store,
            provider=provider,
            soul=soul,
            config=config,
            clock=resources.clock.now,
            nonce=nonce,
            hooks=hooks,
            build=lambda _: provider,
            slot=slot,
        )
    mind = Mind(
        store=store,
        provider=provider,
        soul=soul,
        config=config,
        clock=resources.clock.now,
        nonce=nonce,
        aged_at=resources.clock.expiry,
        hooks=hooks,
        reflects=second.cortex.is_active if second else lambda: False,
        slot=slot,
        transcribe=transcriber(lambda: kept.loaded),
        consult=second.consult if second else None,
        hands=IdleHands(tools) if tools else None,
    )
    services = BackgroundServices(
        mind,
        home,
        lambda: kept.loaded,
        lambda _, __: provider,
        owner=lambda: OWNER,
        chance=lambda: 0.5,
        is_daemon=keeps_clock,
    )
    heard = adapter or network
    archive = Archive(store, home.memory, home.backups, clock=lambda: datetime.now(UTC)) if archives else None
    server = Server(
        home,
        HomeLock(home),
        mind,
        {one.name: one for one in (heard, *beside)},
        services.handlers,
        chance=lambda: 0.0,
        archive=archive,
        resources=resources,
        second=second,
        services=services,
        alerts=alerts,
    )
    await server.start()
    while store.is_shared and not (adapter or network.is_listening):  # noqa: ASYNC110 - a test looks from outside
        await asyncio.sleep(0.002)
    with ExitStack() as opened:
        readers: list[Records] = []

        def records() -> Records:
            if not readers or not readers[-1].is_open:
                readers.append(opened.enter_context(closing(mind.store.records())))
            return readers[-1]

        try:
            yield Alive(home, server, mind, network, resources, records, second, services)
        finally:
            opened.close()  # before the store, which as the last to close its file puts the log away
            await server.stop(grace_s=5.0 if clean else 0.0)
