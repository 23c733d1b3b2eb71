"""Commands: stored like anything that is heard, carried out in lanes of their own, answered to the person who asked.

Each is safe to run twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from claudius.cognition.mind import Mind
from claudius.errors import ClaudiusError
from claudius.foreign import unquoted
from claudius.memory.inbox import Pending
from claudius.perception import CommandExtra, Perception, Place
from claudius.runtime.access import ChannelModes, is_owner
from claudius.runtime.adapter import Adapter
from claudius.runtime.commands.about import About
from claudius.runtime.commands.consents import Consents
from claudius.runtime.commands.linking import Linking
from claudius.runtime.commands.places import OwnerCommands, PlaceCommands, only_an_owner
from claudius.runtime.commands.words import MODERATORS, OWNERS, TABLE, CommandLine, help_text, read_command, unknown
from claudius.runtime.forgetting import Forgetting
from claudius.runtime.lane import Lane
from claudius.runtime.lanes import Lanes

log = logging.getLogger(__name__)

AGAIN_S, MOST_AGAIN_S = 30.0, 3600.0
"""How soon a line that must be told is tried again; twice as long after each try, up to the second."""
KEPT_ONLY = "(heard and kept; nothing is answered here: you are muted, or I am paused or switched off)"
"""What a terminal shows, where somebody would wait for an answer."""


class Commands:
    """Carries out the commands that people give."""

    def __init__(
        self,
        mind: Mind,
        adapters: Mapping[str, Adapter],
        modes: ChannelModes,
        forgetting: Forgetting,
        lanes: Lanes,
        owners: OwnerCommands,
    ) -> None:
        """Answer through `adapters`; what is to be said aloud is said in `lanes`."""
        self._mind, self._adapters, self._members = mind, adapters, lanes.members
        self._refusal = partial(only_an_owner, mind, adapters)
        about, places = About(mind, forgetting), PlaceCommands(mind, modes, lanes.wake, adapters)
        linking, self._forgetting = Linking(mind, self.tell), forgetting
        self.consents = Consents(mind, adapters, lanes)
        parts = (self, self.consents, about, linking, places, owners)
        self._words: dict[str, Callable[[Perception, str], Awaitable[str]]] = {
            word: getattr(part, word) for word in TABLE for part in parts if hasattr(part, word)
        }
        self._beside: set[asyncio.Task[Any]] = set()
        self._again: dict[str, asyncio.TimerHandle] = {}

    @property
    def busy(self) -> int:
        """How many people are told something just now."""
        return len(self._beside)

    def tell(self, perception: Perception, text: str, given: Callable[[], None] | None = None) -> None:
        """Send a line to one person, in the background.

        With `given` it is tried again until it was sent; then that is called.
        """
        self._tell(perception, text, given, AGAIN_S)

    def _tell(self, perception: Perception, text: str, given: Callable[[], None] | None, again_s: float) -> None:
        async def told() -> None:
            if not await self.answer(perception, text):
                if given:
                    later = partial(self._tell, perception, text, given, min(2 * again_s, MOST_AGAIN_S))
                    self._again[perception.key] = asyncio.get_running_loop().call_later(again_s, later)
            elif given:
                given()

        self._begin(told(), f"tell {perception.key}")

    def show_held(self, perception: Perception) -> None:
        """Tell a terminal that waits that there is no answer now, in the background."""
        self._begin(self.answer(perception, KEPT_ONLY), f"held {perception.key}")

    def _begin(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self, within_s: float) -> None:
        """Let what is said to people end for `within_s` seconds."""
        await self.consents.close()
        if self._beside:
            _, late = await asyncio.wait(self._beside, timeout=within_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for again in self._again.values():
            again.cancel()

    async def carry_out(self, pending: Pending, lane: Lane) -> None:
        """Do what a command asks, and answer it; the next process runs one that a crash interrupted.

        If its lane is lost meanwhile, the process that has it carries the command out. But an erasure that was begun
        goes to its end, because the files of this home are nobody else's to erase; and so does an answer, because
        nobody else answers what is carried out.
        """
        asked = read_command(pending.perception.text)
        lane.is_bound = asked.word == "forget"
        try:
            text = await self._do(pending.perception, asked)
            await lane.mind.store.inbox.withdraw(pending.seq, "carried out")
            lane.is_bound = True
            if await self.answer(pending.perception, text) and asked.word == "forget":
                self._forgetting.was_told(pending.perception.person)
        finally:
            lane.is_bound = False

    async def _do(self, perception: Perception, asked: CommandLine) -> str:
        log.info("asked", extra={"person": perception.person, "word": asked.word})
        try:
            await self._members.look_as(perception.person)
            if asked.word in (*OWNERS, *MODERATORS) and not is_owner(perception, self._mind.config()):
                if asked.word in OWNERS:
                    return await self._refusal()
                if not (isinstance(perception.extra, CommandExtra) and perception.extra.is_moderator):
                    return await self._refusal(who="an owner or a moderator")
            carry_out = self._words.get(asked.word)
            return await carry_out(perception, asked.rest) if carry_out else unknown(asked.rest or asked.word)
        except ClaudiusError as error:
            return f"That did not work: {error.message}"
        except Exception:  # this is the lane of commands: whoever gave one is answered, and the next one is done
            log.exception("a command stumbled", extra={"word": asked.word})
            return "That did not work; the owner can see why in my log."

    async def help(self, perception: Perception, _: str) -> str:
        """Say what can be said to the soul there."""
        network, extra = Place.of(perception.conversation).network, perception.extra
        is_moderator = isinstance(extra, CommandExtra) and extra.is_moderator
        return help_text(network, is_owner=is_owner(perception, self._mind.config()), is_moderator=is_moderator)

    async def answer(self, perception: Perception, text: str) -> bool:
        """Answer a command to whoever gave it, where its network is there; a failure is logged. Returns if it was."""
        adapter = self._adapters.get(Place.of(perception.conversation).network)
        if adapter is None or not text:
            return False
        try:
            await adapter.answer(perception, text)
        except Exception as error:  # an adapter may be the owner's own code; the command is done and settled
            is_bug = not isinstance(error, (ClaudiusError, OSError, TimeoutError))
            facts = {"person": perception.person, "error": unquoted(error)}
            log.warning("an answer was not given", extra=facts, exc_info=is_bug)
            return False
        return True
