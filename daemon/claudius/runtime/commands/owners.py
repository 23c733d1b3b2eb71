"""Commands of owners: become one with a code, see the soul's status and costs, pause and resume it.

Each is bound to the id that the network signed, and is in the audit log.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Literal

from claudius.cognition.mind import FRESH_S, Cap, Mind
from claudius.config import overriding, write_setting
from claudius.errors import DeliveryError
from claudius.home import Home
from claudius.perception import Perception, given_in
from claudius.runtime.adapter import Adapter, NamesPerson
from claudius.runtime.auditing import note
from claudius.runtime.commands.words import is_direct
from claudius.runtime.intake import MUTED_UNTIL, is_owner
from claudius.runtime.owner_code import OwnerCode

NOT_AN_OWNER = "Only an owner can have that of me"
NOT_HERE = "That code is void now, because others could read it here. Make a new one, and say it to me directly."
NOT_GOOD = "That code is not good. `claudius onboard` makes a new one, for an hour."
PAUSED = "I pause: I hear everything and keep it, and answer it when you say: resume."
RESUMED = "I go on, with what waited."
SPANS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
OVERRIDDEN = " But {0} is set where I run, and overrides what I wrote into config.toml: change it there."

ONE_HOME = " It stands in config.toml of one machine, {1}: add {0} to `owners` on the others, too."
ONE_CODE = " A code is known on the machine that made it, and {1} heard you: there, add {0} to `owners` in config.toml."


async def only_an_owner(mind: Mind, adapters: Mapping[str, Adapter]) -> str:
    """Return the refusal of an owner's command, which names the owners as their networks do."""
    names: dict[str, None] = {}
    for owner in mind.config().owners:
        adapter: object = adapters.get(owner.partition(":")[0])
        if isinstance(adapter, NamesPerson):
            with suppress(DeliveryError, OSError, TimeoutError):
                names[await adapter.name_of(owner)] = None
    return f"{NOT_AN_OWNER}: {', '.join(filter(None, names))}." if any(names) else f"{NOT_AN_OWNER}."


class OwnerCommands:
    """Commands of owners."""

    def __init__(
        self,
        mind: Mind,
        home: Home,
        adapters: Mapping[str, Adapter],
        status: Callable[[], Iterable[str]],
        resumed: Callable[[], None],
    ) -> None:
        """Change the settings of `home`; `status` describes the process, `resumed` makes every lane look again."""
        self._mind, self._home, self._status, self._resumed = mind, home, status, resumed
        self._adapters = adapters

    async def owner(self, perception: Perception, code: str) -> str:
        """Make the person who says the code an owner."""
        asked = OwnerCode(self._home)
        if not is_direct(given_in(perception), perception):
            asked.void()
            return NOT_HERE
        owners = self._mind.config().owners
        if perception.person in owners:
            return "You are an owner of mine already."
        if not asked.redeem(code, self._mind.clock()):
            return NOT_GOOD + self._of_one_machine(ONE_CODE, perception.person)
        await note(self._mind, perception, "owner", perception.person)
        override = await self._set(perception, "owners", [*owners, perception.person])
        return "You are an owner of mine now." + override + self._of_one_machine(ONE_HOME, perception.person)

    async def status(self, perception: Perception, _: str) -> str:
        """Report the soul's status."""
        if not is_owner(perception, self._mind.config()):
            return await only_an_owner(self._mind, self._adapters)
        await note(self._mind, perception, "status")
        return "\n".join(self._status())

    async def usage(self, perception: Perception, _: str) -> str:
        """Report what was spent, and the limits."""
        if not is_owner(perception, self._mind.config()):
            return await only_an_owner(self._mind, self._adapters)
        await note(self._mind, perception, "usage")
        return "\n".join(map(_told, await self._mind.spending()))

    async def pause(self, perception: Perception, _: str) -> str:
        """Answer nobody for now."""
        return await self._pause(perception, "pause", PAUSED)

    async def resume(self, perception: Perception, _: str) -> str:
        """Answer again, starting with what waited."""
        answer = await self._pause(perception, "resume", RESUMED)
        self._resumed()
        return answer

    async def mute(self, perception: Perception, wish: str) -> str:
        """Answer nothing of a person's, for a time or for good."""
        person, *rest = wish.split()  # ID [for 2 h], in any letters
        span = "".join(rest[1:])
        if not is_owner(perception, self._mind.config()):
            return await only_an_owner(self._mind, self._adapters)
        until = self._mind.clock() + int(span[:-1]) * SPANS[span[-1].lower()] if span else None
        entry = f"{person} until {until:{MUTED_UNTIL}}" if until else person
        override = await self._mute(perception, person, (entry,))
        return f"I answer nothing of theirs {f'until {until:%H:%M} UTC' if until else 'until unmute'}." + override

    async def unmute(self, perception: Perception, person: str) -> str:
        """Answer a person again."""
        if not is_owner(perception, self._mind.config()):
            return await only_an_owner(self._mind, self._adapters)
        return "I answer them again." + await self._mute(perception, person, ())

    async def _mute(self, perception: Perception, person: str, entry: tuple[str, ...]) -> str:
        await note(self._mind, perception, "mute" if entry else "unmute", person)
        ids = {person, *await self._mind.store.people.ids_of(person)}
        others = [one for one in self._mind.config().access.muted if one.partition(" ")[0] not in ids]
        return await self._set(perception, "access.muted", [*others, *entry])

    async def _pause(self, perception: Perception, act: Literal["pause", "resume"], answer: str) -> str:
        """Set `runtime.paused`; where several processes share the store, a row of it, which all of them read."""
        config, leases = self._mind.config(), self._mind.store.leases
        if not is_owner(perception, config):
            return await only_an_owner(self._mind, self._adapters)
        await note(self._mind, perception, act)
        if leases and act == "pause":
            await leases.pause()
            return answer
        if leases:
            await leases.resume()
            if not config.runtime.paused:
                return answer
        return answer + await self._set(perception, "runtime.paused", act == "pause")

    def _of_one_machine(self, told: str, person: str) -> str:
        """Return what to do where several processes share the store, each with settings of its own; else nothing."""
        return told.format(person, socket.gethostname()) if self._mind.store.leases else ""

    async def _set(self, perception: Perception, key: str, value: object) -> str:
        """Write a setting; return what overrides it, as a sentence."""
        await note(self._mind, perception, "setting", key)
        await asyncio.to_thread(write_setting, self._home, key, value)
        await asyncio.sleep(FRESH_S)  # so that it is in force when the answer comes
        override = overriding(self._home, os.environ, key)
        return OVERRIDDEN.format(override[0]) if override else ""


def _told(cap: Cap) -> str:
    limit = f" of ${cap.limit_usd:.2f} ({cap.stage})" if cap.limit_usd else ""
    return f"{cap.name}: ${cap.spent_usd:.4f}{limit}"
