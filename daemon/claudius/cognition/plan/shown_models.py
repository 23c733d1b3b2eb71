"""Decide which user models a prompt shows (the Samantha-Dreams gate), based on the rendered history.

Source: seed 000, "User Model"; the pipeline design, section 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from claudius.recollection import Entry, EntryType, PastTurn, Person, Shown, once

OTHER_MODELS = 2
MAX_UNANSWERED = 2
"""After this many true checks in a row whose update was missing or refused, a true check shows nothing."""


class Showing(Struct, frozen=True):
    """The gate's decision on one person: what is shown, and the rule that decided it."""

    shown: tuple[Shown, ...]
    reason: str
    seen: bool
    """Whether the newest version of the writable model is in the prompt, in the tail or the history."""


def _whole(person: Person) -> tuple[Shown, ...]:
    return tuple(
        Shown(
            person=model.person,
            audience=model.audience,
            version=model.version,
            writable=place == 0,
            text=model.markdown,
        )
        for place, model in enumerate(person.models[: 1 + OTHER_MODELS])
    )


def _checks(person: Person, past: Sequence[PastTurn]) -> list[Entry]:
    return [
        entry for turn in past for entry in once(turn, _model_checks) if entry.metadata.get("person") == person.person
    ]


def _model_checks(past: PastTurn) -> tuple[Entry, ...]:
    return tuple(
        entry
        for entry in past.entries
        if entry.entry_type is EntryType.MENTAL_QUERY and entry.metadata.get("query") == "user_model_check"
    )


def _noticed(checks: Sequence[Entry]) -> bool:
    if not checks or not checks[-1].metadata.get("result"):
        return False
    in_vain = 0
    for check in reversed(checks):
        fate = str(check.metadata.get("update", ""))
        if not check.metadata.get("result") or not (fate == "missing" or fate.startswith("refused")):
            break
        in_vain += 1
    return in_vain < MAX_UNANSWERED


def _spoke(turn: PastTurn, person: Person) -> bool:
    return any(entry.person == person.person and entry.entry_type is EntryType.USER_MESSAGE for entry in turn.entries)


def show(person: Person, past: Sequence[PastTurn], *, interval: int) -> Showing:
    """Decide what the prompt shows of a person, given the history that it renders. Pure.

    `past`: the turns in this prompt's history, oldest first; `interval`: the number of the person's turns after which
    the model is pointed out again, 0 = never.
    """
    whole = _whole(person)
    if person.turns_here == 0:
        return Showing(whole, "first turn", seen=True)
    if _noticed(_checks(person, past)):
        return Showing(whole, "the soul noticed something", seen=True)
    last = [(turn, shown) for turn in past for shown in turn.shown if shown.person == person.models[0].person]
    above = {shown.audience: shown.version for _, shown in last if not shown.pointer}
    if any(above.get(model.audience, model.version) != model.version for model in person.models[: 1 + OTHER_MODELS]):
        return Showing(whole, "it changed", seen=True)
    if person.models[0].audience not in above:
        return Showing(whole, "it left the history", seen=True)
    newest = whole[0]
    since = sum(_spoke(turn, person) for turn in past if turn.number > last[-1][0].number)
    if 0 < interval <= since + 1:
        pointer = Shown(
            person=newest.person, audience=newest.audience, version=newest.version, writable=True, pointer=True
        )
        return Showing((pointer,), "interval", seen=True)
    return Showing((), "still in the history", seen=True)
