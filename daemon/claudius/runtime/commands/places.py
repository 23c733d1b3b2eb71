"""Commands about where the soul takes part (`/ensoul`, `!quiet`, `!kothar`), and those of owners.

An owner is known by the id that the network signed; what an owner does is in the audit log.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Literal

from claudius.cognition.mind import FRESH_S, Cap, Mind
from claudius.cognition.timing import known_zone
from claudius.config.load import overriding, write_setting
from claudius.config.schema import KOTHAR
from claudius.home import Home
from claudius.memory.people import Mode
from claudius.perception import DirectiveExtra, Kind, Origin, Perception, Place, given_in, is_terminal, shared
from claudius.provider import dollars
from claudius.runtime.access import MUTED_UNTIL, ChannelModes, OwnerCode, is_owner, is_terminal_user
from claudius.runtime.adapter import Adapter, shown_name
from claudius.runtime.auditing import note
from claudius.runtime.commands.words import about, is_direct

WORDS: dict[Mode | None, str] = {
    "on": "I take part here: I hear what is said, answer when I am called, and seldom speak up of my own accord.",
    "off": "I answer here when I am mentioned, and follow the thread that it opens.",
    "listen": "I listen here: I hear and remember, and stay silent.",
    None: "I answer here when I am mentioned, and follow the thread that it opens.",
}
DIRECT: dict[Mode | None, str] = {
    "on": "Between the two of us I always answer.",
    "off": "I hear you here and say nothing, until you say /ensoul on.",
    "listen": "I hear you here and say nothing, until you say /ensoul on.",
    None: "Between the two of us I always answer.",
}
BROUGHT = """\
I take part in this channel from now on: I hear and keep what is said here, answer when I am called, and seldom speak \
up of my own accord. `/ensoul off` ends it."""
LISTENS = "I listen in this channel from now on: I hear, keep what is said, and stay silent. `/ensoul off` ends it."
ANNOUNCED: dict[Mode, tuple[str, str]] = {
    "on": ("You were brought into this channel: from now on you hear what is said here, called or not.", BROUGHT),
    "listen": (
        "You were asked to listen in this channel: from now on you hear what is said, and stay silent.",
        LISTENS,
    ),
}
"""What the soul notices, and what it says to everybody there."""
KOTHAR_WORDS: dict[str, str] = {
    "off": "Kothar is not heard here, neither by you nor by me.",
    "whisper": "Kothar whispers to me here, and I keep it to myself.",
    "speak": "Kothar speaks here, after me and under his own name.",
    "both": "Kothar whispers to me here, and speaks after me under his own name.",
}


class PlaceCommands:
    """Commands about channels and threads."""

    def __init__(
        self, mind: Mind, modes: ChannelModes, wake: Callable[[str], None], adapters: Mapping[str, Adapter]
    ) -> None:
        """Change them in `modes`; `wake` has a conversation check for what waits."""
        self._mind, self._modes, self._wake, self._adapters = mind, modes, wake, adapters

    async def ensoul(self, perception: Perception, wish: str) -> str:
        """Show or set how the soul takes part in the channel where the command is given."""
        where = given_in(perception)
        place, wish = Place.of(where).of_channel, wish.lower() or "on"
        direct = is_direct(where, perception)
        if is_terminal(where):  # all terminal conversations are one place, and one person must not mute the others
            return DIRECT["on"]
        if wish == "status":
            return await self._status(place, perception, direct=direct)
        config = self._mind.config()
        may_bring = is_owner(perception, config) or perception.person in config.ensoul.who
        if wish != "off" and not direct and not may_bring:
            return await only_an_owner(self._mind, self._adapters)
        mode: Mode = "on" if wish == "on" else "off" if wish == "off" else "listen"
        if not direct:
            await note(self._mind, perception, "ensoul", f"{mode} {place}")
        if self._modes.mode(place) != mode and not direct and mode in ANNOUNCED:
            await self._announce(place, mode, perception)  # first: an interrupted command runs again
        await self._modes.participate(place, mode, perception.person)
        return (DIRECT if direct else WORDS)[mode] + ("" if direct or mode == "off" else await self._but(where))

    async def _but(self, where: str) -> str:
        """Return what keeps us from hearing a channel, as a sentence; empty = nothing."""
        adapter = self._adapters.get(Place.of(where).network)
        lacking = await adapter.lacks(where) if adapter else ""
        return f" But as it stands I hear nothing here: {lacking}." if lacking else ""

    async def _announce(self, place: str, mode: Mode, perception: Perception) -> None:
        """Have the soul notice where it is now, read the recent messages there, and announce itself to everybody."""
        conversation = f"{place}:"
        noticed, line = ANNOUNCED[mode]
        arrival = Perception(
            key=f"ensoul:{perception.key}",
            conversation=conversation,
            audience=shared(conversation),
            text=noticed,
            at=self._mind.clock(),
            position=perception.position,
            kind=Kind.DIRECTIVE,
            origin=Origin.INTERNAL,
            extra=DirectiveExtra(asked_by=perception.person, says=line),
        )
        await self._mind.store.inbox.accept((arrival,), self._mind.clock())
        self._wake(conversation)

    async def _status(self, place: str, perception: Perception, *, direct: bool) -> str:
        """Describe how the soul takes part, who set that, how Kothar does, and what is kept of the one who asks."""
        mode, config = self._modes.mode(place), self._mind.config()
        told = [(DIRECT if direct else WORDS)[mode] + ("" if direct else await self._but(f"{place}:"))]
        if said := self._modes.said_by(place):
            name = await shown_name(self._adapters.get(said[0].partition(":")[0]), said[0])
            told.append(f"So said {name or 'somebody'}, on {said[1]:%Y-%m-%d at %H:%M} UTC.")
        if config.kothar.is_on:
            where = given_in(perception)
            told.append(KOTHAR_WORDS[self._mind.store.whispers.mode_of(KOTHAR, where, config.kothar.mode)])
        audience = perception.audience if direct else shared(f"{place}:")
        known = await self._mind.store.people.known_of(perception.person, self._mind.clock(), audience)
        held = next((one for one in known.models if one.audience == audience), None)
        told.append(f"Of you I hold version {held.version} here." if held else "Of you I hold nothing here yet.")
        return " ".join(told)

    async def quiet(self, perception: Perception, wish: str) -> str:
        """Answer nothing but mentions where the command is given, or everything as before again."""
        where = about(perception)
        if is_direct(where, perception):
            return "Between the two of us I always answer; !quiet is for threads."
        on = wish.lower() != "off"
        await self._mind.store.people.hush(where, perception.position, self._mind.clock(), on=on)
        return "I am quiet here but for mentions, until !quiet off." if on else "I am not quiet here any more."

    async def kothar(self, perception: Perception, wish: str) -> str:
        """Show or set how Kothar takes part in the conversation where the command is given."""
        where, config = given_in(perception), self._mind.config()
        mode = wish.lower()
        if mode:
            await note(self._mind, perception, "daimon", f"{KOTHAR} {mode}")
            await self._mind.store.whispers.set_mode(KOTHAR, mode, where)
        else:
            mode = self._mind.store.whispers.mode_of(KOTHAR, where, config.kothar.mode)
        is_asleep = "" if config.kothar.is_on else " He is switched off, by the setting kothar.enabled."
        return KOTHAR_WORDS[mode] + is_asleep


NOT_THEIRS = "An owner is muted by owners alone, and nobody ends their own silence."
NOT_HERE = "That code is void now, because others could read it here. Make a new one, and say it to me directly."
NO_OWNER = ", and I have none yet: `claudius onboard`, where I run, makes one"
NOT_GOOD = "That code is not good. `claudius onboard` makes a new one, for an hour."
PAUSED = "I pause: I hear everything and keep it, and answer it when you say: !resume"
RESUMED = "I go on, with what waited."
SPANS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
OVERRIDDEN = " But {0} is set where I run, and overrides what I wrote into config.toml: change it there."

ONE_HOME = " It stands in config.toml of one machine, {1}: add {0} to `owners` on the others, too."
ONE_CODE = " A code is known on the machine that made it, and {1} heard you: there, add {0} to `owners` in config.toml."


async def only_an_owner(mind: Mind, adapters: Mapping[str, Adapter], who: str = "an owner") -> str:
    """Return the refusal of a command of `who`, which names the owners as their networks do."""
    names: dict[str, None] = {}
    for owner in mind.config().owners:
        names[await shown_name(adapters.get(owner.partition(":")[0]), owner)] = None
    named = f": {', '.join(filter(None, names))}" if any(names) else "" if names else NO_OWNER
    return f"Only {who} can have that of me{named}."


NO_THOUGHTS = "I show a thought to an owner alone: write that in a direct message with me on Slack or Discord."
THOUGHTS_ON = "Below each reply here you see what I thought, folded; not where a whisper, a belief or an order came in."


class OwnerCommands:
    """Commands of owners, and the one by which somebody becomes an owner; `Commands` refuses the others' (`OWNERS`)."""

    def __init__(
        self, mind: Mind, home: Home, status: Callable[[], Iterable[str]], resumed: Callable[[], None]
    ) -> None:
        """Change the settings of `home`; `status` describes the process, `resumed` makes every lane look again."""
        self._mind, self._home, self._status, self._resumed = mind, home, status, resumed

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
        await note(self._mind, perception, "status")
        return "\n".join(self._status())

    async def usage(self, perception: Perception, _: str) -> str:
        """Report what was spent, and the limits."""
        await note(self._mind, perception, "usage")
        return "\n".join(map(_told, self._mind.spending()))

    async def pause(self, perception: Perception, _: str) -> str:
        """Answer nobody for now."""
        return await self._pause(perception, "pause", PAUSED)

    async def resume(self, perception: Perception, _: str) -> str:
        """Answer again, starting with what waited."""
        answer = await self._pause(perception, "resume", RESUMED)
        self._resumed()
        return answer

    async def thoughts(self, perception: Perception, switch: str) -> str:
        """Show an owner thoughts below the replies of this direct message, or no more."""
        where = given_in(perception)
        if not is_direct(where, perception) or is_terminal(where):
            return NO_THOUGHTS
        await note(self._mind, perception, "setting", "thoughts")
        others = [one for one in self._mind.config().runtime.thoughts if one != where]
        is_on = switch.lower() == "on"
        override = await self._set(perception, "runtime.thoughts", [*others, where] if is_on else others)
        return (THOUGHTS_ON if is_on else "I keep my thoughts to myself.") + override

    async def mute(self, perception: Perception, wish: str) -> str:
        """Answer nothing of a person's, for a time or for good."""
        person, *rest = wish.split()  # ID [for 2 h], in any letters
        span = "".join(rest[1:])
        until = self._mind.clock() + int(span[:-1]) * SPANS[span[-1].lower()] if span else None
        entry = f"{person} until {until:{MUTED_UNTIL}}" if until else person
        zone = known_zone(self._mind.store.people.zone(perception.person), self._mind.config().clock.timezone)
        ends = f"{until.astimezone(zone):%Y-%m-%d %H:%M} ({zone})" if until else "!unmute"
        return await self._mute(perception, person, (entry,), f"I answer nothing of theirs until {ends}.")

    async def unmute(self, perception: Perception, person: str) -> str:
        """Answer a person again."""
        return await self._mute(perception, person, (), "I answer them again.")

    async def _mute(self, perception: Perception, person: str, entry: tuple[str, ...], said: str) -> str:
        known, config = await self._mind.store.people.ids_of(person), self._mind.config()
        ids = {person, *known}
        barred = {perception.person} if not entry else {*config.owners, *filter(is_terminal_user, ids)}
        if not (is_owner(perception, config) or barred.isdisjoint(ids)):
            return NOT_THEIRS
        await note(self._mind, perception, "mute" if entry else "unmute", person)
        others = [one for one in config.access.muted if one.partition(" ")[0] not in ids]
        unheard = "" if known else f" But I never heard from {person}: is that the id?"
        return said + unheard + await self._set(perception, "access.muted", [*others, *entry])

    async def _pause(self, perception: Perception, act: Literal["pause", "resume"], answer: str) -> str:
        """Set `runtime.paused`; where several processes share the store, a row of it, which all of them read."""
        config, shared = self._mind.config(), self._mind.store.leases
        await note(self._mind, perception, act)
        is_kept = await (shared.pause() if act == "pause" else shared.resume())
        if is_kept and (act == "pause" or not config.runtime.paused):
            return answer
        return answer + await self._set(perception, "runtime.paused", act == "pause")

    def _of_one_machine(self, told: str, person: str) -> str:
        """Return what to do where several processes share the store, each with settings of its own; else nothing."""
        return told.format(person, socket.gethostname()) if self._mind.store.is_shared else ""

    async def _set(self, perception: Perception, key: str, value: object) -> str:
        """Write a setting; return what overrides it, as a sentence."""
        await note(self._mind, perception, "setting", key)
        await asyncio.to_thread(write_setting, self._home, key, value)
        await asyncio.sleep(FRESH_S)  # so that it is in force when the answer comes
        override = overriding(self._home, os.environ, key)
        return OVERRIDDEN.format(override[0]) if override else ""


def _told(cap: Cap) -> str:
    limit = f" of ${cap.limit_usd:.2f} ({cap.stage})" if cap.limit_usd else ""
    return f"{cap.name}: {dollars(cap.spent_usd)}{limit}"
