"""The one table of commands, and how a message is recognised as one. Pure; intake, history and the adapters call it.

A command is the whole message: its word, and no more than its own closed arguments. Anything else is talk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.consent import MCP
from claudius.perception import (
    COMMANDS,
    CommandExtra,
    Kind,
    MessageExtra,
    Origin,
    Perception,
    Place,
    ReactionExtra,
    given_in,
    is_terminal,
    private,
)
from claudius.tool import ToolCall

Group = Literal["now", "reminders", "you", "accounts", "channels", "moderators", "owners", ""]


class CommandUsage(Struct, frozen=True):
    """What a command does, and what may follow its word."""

    about: str
    group: Group = ""
    """Where the help names it; empty = nowhere."""
    args: str = ""
    """The pattern of all that may follow; empty = nothing may."""
    shown: str = ""
    """How that is written for people."""
    said: str = ""
    """The pattern of all that may follow it in a message; empty = the same."""


_SOMEBODY = r"\S+:\S+:\S+"
"""A person's id, which stands in place of a mention."""
_CODE = r"\w{4}-?\w{4}"
_MISTYPED = re.compile(r"[!/](?!stop$)([a-z]+|(un)?mute \S+( for \S+)?)", re.IGNORECASE)
"""What may be a command that went wrong; `!stop` is no command: it ends a turn."""
_UNLINKED = re.compile(r"!(un)?mute @", re.IGNORECASE)
"""The beginning of a silence for a name that was typed and not chosen, so that it is nobody's."""
_NUMBERS = r"\d{1,2}( \d{1,2}){0,19}"
_WORD = r"[^\s,.;:!?]+"
_CALL = r"[a-z2-7]{16}/\d{1,3}"
"""The id of a call of a tool."""
_ALLOWED = f"({_CALL})?( ?talk)?"
TABLE: Mapping[str, CommandUsage] = {
    "stop": CommandUsage("cancels the answer that I am writing", "now"),
    "quiet": CommandUsage("silences me in a thread but for mentions, until quiet off", "channels", "(off)?"),
    "tools": CommandUsage("what I can do, and what waits for a word", "now"),
    "allow": CommandUsage("lets me do what I asked for; talk: again in this talk", "now", _ALLOWED, "[ID] [talk]"),
    "deny": CommandUsage("forbids it", "now", f"({_CALL})?", "[ID]"),
    "help": CommandUsage("this"),
    "home": CommandUsage("what I know of you"),
    "plans": CommandUsage("what waits here for you", "reminders"),
    "cancel": CommandUsage("takes one of them back, or all that you asked for", "reminders", r"p\d+|all", "p3|all"),
    "whoami": CommandUsage("what I know of you", "you"),
    "why": CommandUsage("what my last answer to you drew on", "you"),
    "correct": CommandUsage("sets me right about you", "you", r".+", "TEXT"),
    "export": CommandUsage("all that I keep of you", "you"),
    "forget": CommandUsage(
        "erases all that I keep of you; WORDS: lists what holds them, to choose what goes",
        "you",
        rf"me( yes)?|{_NUMBERS}|(?!me\b).+",
        "me|WORDS",
        said=rf"me( yes)?|{_NUMBERS}|(?!me\b){_WORD}( {_WORD}){{0,2}}",
    ),
    "keep": CommandUsage("brings back what I was to forget within the hour", "you", r"[fm]\d{1,9}", "f7"),
    "link": CommandUsage("be one person on two networks", "accounts", f"({_CODE}|yes|no)?", "[CODE]"),
    "unlink": CommandUsage("be apart again", "accounts"),
    "proactive": CommandUsage("whether I may write to you first", "accounts", "on|off", "on|off"),
    "ensoul": CommandUsage("how I take part there", "channels", "(on|off|listen|status)?", "on|off|listen|status"),
    "kothar": CommandUsage("how Kothar does", "owners", "(off|whisper|speak|both)?", "off|whisper|speak|both"),
    "owner": CommandUsage("be an owner of mine", args=r"\S+", shown="CODE"),
    "status": CommandUsage("how I fare", "owners"),
    "usage": CommandUsage("what I cost", "owners"),
    "pause": CommandUsage("I answer nobody for now", "owners"),
    "resume": CommandUsage("I go on", "owners"),
    "thoughts": CommandUsage("shows you here what I thought, folded", "owners", "on|off", "on|off"),
    "mute": CommandUsage(
        "I answer nothing of theirs", "moderators", rf"{_SOMEBODY}( for \d{{1,4}} ?[mhd])?", "@NAME [for 2h]"
    ),
    "unmute": CommandUsage("I answer them again", "moderators", _SOMEBODY, "@NAME"),
}
WORDS = tuple(TABLE)
OWNERS = tuple(word for word, command in TABLE.items() if command.group == "owners")
"""Commands of nobody but owners."""
MODERATORS = tuple(word for word, command in TABLE.items() if command.group == "moderators")
"""Commands of owners and of moderators."""
COMMON = ("home", "help", "status", "tools")
"""Words that other bots, too, are given after a `!` in a channel; there they are commands only of whoever calls us."""
STOP = "!stop"
"""The message that asks to cancel an answer; intake obeys it before anything else."""
UNKNOWN = "?"
"""In place of the word of a command that is none."""
SIGN = "\N{OCTAGONAL SIGN}"
"""The reaction on one's own message that asks to cancel an answer."""
TALK: Mapping[str, str] = {
    "terminal": "Write to me as you like. A command is a line of its own: / or !, then a word:",
    "": "Write to me directly, or mention me in a channel: I answer in a thread, and follow it. "
    "A command is /claudius, then a word, or a whole message of ! and the word:",
}
"""How to talk to the soul, by network."""
LINES: Mapping[Group, str] = {
    "reminders": "Reminders: “remind me tomorrow at 9 to call”; plans, cancel p3|all",
    "you": "You: whoami, why (my answer), correct TEXT, forget me|WORDS, keep f7, export",
    "now": "Now: !stop (my answer), tools (what I can do), !allow, !deny (what I ask)",
    "accounts": "Accounts: link [CODE] (two networks), unlink, proactive on|off (I write first)",
    "channels": "In a channel: /ensoul on|off|listen|status, !quiet [off] (but for mentions)",
    "moderators": "Moderators: !mute @NAME [for 2h], !unmute @NAME",
    "owners": "Owners: status, usage, pause, resume, thoughts on|off, !kothar, !mute, !unmute",
}
"""The lines of the help, each with the commands of its group."""
SIGNED: Mapping[str, str] = {"ensoul": "/ensoul"} | {
    word: f"!{word}" for word in ("stop", "quiet", "kothar", "mute", "unmute")
}
"""Words that are given in one form everywhere; not every network has them behind `/claudius`."""
MORE = "`help` says what I obey."
NO_COMMAND = f"That is no command of mine. Talk to me without a sign, in a channel with my name. {MORE}"


