"""The people of one network, as the adapter contract drives them: the same words for every network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

DM, CHANNEL = "dm", "channel"
"""The two places that every stage has: the app's direct messages with Ana, and a channel that both are in."""
ANA, BEN = "ana", "ben"
"""Two people whom the network knows as full members."""
BOT, STRANGER = "bot", "stranger"
"""Two who come in by `meet`: another app, and somebody who is no member."""
Trouble = Literal["slow", "closed", "dropped", "renewed", "deaf", "shut out"]
"""The next post is to wait a second; the channel is closed to us; the socket is cut; it is cut, and cannot be taken up
again as it was; it is open and nothing comes; our token is taken back. After a cut the stage waits until it is mended.
"""

EVERYTHING = frozenset(
    {
        "threads", "edits", "deletes", "reactions", "files", "history", "redelivery", "lost answers",
        "strangers", "sockets", "limits", "commands",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """One whole message of the app's that people see."""

    where: str
    thread: str
    """Empty where it stands in none."""
    text: str
    id: str


class Stage(Protocol):
    """One network: what people do there, and what they see."""

    name: str
    """The network's word in conversation keys."""
    own_person: str
    """The person id of Ana."""

    @property
    def can(self) -> frozenset[str]:
        """What this network can do, of `EVERYTHING`."""

    def seen(self, text: str) -> str:
        """Return a text, as it is sent, as people see it there."""

    async def say_as_us(self, where: str, text: str) -> None:
        """Say something under the app's own name, by another hand than the adapter's."""

    async def double(self, events: int) -> None:
        """Bring so many events to come twice."""

    async def lose_answer(self, *, is_applied: bool) -> None:
        """Let the answer to the next post be lost, after it was applied or before."""

    async def say(
        self, where: str, text: str, *, by: str = ANA, thread: str = "", calls: bool = False, deliver: bool = True
    ) -> str:
        """Say something; give the message's id. `calls`: it names the app first. Not `deliver`: its event is lost."""
        ...

    async def edit(self, where: str, message: str, text: str, *, thread: str = "", calls: bool = False) -> None:
        """Change a message."""
        ...

    async def unfurl(self, where: str, message: str, *, thread: str = "") -> None:
        """Have the network tell of a change though the words are the same."""
        ...

    async def delete(self, where: str, messages: Sequence[str], *, thread: str = "") -> None:
        """Take messages down: one, or several at once where the network can."""
        ...

    async def react(
        self, where: str, message: str, emoji: str, *, by: str = ANA, thread: str = "", is_on: bool = True
    ) -> None:
        """Put a sign on a message, or take it off."""
        ...

    async def upload(
        self, where: str, name: str, content: bytes, mimetype: str, *, text: str = "", calls: bool = False
    ) -> str:
        """Show the app a file; give the message's id."""
        ...

    async def begin_thread(self, message: str) -> str:
        """Begin a thread on a message of the channel, as people do; give its id."""

    async def refuse_history(self) -> None:
        """Let the app read no history from now on."""

    async def visible(self) -> list[Shown]:
        """Give the app's messages, oldest first."""
        ...

    async def until_visible(self, count: int) -> list[Shown]:
        """Wait for so many. Raises: TimeoutError."""
        ...

    async def until_told(self) -> None:
        """Wait until the app has been told everything, and has taken it. Raises: TimeoutError."""
        ...

    async def meet(self, who: str) -> None:
        """Let another app, or a stranger, be there, who may then speak."""
        ...

    async def hold(self) -> None:
        """Bring no event from now on."""
        ...

    async def release(self) -> None:
        """Bring what was held, in another order."""
        ...

    async def trouble(self, what: Trouble) -> None:
        """Do harm."""
        ...

    async def command(self, where: str, word: str) -> None:
        """Have Ana give `/claudius WORD`."""
        ...

    async def told(self) -> list[str]:
        """Give what was said to Ana alone, and to nobody else, in answer to commands."""
        ...

    async def is_quiet(self) -> bool:
        """Tell whether no post so far notified anybody or may unfold a link, by what was really sent."""
        ...
