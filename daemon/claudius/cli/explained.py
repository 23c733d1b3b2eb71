"""One turn in words for people: what was heard, why it was thought about, what was thought, said and changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import click

from claudius.cli.output import safe

_DELIVERED = {
    "sent": "delivered",
    "pending": "waits to be delivered",
    "taken": "is being delivered",
    "unknown_after_send": "was sent; whether it arrived is being checked",
    "dead": "could not be delivered",
}
_OUTCOMES = {
    "hear": "it was only kept: nothing was owed to it",
    "apologise": "no answer came about, so an apology was said",
    "think": "it was thought about, because an answer was owed",
}
_STATES = {"pending": "it waits for the next try", "taken": "it is being answered", "thought": "it is being answered"}


def explained(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one turn. Pure."""
    from claudius.psyche.showing import numbered

    yield click.style(f"turn {found['turn']}  {clock(found['at'])}  {found['conversation']}", bold=True)
    yield from _heard(found)
    yield from _voice(found)
    for thought in found["thoughts"]:
        if thought["step"] != "external_dialogue":
            verb = f" ({thought['verb']})" if thought["verb"] else ""
            yield click.style(f"{thought['step'].replace('_', ' ')}{verb}: {safe(thought['content'])}", dim=True)
    if "expired_at" in found:
        yield f"its record was deleted on {found['expired_at'][:10]} (memory.records_days)"
    if found["utterance"]:
        said = f"said ({found['verb']})" if found["verb"] not in ("said", None) else "said"
        yield f"{said}: {safe(str(found['utterance']))}"
    elif not found["failure"]:
        yield "said nothing"
    yield from (f"changed: {safe(line)}" for line in _changed(found["changes"]))
    if failure := found["failure"]:
        yield click.style(safe(f"failed: {failure['detail']}"), fg="yellow")
        yield safe(f"to do: {failure['fix']}")
        if failure["said"]:
            yield safe(f"in the words of what failed: {failure['said']}")
    for delivery in found["delivery"]:
        why = f" ({delivery['reason']})" if delivery["reason"] else ""
        at = f" at {clock(delivery['at'])}" if delivery["state"] == "sent" else ""
        yield safe(f"{_DELIVERED.get(delivery['state'], delivery['state'])}{at}{why}")
    if numbers := numbered(found["attention"]):
        yield click.style(f"in numbers: {numbers}", dim=True)
    yield click.style("the whole prompt and every call: --json", dim=True)


def clock(at: str | None) -> str:
    """Return an instant as this machine's clock shows it. Pure, but for the time zone."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "–"


def _heard(found: Mapping[str, Any]) -> Iterator[str]:
    from claudius.prompt import MARK
    from claudius.psyche.showing import explained as psyche_explained

    gone = found["perception"] if found["perception"].get("text", "") is None else None
    if gone:
        preview = f"{gone['preview']} (a preview: " if gone.get("preview") else "("
        when = f"working memory let the words go at {gone['expired_at'][:16]})" if "expired_at" in gone else "erased)"
        yield safe(f"heard from {gone.get('name') or gone.get('person')}: {preview}{when}")
    for perception in () if gone else found["perceptions"]:
        text = " ".join(str(perception.get("text") or "").replace(MARK, " ").split())
        if perception.get("kind") == "news":
            yield safe(f"news came in: {text}")
            continue
        is_own = perception.get("origin") == "internal"
        who = "the soul's own clock" if is_own else perception.get("name") or perception.get("person") or "nobody"
        yield safe(f"heard from {who}: {text}" if text else f"heard from {who}")
    attention = found["attention"]
    why = psyche_explained(attention) or _OUTCOMES.get(attention.get("outcome", ""), "")
    if why:
        yield why
    last = found["perception"]
    if last.get("state") in _STATES:
        tried = last.get("attempts", 0)
        yield f"no answer yet: {_STATES[last['state']]}, after {tried} {'try' if tried == 1 else 'tries'}"


def _voice(found: Mapping[str, Any]) -> Iterator[str]:
    """Say which process ran, what it asked and who answered; nothing where there was none."""
    if found["process"]:
        yield f"process {found['process']}" + (f", asked for {', '.join(found['steps'])}" if found["steps"] else "")
    if found["provider"]:
        model = found["model"] if found["model"] != found["provider"] else ""
        many = f", {len(found['calls'])} calls" if len(found["calls"]) > 1 else ""
        small = f" (profile small, form: {found['form']})" if found["profile"] == "small" else ""
        yield f"voice {found['provider']} {model}".rstrip() + small + many


def _changed(changes: Mapping[str, Any]) -> Iterator[str]:
    for name, change in changes.items():
        match name, change:
            case "soul_state", Mapping():
                yield "; ".join(f"{key} is now “{value}”" for key, value in change.items())
            case "process", Mapping():
                yield f"the conversation goes from {change.get('from')} to {change.get('to')}"
            case "mood", str():
                yield f"the mood is now {change}"
            case "user_model", Mapping() if change.get("result") == "stored":
                yield f"the portrait of {change['person']}, version {change['version']}: {change['note']}"
            case _:
                yield f"{name.replace('_', ' ')}: {_words(change)}"


def _words(value: object) -> str:
    """Return any value as words: no braces, no quotes. Pure."""
    match value:
        case Mapping():
            return ", ".join(f"{str(key).replace('_', ' ')} {_words(one)}" for key, one in value.items())
        case list() | tuple():
            return "; ".join(map(_words, value))
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
