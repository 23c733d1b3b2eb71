"""Decide whether a call of a tool may run, must be asked for, or is refused; say what taints a turn. Pure.

Text of a third party *taints* the prompt in which it stands: no remembered consent counts then. In a turn that heard or
fetched such text, nothing is learned from it. Source: the tools design, sections 5 and 15; the order of `decide` is
that of section 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_plus

from msgspec import Struct

from claudius.config.schema import Config
from claudius.perception import TALK, Kind, MessageExtra, Origin, Perception, Place, Standing, internal, is_terminal
from claudius.recollection import Entry, EntryType, PastTurn, Recollection, Remembered
from claudius.shown import How
from claudius.tool import (
    Asks,
    Decision,
    Grant,
    Onlookers,
    Refuses,
    Runs,
    Tool,
    ToolClass,
    ToolStep,
    may_remember,
)

WEB_READ: Final = "web.read"
LEAK_CHARS = 16
"""So many letters and digits of a private text in an argument are no accident; as in a link that is said aloud."""
PASSAGE_CHARS = 80
MOST_CHARS = 1000
"""The longest address, and the most of a `send`: every network shows so much in the post that asks for it."""
NO_OWNER: Final = "I have no owner here who could allow that."
ASKS_FIRST: Final = "asks first"
MCP: Final = "mcp"
"""The terminal's thread in which a client speaks over MCP."""
_PUBLIC = frozenset({"clock", "calc", "tool_help", WEB_READ})
"""Tools whose results hold nothing that is private to this conversation."""
_EDGES = "<>()[]{}\"'`“”‘’«»*_~.,;:!?…。、，！？"
_ASCII = re.compile("[!-~]+")
_FILES = ("📎", "🎙")
"""How the lines of a message begin that tell of its files."""


class ConsentBasis(Struct, frozen=True, kw_only=True):
    """What a decision is made from, besides the tool and its arguments."""

    recollection: Recollection
    config: Config
    onlookers: Onlookers = Onlookers()
    grants: Sequence[Grant] = ()
    """Those in force for this person here, now, as the store gives them."""
    used: Sequence[ToolStep] = ()
    """What this turn has used before."""
    hidden: str = ""
    """The private texts of the prompt, as no link may carry them."""
    remembered: Remembered = Remembered()
    history_from: int = 0
    """The number of the first past turn that stands in the prompt."""


def decide(tool: Tool, args: Mapping[str, Any], known: ConsentBasis) -> Decision:
    """Return what becomes of a call. Pure."""
    if why := unusable(tool, known):
        return Refuses(why)
    if tool.cls is ToolClass.LOOK:
        return Runs("look")
    is_web = tool.name == WEB_READ
    if (tool.cls is ToolClass.SEND or is_web) and sum(map(len, _scalars(args))) > MOST_CHARS:
        return Refuses(f"too_long: a person who may allow it is shown {MOST_CHARS} characters of it at most")
    passage = carried(tool, args, known)
    why = f"it would carry “{passage}” out of this conversation" if passage else ""
    if is_web and passage:
        return Refuses(why)
    typed = is_web and is_typed(str(args.get("url") or ""), known.recollection)
    if not why and (source := next(_third_parties(known.recollection, known.used, known.history_from), "")):
        why = f"{source} stands here, and may have asked for it"
    why = why or ("nobody wrote this address here" if is_web and not typed else "")
    grant = _in_force(tool, known)
    if grant and (typed or not why):
        return Runs("typed" if typed else "grant", grant.id)
    return Asks(approvers_of(tool, known), why)


def unusable(tool: Tool, known: ConsentBasis) -> str:
    """Return why a tool cannot be used here, by this speaker, whatever its arguments; empty = it can. Pure."""
    if not known.config.tools.enabled:
        return "tools are switched off"
    if tool.off:
        return tool.off
    if tool.where and not _is_offered(tool.where, known):
        return "it is not offered here"
    if tool.cls is ToolClass.LOOK:
        return ""
    if not person_behind(known.recollection):
        return "no person who may have that done is behind this turn"
    return "" if approvers_of(tool, known) else NO_OWNER


def usable(tool: Tool, known: ConsentBasis) -> str | None:
    """Return what is to be said of a tool that can be used here: nothing, or `ASKS_FIRST`. None = it cannot. Pure."""
    if unusable(tool, known):
        return None
    return "" if tool.cls is ToolClass.LOOK or _in_force(tool, known) else ASKS_FIRST