class CommandLine(Struct, frozen=True):
    """One command: its word, and the rest of the line."""

    word: str
    rest: str = ""


def usage(word: str) -> str:
    """Return how a command is written. Pure."""
    return f"{SIGNED.get(word, word)} {TABLE[word].shown}".rstrip()


def decision(verb: str, call: str) -> str:
    """Return the command that decides a question: by `allow`, `talk` or `deny`. Pure."""
    return f"allow {call} talk" if verb == "talk" else f"{verb} {call}"


THUMBS: Mapping[str, str] = {"👍": "allow", "👎": "deny"}
"""What a reaction on a question decides."""


def decided_by_thumb(thumb: Perception, extra: ReactionExtra, call: ToolCall) -> Perception:
    """Return a thumb on a question as the command that it is. Pure."""
    return replace(
        thumb,
        kind=Kind.COMMAND,
        conversation=apart(call.conversation, thumb.person),
        audience=private(thumb.person),
        text=decision(THUMBS[extra.emoji], call.id),
        owes=False,
        extra=CommandExtra(
            where=call.conversation, is_public=not thumb.audience.startswith("private:"), receipt=extra.receipt
        ),
    )


def help_text(network: str, *, is_owner: bool, is_moderator: bool = False) -> str:
    """Return what somebody can say to the soul in a network, in eight lines at most. Pure."""
    theirs = {"owners": is_owner, "moderators": is_moderator and not is_owner}
    lines = [line for group, line in LINES.items() if theirs.get(group, True)]
    text = "\n".join([TALK.get(network, TALK[""]), *lines])
    text = text.replace("@NAME", "ID") if network == "terminal" else text  # nobody is mentioned there
    return text.replace("forget me|WORDS", "forget me, forget what WORDS") if network == "discord" else text


def read_command(text: str) -> CommandLine:
    """Parse the text after `/claudius` or `!`; one that is no command has the word `UNKNOWN`. Pure."""
    word, _, rest = text.strip().partition(" ")
    if word.lower() == "claudius":
        word, _, rest = rest.strip().partition(" ")
    word, rest = word.lower(), rest.strip()
    known = TABLE.get(word)
    is_whole = known is not None and re.fullmatch(known.args, rest, re.IGNORECASE | re.DOTALL)
    return CommandLine(word, rest) if is_whole else CommandLine(UNKNOWN, word)


