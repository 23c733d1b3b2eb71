"""Replies as a model might write them: the shorthand of the parse table, and a grammar of hostile ones."""

import re
from collections.abc import Iterable, Iterator

from hypothesis import strategies as st

from claudius.cognition.reply.parser import Parsed, Parser
from claudius.cognition.reply.tags import STEPS as OURS
from claudius.cognition.reply.tags import Names

SHORT = {
    "im": "internal_monologue", "ed": "external_dialogue", "uc": "user_model_check", "uu": "user_model_update",
    "mn": "model_change_note", "sc": "soul_state_check", "su": "soul_state_update",
}  # fmt: skip
OWN = "weather_report"
"""A step of an owner's own, as private as ours."""
NAMES = Names.of((*OURS, OWN))
S1 = "S1-canary-otter"
S2 = "S2-canary-heron"


def written_out(cell: str) -> str:
    r"""Write out a cell of the parse table: tags in full, `⏎` as newline, `\\uXXXX` as that character."""
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), cell.replace("⏎", "\n"))
    text = re.sub(
        r"((?:<|&lt;|＜)/?)(" + "|".join(SHORT) + r")(?![\w-])", lambda found: found[1] + SHORT[found[2]], text
    )
    return re.sub(
        r"(</?)(" + "|".join(SHORT).upper() + r")(?![\w-])",
        lambda found: found[1] + SHORT[found[2].lower()].upper(),
        text,
    )


def read(text: str, *, truncated: bool = False, pieces: Iterable[str] | None = None) -> tuple[Parsed, str]:
    """Parse a reply, in the given pieces or at once; return it with the text that became visible on the way."""
    parser = Parser(NAMES)
    shown = "".join(parser.feed(piece) for piece in (pieces if pieces is not None else (text,)))
    return parser.finish(truncated=truncated), shown


def cut_up(text: str, sizes: Iterable[int]) -> Iterator[str]:
    """Cut a text into pieces of the given sizes, repeating the sizes."""
    sizes = list(sizes) or [len(text) or 1]
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        yield text[at : at + size]
        at, turn = at + size, turn + 1


PRIVATE = (
    "internal_monologue", "user_model_check", "user_model_update", "soul_state_update", "model_change_note", OWN,
)  # fmt: skip
_STRICT = ("<", "<", "< ", "<\n", "<\u200b")
_LOOSE = ("&lt;", "&#60;", "&#x3c;", "\\u003c", "＜", "﹤")
_LT = (*_STRICT, *_STRICT, *_LOOSE)
_GT = (">", ">", ">", " >", "/>", "", "&gt;", "＞", ' verb="mused">', " verb='x' tone=y>", ' verb="', " x" * 300 + ">")
_WORDS = st.sampled_from(
    [
        "Hi", "The port is nearly done.", " a < b && c > d ", "<p>", "</p>", "<b>bold</b>", "\n", "  ", "&", "&l", "\\u00",
        "```py\nx = 1\n```", "<external_dialogues>", "<![CDATA[", "]]>", "<!-- note -->", "\ufeff", "\u200b", "<", "＜",
        "&lt;", "naïve 李", "\ud83d\ude00", "\ud800", "\0", "&lt;b&gt;", "</", "<_", "<-----",
    ]
)  # fmt: skip


def _spelled(name: str) -> st.SearchStrategy[str]:
    parts = name.split("_")
    return st.sampled_from(
        [
            name, name.upper(), name.title(), "".join(part.title() for part in parts), "-".join(parts),
            "\u200b_".join(parts), "_\u00ad".join(parts), "__".join(parts),
            "".join(chr(ord(letter) + 0xFEE0) if letter.isalpha() else letter for letter in name),
        ]
    )  # fmt: skip


def _heads(names: tuple[str, ...], *, closing: bool = False) -> st.SearchStrategy[str]:
    spelled = st.sampled_from(names).flatmap(_spelled)
    return st.builds(
        lambda lt, slash, name, gt: lt + slash + name + gt,
        st.sampled_from(_LT),
        st.just("/") if closing else st.sampled_from(["", "", "", "/"]),
        spelled,
        st.sampled_from(_GT),
    )


def _secret(lts: tuple[str, ...], inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Build a private element around a canary, its tags spelled in every way; nothing in it ends the section early."""
    return st.builds(
        lambda lt, name, gt, inner, close: lt + name[1] + gt + S1 + "".join(inner) + close.replace("NAME", name[0]),
        st.sampled_from(lts),
        st.sampled_from(PRIVATE).flatmap(lambda name: st.tuples(st.just(name), _spelled(name))),
        st.sampled_from([">", ' verb="mused">', " >", ' section="X">', ' verb="']),
        st.lists(st.one_of(inside, st.sampled_from([S1, S2])), min_size=1, max_size=4),
        st.sampled_from(["</NAME>", "</NAME >", ""]),
    )


TAGS = ("external_dialogue", "external_dialog", *PRIVATE)
_OPEN, _CLOSE = "<external_dialogue>", "</external_dialogue>"


def _turn(inside: st.SearchStrategy[str], around: st.SearchStrategy[str], thought: str) -> st.SearchStrategy[str]:
    """Build a correct reply with one defect inside or after its dialogue."""
    return st.builds(
        lambda before, words, amiss, close, after: before + _OPEN + "".join([*words, amiss]) + close + after,
        st.sampled_from(["", thought, f"{thought}\n"]),
        st.lists(_WORDS, max_size=4),
        st.one_of(st.just(""), inside),
        st.sampled_from([_CLOSE, _CLOSE, _CLOSE[:-1], ""]),
        st.one_of(st.just(""), around),
    )


_soup = st.lists(
    st.one_of(
        _WORDS,
        _heads(TAGS),
        _heads(("external_dialogue",), closing=True),
        st.sampled_from([_OPEN, _CLOSE, '<external_dialogue verb="said">']),
        st.sampled_from(["<think>", "</think>", "<tool_call>", '<thinking level="2">']),
    ),
    max_size=12,
).map("".join)

hostile = st.one_of(_soup, _turn(_heads(TAGS), _soup, "<internal_monologue>a</internal_monologue>"))
"""Replies of tags, texts, cases, attributes, entities, comments, nesting and cuts; nothing in them is secret."""

_secrets = st.one_of(
    _secret(_STRICT, st.one_of(_WORDS, _heads(("external_dialogue",)), st.just(_OPEN))), _secret(_LOOSE, _WORDS)
)
_guarded_soup = st.lists(
    st.one_of(_secrets, _secrets, _WORDS, st.sampled_from([_OPEN, _CLOSE, '<external_dialogue verb="said">Hi'])),
    max_size=8,
).map("".join)

guarded = st.one_of(
    _guarded_soup, _turn(_secrets, _guarded_soup, f"<internal_monologue verb='mused'>{S1}</internal_monologue>")
)
"""Replies in which canaries stand inside private elements only."""

sizes = st.lists(st.integers(1, 12), min_size=1, max_size=8)
