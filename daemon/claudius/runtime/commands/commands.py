"""Commands: stored like anything that is heard, run beside the conversations, answered to the person who asked.

The next process runs a command that a crash interrupted; each is safe to run twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from claudius.cognition.conclude.conclusion import paused
from claudius.cognition.mind import Mind
from claudius.errors import ClaudiusError, DeliveryError, RowInvalid, StaleTurn, StoreError
from claudius.foreign import unquoted
from claudius.memory.store import Store
from claudius.perception import MessageExtra, Perception, Place
from claudius.runtime.access import ChannelModes
from claudius.runtime.adapter import Adapter, TellsLacks
from claudius.runtime.commands.about import About
from claudius.runtime.commands.linking import Linking
from claudius.runtime.commands.places import OwnerCommands, PlaceCommands, only_an_owner
from claudius.runtime.commands.words import help_text, read_command, unknown
from claudius.runtime.forgetting import Forgetting
from claudius.runtime.lanes import Lanes

log = logging.getLogger(__name__)

ANSWERED = "answered"
"""What a conversation of commands is at while the answer to one that was carried out is sent."""


class Commands:
    """Runs the commands that people give."""

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
        about, places = About(mind, forgetting), self._places(modes, lanes)
        linking, self._forgetting = Linking(mind, self.tell), forgetting
        self._words: dict[str, Callable[[Perception, str], Awaitable[str]]] = {
            "help": self._help,
            "whoami": about.whoami,
            "home": about.whoami,
            "why": about.why,
            "correct": about.correct,
            "plans": about.plans,
            "cancel": about.cancel,
            "forget": about.forget,
            "export": about.export,
            "link": linking.link,
            "unlink": linking.unlink,
            "proactive": about.proactive,
            "ensoul": places.ensoul,
            "quiet": places.quiet,
            "kothar": places.kothar,
            "owner": owners.owner,
            "status": owners.status,
            "usage": owners.usage,
            "pause": owners.pause,
            "resume": owners.resume,
            "mute": owners.mute,
            "unmute": owners.unmute,
        }
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._stores: dict[str, Store] = {}
        """The store that each of these conversations is carried out with."""
        self._doing: dict[str, str] = {}
        """The word of the command that each of these conversations is at."""
        self._again: set[str] = set()
        self._is_closing = False

    def _places(self, modes: ChannelModes, lanes: Lanes) -> PlaceCommands:
        refusal = partial(only_an_owner, self._mind, self._adapters)
        return PlaceCommands(self._mind, modes, lanes.wake, self._lacks, refusal)

    @property
    def busy(self) -> int:
        """How many commands are running."""
        return len(self._running)

    async def _lacks(self, conversation: str) -> str:
        adapter: object = self._adapters.get(Place.of(conversation).network)
        return await adapter.lacks(conversation) if isinstance(adapter, TellsLacks) else ""

    def wake(self, conversation: str) -> None:
        """Run what waits in a conversation of commands."""
        if self._is_closing:
            return
        leases = self._mind.store.leases
        if conversation in self._running:
            self._again.add(conversation)
            if not leases.is_of(self._stores[conversation], conversation):
                self.lose(conversation)  # and taken again
            return
        store = self._stores[conversation] = leases.store_of(conversation)
        task = asyncio.create_task(self._run(conversation, store), name=f"commands {conversation}")
        self._running[conversation] = task

    def lose(self, conversation: str) -> None:
        """Cancel the commands of a conversation whose lane is lost: the process that has it carries them out.

        An erasure that was begun goes to its end: the files of this home are nobody else's to erase. So does an answer:
        what is carried out nobody else answers.
        """
        if (running := self._running.get(conversation)) and self._doing.get(conversation) not in ("forget", ANSWERED):
            running.cancel()

    def tell(self, perception: Perception, text: str) -> None:
        """Send a line to one person, in the background."""
        key = f"tell {perception.key}"
        task = asyncio.create_task(self.answer(perception, text), name=key)
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    def show_paused(self, perception: Perception) -> None:
        """Put the sign of a pause on a message that is owed an answer, in the background."""
        key = f"paused {perception.key}"
        task = asyncio.create_task(self._sign(perception), name=key)
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    async def _sign(self, perception: Perception) -> None:
        react = getattr(self._adapters.get(Place.of(perception.conversation).network), "react", None)
        if react is None or not (isinstance(perception.extra, MessageExtra) and perception.extra.can_react):
            return
        try:
            await react(paused(perception))
        except (DeliveryError, OSError, TimeoutError) as error:  # the answer comes all the same, once the soul goes on
            log.info("a pause was not shown", extra={"error": unquoted(error)})

    async def close(self, within_s: float) -> None:
        """Let running commands end for `within_s` seconds; the next process runs the rest."""
        self._is_closing = True
        if self._running:
            _, late = await asyncio.wait(self._running.values(), timeout=within_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, conversation: str, store: Store) -> None:
        leases, inbox = self._mind.store.leases, store.inbox
        try:
            while True:
                self._again.discard(conversation)
                heard = await leases.heard(conversation)
                try:
                    pending = await inbox.oldest(conversation)
                except RowInvalid as error:
                    log.error("a command is given up: its row is damaged", extra={"error": error.message})  # noqa: TRY400 - no trace
                    await inbox.give_up(int(error.row), error.message)
                    continue
                if pending is None:
                    if conversation not in self._again and await leases.release(conversation, heard):
                        break
                    continue
                text = await self._do(pending.perception)
                await inbox.withdraw(pending.seq, "carried out")
                self._doing[conversation] = ANSWERED
                is_told = await self.answer(pending.perception, text)
                if is_told and read_command(pending.perception.text).word == "forget":
                    self._forgetting.was_told(pending.perception.person)
        except StaleTurn:
            log.warning("a command is left to the process that has it now")
        except StoreError as error:
            log.error("a command waits for the next start", extra={"error": error.message})  # noqa: TRY400 - no trace
            await leases.release(conversation, -1)
        finally:
            del self._running[conversation], self._stores[conversation]
            self._doing.pop(conversation, None)
            if leases.has_taken(conversation) and not leases.is_of(store, conversation):
                self.wake(conversation)  # it was lost, and taken again since

    async def _do(self, perception: Perception) -> str:
        asked = read_command(perception.text)
        self._doing[perception.conversation] = asked.word
        log.info("asked", extra={"person": perception.person, "word": asked.word})
        try:
            await self._members.look_as(perception.person)
            carry_out = self._words.get(asked.word)
            return await carry_out(perception, asked.rest) if carry_out else unknown(asked.rest or asked.word)
        except ClaudiusError as error:
            return f"That did not work: {error.message}"
        except Exception:  # this is the lane of commands: whoever gave one is answered, and the next one is done
            log.exception("a command stumbled", extra={"word": asked.word})
            return "That did not work; the owner can see why in my log."

    async def _help(self, perception: Perception, _: str) -> str:
        return help_text(Place.of(perception.conversation).network)

    async def answer(self, perception: Perception, text: str) -> bool:
        """Answer a command to whoever gave it, where its network is there; a failure is logged. Returns if it was."""
        adapter = self._adapters.get(Place.of(perception.conversation).network)
        answer = getattr(adapter, "answer", None)
        if answer is None or not text:
            return False
        try:
            await answer(perception, text)
        except Exception as error:  # an adapter may be the owner's own code; the command is done and settled
            is_bug = not isinstance(error, (ClaudiusError, OSError, TimeoutError))
            facts = {"person": perception.person, "error": unquoted(error)}
            log.warning("an answer was not given", extra=facts, exc_info=is_bug)
            return False
        return True
