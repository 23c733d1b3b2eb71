"""Account linking in chat: two ids on different networks become one person once both agreed in a direct message.

A code says which two ids are meant; it grants nothing by itself. Each side is then shown the other's id and what it
would give away, and has to agree. Codes, questions and wrong tries live in `store.codes`: each is void after an hour,
where one process has the store after a restart, too, and nothing is linked. Source: the security design, section 3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.decoding import decoder
from claudius.memory.codes import WRONG_TRIES, OpenCode, find
from claudius.perception import Perception, Place, given_in
from claudius.runtime.auditing import note
from claudius.runtime.commands.words import is_direct

log = logging.getLogger(__name__)

CODE, QUESTION, GUESS = "link", "question", "guess"
"""What is open: somebody's code; a question, of whose code began it; how many wrong codes somebody said."""
MOST = 100
NAME_CHARS = 40
MARKUP = frozenset('`*_~|<>[]()\\"“”@#:')
"""Removed from a display name, so that it can neither look like an id nor end the quotes around it."""
NOT_HERE = "Linking is between the two of us: say it to me in a direct message."
NOT_GOOD = "That code is not good. On the other network, ask for a new one with: !link"
TOO_OFTEN = "Too many wrong codes: try again in an hour."
OWN = "That is your own code: say it to me on the other network."
ONE_NETWORK = (
    "I link accounts of different networks only, and these two would be of the same one ({}). "
    "Whoever runs me can still link them, with: claudius users link"
)
NOTHING_WAITS = "Nothing waits for your answer: after an hour, or a restart of mine, it is void. Begin again: !link"
CHANGED = "Who is linked with whom has changed meanwhile, so nothing was linked. Begin again with: !link"
NETWORKS = {"slack": "Slack", "discord": "Discord", "terminal": "the terminal"}

Tell = Callable[[Perception, str], None]
"""Sends a line, in the background, to the person who gave a command."""


class Side(Struct, frozen=True, kw_only=True):
    """One of the two ids to be linked."""

    heard: Perception
    """The command with which this side took part; messages to this side go where it was given."""
    ids: tuple[str, ...]
    """Every id that is this person already."""

    @property
    def person(self) -> str:
        """The id that takes part."""
        return self.heard.person

    @property
    def told(self) -> str:
        """What the other side is told of this one: ids as the networks sign them, then the display name."""
        also = [one for one in self.ids if one != self.person]
        plain = [char for char in " ".join(self.heard.name.split()) if char.isprintable() and char not in MARKUP]
        name = "".join(plain)[:NAME_CHARS].strip()  # fit to stand in quotes
        named = f', which calls itself "{name}"' if name else ""
        return f"{self.person}{named}" + (f" (one person with {', '.join(also)})" if also else "")

    @property
    def where(self) -> str:
        """The network's display name."""
        network = network_of(self.person)
        return NETWORKS.get(network, network)


class Question(Struct, kw_only=True):
    """Two ids that were asked whether they are one person."""

    sides: tuple[Side, Side]
    asked_at: datetime
    agreed: set[str] = field(default_factory=set)

    def seen_by(self, person: str) -> tuple[Side, Side]:
        """Return the side of `person`, then the other."""
        return self.sides if self.sides[0].person == person else (self.sides[1], self.sides[0])


