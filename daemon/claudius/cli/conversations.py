"""`claudius conversations`, `why` and `replay`: what was said, one turn explained, and its prompt rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from claudius.cli.explained import clock, explained
from claudius.cli.output import json_option, print_result, safe
from claudius.cli.records import records
from claudius.errors import EXIT_FAILED, ClaudiusError
from claudius.memory.records import Expired, Records
from claudius.perception import private
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
    turn = ""
    for entry in found["entries"]:
        if entry["turn"] != turn:
            turn = entry["turn"]
            yield click.style(f"turn {turn}  {clock(entry['at'])}", dim=True)
        kind = entry["entry_type"]
        who = (kind != "daimonSpeech" and entry["person"]) or f"Claudius {entry['verb'] or _VERBS.get(kind, kind)}"
        is_spoken = kind in ("userMessage", "externalDialog")
        head = click.style(f"  {safe(who)}: ", bold=is_spoken, dim=not is_spoken)
        yield head + click.style(safe(entry["content"]), dim=not is_spoken)


@click.command()
@click.argument("turn", required=False)
@json_option
def why(turn: str | None, *, as_json: bool) -> None:
    """Explain one turn, your last if none is named: what it knew, asked, thought, changed and said."""
    from claudius.cognition.prompt.snapshot import TextErased, rebuild

    prompt: Prompt | str | None = None
    with records() as kept:
        found = _turn(kept, turn or _last(kept))
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
    print_result(found, explained(found), as_json=as_json)


@click.command()
@click.argument("turn")
@click.option(
    "--soul", "soul_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another soul.md."
)
@json_option
def replay(turn: str, soul_file: Path | None, *, as_json: bool) -> int:
    """Rebuild a turn's prompt from what was kept, with the same or another soul; nothing is written."""
    from claudius.cognition.prompt.assembly import prompt_sha256
    from claudius.cognition.prompt.snapshot import TextErased, rebuild, thaw, with_soul

    with records() as kept:
        found = _turn(kept, turn)
        if found["expired_at"]:
            raise _gone(turn, found["expired_at"])
        if not found["snapshot"]:
            raise ClaudiusError(f"turn {turn}: no model was asked, so there is no prompt to rebuild")
        try:
            same = rebuild(found["snapshot"], kept)
            other = None
            if soul_file:
                _, _, _, own = thaw(found["snapshot"], kept)
                other = rebuild(found["snapshot"], kept, with_soul(own, soul_file.read_text("utf-8-sig")))
        except Expired as expired:
            raise _gone(turn, expired.at) from None
        except TextErased:
            raise ClaudiusError(f"turn {turn}: what its prompt was built from was erased") from None
    replayed = other or same
    sha = prompt_sha256(replayed)
    document = {
        "turn": found["turn"],
        "identical": sha == found["prompt_sha256"],
        "prompt_sha256": found["prompt_sha256"],
        "replayed_prompt_sha256": sha,
        "diff": "\n".join(unified_diff(_text(same), _text(replayed), "kept", "replayed", lineterm="", n=1)),
    }
    outcome = "identical, byte for byte" if document["identical"] else str(document["diff"]) or "not identical"
    print_result(document, [safe(outcome)], as_json=as_json)
    return 0 if document["identical"] or soul_file else EXIT_FAILED


def _last(kept: Records) -> str:
    """Return the last turn with this user, or else the last of all. Raises: ClaudiusError if there was none."""
    from claudius.adapters.terminal import own_person

    turn = kept.last_turn(private(own_person())) or kept.last_turn()
    if turn is None:
        raise ClaudiusError("there is no turn yet: `claudius chat`")
    return turn


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
