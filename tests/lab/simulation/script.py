"""What a seed decides before anything happens: who says, changes and takes down what, and when the process dies."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from random import Random
from typing import TypeVar

from lab.simulation.town import Moods, Town

PEOPLE = ("ana", "ben", "cem", "dee")


@dataclass(frozen=True, slots=True)
class Said:
    """A person says something."""

    at_s: float
    number: int
    person: str
    thread: str
    text: str

    def happen(self, town: Town, now_s: float) -> None:
        """Have it said."""
        town.say(f"{self.number:06d}", self.person, self.thread, self.text, now_s)


@dataclass(frozen=True, slots=True)
class LastWord:
    """A person says something as soon as they see the next reply: while whoever thought it lets go of the lane."""

    at_s: float
    person: str
    thread: str

    def happen(self, town: Town, now_s: float) -> None:
        """Have them wait for it."""
        del now_s
        town.last_words.append((self.person, self.thread))


@dataclass(frozen=True, slots=True)
class Changed:
    """A person puts the n-th word right, or takes it down where `text` is empty."""

    at_s: float
    number: int
    text: str

    def happen(self, town: Town, now_s: float) -> None:
        """Have it changed."""
        town.change(self.number, self.text, now_s)


@dataclass(frozen=True, slots=True)
class Joined:
    """A person comes into the channel."""

    at_s: float
    person: str

    def happen(self, town: Town, now_s: float) -> None:
        """Have them come."""
        town.join(self.person, now_s)


DAMAGED = (("conversation", "params"), ("conversation", "process_memory"), ("summary", "sources"), ("kept", "value"))
"""What may be damaged: values that recall or a process reads."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One value of one row stops being JSON, for good."""

    at_s: float
    table: str
    column: str
    nth: int
    """Which row, counted around."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A hand writes into one of the portraits; `at` in [0, 1) says which."""

    at_s: float
    number: int
    at: float

    def happen(self, town: Town, now_s: float) -> None:
        """Have it written."""
        town.edit(self.number, self.at, now_s)


Event = Said | LastWord | Changed | Joined | Edited


@dataclass(frozen=True, slots=True)
class Script:
    """What a seed decides before anything happens. `kills` are steps of the loop, a process each.

    `whispers` are instants at which a daimon whispers; `damages` are what goes wrong with rows.
    """

    seed: int
    events: tuple[Event, ...]
    kills: tuple[int, ...]
    whispers: tuple[float, ...] = ()
    damages: tuple[Damage, ...] = ()
    moods: Moods = field(default_factory=Moods)


def script_of(seed: int, messages: int = 20) -> Script:
    """Draw who says what, when and where, and how often the process is killed. Pure."""
    chance = Random(seed)  # noqa: S311 - a life's course, no secret
    events: list[Event] = []
    whispers, at_s = [], 5.0
    for number in range(messages):
        at_s += chance.choice((0.0, 0.05, 0.5, 3.0, 30.0, 400.0)) * chance.uniform(0.5, 1.5)
        thread = chance.choice(("", "", "t1", "t2"))
        events.append(Said(at_s, number, chance.choice(PEOPLE), thread, f"word {number}"))
        for again in range(chance.choice((0, 0, 0, 0, 1, 1, 2))):
            later_s = chance.choice((0.1, 1.0, 5.0, 40.0, 900.0)) * chance.uniform(0.5, 1.5)
            text = chance.choice(("", f"word {number}, mended {again}", f"word {number}, mended {again}"))
            events.append(Changed(at_s + later_s, number, text))
        if not chance.randrange(10):
            events.append(Joined(at_s, chance.choice(PEOPLE)))
        if not chance.randrange(6):
            whispers.append(at_s + chance.uniform(0.0, 20.0))
    at_s = 5.0
    for number in range(chance.choice((0, 0, 1, 2, 4))):
        at_s += chance.uniform(0.0, 600.0)
        events.append(Edited(at_s, number, chance.random()))
    kills = tuple(int(chance.choice((20, 60, 200, 600)) * chance.uniform(0.2, 2.0)) for _ in range(chance.randrange(6)))
    damages = tuple(
        Damage(chance.uniform(0.0, at_s), *chance.choice(DAMAGED), nth=chance.randrange(8))
        for _ in range(chance.choice((0, 0, 0, 1, 2)))
    )
    events.sort(key=lambda one: one.at_s)
    return Script(seed=seed, events=tuple(events), kills=kills, whispers=tuple(whispers), damages=damages)


AnyScript = TypeVar("AnyScript", bound=Script)


def shrunk(script: AnyScript, fails: Callable[[AnyScript], bool]) -> AnyScript:
    """Leave out what is not needed for a script to fail, piece by piece."""
    for part in [one.name for one in fields(script) if isinstance(getattr(script, one.name), tuple)]:
        at = 0
        while at < len(getattr(script, part)):
            pieces = getattr(script, part)
            fewer = replace(script, **{part: pieces[:at] + pieces[at + 1 :]})
            if fails(fewer):
                script = fewer
            else:
                at += 1
    return script
