"""The receipt of an erasure in plain words: what was done by which method, what was not searched, and what stays.

Each sentence says what the code does, no more. The document with its rows by table is for programs. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from claudius.memory.erasing import EXCERPT_BYTES, EXCERPTS
from claudius.memory.erasure import UNENDED, Beyond
from claudius.perception import Place

LENT = (Beyond("the transcript of a session that thought in my place (`claudius bridge`)"),)
_SAID = frozenset(
    (
        *("blob", "entry", "inbox", "interaction", "kept", "moment", "outbox", "reaction", "step", "summary", "turn"),
        *("turn_record", "whisper"),
    )
)
_KNOWN = frozenset(
    (
        *("assessment", "belief", "fact", "lesson", "peer", "psyche_arc", "psyche_edge"),
        *("reflection", "revision", "soul_state", "user_model"),
    )
)
_PLANNED = frozenset({"due", "plan", "promise"})
_TEXTS = frozenset(
    (
        *("assessment", "belief", "conversation", "due", "kept", "lesson", "promise", "psyche_arc"),
        *("reflection", "soul_state", "summary", "whisper"),
    )
)
"""Tables of which each row is one text of the soul's."""
_EARLIER = {"resumed": False, "taken_down": 0, "unsearched": ()}
"""What a receipt does not say that an earlier release has kept."""


class Whose(Struct, frozen=True):
    """How a receipt speaks of the person who was erased."""

    is_: str
    them: str
    their: str


_ANEW = "I wrote my database file anew, so that it holds"
_LATER = {
    True: " Until then my note of this keeps your id, and I call nothing verified; then I tell you.",
    False: " Until then my note of this keeps the id, and I call nothing verified; then my log says so.",
}
_ONE_BY_ONE = "its tables are written anew, one after the other"
OWN = Whose("You are", "you", "your")
Naming = Callable[[Sequence[str], str, str], Sequence[str]]
"""Returns how places are named: each, or how many there are."""


def told(receipt: Mapping[str, Any]) -> str:
    """Return the receipt for the person themself, in chat.

    Of posts in others' places, and of places on the owner's machines, it gives the number alone, or the kind.
    """
    kept, posts = len(receipt["kept"]), [one for one in receipt["posts"] if one["is_shared"]]
    elsewhere = len(receipt["posts"]) - len(posts)
    kinds = receipt.get("beyond", receipt["not_ours"])
    shown = {**receipt, "aside": _number(receipt["aside"], "copy", "copies"), "posts": posts, "not_ours": kinds}
    found = [*lines(shown, OWN, f"{kept} of them" if kept else "", _number)]
    if elsewhere:
        such = _many(elsewhere, "post")
        found.append(f"In talks of others: {such} of mine that I wrote from your words; the owner can see where.")
    return "\n".join(found)


def of(receipt: Mapping[str, Any]) -> list[str]:
    """Return the receipt for the owner, line by line."""
    whose = Whose(f"{receipt['person']} is", "this person", "their")
    return list(lines(receipt, whose, ", ".join(receipt["kept"]), lambda found, *_: found))


def lines(receipt: Mapping[str, Any], who: Whose, kept: str, naming: Naming) -> Iterator[str]:
    """Yield the lines of a receipt; `kept` names the files in `backups/` that stay, `naming` names other places."""
    receipt = {**_EARLIER, **receipt}
    yield f"{who.is_} forgotten. What I did:"
    if receipt["resumed"]:
        yield "• I was interrupted, and began again: the numbers below count what was left by then."
    yield f"• From my database I deleted rows, or took {who.their} part out of them: {_counted(receipt, who)}."
    yield from _taken_out(receipt, who)
    if receipt["git"]:
        yield f"• I wrote the history in git anew, without {_many(receipt['git'], 'version')} of {who.their} portraits."
    if receipt["logs"]:
        lines_ = _many(receipt["logs"], "line")
        yield f"• My log lost {lines_}: those that named {who.them}, and any of the detailed kind."
    if receipt["backups"]:
        yield f"• I deleted {_many(receipt['backups'], 'older copy', 'older copies')} of my database in this home."
    if aside := receipt["aside"]:
        yield f"• I did the same in what a restore has set aside: {', '.join(aside)}."
    yield f"• {_searched(receipt, who, naming)}"
    yield from _not_searched(receipt, naming)
    yield f"• {_overwritten(receipt)}{_LATER[who is OWN] if receipt['later'] else ''}"
    yield (
        f"Deleted with the rows, but not looked for: {who.their} name, single words and short sentences (in Latin"
        f" script below {EXCERPT_BYTES} letters). What I wrote from notes of mine alone stays where it holds neither"
        f" {who.their} name nor a word that nothing else gives."
    )
    if receipt["rows"].get("audience_member"):
        yield (
            f"Where I share a channel with {who.them}, the network tells me {who.their} id again when I ask it who can"
            " read along."
        )
    yield f"What others said about {who.them} in their own words stays, and so does what they said in the same words."
    if posts := receipt["posts"]:
        yield f"Posts of mine that I wrote from {who.their} words and that stay on the network:"
        yield from (f"• {_post(one)}" for one in posts)
    if kept:
        yield f"Files in backups/ that I did not make stay as they are: {kept}."
    yield f"Out of my reach: {'; '.join(receipt['not_ours'])}."


