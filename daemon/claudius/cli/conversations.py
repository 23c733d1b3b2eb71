"""`claudius conversations`, `why` and `replay`: what was said, one turn explained, and its prompt rebuilt."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import Group, clock, json_option, print_result, safe
from claudius.errors import EXIT_FAILED, UsageProblem
from claudius.home import Home
from claudius.memory.records import Records
from claudius.reports import conversations as reports
from claudius.reports import replaying
from claudius.reports.opened import read

_VERBS = {
    "userMessage": "said",
    "internalMonologue": "thought",
    "externalDialog": "answered",
    "mentalQuery": "judged",
    "perception": "noticed",
    "daimonSpeech": "was joined by a daimon",
}


@click.group(cls=Group)
def conversations() -> None:
    """What was said, conversation by conversation."""


@conversations.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List conversations, latest first."""
    found = read(Home.of(os.environ), Records.conversations)
    lines = [f"{row['conversation']}  {row['entries']} entries  {row['process']}  {row['last_at']}" for row in found]
    print_result(found, lines or ["nothing was said yet: `claudius chat`"], as_json=as_json)


@conversations.command()
@click.argument("conversation")
@click.option("--before", default="", help="A page of turns before this one, expired ones too; `now`: the newest.")
@json_option
def show(conversation: str, before: str, *, as_json: bool) -> None:
    """Show one conversation, oldest first, thoughts included."""
    home = Home.of(os.environ)
    if before:
        found = reports.page(home, conversation, "" if before == "now" else before)
    else:
        found = reports.conversation(home, conversation)
    print_result(found, _conversation(found), as_json=as_json)


def _conversation(found: Mapping[str, Any]) -> Iterator[str]:
    from claudius.prompt import MARK

    yield click.style(f"{found['conversation']}  audience {found['audience']}  in {found['process']}", dim=True)
    for page in found.get("diary", ()):
        yield click.style(f"diary  {clock(page['at'])}: {safe(page['diary'])}", dim=True)
    turn = ""
    for entry in found["entries"]:
        if entry["turn"] != turn:
            turn = entry["turn"]
            yield click.style(f"turn {turn}  {clock(entry['at'])}", dim=True)
        kind = entry["entry_type"]
        who = (kind != "daimonSpeech" and entry["person"]) or (
            "news" if kind == "event" else f"Claudius {entry['verb'] or _VERBS.get(kind, kind)}"
        )
        if kind in ("expired", "erased"):
            yield click.style(f"{entry['at']}  turn {entry['turn']}: its words have {kind}", dim=True)
            continue
        is_spoken = kind in ("userMessage", "externalDialog")
        head = click.style(f"  {safe(who)}: ", bold=is_spoken, dim=not is_spoken)
        mark = "  (a preview: the words have expired)" if entry.get("expired") and kind == "userMessage" else ""
        yield head + click.style(safe(entry["content"].replace(MARK, " ")) + mark, dim=not is_spoken)


@click.command()
@click.argument("turn", default="")
@json_option
def why(turn: str, *, as_json: bool) -> None:
    """Explain one turn, your last if none is named: what it knew, asked, thought, changed and said.

    Of a turn that failed it names the cause and the remedy, and shows what the other side wrote. With --json it prints
    the whole prompt, too.
    """
    found = reports.explained(Home.of(os.environ), turn)
    print_result(found, explained(found), as_json=as_json)


@click.command()
@click.argument("turn")
@click.option(
    "--soul", "soul_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another soul.md."
)
@click.option(
    "--ask", "is_asked", is_flag=True, help="Ask the model, too: what would it say now? Only the cost is kept."
)
@click.option("--agree", type=click.IntRange(1, 10**9), help="With --ask: take at most so many tokens; do not ask me.")
@json_option
def replay(turn: str, soul_file: Path | None, *, is_asked: bool, agree: int | None, as_json: bool) -> int:
    """Rebuild a turn's prompt from what was kept, with the same or another soul; nothing is written.

    The exit code is 1 if it is not the same byte for byte. What it reads is kept for a year (`memory.records_days`).
    """
    home, soul = Home.of(os.environ), soul_file.read_text("utf-8-sig") if soul_file else None
    document = replaying.replayed(home, turn, soul)
    outcome = "identical, byte for byte" if document["identical"] else str(document["diff"])
    if not outcome:
        outcome = "not identical" if document["identical"] is False else EARLIER
    lines = [safe(outcome)]
    if is_asked:
        row = _asked_again(home, turn, {} if soul is None else {"soul.md": soul}, agree)
        document |= row
        lines += ["", *(safe(line) for line in _compared(row))]
    print_result(document, lines, as_json=as_json)
    failed = document["identical"] is False and not soul_file
    return EXIT_FAILED if failed or document.get("error") else 0