def _is_offered(where: Sequence[str], known: ConsentBasis) -> bool:
    here = known.recollection
    return (
        ("owner" in where and known.onlookers.are_owners)
        or ("private" in where and here.audience.startswith("private:"))
        or Place.of(here.conversation).of_channel in where
    )


def person_behind(known: Recollection) -> str:
    """Return the person on whose behalf a turn may do more than look; empty = there is none. Pure.

    A guest, a bot, somebody at the terminal who is not its user, and a client over MCP may only look, and so
    may whatever the soul does by itself. The turn that hears a result acts for the person who asked for it.
    """
    heard = known.perception
    if is_terminal(known.conversation) and (not heard.is_owner or Place.of(known.conversation).thread == MCP):
        return ""
    if heard.kind is Kind.TOOL:
        return internal(heard).asked_by
    if heard.origin is not Origin.EXTERNAL or heard.kind not in TALK or heard.is_bot or known.speaker is None:
        return ""
    is_let_in = heard.standing is Standing.MEMBER or heard.extra.is_paired
    return known.speaker.person if is_let_in else ""


def approvers_of(tool: Tool, known: ConsentBasis) -> tuple[str, ...]:
    """Return who may allow a tool here: owners who can see it; in private, for some tools, its person. Pure."""
    may = set(known.onlookers.owners)
    is_private = known.recollection.audience.startswith("private:")
    if is_private and tool.cls is ToolClass.READ and tool.name in known.config.tools.people_may:
        may |= known.onlookers.people or frozenset()
    return tuple(sorted(may))


def _in_force(tool: Tool, known: ConsentBasis) -> Grant | None:
    """Return a remembered consent that covers the tool here and now."""
    for one in known.grants:
        is_it = (one.tool, one.pin) == (tool.name, tool.pin)
        if is_it and one.scope in may_remember(tool.cls, known.recollection.audience):
            return one
    return None


def is_third(tool: Tool) -> bool:
    """Return whether what a tool gives is a third party's text. Pure."""
    return tool.cls is not ToolClass.LOOK and not tool.is_mine


def is_whole(past: PastTurn, known: Recollection) -> bool:
    """Return whether the results of a past turn stand whole in the prompt: those of the last turn. Pure."""
    return past is known.past[-1]


def taint(known: Recollection, used: Sequence[ToolStep] = ()) -> str:
    """Name the third-party text that a turn heard or fetched: it learns nothing then. Empty = none. Pure."""
    return next(_third_parties(known, used, None), "")


def _third_parties(known: Recollection, used: Sequence[ToolStep], history_from: int | None) -> Iterator[str]:
    """Name the third-party texts of a prompt, those of the turn first.

    `history_from`: None = without what merely stands in the history, which others said there once.
    """
    for perception in known.perceptions:
        yield from _foreign(perception)
    yield from [_result(one.tool) for one in used if one.third]
    for past in known.past[-1:] if history_from is None else known.past:
        for entry in past.entries:
            if entry.metadata.get("third") and is_whole(past, known):
                yield _result(str(entry.metadata.get("tool", "a tool")))
            elif history_from is not None and past.number >= history_from and _is_of_others(entry):
                yield _post(entry.name or "") if entry.entry_type is EntryType.USER_MESSAGE else "news from outside"


def _foreign(heard: Perception) -> Iterator[str]:
    if heard.is_bot:
        yield _post(heard.name)
    if heard.kind is Kind.NEWS:
        yield "news from outside"
    if heard.kind is Kind.TOOL and getattr(heard.extra, "third", False):
        yield _result(str(getattr(heard.extra, "tool", "a tool")))
    if isinstance(heard.extra, MessageExtra):
        yield from [f"the file {one.name}" for one in heard.extra.read if one.unread is None]
        sources = _SHOWN | (_SHOWN_AT_TERMINAL if is_terminal(heard.conversation) else {})
        for shown in heard.extra.shown:
            if shown.text and not shown.is_ours and (shown.is_bot or shown.how in sources):
                yield _post(shown.name) if shown.is_bot else sources[shown.how]


_SHOWN = {How.FORWARDED: "a forwarded message", How.PREVIEW: "a link preview"}
_SHOWN_AT_TERMINAL = {How.ATTACHED: "a file"}


def _post(name: str) -> str:
    return f"a post by the bot {name}".rstrip()


def _result(tool: str) -> str:
    return f"the result of {tool}"


def _is_of_others(entry: Entry) -> bool:
    is_bot = entry.entry_type is EntryType.USER_MESSAGE and bool(entry.metadata.get("bot"))
    return is_bot or entry.entry_type is EntryType.EVENT


