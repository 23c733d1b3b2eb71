"""Connects the mind and the cortex through callables on typed values, and the store; neither imports the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from claudius.cognition.hooks import Hooks
from claudius.cognition.mind import Stage, spending, tightest
from claudius.config import Config
from claudius.cortex.asking import consult
from claudius.cortex.life import Cortex
from claudius.cortex.models import Ties
from claudius.cortex.observe import OBSERVED
from claudius.errors import ClaudiusError
from claudius.memory.records import reflection_row
from claudius.memory.store import Store
from claudius.provider import Provider, SecondVoice, Slot
from claudius.runtime.control import ControlConnection
from claudius.soul import SoulText

SPENDING = (Stage.OPEN, Stage.WHISPERS_OFF)
"""Stages of the budget at which the cortex may still call a model."""


class SecondMind:
    """The cortex beside one mind. It is built first, from the same parts, so that the mind can be given it."""

    def __init__(  # noqa: PLR0913 - the parts of a mind that the cortex shares
        self,
        *,
        store: Store,
        provider: Provider,
        soul: Callable[[], SoulText],
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        nonce: Callable[[], str],
        hooks: Hooks,
        build: Callable[[str], Provider],
        secrets: Sequence[str] = (),
        slot: Slot | None = None,
    ) -> None:
        """Build the cortex; `build` makes the named provider if it is to have one of its own.

        `slot` is the mind's: where the model's server has one, the cortex is quiet while a turn runs. A consultation is
        a part of its turn.
        """
        self._slot = slot or Slot()
        self._store, self._provider, self._config, self._clock = store, provider, config, clock
        self._build = build
        self._voices: dict[str, Provider] = {}
        self._wake: Callable[[str], None] = lambda _: None
        ties = Ties(
            store=store,
            voice=lambda name: SecondVoice(self._voice(name), self._slot),
            soul=soul,
            config=config,
            clock=clock,
            nonce=nonce,
            emit=hooks.emit,
            may_spend=self._may_spend,
            wake=self._wake_lane,
            secrets=secrets,
        )
        self.cortex = Cortex(ties)
        for kind in OBSERVED:
            hooks.listen(kind, self.cortex.observe)
        self.consult = partial(consult, replace(ties, voice=self._voice))
        """Judges a message before the soul answers it."""

    async def live(self, wake: Callable[[str], None]) -> None:
        """Run the cortex until cancelled, in two seconds at most; `wake` has a conversation check for what waits."""
        self._wake = wake
        await self.cortex.live()

    async def close(self) -> None:
        """Close the cortex's own providers."""
        for voice in self._voices.values():
            await voice.aclose()

    async def reflect(self, connection: ControlConnection, _: Mapping[str, Any]) -> None:
        """Serve the owner's `claudius cortex reflect`: run one cycle now, and send its record."""
        try:
            record = reflection_row(await self.cortex.reflect())
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})
            return
        document = json.loads(json.dumps(record | {"at": record["at"].isoformat().replace("+00:00", "Z")}))
        await connection.send({"event": "reflected", "record": document})

    def _wake_lane(self, conversation: str) -> None:
        """Wake a conversation through what `start` was given; before that, nothing waits."""
        self._wake(conversation)

    def _voice(self, name: str) -> Provider:
        if not name or name == self._provider.name:
            return self._provider
        if name not in self._voices:
            self._voices[name] = self._build(name)
        return self._voices[name]

    def _may_spend(self) -> bool:
        config = self._config()
        cap = tightest(spending(self._store, config.budget, self._clock()))
        return cap.stage in SPENDING and not (config.runtime.paused or self._store.leases.is_paused())