def unknown(word: str) -> str:
    """Return the answer to what is no command: how the one is written that it begins with, or nearly. Pure."""
    how = " Choose the name that is offered after the @." if word in MODERATORS else ""
    found = word if word in TABLE else _slip_of(word)
    known = "I know that as" if word in TABLE else "I did nothing; you may have meant"
    return f"{known}: {usage(found)} ({TABLE[found].about}).{how} {MORE}" if found else NO_COMMAND


def command_in(text: str, *, is_called: bool = False, signs: str = "!") -> str:
    """Return the command that a whole message is, without its sign; empty if it is talk. Pure.

    `is_called`: only we are spoken to. `signs`: those that a command may begin with.
    """
    said = text.strip()
    if not said.startswith(tuple(signs)):
        return said if is_called and said.casefold() == "help" else ""
    body = said[1:]
    asked = read_command(body)
    is_ours = is_called or body.casefold().startswith("claudius ")
    is_command = asked.word not in (UNKNOWN, "stop") and (is_ours or asked.word not in COMMON)
    if is_command and (pattern := TABLE[asked.word].said):
        is_command = re.fullmatch(pattern, asked.rest, re.IGNORECASE) is not None
    return body if is_command and not body[:1].isspace() else ""


def is_lent(conversation: str) -> bool:
    """Return whether a program speaks there, through `claudius mcp`: nothing that it says is a command. Pure."""
    return is_terminal(conversation) and Place.of(conversation).thread == MCP


def as_command(perception: Perception) -> Perception:
    """Return a message that is a command as a command perception; return anything else unchanged. Pure."""
    is_said = perception.kind in (Kind.MESSAGE, Kind.MENTION) and perception.origin is Origin.EXTERNAL
    is_public = not perception.audience.startswith("private:")
    if not is_said or perception.is_bot or is_lent(perception.conversation):
        return perception
    is_called = not is_public or perception.kind is Kind.MENTION
    extra = perception.extra
    text = by_ids(perception.text, extra.named) if isinstance(extra, MessageExtra) and extra.named else perception.text
    signs = "!/" if is_terminal(perception.conversation) else "!"
    body = command_in(text, is_called=is_called, signs=signs)
    typed = text.strip() if not body and (is_called or _UNLINKED.match(text.strip())) else ""
    if _MISTYPED.fullmatch(typed) and (typed[0] == "/" or _slip_of(typed[1:].partition(" ")[0].lower())):
        body = typed[1:]  # it is told that it is no command
    if not body:
        return perception
    command = replace(
        perception,
        kind=Kind.COMMAND,
        conversation=apart(perception.conversation, perception.person),
        audience=private(perception.person),
        text=body,
        owes=False,
        following=None,
        extra=CommandExtra(where=perception.conversation, is_public=is_public),
    )
    if not is_public or read_command(body) != CommandLine("quiet"):
        return command
    return replace(command, extra=replace(command.extra, hushes=about(command)))  # before what follows is accepted


def _slip_of(word: str) -> str:
    """Return the command that a word is, or is with a letter too few, too many or in the next one's place. Pure.

    The first letter stands, and another letter makes another word: `!hope` is not `!home`, nor `!cute` `!mute`.
    """
    return next((one for one in TABLE if word in _slips(one) or one in _slips(word)), "")


def _slips(word: str) -> set[str]:
    parts = [(word[:n], word[n:]) for n in range(1, len(word))]
    return {start + rest for start, end in parts for rest in (end[1:], end[:2][::-1] + end[2:])}


def by_ids(text: str, named: Mapping[str, str]) -> str:
    """Return a command that mutes people with their ids in place of their names, which others may have. Pure."""
    if re.match(r"\s*!?(claudius )?(un)?mute ", text, re.IGNORECASE):
        for person, name in named.items():
            text = text.replace(f"@{name}", person)
    return text


def apart(conversation: str, person: str) -> str:
    """Return the conversation that holds a person's commands, apart from the one where they are given. Pure."""
    return f"{Place.of(conversation).of_channel}:{COMMANDS}{person.rpartition(':')[2]}"


def about(perception: Perception) -> str:
    """Return the conversation that a command is about: the thread that it is given in, else the channel. Pure.

    A command that mentions us outside any thread would be the first of a new one.
    """
    where = given_in(perception)
    place = Place.of(where)
    return f"{place.of_channel}:" if place.thread in ("", perception.position) else where


NO_CHANNEL = ("D", "U", "W")
"""How the ids of Slack's direct messages and of users, to whom the App Home belongs, begin."""


def is_direct(where: str, perception: Perception) -> bool:
    """Return whether a command was given in a direct conversation, and not in a channel. Pure."""
    place = Place.of(where)
    extra = perception.extra
    if isinstance(extra, CommandExtra) and extra.is_public is not None:
        return not extra.is_public
    return place.workspace == "@me" or (place.network == "slack" and place.channel.startswith(NO_CHANNEL))