def _asked_again(home: Home, turn: str, files: Mapping[str, str], agree: int | None) -> dict[str, Any]:
    """Ask a turn again once a person has agreed to the tokens, or `agree` names enough. Raises: UsageProblem."""
    if agree is None:
        agree = replaying.estimate(home, [turn], files)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageProblem(f"asking again takes about {agree:,} tokens: add --agree {agree}")
        click.confirm(f"Asking again takes about {agree:,} tokens: go on?", abort=True, err=True)
    tokens = agree

    async def one() -> dict[str, Any]:
        async with aclosing(replaying.ask(home, [turn], files, tokens)) as rows:
            return await anext(rows)

    return asyncio.run(one())


def _compared(row: Mapping[str, Any]) -> Iterator[str]:
    if row["error"]:
        yield f"it could not be asked: {row['error']['detail']}"
        return
    for when, thoughts, verb, words in (
        ("then", row["thought"], row["verb"], row["said"]),
        ("now", row["would_think"], row["would_verb"], row["would_say"]),
    ):
        yield from (f"{when}, thought ({one['verb']}): {one['content']}" for one in thoughts)
        yield f"{when}, {verb}: {words}" if words else f"{when}, nothing was said"
    yield f"asked {row['provider']} {row['model']}: {row['tokens']:,} tokens, told to nobody"


EARLIER = "an earlier version worded this prompt; rebuilt in today's words it cannot be compared with what was sent"


_DELIVERED = {
    "sent": "delivered",
    "pending": "waits to be delivered",
    "taken": "is being delivered",
    "unknown_after_send": "was sent; whether it arrived is being checked",
    "dead": "could not be delivered",
}
_STATES = {"pending": "it waits for the next try", "taken": "it is being answered", "thought": "it is being answered"}


def explained(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one turn. Pure."""
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
    yield from (f"done: {safe(line)}" for line in found.get("receipts", ()))
    yield from (
        click.style(safe(f"not done: {one['do'] or 'an act'}: {one['detail']}"), fg="yellow")
        for one in found.get("acts", ())
        if one["state"] == "refused"
    )
    yield from map(_used, found.get("tools", ()))
    yield from (f"changed: {safe(line)}" for line in found["explained"]["changed"])
    if failure := found["failure"]:
        yield click.style(safe(f"failed: {failure['detail']}"), fg="yellow")
        yield safe(f"to do: {failure['fix']}")
        if failure["said"]:
            yield safe(f"in the words of what failed: {failure['said']}")
    for delivery in found["delivery"]:
        why = f" ({delivery['reason']})" if delivery["reason"] else ""
        at = f" at {clock(delivery['at'])}" if delivery["state"] == "sent" else ""
        yield safe(f"{_DELIVERED.get(delivery['state'], delivery['state'])}{at}{why}")
    if numbers := found["explained"]["numbers"]:
        yield click.style(f"in numbers: {numbers}", dim=True)
    yield click.style("the whole prompt and every call: --json", dim=True)


def _used(one: Mapping[str, Any]) -> str:
    allowed = f", allowed by {one['allowed_by']}" if one["allowed_by"] not in ("", one["class"]) else ""
    why = f" ({one['reason']})" if one["reason"] else ""
    return safe(f"used: {one['tool'] or 'a tool'} {json.dumps(one['args'])}: {one['state']}{why}{allowed}")


def _heard(found: Mapping[str, Any]) -> Iterator[str]:
    from claudius.prompt import MARK

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
        own = "a tool" if perception.get("kind") == "tool" else "the soul's own clock"
        is_own = perception.get("origin") == "internal"
        who = own if is_own else perception.get("name") or perception.get("person") or "nobody"
        yield safe(f"heard from {who}: {text}" if text else f"heard from {who}")
    if why := found["explained"]["words"]:
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
        plain = f" (profile plain, form: {found['form']})" if found["profile"] == "plain" else ""
        yield f"voice {found['provider']} {model}".rstrip() + plain + many
