"""Commands about where the soul takes part: `/ensoul`, `!quiet` in a thread, and `!kothar`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from claudius.cognition.mind import Mind
from claudius.config import KOTHAR
from claudius.memory.people import Mode
from claudius.perception import (
    DirectiveExtra,
    Kind,
    Origin,
    Perception,
    Place,
    given_in,
    is_terminal,
    shared,
)
from claudius.runtime.auditing import note
from claudius.runtime.commands.words import about, is_direct
from claudius.runtime.intake import ChannelModes, is_owner

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


Lacks = Callable[[str], Awaitable[str]]
"""Returns what keeps a network from hearing a conversation; empty = nothing."""


class PlaceCommands:
    """Commands about channels and threads."""

    def __init__(
        self,
        mind: Mind,
        modes: ChannelModes,
        wake: Callable[[str], None],
        lacks: Lacks,
        refusal: Callable[[], Awaitable[str]],
    ) -> None:
        """Change them in `modes`; `wake` has a conversation check for what waits. `refusal` is of who is no owner."""
        self._mind, self._modes, self._wake, self._lacks = mind, modes, wake, lacks
        self._refusal = refusal

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
            return await self._refusal()
        mode: Mode = "on" if wish == "on" else "off" if wish == "off" else "listen"
        if not direct:
            await note(self._mind, perception, "ensoul", f"{mode} {place}")
        if await self._modes.mode(place) != mode and not direct and mode in ANNOUNCED:
            await self._announce(place, mode, perception)  # first: an interrupted command runs again
        await self._modes.participate(place, mode, perception.person)
        return (DIRECT if direct else WORDS)[mode] + ("" if direct or mode == "off" else await self._but(where))

    async def _but(self, where: str) -> str:
        """Return what keeps us from hearing a channel, as a sentence; empty = nothing."""
        lacking = await self._lacks(where)
        return f" But as it stands I hear nothing here: {lacking}." if lacking else ""

    async def _announce(self, place: str, mode: Mode, perception: Perception) -> None:
        """Have the soul notice where it is now, read the recent messages there, and announce itself to everybody."""
        conversation = f"{place}:"
        noticed, line = ANNOUNCED[mode]
        arrival = Perception(
            key=f"ensoul:{perception.key}",
            conversation=conversation,
            audience=shared(conversation),
            person="",
            name="",
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
        mode, config = await self._modes.mode(place), self._mind.config()
        told = [(DIRECT if direct else WORDS)[mode] + ("" if direct else await self._but(f"{place}:"))]
        if said := await self._modes.said_by(place):
            told.append(f"So said {said[0]}, on {said[1]:%Y-%m-%d at %H:%M} UTC.")
        if config.kothar.is_on:
            where = given_in(perception)
            told.append(KOTHAR_WORDS[await self._mind.store.whispers.mode_of(KOTHAR, where, config.kothar.mode)])
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
        if not is_owner(perception, config):
            return await self._refusal()
        if mode:
            await note(self._mind, perception, "daimon", f"{KOTHAR} {mode}")
            await self._mind.store.whispers.set_mode(KOTHAR, mode, where)
        else:
            mode = await self._mind.store.whispers.mode_of(KOTHAR, where, config.kothar.mode)
        is_asleep = "" if config.kothar.is_on else " He is switched off, by the setting kothar.enabled."
        return KOTHAR_WORDS[mode] + is_asleep
