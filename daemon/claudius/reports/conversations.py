"""Conversations as `claudius conversations` prints them, one turn explained, and its prompt rebuilt."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from claudius.config.load import load
from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.memory.audit import CLI
from claudius.memory.records import Expired, Records
from claudius.perception import private
from claudius.prompt import Prompt
from claudius.reports.opened import looked, records

PAGE = 50
"""Turns in one page of a conversation."""
_OUTCOMES = {
    "hear": "It was only kept: nothing was owed to it.",
    "apologise": "No answer came about, so an apology was said.",
    "think": "It was thought about, because an answer was owed.",
}


def conversation(home: Home, name: str) -> Mapping[str, Any]:
    """Return one conversation with its entries, oldest first, thoughts included. Raises: ClaudiusError."""
    with records(home) as kept:
        found = kept.conversation(name)
    if found is None:
        raise ClaudiusError(_unknown(name))
    return found


def explained(home: Home, turn: str = "", origin: str = CLI) -> dict[str, Any]:
    """Return one turn: what it knew, asked, thought, changed and said, and its whole prompt. Raises: ClaudiusError.

    Without a name, it is the last turn with this user, or else the last of all. The prompt shows portraits, so that
    this is in the audit log; `origin` says from where it is asked.
    """
    from claudius.cognition.prompt.snapshot import TextErased, rebuild, settings_of
    from claudius.psyche.showing import explained as explained_in_words
    from claudius.psyche.showing import numbered

    prompt: Prompt | str | None = None
    with records(home) as kept:
        found = kept_turn(kept, turn or _last(kept))
        snapshot = found.pop("snapshot", None)
        try:
            prompt = rebuild(snapshot, kept) if snapshot else None
        except TextErased:
            prompt = "erased"
        except Expired as expired:  # this turn is kept, but one that its prompt shows is gone
            found["expired_at"] = expired.at
    asked = settings_of(snapshot) if snapshot else None
    found |= {"profile": asked and asked.profile, "form": asked and asked.form}
    looked(home, "read", str(found["person"] or ""), origin)
    if found["expired_at"] is None:
        del found["expired_at"]
    attention = found["attention"]
    words = explained_in_words(attention) or _OUTCOMES.get(attention.get("outcome", ""), "")
    found["explained"] = {"words": words, "numbers": numbered(attention), "changed": [*changed(found["changes"])]}
    if not found["entries"] and found["person"] and not found["perception"].get("text"):  # a turn still tried has them
        found["perception"] = _expired(home, found, is_erased=prompt == "erased")
    if isinstance(prompt, Prompt):
        history = [{"role": message.role, "content": message.content} for message in prompt.history]
        found["prompt"] = {"system": prompt.system, "history": history, "tail": prompt.tail}
    else:
        found["prompt"] = prompt
    return found


def _expired(home: Home, found: Mapping[str, Any], *, is_erased: bool) -> dict[str, Any]:
    """Return what was heard, once working memory has let its words go: never empty words for words that are gone."""
    perception = dict(found["perception"]) | {"text": None}
    if is_erased:
        return perception | {"erased": True, "preview": None}
    kept = timedelta(hours=load(home, os.environ).config.memory.ttl_hours)
    gone_at = (datetime.fromisoformat(found["at"]) + kept).isoformat().replace("+00:00", "Z")
    return {"preview": None} | perception | {"expired_at": gone_at}


def page(home: Home, name: str, before: str = "", most: int = PAGE) -> Mapping[str, Any]:
    """Return the newest turns of a conversation before one of its turns, oldest first. Raises: ClaudiusError.

    Turns whose words have left working memory have thoughts and replies from their record, and the ledger's preview of
    what was heard, with `"expired": true`.
    """
    with records(home) as kept:
        found = kept.turns(name, before, most)
    if found is None:
        raise ClaudiusError(f"no turn {before!r} in {name!r}" if before else _unknown(name))
    return found


def changed(changes: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each thing that a turn changed; nothing for what it looked at and kept. Pure."""
    for name, change in changes.items():
        match name, change:
            case "process", Mapping():
                before, after = (str(change.get(end)).replace("_", " ") for end in ("from", "to"))
                yield f"The conversation went from {before} to {after}."
            case "mood", str():
                yield f"The mood is now {change}."
            case "user_model", {"result": "stored", "version": version, "note": note}:
                yield f"Its portrait of them has a version {version}: {note}"
            case _, {"result": str(result)}:
                if result.startswith("refused:") and result != "refused:check":
                    yield f"A change of the {_spaced(name)} was refused: {_spaced(result.removeprefix('refused:'))}."
            case "soul_state", Mapping():
                yield from (
                    f"{_spaced(key).capitalize()} from now on: “{_words(value)}”." for key, value in change.items()
                )
            case _:
                yield f"{_spaced(name).capitalize()}: {_words(change)}."


def _spaced(name: str) -> str:
    """Return a name of ours as words, whether it joins them by humps or by underscores. Pure."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").lower()


def _words(value: object) -> str:
    """Return any value as words: no braces, no quotes. Pure."""
    match value:
        case Mapping():
            return ", ".join(f"{_spaced(str(key))} {_words(one)}" for key, one in value.items())
        case list() | tuple():
            return "; ".join(map(_words, value))
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def _unknown(name: str) -> str:
    return f"no conversation {name!r}: `claudius conversations list` names them"


def _last(kept: Records) -> str:
    from claudius.adapters.terminal import own_person

    turn = kept.last_turn(private(own_person())) or kept.last_turn()
    if turn is None:
        raise ClaudiusError("there is no turn yet: `claudius chat`")
    return turn


def kept_turn(kept: Records, turn: str) -> dict[str, Any]:
    """Return the record of a turn. Raises: ClaudiusError if there is none."""
    found = kept.turn(turn)
    if found is None:
        raise ClaudiusError(f"no turn {turn!r}: `claudius conversations show` names them, and so does each apology")
    return dict(found)
