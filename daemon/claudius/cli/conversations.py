"""`claudius conversations`, `why` and `replay`: what was said, one turn explained, and its prompt rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import json_option, print_result, safe
from claudius.cli.records import records
from claudius.errors import EXIT_FAILED, ClaudiusError
from claudius.memory.records import Expired, Records
from claudius.prompt import Prompt

_VERBS = {
    "userMessage": "said",
    "internalMonologue": "thought",
    "externalDialog": "answered",
    "mentalQuery": "judged",
    "perception": "noticed",
    "daimonSpeech": "was joined by a daimon",
}


@click.group()
def conversations() -> None:
    """What was said, conversation by conversation."""


@conversations.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List conversations, latest first."""
    with records() as kept:
        found = kept.conversations()
    lines = [f"{row['conversation']}  {row['entries']} entries  {row['process']}  {row['last_at']}" for row in found]
    print_result(found, lines or ["nothing was said yet: `claudius chat`"], as_json=as_json)


@conversations.command()
@click.argument("conversation")
@json_option
def show(conversation: str, *, as_json: bool) -> None:
    """Show one conversation, oldest first, thoughts included."""
    with records() as kept:
        found = kept.conversation(conversation)
    if found is None:
        raise ClaudiusError(f"no conversation {conversation!r}: `claudius conversations list` names them")
    print_result(found, _conversation(found), as_json=as_json)


def _conversation(found: Mapping[str, Any]) -> Iterator[str]:
    yield click.style(f"{found['conversation']}  audience {found['audience']}  in {found['process']}", dim=True)
    for entry in found["entries"]:
        kind = entry["entry_type"]
        who = (kind != "daimonSpeech" and entry["person"]) or f"Claudius {entry['verb'] or _VERBS.get(kind, kind)}"
        is_spoken = kind in ("userMessage", "externalDialog")
        head = click.style(f"{entry['at']}  {safe(who)}: ", bold=is_spoken, dim=not is_spoken)
        yield head + click.style(safe(entry["content"]), dim=not is_spoken)


@click.command()
@click.argument("turn")
@json_option
def why(turn: str, *, as_json: bool) -> None:
    """Explain one turn: what it knew, asked, thought, changed and said."""
    from claudius.cognition.prompt.snapshot import TextErased, rebuild

    prompt: Prompt | str | None = None
    with records() as kept:
        found = _turn(kept, turn)
        snapshot = found.pop("snapshot", None)
        try:
            prompt = rebuild(snapshot, kept) if snapshot else None
        except TextErased:
            prompt = "erased"
        except Expired as expired:  # this turn is kept, but one that its prompt shows is gone
            found["expired_at"] = expired.at
    if found["expired_at"] is None:
        del found["expired_at"]
    if isinstance(prompt, Prompt):
        history = [{"role": message.role, "content": message.content} for message in prompt.history]
        found["prompt"] = {"system": prompt.system, "history": history, "tail": prompt.tail}
    else:
        found["prompt"] = prompt
    print_result(found, _explained(found), as_json=as_json)


@click.command()
@click.argument("turn")
@click.option(
    "--soul", "soul_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another soul.md."
)
@json_option
def replay(turn: str, soul_file: Path | None, *, as_json: bool) -> int:
    """Rebuild a turn's prompt from what was kept, with the same or another soul; nothing is written."""
    from claudius.cognition.prompt.assembly import prompt_sha256
    from claudius.cognition.prompt.snapshot import TextErased, is_of_this_wording, rebuild, thaw, with_soul

    with records() as kept:
        found = _turn(kept, turn)
        if found["expired_at"]:
            raise _gone(turn, found["expired_at"])
        if not found["snapshot"]:
            raise ClaudiusError(f"turn {turn}: no model was asked, so there is no prompt to rebuild")
        try:
            same = rebuild(found["snapshot"], kept)
            other = None
            _, _, settings, own = thaw(found["snapshot"], kept)
            if soul_file:
                other = rebuild(found["snapshot"], kept, with_soul(own, soul_file.read_text("utf-8-sig")))
        except Expired as expired:
            raise _gone(turn, expired.at) from None
        except TextErased:
            raise ClaudiusError(f"turn {turn}: what its prompt was built from was erased") from None
    replayed = other or same
    sha = prompt_sha256(replayed)
    document = {
        "turn": found["turn"],
        "identical": sha == found["prompt_sha256"] or (False if is_of_this_wording(settings) else None),
        "prompt_sha256": found["prompt_sha256"],
        "replayed_prompt_sha256": sha,
        "diff": "\n".join(unified_diff(_text(same), _text(replayed), "kept", "replayed", lineterm="", n=1)),
    }
    outcome = "identical, byte for byte" if document["identical"] else str(document["diff"])
    if not outcome:
        outcome = "not identical" if document["identical"] is False else EARLIER
    print_result(document, [safe(outcome)], as_json=as_json)
    return EXIT_FAILED if document["identical"] is False and not soul_file else 0


EARLIER = "an earlier version worded this prompt; rebuilt in today's words it cannot be compared with what was sent"


def _gone(turn: str, at: str) -> ClaudiusError:
    return ClaudiusError(f"turn {turn}: what its prompt was built from was deleted on {at[:10]} (memory.records_days)")


def _turn(kept: Records, turn: str) -> dict[str, Any]:
    found = kept.turn(turn)
    if found is None:
        raise ClaudiusError(f"no turn {turn!r}: `claudius conversations show` names them, and so does each apology")
    return dict(found)


def _text(prompt: Prompt) -> list[str]:
    history = "\n".join(f"[{message.role}]\n{message.content}" for message in prompt.history)
    return f"[system]\n{prompt.system}\n{history}\n[tail]\n{prompt.tail}".splitlines()


def _explained(found: dict[str, Any]) -> Iterator[str]:
    from claudius.psyche.showing import explained, numbered

    yield click.style(f"turn {found['turn']}  {found['at']}  {found['conversation']}", bold=True)
    yield f"process {found['process']}, voice {found['provider']} {found['model']}"
    yield f"asked {', '.join(found['steps'])}"
    attention = found["attention"]
    if attention:
        yield from filter(None, (explained(attention), numbered(attention)))
    perception = found["perception"]
    yield f"heard {perception.get('name')}: {safe(str(perception.get('text', '')))}"
    for thought in found["thoughts"]:
        yield click.style(f"{thought['step']} ({thought['verb'] or '–'}): {safe(thought['content'])}", dim=True)
    if "expired_at" in found:
        yield f"its record was deleted on {found['expired_at'][:10]} (memory.records_days)"
    yield f"said: {safe(str(found['utterance']))}"
    yield f"changed: {found['changes'] or 'nothing'}"
    for delivery in found["delivery"]:
        yield f"delivery: {delivery['state']} {delivery['receipt'] or ''} {delivery['at'] or ''}"
    yield click.style("the whole prompt: --json", dim=True)
