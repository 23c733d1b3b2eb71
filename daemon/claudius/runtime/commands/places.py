"""What people say about where the soul takes part: `/ensoul`, and `!quiet` in a thread."""

from __future__ import annotations

from claudius.cognition.mind import Mind
from claudius.config import KOTHAR
from claudius.memory.people import Mode
from claudius.perception import Perception, Place
from claudius.runtime.commands.words import ENSOUL
from claudius.runtime.company import Company, place_of
from claudius.runtime.stopping import is_owner

WORDS: dict[Mode | None, str] = {
    "on": "I take part here: I hear what is said, answer when I am called, and seldom speak up of my own accord.",
    "off": "I stay out of this channel: nothing said here is heard.",
    "listen": "I listen here: I hear and remember, and stay silent.",
    None: "I answer here when I am mentioned, and follow the thread that it opens.",
}
KOTHAR_WORDS: dict[str, str] = {
    "off": "Kothar is not heard here, neither by you nor by me.",
    "whisper": "Kothar whispers to me here, and I keep it to myself.",
    "speak": "Kothar speaks here, after me and under his own name.",
    "both": "Kothar whispers to me here, and speaks after me under his own name.",
}


class Places:
    """Channels and threads."""

    def __init__(self, mind: Mind, company: Company) -> None:
        """Change them in `company`."""
        self._mind, self._company = mind, company

    async def ensoul(self, perception: Perception, wish: str) -> str:
        """Say, or set, how the soul takes part in the channel where this is said."""
        where = str(perception.extra.get("where") or perception.conversation)
        place, wish = place_of(where), wish.lower() or "status"
        if wish not in ENSOUL:
            return f"I know /ensoul {'|'.join(ENSOUL)}."
        if is_direct(where, perception):
            return "Between the two of us I always answer; /ensoul is for channels."
        if wish == "status":
            return WORDS[self._company.mode(place)]
        if wish != "off" and not is_owner(perception, self._mind.config()):
            return "Only an owner can have me take part in a channel. `owners` in the settings says who that is."
        mode: Mode = "on" if wish == "on" else "off" if wish == "off" else "listen"
        await self._company.participate(place, mode, perception.person)
        return WORDS[mode]

    async def quiet(self, perception: Perception, _: str) -> str:
        """Be quiet in the thread where this is said, until called again."""
        where = str(perception.extra.get("where") or "")
        if is_direct(where, perception):
            return "Between the two of us I always answer; !quiet is for threads."
        if where and await self._mind.store.hush(where):
            return "I am quiet in this thread until somebody mentions me."
        return "I only speak here when I am mentioned."

    async def kothar(self, perception: Perception, wish: str) -> str:
        """Say, or set, how Kothar takes part in the conversation where this is said."""
        where, config = str(perception.extra.get("where") or perception.conversation), self._mind.config()
        mode = wish.lower()
        if mode and mode not in KOTHAR_WORDS:
            return f"I know !kothar {'|'.join(KOTHAR_WORDS)}."
        if not is_owner(perception, config):
            return "Only an owner can say how Kothar takes part. `owners` in the settings says who that is."
        if mode:
            await self._mind.store.set_mode(KOTHAR, mode, where)
        else:
            mode = await self._mind.store.mode_of(KOTHAR, where, config.kothar.mode)
        is_asleep = "" if config.kothar.is_on else " He is switched off, by the setting kothar.enabled."
        return KOTHAR_WORDS[mode] + is_asleep


def is_direct(where: str, perception: Perception) -> bool:
    """Tell whether a command was given between the two of them, and not in a channel. Pure."""
    place = Place.of(where)
    if perception.extra.get("is_public") is not None:
        return not perception.extra["is_public"]
    return place.workspace == "@me" or (place.network == "slack" and place.channel.startswith("D"))