def _taken_out(receipt: Mapping[str, Any], who: Whose) -> Iterator[str]:
    derived = receipt["derived"]
    turns, texts = derived.get("turn", 0), sum(derived.get(table, 0) for table in _TEXTS)
    parts = [f"all that I thought and said in {_many(turns, 'turn')} of talk with others"] if turns else []
    parts += [f"{_many(texts, 'note')} of my own"] if texts else []
    if parts:
        yield f"• I deleted what I had written with {who.their} words before me: {' and '.join(parts)}."
    if portraits := len(receipt["portraits"]):
        yield f"• {_many(portraits, 'portrait')} of others lost what I had written from {who.their} words."
    if receipt["taken_down"]:
        yield f"• On the network I deleted {_many(receipt['taken_down'], 'post')} of mine that I had written from them."


def link_to(conversation: str, position: str) -> str:
    """Return the address of a message on its network; empty if it has none."""
    place = Place.of(conversation)
    if place.network == "slack":
        return f"https://slack.com/archives/{place.channel}/p{position.replace('.', '')}"
    if place.network == "discord":
        channel = place.thread if place.thread and int(place.thread) != int(position) else place.channel
        return f"https://discord.com/channels/{place.workspace}/{channel}/{int(position)}"
    return ""


def instant(at: str) -> str:
    """Return an instant of a document as a person reads it."""
    return f"{at[:10]} {at[11:16]} UTC"


def _post(post: Mapping[str, Any]) -> str:
    where = link_to(post["conversation"], post["post"]) or post["conversation"]
    return f"{where}, of {instant(post['at'])}"


def _counted(receipt: Mapping[str, Any], who: Whose) -> str:
    rows: Mapping[str, int] = receipt["rows"]
    kinds = {"of what was said and answered": _SAID, "of what I knew and thought": _KNOWN, "of plans": _PLANNED}
    found = {words: sum(rows.get(table, 0) for table in tables) for words, tables in kinds.items()}
    rest = sum(rows.values()) - sum(found.values())
    found[f"of where, when and under which names {who.them} took part"] = rest
    none = "none were left" if receipt["resumed"] else "there were none"
    return ", ".join(f"{count} {words}" for words, count in found.items() if count) or none


def _searched(receipt: Mapping[str, Any], who: Whose, naming: Naming) -> str:
    if UNENDED in receipt["left"]:
        looked = f"I searched for {who.their} ids and words, but the search did not come to its end"
        return f"{looked}: have the owner repeat it."
    places = "all rows of the database server" if receipt["store"] == "server" else "all rows of my database"
    looked = (
        f"Then I searched {places}, my other files, the log, my copies and the history in git for {who.their} ids and"
        f" for up to {EXCERPTS} pieces of {who.their} sentences, in any script, compressed or not"
    )
    if still := [one for one in receipt["left"] if one not in receipt["unsearched"]]:
        return f"{looked}. STILL FOUND in {', '.join(naming(still, 'place', 'places'))}: have the owner repeat it."
    return f"{looked}, and found none."


def _not_searched(receipt: Mapping[str, Any], naming: Naming) -> Iterator[str]:
    if places := [one for one in receipt["unsearched"] if one != UNENDED]:
        named = ", ".join(naming(places, "place", "places"))
        yield f"• NOT SEARCHED, because it cannot be read: {named}. The owner has to look: repeating does not help."


def overwritten(receipt: Mapping[str, Any]) -> str:
    """Return the second line of an erasure whose receipt said that what was deleted is overwritten later."""
    stays = "; what the receipt named as left stays so" if receipt["left"] else ", and call it verified"
    return f"What I deleted when I was asked to forget is overwritten now. {_overwritten(receipt)[:-1]}{stays}."


def _overwritten(receipt: Mapping[str, Any]) -> str:
    is_server = receipt["store"] == "server"
    if receipt["later"] is None:
        anew = "I had the server write its tables anew, so that its data files hold" if is_server else _ANEW
        return f"{anew} what was deleted no more."
    files, until = ("The server's data files", _ONE_BY_ONE) if is_server else ("My database file", "it is written anew")
    return f"{files} can hold deleted rows until {until}: from {instant(receipt['later'])} on."


def _number(found: Sequence[str], one: str, several: str) -> list[str]:
    return [_many(len(found), one, several)] if found else []


def _many(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or f'{one}s'}"
