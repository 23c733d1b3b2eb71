"""Account linking in chat: two ids on different networks become one person once both agreed in a direct message.

A code says which two ids are meant; it grants nothing by itself. Each side is then shown the other's id and what it
would give away, and has to agree. Codes, questions and wrong tries live in memory: a restart voids them, and nothing
is linked. Source: the security design, section 3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.perception import Perception, Place, given_in
from claudius.runtime.auditing import note
from claudius.runtime.commands.words import is_direct
from claudius.runtime.pairing import LIFE, WRONG_TRIES, Codes

log = logging.getLogger(__name__)

NAME_CHARS = 40
MARKUP = frozenset('`*_~|<>[]()\\"“”@#:')
"""Removed from a display name, so that it can neither look like an id nor end the quotes around it."""
NOT_HERE = "Linking is between the two of us: say it to me in a direct message."
NOT_GOOD = "That code is not good. On the other network, ask for a new one with: link"
TOO_OFTEN = "Too many wrong codes: try again in an hour."
OWN = "That is your own code: say it to me on the other network."
ONE_NETWORK = (
    "I link accounts of different networks only, and these two would be of the same one ({}). "
    "Whoever runs me can still link them, with: claudius users link"
)
NOTHING_WAITS = "Nothing waits for your answer: after an hour, or a restart of mine, it is void. Begin again with: link"
CHANGED = "Who is linked with whom has changed meanwhile, so nothing was linked. Begin again with: link"
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
        self._mind, self._tell = mind, tell
        self._codes = Codes(most=100)
        self._asked: dict[str, Perception] = {}
        """By person: the command that asked for the open code."""
        self._questions: list[Question] = []
        self._wrong: dict[str, list[datetime]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def link(self, perception: Perception, rest: str) -> str:
        """Issue a code, accept a code, or accept the answer to the question that followed."""
        if not is_direct(given_in(perception), perception):
            return NOT_HERE
        async with self._one_at_a_time:
            match rest.strip().lower():
                case "":
                    return self._begin(perception)
                case "yes":
                    return await self._agree(perception)
                case "no":
                    return self._decline(perception)
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

    def _begin(self, perception: Perception) -> str:
        now, person = self._mind.clock(), perception.person
        question = self._question_of(person, now)
        if question is not None:
            return _ask(question, person)
        self._codes.drop(person)
        asked = self._codes.ask(person, perception.name, network_of(person), now)
        if asked is None:
            return "Too many are linking just now: try again in an hour."
        self._asked = {one.person: self._asked[one.person] for one in self._codes.open(now) if one is not asked}
        self._asked[person] = perception
        return (
            "Show this code to nobody: whoever says it asks to be one person with you. "
            f"On the other network, say this to me in a direct message within an hour: link {asked.code}"
        )

    async def _take(self, perception: Perception, code: str) -> str:
        now, person = self._mind.clock(), perception.person
        lately = {one: [at for at in tries if now - at < LIFE] for one, tries in self._wrong.items()}
        self._wrong = {one: tries for one, tries in lately.items() if tries}
        if len(self._wrong.get(person, ())) >= WRONG_TRIES:  # this person is guessing; others are not affected
            return TOO_OFTEN
        found = self._codes.find(code, now)
        if found is None:
            self._wrong.setdefault(person, []).append(now)
            return NOT_GOOD
        mine, theirs = await self._ids_of(person), await self._ids_of(found.person)
        if found.person in mine:
            return OWN
        self._codes.drop(found.person)
        common = sorted({network_of(one) for one in mine} & {network_of(one) for one in theirs})
        if common:
            return ONE_NETWORK.format(", ".join(NETWORKS.get(one, one) for one in common))
        other = Side(heard=self._asked.pop(found.person), ids=theirs)
        question = Question(sides=(other, Side(heard=perception, ids=mine)), asked_at=now)
        pair = {found.person, person}
        self._questions = [one for one in self._questions if pair.isdisjoint(side.person for side in one.sides)]
        self._questions.append(question)
        self._tell_later(other, _ask(question, other.person), "asked")
        return f"{_ask(question, person)}\nI ask there too. If my question does not arrive there, say to me there: link"

    async def _agree(self, perception: Perception) -> str:
        now, person = self._mind.clock(), perception.person
        question = self._question_of(person, now)
        if question is None:
            also = [one for one in await self._ids_of(person) if one != person]
            return f"{NOTHING_WAITS}" + (f" You are one person with {', '.join(also)} already." if also else "")
        mine, other = question.seen_by(person)
        question.agreed.add(person)
        if other.person not in question.agreed:
            return f"Noted. Nothing is linked until {other.person} agrees too, there, in a direct message: link yes"
        self._questions.remove(question)
        if [await self._ids_of(side.person) for side in question.sides] != [side.ids for side in question.sides]:
            return CHANGED
        await note(self._mind, perception, "link", other.person)
        await self._mind.store.people.link(*(side.person for side in question.sides))
        log.info("linked", extra={"person": mine.person, "other": other.person})
        done = f"{question.sides[0].person} and {question.sides[1].person} are one person to me now. To end it: unlink"
        self._tell_later(other, done, "linked")
        return done

    def _decline(self, perception: Perception) -> str:
        person = perception.person
        question = self._question_of(person, self._mind.clock())
        self._codes.drop(person)
        if question is not None:
            self._questions.remove(question)
            self._tell_later(question.seen_by(person)[1], "The other side said no: nothing is linked.", "declined")
        return "Nothing is linked."

    def _question_of(self, person: str, now: datetime) -> Question | None:
        self._questions = [one for one in self._questions if now - one.asked_at < LIFE]
        return next((one for one in self._questions if person in (side.person for side in one.sides)), None)

    async def _ids_of(self, person: str) -> tuple[str, ...]:
        return tuple(await self._mind.store.people.ids_of(person)) or (person,)

    def _tell_later(self, side: Side, text: str, what: str) -> None:
        extra = replace(side.heard.extra, own={})  # good for the answer to that very command alone
        self._tell(replace(side.heard, key=f"{side.heard.key}:{what}", extra=extra), text)


def network_of(person: str) -> str:
    """Return the network of a person's id. Pure."""
    return Place.of(f"{person}::").network


def _ask(question: Question, person: str) -> str:
    """Return the question to one side: whether to be one person with the other, and what that gives away. Pure."""
    mine, other = question.seen_by(person)
    return (
        f"Do you, {mine.person}, want to be one person with {other.told}? Whoever has that account on {other.where} "
        "will then see what you told me here in private, and can export or erase it; you can do the same with theirs. "
        "A name can be forged, the id cannot. If that account is your own, say to me within an hour: link yes. "
        "If it is not, whatever anybody told you: link no"
    )