def is_typed(address: str, known: Recollection) -> bool:
    """Return whether a person wrote an address here, whole, as a word of its own. Pure."""
    return address != "" and any(address in _words(text) for text in _typed_here(known))


def _typed_here(known: Recollection) -> Iterator[str]:
    """Yield what persons wrote in this conversation."""
    for one in known.perceptions:
        if one.origin is Origin.EXTERNAL and one.kind in TALK and not one.is_bot:
            yield one.text
    for past in known.past:
        for entry in past.entries:
            is_said = entry.entry_type is EntryType.USER_MESSAGE and entry.person and not entry.metadata.get("kind")
            if is_said and not entry.metadata.get("bot"):
                yield entry.content


def _words(text: str) -> set[str]:
    lines = [line for line in text.split("\n") if not line.startswith(_FILES)]
    words = [word for line in lines for word in line.split()]
    words += [run for word in words for run in _ASCII.findall(word)]  # not every script has spaces: 读https://a.org/b吧
    return {*words, *[word.strip(_EDGES) for word in words], *[word.rstrip(".,;:!?") for word in words]}


def carried(tool: Tool, args: Mapping[str, Any], known: ConsentBasis) -> str:
    """Return what an argument repeats of a private text of this prompt, which no message here holds. Pure."""
    written = [_squashed(unquote_plus(unquote_plus(text))) for text in _scalars(args)]
    private = _pieces(_private(tool, known)) - _pieces(_aloud(known))
    for text in written:
        found = [at for at in range(len(text) - LEAK_CHARS + 1) if text[at : at + LEAK_CHARS] in private]
        if found:
            end = next((at for at in range(found[0], len(text)) if at not in found), len(text))
            return text[found[0] : end + LEAK_CHARS - 1][:PASSAGE_CHARS]
    return ""


def _squashed(text: str) -> str:
    """Return the letters and digits of a text, without case."""
    return "".join(filter(str.isalnum, text)).casefold()


def _pieces(texts: Iterable[str]) -> set[str]:
    found = map(_squashed, texts)
    return {text[at : at + LEAK_CHARS] for text in found for at in range(len(text) - LEAK_CHARS + 1)}


def _scalars(value: object) -> Iterator[str]:
    """Yield the texts and numbers that arguments hold, names of keys included. Pure."""
    if isinstance(value, Mapping):
        yield from [one for pair in value.items() for part in pair for one in _scalars(part)]
    elif isinstance(value, list | tuple):
        yield from [one for part in value for one in _scalars(part)]
    else:
        yield str(value).partition("://")[2] or str(value)


def _private(tool: Tool, known: ConsentBasis) -> Iterator[str]:
    """Yield the private texts of the prompt. What the tool's own server gave may go back to it."""
    here = known.recollection
    yield known.hidden
    yield from [text for line in known.remembered.lines for text in (line.get("text", ""), line.get("before", ""))]
    yield from [fact.text for fact in (*here.known, *here.ended)]
    yield from [matter.text for matter in here.matters]
    yield from [plan.text for plan in here.plans]
    yield from [one.value for one in here.beliefs]
    yield here.summary.text if here.summary else ""
    yield here.second_thought
    results = [(one.tool, one.text) for one in known.used]
    results += [(str(one.metadata.get("tool")), one.content) for one in _entries(here, EntryType.TOOL_RESULT)]
    server = f"{tool.name.partition('.')[0]}."
    yield from [text for name, text in results if name not in _PUBLIC and not name.startswith(server)]


def _aloud(known: ConsentBasis) -> Iterator[str]:
    """Yield what stands here for everybody to see: messages, what they show, and calls that were let pass before."""
    here = known.recollection
    said = (EntryType.USER_MESSAGE, EntryType.EXTERNAL_DIALOG, EntryType.DAIMON_SPEECH)
    yield from [one.content for one in _entries(here, *said)]
    yield from [one.content for one in _entries(here, EntryType.TOOL_USE) if one.metadata.get("call")]
    for one in here.perceptions:
        if one.origin is Origin.EXTERNAL:
            yield one.text
            yield from [shown.text for shown in one.extra.shown] if isinstance(one.extra, MessageExtra) else ()
    yield from [text for one in known.used if one.id for text in _scalars(one.args)]


def _entries(known: Recollection, *kinds: EntryType) -> Iterator[Entry]:
    return (entry for past in known.past for entry in past.entries if entry.entry_type in kinds)