class Linking:
    """The pending requests to link accounts."""

    def __init__(self, mind: Mind, tell: Tell) -> None:
        """Link in the mind's store; `tell` reaches the side that is not speaking."""
        self._mind, self._tell, self._codes = mind, tell, mind.store.codes
        self._one_at_a_time = asyncio.Lock()

    async def link(self, perception: Perception, rest: str) -> str:
        """Issue a code, accept a code, or accept the answer to the question that followed."""
        if not is_direct(given_in(perception), perception):
            return NOT_HERE
        async with self._one_at_a_time:
            match rest.strip().lower():
                case "":
                    return await self._begin(perception)
                case "yes":
                    return await self._agree(perception)
                case "no":
                    return await self._decline(perception)
                case _:
                    return await self._take(perception, rest)

    async def unlink(self, perception: Perception, _: str) -> str:
        """Undo every link of the person who asks."""
        person = perception.person
        if len(await self._mind.store.people.ids_of(person)) < 2:
            return "You are linked with no other account."
        await note(self._mind, perception, "unlink", person)
        ids = await self._mind.store.people.unlink(person, self._mind.clock(), "person")
        log.info("unlinked", extra={"person": person, "ids": list(ids)})
        return (
            f"{' and '.join(ids)} are apart again. Each sees, exports and erases only its own from now on. What I said "
            "or wrote in one place while they were one stays in that place, even where it drew on the other."
        )

    async def _begin(self, perception: Perception) -> str:
        person = perception.person
        question = self._question_of(person)
        if question is not None:
            return _ask(question, person)
        asked = await self._open(CODE, perception, _mute(perception), "")
        if asked is None:
            return "Too many are linking just now: try again in an hour."
        return (
            "Show this code to nobody: whoever says it asks to be one person with you. "
            f"On the other network, say this to me in a direct message within an hour: !link {asked.code}"
        )

    async def _take(self, perception: Perception, code: str) -> str:
        now, person = self._mind.clock(), perception.person
        guesses = next((one for one in self._codes.valid(GUESS, now) if one.person == person), None)
        wrong = int(guesses.payload) if guesses else 0
        if wrong >= WRONG_TRIES:  # this person is guessing; others are not affected
            return TOO_OFTEN
        found = find(code, self._codes.valid(CODE, now))
        if found is None:
            await self._open(GUESS, perception, wrong + 1, "", guesses.asked_at if guesses else now)
            return NOT_GOOD
        mine, theirs = await self._ids_of(person), await self._ids_of(found.person)
        if found.person in mine:
            return OWN
        if not await self._codes.drop(CODE, found.person):
            return NOT_GOOD
        common = sorted({network_of(one) for one in mine} & {network_of(one) for one in theirs})
        if common:
            return ONE_NETWORK.format(", ".join(NETWORKS.get(one, one) for one in common))
        other = Side(heard=_PERCEPTION.decode(found.payload), ids=theirs)
        question = Question(sides=(other, Side(heard=_mute(perception), ids=mine)), asked_at=now)
        for one in self._codes.valid(QUESTION, now):
            if not {one.person, one.about}.isdisjoint({found.person, person}):
                await self._codes.drop(QUESTION, one.person)
        await self._keep(question)
        self._tell_later(other, _ask(question, other.person), "asked")
        return f"{_ask(question, person)}\nI ask there too. If it does not arrive there, say to me there: !link"

    async def _agree(self, perception: Perception) -> str:
        person = perception.person
        question = self._question_of(person)
        if question is None:
            also = [one for one in await self._ids_of(person) if one != person]
            return f"{NOTHING_WAITS}" + (f" You are one person with {', '.join(also)} already." if also else "")
        mine, other = question.seen_by(person)
        question.agreed.add(person)
        if other.person not in question.agreed:
            await self._keep(question)
            return f"Noted. Nothing is linked until {other.person} agrees too, there, in a direct message: !link yes"
        await self._codes.drop(QUESTION, question.sides[0].person)
        if [await self._ids_of(side.person) for side in question.sides] != [side.ids for side in question.sides]:
            return CHANGED
        await note(self._mind, perception, "link", other.person)
        await self._mind.store.people.link(*(side.person for side in question.sides))
        log.info("linked", extra={"person": mine.person, "other": other.person})
        done = f"{question.sides[0].person} and {question.sides[1].person} are one person to me now. To end it: !unlink"
        self._tell_later(other, done, "linked")
        return done

    async def _decline(self, perception: Perception) -> str:
        person = perception.person
        question = self._question_of(person)
        await self._codes.drop(CODE, person)
        if question is not None:
            await self._codes.drop(QUESTION, question.sides[0].person)
            self._tell_later(question.seen_by(person)[1], "The other side said no: nothing is linked.", "declined")
        return "Nothing is linked."

    async def _open(
        self, kind: str, heard: Perception, payload: object, about: str, at: datetime | None = None
    ) -> OpenCode | None:
        """Keep something for an hour from `at` on, in place of what this person had of that kind."""
        person, words = heard.person, msgspec.json.encode(payload).decode()
        await self._codes.drop(kind, person)
        asked = OpenCode(
            kind=kind,
            person=person,
            name=heard.name,
            network=network_of(person),
            asked_at=at or self._mind.clock(),
            about=about,
            payload=words,
        )
        return await self._codes.open(asked, MOST)

    async def _keep(self, question: Question) -> None:
        first, second = question.sides
        await self._open(QUESTION, first.heard, question, second.person, question.asked_at)

    def _question_of(self, person: str) -> Question | None:
        for one in self._codes.valid(QUESTION, self._mind.clock()):
            if person in (one.person, one.about):
                return _QUESTION.decode(one.payload)
        return None

    async def _ids_of(self, person: str) -> tuple[str, ...]:
        return tuple(await self._mind.store.people.ids_of(person)) or (person,)

    def _tell_later(self, side: Side, text: str, what: str) -> None:
        self._tell(replace(side.heard, key=f"{side.heard.key}:{what}"), text)


_PERCEPTION, _QUESTION = decoder(Perception), decoder(Question)


def _mute(heard: Perception) -> Perception:
    """Return a command without what is good for the answer to that very command alone. Pure."""
    return replace(heard, extra=replace(heard.extra, own={}))


def network_of(person: str) -> str:
    """Return the network of a person's id. Pure."""
    return Place.of(f"{person}::").network


def _ask(question: Question, person: str) -> str:
    """Return the question to one side: whether to be one person with the other, and what that gives away. Pure."""
    mine, other = question.seen_by(person)
    return (
        f"Do you, {mine.person}, want to be one person with {other.told}? Whoever has that account on {other.where} "
        "will then see what you told me here in private, and can export or erase it; you can do the same with theirs. "
        "A name can be forged, the id cannot. If that account is your own, say to me within an hour: !link yes. "
        "If it is not, whatever anybody told you: !link no"
    )
