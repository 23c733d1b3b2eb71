"""Small, plain values for tests: a recollection, a past turn, a soul."""

from datetime import UTC, datetime, timedelta
from typing import Any

from claudius.cognition.steps import STEPS
from claudius.home import Home, shipped
from claudius.perception import Perception, private
from claudius.recollection import Entry, EntryType, PastTurn, Person, ProcessState, Recollection, Shown, UserModel
from claudius.soul import SoulSource, SoulText

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
PERSON = "terminal:local:tom"
CONVERSATION = "terminal:local:main:main"
NONCE = "0123456789abcdef0123456789abcdef"


def soul(home: Home) -> SoulText:
    """Return the shipped soul, shadowed by `home`."""
    return SoulSource(home.soul, shipped("soul"), steps=STEPS).current()


def perception(
    text: str = "Hello", *, n: int = 1, person: str = PERSON, name: str = "Tom", **changes: Any
) -> Perception:
    """Return the n-th message of a person in their private terminal conversation."""
    values: dict[str, Any] = {
        "key": f"terminal:{person}:{n}",
        "conversation": CONVERSATION,
        "audience": private(person),
        "person": person,
        "name": name,
        "text": text,
        "at": NOW + timedelta(minutes=n),
        "position": f"{n:020d}",
    }
    return Perception(**(values | changes))


def model(version: int = 1, markdown: str = "# Tom\n\n## Persona\nA maker.", **changes: Any) -> UserModel:
    """Return a user model of the sample person."""
    values: dict[str, Any] = {
        "person": PERSON,
        "audience": private(PERSON),
        "version": version,
        "markdown": markdown if version else "",
    }
    return UserModel(**(values | changes))


def person(*models: UserModel, turns_here: int = 1, **changes: Any) -> Person:
    """Return the sample person with these models; version 0 if none is given."""
    values: dict[str, Any] = {
        "person": PERSON,
        "name": "Tom",
        "models": models or (model(0),),
        "turns_here": turns_here,
    }
    return Person(**(values | changes))


def message(text: str = "Hello", *, who: str = PERSON, name: str = "Tom") -> Entry:
    """Return a kept message."""
    return Entry(entry_type=EntryType.USER_MESSAGE, content=text, at=NOW, person=who, name=name)


def thought(text: str = "Well.", verb: str = "thought") -> Entry:
    """Return a kept monologue."""
    return Entry(entry_type=EntryType.INTERNAL_MONOLOGUE, content=text, at=NOW, verb=verb)


def said(text: str = "Hi.", verb: str = "said") -> Entry:
    """Return a kept line of dialogue."""
    return Entry(entry_type=EntryType.EXTERNAL_DIALOG, content=text, at=NOW, verb=verb)


def check(*, result: bool, update: str = "none", who: str = PERSON) -> Entry:
    """Return a kept user_model_check."""
    return Entry(
        entry_type=EntryType.MENTAL_QUERY,
        content=f"Claudius judged whether the user model of Tom needs a change: {str(result).lower()}",
        at=NOW,
        metadata={"query": "user_model_check", "person": who, "result": result, "shown": 1, "update": update},
    )


def past(number: int, *entries: Entry, shown: tuple[Shown, ...] = (), nonce: str = "") -> PastTurn:
    """Return the past turn of that number, with one exchange if no entries are given."""
    return PastTurn(
        turn=f"turn{number:012d}",
        nonce=nonce or f"{number:032x}",
        number=number,
        entries=entries or (message(f"message {number}"), said(f"reply {number}")),
        shown=shown,
    )


def shown(version: int = 1, text: str = "# Tom", **changes: Any) -> Shown:
    """Return the record of a user model that stood in a prompt."""
    values: dict[str, Any] = {
        "person": PERSON,
        "audience": private(PERSON),
        "version": version,
        "writable": True,
        "text": text if version else "",
    }
    return Shown(**(values | changes))


def recollection(**changes: Any) -> Recollection:
    """Return what the second turn of a private conversation recalls."""
    values: dict[str, Any] = {
        "turn": "aaaabbbbccccdddd",
        "nonce": NONCE,
        "now": NOW + timedelta(minutes=10),
        "conversation": CONVERSATION,
        "audience": private(PERSON),
        "perceptions": (perception("How are you?", n=2),),
        "speaker": person(),
        "process": ProcessState(process="main_process"),
        "turns": 1,
        "version": 1,
        "past": (past(1, shown=(shown(0),)),),
    }
    return Recollection(**({"spoken": changes.get("turns", values["turns"])} | values | changes))
