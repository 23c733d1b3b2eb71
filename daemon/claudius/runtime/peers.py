"""Two souls talk: each hears the other as a bot, in a conversation of its own whose audience is `peer:NAME`.

Nobody is known to be in that audience, so the audience rule shows nothing there of any person's. What the soul says is
an ordinary turn's; it is handed to whoever waits for it: the other soul's request, or `claudius daimon converse`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from string import Template
from typing import Any
from weakref import WeakValueDictionary

from claudius.cognition.mind import Mind, day_start
from claudius.cognition.processes import sections
from claudius.errors import ClaudiusError, UsageProblem
from claudius.intent import Utterance
from claudius.memory.inbox import UNFINISHED
from claudius.perception import DirectiveExtra, Kind, Origin, Perception
from claudius.prompt import valid
from claudius.runtime.adapter import Link, PlainAdapter
from claudius.runtime.control import ControlConnection

PEER = "peer"
CHARS = 1200
"""The most of one side's words: as much as a request of the other holds, in any script."""
TURNS = 5
"""The most that each side says: after six messages of a bot in a row, the soul is silent."""
TURN_S = 120.0
"""How long a turn of one side may take."""
Tell = Callable[[str, Mapping[str, Any]], Awaitable[str]]
"""Sends words to the daimon named, and returns its own; empty = it refused. Raises: ClaudiusError."""


class Peers(PlainAdapter):
    """The network on which souls talk."""

    name, is_local = PEER, True

    def __init__(self, mind: Mind, owner: Callable[[], str], tell: Tell) -> None:
        """Speak for `mind`; `owner` has it begin a talk, `tell` reaches the other soul."""
        super().__init__()
        self.link = Link(connected=True)
        self.wake: Callable[[str], None] = lambda _: None
        self._mind, self._owner, self._tell = mind, owner, tell
        self._waiting: WeakValueDictionary[str, asyncio.Future[str]] = WeakValueDictionary()
        self._talks: tuple[datetime, set[tuple[str, str]]] = mind.clock(), set()
        self._parts: dict[str, list[str]] = {}

    async def listen(self, accept: object) -> None:
        """Do nothing: what is heard comes by request."""

    async def speak(self, utterance: Utterance) -> str:
        """Hand a whole reply to whoever waits for it; after a crash, nobody does."""
        said = self._parts.setdefault(utterance.turn, [])
        said.append(utterance.whole)
        if utterance.part + 1 == utterance.parts:
            text = "\n\n".join(self._parts.pop(utterance.turn))
            for key in utterance.answers:  # a turn that gave way is answered with the next one
                self._answer(key, text)
        return utterance.key

    async def working(self, perception: Perception, *, on: bool) -> None:
        """End the wait for a turn that is over and said nothing; one that is tried again may yet say something."""
        if not on and self._mind.store.inbox.state(perception.key) not in (*UNFINISHED, "committed"):
            self._answer(perception.key, "")

    def _answer(self, key: str, text: str) -> None:
        waiting = self._waiting.get(key)
        if waiting and not waiting.done():
            waiting.set_result(text[:CHARS])

    async def answered(self, perception: Perception) -> str:
        """Hear something, and return what the soul says to it; empty if it is silent. Raises: StoreError.

        Whoever brings the same again while its turn is under way waits for the same words.
        """
        waiting = self._waiting.setdefault(perception.key, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(TURN_S):
                inbox = self._mind.store.inbox
                is_new = await inbox.impose(perception, "", {}, self._mind.clock())
                if not is_new and not waiting.done() and inbox.state(perception.key) not in (*UNFINISHED, "committed"):
                    return ""
                self.wake(perception.conversation)
                return await asyncio.shield(waiting)  # it is others', too
        except TimeoutError:
            return ""

    def may_talk(self, name: str, talk: str, most: int) -> bool:
        """Count a talk that another soul begins, and return whether it is among the day's first `most`."""
        today = day_start(self._mind.clock())
        if self._talks[0] != today:
            self._talks = today, set()
        talks = self._talks[1]
        if (name, talk) not in talks and sum(one == name for one, _ in talks) >= most:
            return False
        talks.add((name, talk))
        return True

    def heard(self, name: str, talk: str, number: int, text: str) -> Perception:
        """Return what another soul says as it is heard."""
        return Perception(
            key=f"{PEER} {name!r}:{talk}:{number}",
            conversation=f"{PEER}:{name}:{talk}:",
            audience=f"{PEER}:{name}",
            person=f"{PEER}:{name}:soul",
            name=name.capitalize(),
            text=valid(text[:CHARS]),
            at=self._mind.clock(),
            kind=Kind.MENTION,
            is_bot=True,
        )

    async def serve(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        """Serve `claudius daimon converse`: talk with another soul, and show it, until an end or a frame comes."""
        talking = asyncio.create_task(self._converse(connection, asked), name="a talk of souls")
        stopping = asyncio.create_task(connection.receive(), name="its end")
        await asyncio.wait((talking, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in (talking, stopping):
            task.cancel()
        (ended, _) = await asyncio.gather(talking, stopping, return_exceptions=True)
        if isinstance(ended, ClaudiusError):
            await connection.send({"event": "error", "message": ended.message})
        elif isinstance(ended, Exception):
            raise ended
        else:
            await connection.send({"event": "ended", "reason": ended if isinstance(ended, str) else "stopped"})

    async def _converse(self, connection: ControlConnection, asked: Mapping[str, Any]) -> str:
        name, topic, mind = str(asked.get("name")), str(asked.get("topic") or ""), self._mind
        turns = min(TURNS, max(1, int(asked.get("turns") or 1)))
        talk = mind.nonce()[:12]
        words = sections(mind.soul().files.get("processes/proactive.md")).get("peer", "$topic")
        began = self.heard(name, talk, 0, Template(words).safe_substitute(name=name.capitalize(), topic=topic))
        first = Perception(
            key=began.key,
            conversation=began.conversation,
            audience=began.audience,
            text=began.text,
            at=began.at,
            kind=Kind.DIRECTIVE,
            origin=Origin.INTERNAL,
            extra=DirectiveExtra(asked_by=self._owner(), what=topic),
        )
        said = await self.answered(first)
        for number in range(1, turns + 1):
            if not said:
                return "it has nothing to say"
            await connection.send({"event": "said", "by": "", "text": said, "conversation": began.conversation})
            reply = await self._tell(name, {"mode": "converse", "talk": talk, "turn": number, "text": said})
            if not reply:
                return f"{name} refuses"
            await connection.send({"event": "said", "by": name, "text": reply, "conversation": began.conversation})
            if number < turns:
                said = await self.answered(self.heard(name, talk, number, reply))
        return f"{turns} turns"


def read(body: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the talk, the number and the words of a request. Pure. Raises: UsageProblem for another shape."""
    talk, number, text = body.get("talk"), body.get("turn"), body.get("text")
    if not isinstance(talk, str) or not talk.isalnum() or len(talk) > 32:
        raise UsageProblem("talk is missing")
    if not isinstance(number, int) or not 0 < number <= TURNS:
        raise UsageProblem(f"turn is a number up to {TURNS}")
    if not isinstance(text, str) or not text.strip() or len(text) > CHARS:
        raise UsageProblem(f"text is missing, or longer than {CHARS} characters")
    return talk, number, text
