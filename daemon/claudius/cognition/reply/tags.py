"""Recognise our tags by their heads, in the same way for the parser, the ladder, the gate and the history.

A head is LT, at most 8 blanks, an optional `/`, at most 8 blanks, and a name. Strict heads open with `<`, loose ones
with a disguised form of it. A head is always decided within `HEAD_CHARS` characters, so a stream never has to hold back
more. `is_disguised` and `is_structured` detect forms that the parser does not read: a model may mark its thoughts with
other brackets, nested escapes, or the tokens it was trained with. They fail closed.

`ThoughtFilter`, through which every chain reads its providers, drops what a model thinks aloud between marks of its
own, such as `<think>…</think>`. A closing mark without an opening one says that all before it was a thought, and a
`Reset` makes void what was yielded of it. A thought that is never closed lasts to the end of the reply. A mark in
backticks is what the reply is about, and stays. In whatever language a model names its thought, it opens the reply: an
unknown element there, unasked, is held, is a thought if it is closed and a new sentence follows, else is given back.

Source: the pipeline design, section 5; the chat templates of models that think (DeepSeek, Qwen, MiniMax, Seed, Kimi,
Magistral, Command A, MedGemma); the harmony format, cookbook.openai.com/articles/openai-harmony.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from claudius.prompt import SHOWS_NOTHING
from claudius.provider import Delta, Done, Event, Reset

DIALOGUE: Final = "external_dialogue"
TOOL_USE: Final = "tool_use"
TOOL_CALL: Final = "tool_call"
"""How many models mark the use of a tool by themselves: read alike where the step is asked."""
WISHES: Final = (TOOL_USE, TOOL_CALL)
MONOLOGUE: Final = "internal_monologue"
STEPS: Final = (
    "internal_monologue", "appraisal", "acts", "tool_use", "external_dialogue", "user_model_check",
    "user_model_update", "model_change_note", "soul_state_check", "soul_state_update", "mental_query",
    "action_choice", "assess_peer", "chosen_action",
)  # fmt: skip
"""The tag of every cognitive step, in order. The parser knows these and no others."""
FOREIGN: Final = ("think", "thinking", "ant_thinking", "reasoning", "scratchpad", TOOL_CALL, "function_calls")
"""The tags with which models mark their own reasoning and tool calls."""

HEAD_CHARS: Final = 80
"""A head is decided within this many characters; if it is still undecided and could be ours, it counts as ours."""
HEAD_END_CHARS: Final = 512
NAME_CHARS: Final = 40
"""The longest written form of a name, including invisible characters."""

_UNSEEN = rf"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f{SHOWS_NOTHING}"
_LETTERLIKE = (
    "\u2100-\u2122\u213b\u249c-\u24e9\u3250\u32c0-\u32cf\u3358-\u337a\u3380-\u33ff\ufe33\ufe34\ufe4d-\ufe4f\ufe63"
    "\uff0d\uff3f\U0001f110-\U0001f190"
)
"""Not letters to Python, but NFKC turns them into letters, `_` or `-`."""

LT: Final = re.compile(r"<|＜|﹤|&(?:[lL][tT]|#60|#[xX]3[cC]);|\\[uU]003[cC]")
"""Each alternative begins with a literal character, because only then does `re` search for those characters alone."""
GAP: Final = rf"[\s{_UNSEEN}]{{0,8}}"
_NAME = re.compile(rf"{GAP}([/／]?){GAP}([\w\-{_UNSEEN}{_LETTERLIKE}]{{0,{NAME_CHARS + 1}}})")
_QUICK = re.compile(r" {0,8}(/?) {0,8}([A-Za-z_\-]{1,40})(?=[ \n<>])|(?=[!-,.:-@\[-^`{-~])")
"""Finds what `_NAME` would find in common cases, in a third of the time: a plain name and its end, or no name."""
_REST = re.compile(rf"[^<>]{{0,{HEAD_END_CHARS - 1}}}")
_ATTRIBUTE = re.compile(r"([^\s=\"'/]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"']+))?")
_SELF_CLOSING = re.compile(r"/\s*\Z")
_BARE_TAIL = re.compile(rf"{GAP}/?{GAP}(?:([\w\-]{{1,24}}){GAP}(=?))?")
_DROPPED = re.compile(rf"[_\-{_UNSEEN}]+")
UNSEEN: Final = re.compile(rf"[{_UNSEEN}]")
"""Characters that are invisible on a screen, including controls."""
PREFIXED: Final = re.compile(
    rf"{GAP}[/／]?{GAP}(?:[\w.\-]{{1,{NAME_CHARS}}}:)?([\w\-{_UNSEEN}{_LETTERLIKE}]{{0,{NAME_CHARS}}})"
)
"""What follows an LT, up to a name after a prefix."""
_LESS = r"(?:<|&(?:amp;)*(?:lt|#0*60|#x0*3c);?|%3c|\\[ux](?:00)?3c)"
_BRACKET = r"[\[{‹〈《【◁⟨❮]"


class TagHead(NamedTuple):
    """The beginning of one of our tags. `name` is the tag; empty if the head was too long to be named.

    A tuple, because a hostile reply holds thousands of heads, and it is built in a third of a frozen dataclass's time.
    """

    name: str
    closing: bool
    strict: bool
    end: int
    """The position just after the name."""

    @property
    def is_dialogue(self) -> bool:
        """Whether it opens or closes speech; every other head is private."""
        return self.name == DIALOGUE


class Rest(NamedTuple):
    """The part of a tag after its name: where it ends, and its attributes."""

    end: int
    well_formed: bool
    """Its `>` is within `HEAD_END_CHARS` of its name with no `<` between; otherwise it ends at its name."""
    self_closing: bool = False
    verb: str | None = None
    section: str | None = None


WAIT: Final = TagHead("…", closing=False, strict=False, end=-1)
"""Returned when the text ends before a head can be decided."""


def canonical(name: str) -> str:
    """Return the form in which names are compared: NFKC, lower case, no `_`, `-` or invisible characters. Pure."""
    if name.isascii():
        return name.lower() if name.isalnum() else _DROPPED.sub("", name.lower())
    return _DROPPED.sub("", unicodedata.normalize("NFKC", name).lower())


class Names(Struct, frozen=True):
    """Our tag names, prepared for comparison. Created by `Names.of`."""

    tags: Mapping[str, str]
    """Canonical form → tag, and each tag → itself; including the foreign tags."""
    bare: frozenset[str]
    """Canonical forms that count only if strict and before no word of speech: our one-word tags and foreign ones."""
    begun: frozenset[str]
    """Every prefix of a canonical form."""
    label: re.Pattern[str]
    """Matches a step's name used as a label, in text prepared by `plain_form`; of ours, one of two or more words."""
    disguised: re.Pattern[str]
    """Matches a name as a disguised tag, in text prepared by `plain_form`."""
    traced: re.Pattern[str]
    """Matches that, and a name that no speech would hold."""

    @classmethod
    def of(cls, tags: Iterable[str] = STEPS) -> Names:
        """Prepare the tags of every step. Pure. Raises: ValueError for a tag too long, or two that compare equal."""
        ours = dict.fromkeys((*tags, DIALOGUE))
        forms: dict[str, str] = {"externaldialog": DIALOGUE}
        for tag in (*ours, *FOREIGN):
            if len(tag) > NAME_CHARS:
                raise ValueError(f"a tag has at most {NAME_CHARS} characters: {tag}")
            if forms.setdefault(canonical(tag), tag) != tag:
                raise ValueError(f"two tags look alike: {forms[canonical(tag)]} and {tag}")
        spelled = forms | {tag: tag for tag in forms.values()}
        words = [tag for tag in (*ours, "external_dialog") if "_" in tag]
        # a step of the owner's own may be `to_do`: `todo` is a word of speech
        names = "|".join(re.sub("_", rf"[\\W_]{{{int(tag not in (*STEPS, words[-1]))},3}}", tag) for tag in words)
        # one-word names of an owner's own steps are words of speech, but between the marks of a tag
        single = "|".join([tag for tag in ours if tag not in STEPS and "_" not in tag]) or r"\b\B"
        marked = rf"(?:{_LESS}|{_BRACKET})[\s/]{{0,8}}(?:[\w.\-]{{1,40}}:)?(?:{names})(?!\w)"
        marked += rf"|(?:{_LESS}[\s/]{{0,8}}|{_BRACKET}\s?/\s?)(?:{single})(?!\w)"  # `[weather](…)` is a link
        joined = names.replace(r"[\W_]", "_")
        return cls(
            tags=spelled,
            bare=frozenset(f for f, tag in spelled.items() if tag in FOREIGN or (tag in STEPS and "_" not in tag)),
            begun=frozenset(form[:end] for form in spelled for end in range(1, len(form) + 1)),
            disguised=re.compile(marked),
            traced=re.compile(rf"{marked}|(?<!\w)(?:{joined})(?!\w)|[(*|]\s?(?:{names})\s?[)*|]"),
            label=re.compile(
                rf"^(?:[^\w\n]|_)*(?:(?:{names})(?!\w)|(?:{single})[\W_]{{0,4}}?[:=])"
                rf"|(?<!\w)(?:{names})[\W_]{{0,4}}?[:=]",
                re.MULTILINE,
            ),
        )


NAMES: Final = Names.of()


def read_head(text: str, lt: re.Match[str], names: Names = NAMES, *, final: bool = True) -> TagHead | None:
    """Read the head that opens at `lt`; None if it is not one of ours. Pure.

    `final` False: more text may follow, and `WAIT` is returned while that could change the result. Looks at most
    `HEAD_CHARS` characters ahead.
    """
    strict = lt[0] == "<"
    found = _QUICK.match(text, lt.end()) or _NAME.match(text, lt.end())
    if found is None or found[2] is None:
        return None
    slash, name = found.groups()
    open_ended = not final and found.end() == len(text)
    form = name if name in names.tags else canonical(name)
    if len(name) > NAME_CHARS:
        begun = form in names.begun or (not form and UNSEEN.search(name) is not None)
        return TagHead(names.tags.get(form, ""), bool(slash), strict, found.end()) if begun else None
    if open_ended:
        return WAIT if not form or form in names.begun else None
    tag = names.tags.get(form)
    if tag is None:
        return None
    head = TagHead(tag, bool(slash), strict, found.end())
    return _bare(text, head, final=final) if form in names.bare else head


def _bare(text: str, head: TagHead, *, final: bool) -> TagHead | None:
    """Accept a one-word name only if it is strict and its end or an attribute follows: `<think about it>` is speech."""
    if not head.strict:
        return None
    tail = _BARE_TAIL.match(text, head.end)
    end = tail.end() if tail else head.end
    if end == len(text) and not final:
        return WAIT
    if tail and tail[1]:
        return head if tail[2] else None
    return head if end == len(text) or text[end] in "<>" or text[end].isspace() or UNSEEN.match(text[end]) else None


def read_rest(text: str, head: TagHead, *, final: bool = True) -> Rest | None:
    """Read a strict head from its name to its `>`. Pure. None if the `>` has not arrived yet (`final` False)."""
    found = _REST.match(text, head.end)
    end = found.end() if found else head.end
    if end == len(text) and not final:
        return None
    if text[end : end + 1] != ">":
        return Rest(head.end, well_formed=False)
    if end == head.end:
        return Rest(end + 1, well_formed=True)
    inner = text[head.end : end]
    slash = _SELF_CLOSING.search(inner)
    said: dict[str, str] = {}  # names in lower case; double, single or no quotes; the first of a name wins
    for name, value in _ATTRIBUTE.findall(inner[: slash.start()] if slash else inner):
        said.setdefault(name.lower(), value[1:-1] if value[:1] in ("'", '"') else value)
    return Rest(end + 1, True, slash is not None, said.get("verb"), said.get("section"))


_QUOTES = ("`", '"', "'")
_QUOTED = re.compile(r"""([`"'])[<＜\[◁【][/／]?(?:[\w.\-]{1,40}:)?([\w\-]{1,40})[>＞\]▷】]\1""")


def _unquoted(text: str) -> str:
    """Return a text without the marks of a model's reasoning that it only speaks of, in quotes. Ours stay."""
    return _QUOTED.sub(lambda mark: "" if NAMES.tags.get(canonical(mark[2]), FOREIGN[0]) in FOREIGN else mark[0], text)


def find_head(text: str, names: Names = NAMES) -> TagHead | None:
    """Return the first head of one of our tags in a whole text, strict or loose, or None. Pure."""
    text = _unquoted(text)
    for found in LT.finditer(text):
        if head := read_head(text, found, names):
            return head
    return None


def escape_heads(text: str, *, limit: int | None = None) -> str:
    """Replace the `<` of each of our tag names with `&lt;`, so that a stored text cannot form a tag. Pure.

    `limit`: the maximum length of the result. The text is cut, not its escaped form, so that no escape is cut in half.
    """
    if "<" not in text:
        return text[:limit]
    escaped = _escaped(text[:limit])
    while limit is not None and len(escaped) > limit:
        text = text[:limit][: limit - len(escaped)]
        escaped = _escaped(text)
    return escaped


def _escaped(text: str) -> str:
    def defused(lt: re.Match[str]) -> str:
        found = _NAME.match(text, lt.end())
        known = found is not None and (canonical(found[2]) in NAMES.tags or read_head(text, lt) is not None)
        return "&lt;" if known and lt[0] == "<" else lt[0]

    return LT.sub(defused, text)


def plain_form(text: str) -> str:
    """Return the form in which labels are searched: NFKC, case folded, without invisible characters. Pure."""
    return UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()


def is_blank(text: str) -> bool:
    """Return whether a text has no visible characters. Pure."""
    return not UNSEEN.sub("", text).strip()


_REASONING = (
    "think", "thought", "reasoning", "monologue", "reflection", "analysis", "scratchpad", "toolcall", "functioncall",
)  # fmt: skip
_OPENS = re.compile(r"[<＜﹤&＆﹠%％﹪\\＼﹨\[［{｛﹛‹〈《【◁⟨❮]")
"""Without one of these characters nothing is disguised; most speech contains none."""
_FOREIGN = re.compile(
    r"""(?x)
      <[ ]?(?:\|[^\s|<>]{1,40}\|?|[^\s|<>]{1,40}\|)[ ]?>                     # a token of the model's own
    | <[\s/]{0,8}[\w\-]{0,40}?(?:[a-z][^\W\x00-\x7f]|[^\W\x00-\x7f][a-z])  # a name of two scripts
    | [\[◁【]/?◁?/?[ ]?(?:think|thinking|thoughts?|reasoning|scratchpad)[ ]?[\]▷】]
    | ["'](?:inner|private|internal)?[ _\-]?(?:monologue|thoughts?|thinking|reasoning|scratchpad)["'][ ]?:
    | \A\s*`{3}[ ]?(?:think|thinking|thoughts?|reasoning)\s                  # fenced off
    """
)


def is_disguised(text: str, names: Names = NAMES) -> bool:
    """Return whether a step's name appears as a disguised tag: prefixed, escaped twice, in other brackets. Pure."""
    return _OPENS.search(text) is not None and names.disguised.search(plain_form(text)) is not None


def is_structured(text: str, names: Names = NAMES) -> bool:
    """Return whether a supposedly plain text contains any trace of a tag, ours or model reasoning. Pure.

    The marks of a model's reasoning may be spoken of in quotes; ours may not.
    """
    if (alone := _ALONE.fullmatch(text)) and canonical(alone[1]) not in _MARKUP:
        return True
    text = _unquoted(text)
    for lt in LT.finditer(text):
        found = PREFIXED.match(text, lt.end())
        form = canonical(found[1]) if found else ""
        if form in names.tags or any(word in form for word in _REASONING) or read_head(text, lt, names):
            return True
    plain = plain_form(text)
    return _FOREIGN.search(plain) is not None or names.traced.search(plain) is not None


State = Literal["words", "thought", "header"]
"""`header`: between the tokens that name the channel of what follows."""

MARK_CHARS = 120
"""The longest mark, attributes included."""
_MARK_OPENS = re.compile(r"[<＜\[◁【]")
_CLOSES = re.compile(r"[>＞\]▷】]")
_MARK = re.compile(
    r"""(?x)
      <\|(?P<token>[^\s|<>]{1,40})\|>
    | <(?P<half>\|channel|channel\|)>
    | [<＜]\s{0,4}(?P<slash>[/／]?)\s{0,4}(?P<tag>(?:[\w.\-]{1,40}:)?[^\x00-,./:-@\[-^`{-\x7f\s＜＞／]{1,40})
      (?:\s[^<>＜＞]{0,80})?(?P<self>/?)[>＞]
    | [\[◁【]\s?(?P<slash_2>/?)\s?(?P<word>\w{1,40})\s?[\]▷】]
    """
)
_ENDS = re.compile(r"<(?:\|(?:im_end|eot_id|eom_id|endoftext|end_of_text)\||end_of_turn)>\s*\Z")
"""The end of a turn, where a server hands it on at the end of a reply."""
_THOUGHTS = frozenset(
    "think thinking thought thoughts reasoning reflection scratchpad antthinking 思考 思考过程".split()  # noqa: SIM905 - as below
)
_TOKEN = re.compile(r"think|thought|reasoning")
_HEADS = re.compile(r"start(?:headerid|ofrole)?|channel")
_AROUND = re.compile(r"(?:begin|start|end)(?!(?:of)?(?:text|turn)).")  # the words themselves
_PARTS = re.compile(r"[_\-.:]")
_MEANT = {"unused94": "think", "unused95": "end_think", "|channel": "think", "channel|": "end_think"}
"""Tokens of MedGemma and of Gemma 4, by what they mean."""
_SHELLS = frozenset({"answer", "response", "final", "solution", "output"})
"""Marks of the words themselves, where a model marks both."""
_MARKUP = frozenset(
    """a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote
    body br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl
    dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr
    html i iframe img input ins isindex kbd keygen label legend li link listing main map mark marquee math menu
    menuitem meta meter multicol nav nextid nobr noembed noframes noscript object ol optgroup option output p param
    picture plaintext pre progress q rb rp rt rtc ruby s samp script search section select slot small source spacer
    span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr
    track tt u ul var video wbr xmp""".split()  # noqa: SIM905 - a line each would be longer
)
"""The elements of HTML that speech may hold, its obsolete ones included."""
_GOES_ON = re.compile(r"[^\S\n]*[a-zà-öø-ÿ,.;:!?)]")  # a sentence, behind a word
_ALONE = re.compile(r"\s*<([\w\-]{3,40})>[^<]*</\1>\s*", re.IGNORECASE)
"""A reply that is one element."""


def is_taken(name: str) -> bool:
    """Return whether a reply may hold a tag of that name already: ours, a model's mark, or HTML. Pure."""
    form = canonical(name)
    return form in NAMES.tags or form in _SHELLS | _MARKUP or not _THOUGHTS.isdisjoint((form, name.rpartition("_")[2]))


class ThoughtFilter:
    """The events of one reply without what its model thought aloud; what is `asked` for by name is no thought."""

    def __init__(self, asked: str = "") -> None:
        self._known = _MARKUP.union(re.findall(r"\w+", asked.casefold()))
        self._begin()

    def _begin(self) -> None:
        self._state: State = "words"
        self._kept: list[str] = []
        self._rest = self._before = self._header = self._held = self._opened = ""
        self._has_begun = self._has_thought = False

    def read(self, event: Event) -> Iterator[Event]:
        """Yield what an event comes to."""
        match event:
            case Delta(text):
                yield from self._read(text)
            case Reset():
                self._begin()
                yield event
            case Done(text=text):
                if event.stop_reason == "max_tokens" and self._opened:
                    self._held = ""  # a thought that was cut off
                yield from self._read("" if self._has_begun else text, is_end=True)
                said = "".join(self._kept)
                words = said.rpartition("assistantfinal")[2] if said.startswith("analysis") else said
                if words != said:  # gpt-oss, whose server leaves out its tokens: analysisSo she asks…assistantfinalYes.
                    yield from (Reset(), Delta(words))
                yield replace(event, text=words)
            case _:
                yield event

    def _read(self, piece: str, *, is_end: bool = False) -> Iterator[Event]:
        text, place, told = self._rest + piece, 0, len(self._kept)
        self._has_begun, self._rest = True, ""
        while place < len(text):
            opens = _MARK_OPENS.search(text, place)
            begins = opens.start() if opens else len(text)
            self._take(text[place:begins])
            if not opens:
                break
            mark, ends = _MARK.match(text, begins), _ENDS.match(text, begins)
            is_undecided = (
                ends is not None or (self._before in _QUOTES and mark.end() == len(text))
                if mark
                else len(text) - begins < MARK_CHARS and not _CLOSES.search(text, begins)
            )
            if is_undecided and not is_end:  # what follows decides
                self._rest = text[begins:]
                break
            place = mark.end() if mark else begins + 1
            is_text = mark is None or (self._before in _QUOTES and self._before == text[place : place + 1])
            state = self._state if ends else None if mark is None or is_text else self._after(mark)
            if state == "void":
                self._kept.clear()
                self._held = self._opened = ""
                if told:
                    yield Reset()
                told = 0
            elif state:
                self._state = state
            else:
                self._take(text[begins:place])
        if is_end:
            self._kept.append(self._held)
        if made := "".join(self._kept[told:]):
            yield Delta(made)

    @property
    def _has_words(self) -> bool:
        return any(text.strip() for text in self._kept)

    def _take(self, text: str) -> None:
        self._before = text[-1:] or self._before
        if self._state == "header":
            self._header += text
        elif self._opened or (self._held and not text.strip()):
            self._held += text if self._state == "words" else ""
        elif self._state == "words" and text:
            is_one = not self._held or _GOES_ON.match(self._held + text, len(self._held.rstrip()))
            self._kept.append(self._held + text if is_one else text.lstrip())
            self._held = ""

    def _after(self, mark: re.Match[str]) -> State | Literal["void"] | None:
        """Return the state after a mark, `void` if what came before was a thought; None if the mark is text."""
        if token := mark["token"] or _MEANT.get(mark["tag"] or mark["half"] or ""):
            return self._after_token(canonical(token))
        written = mark["tag"] or mark["word"]
        name = canonical(written.rpartition(":")[2])
        if name in _SHELLS and self._has_thought:
            self._held = self._held if self._opened else ""
            return self._state
        is_thought = name in _THOUGHTS or (mark["tag"] and _PARTS.split(written.lower())[-1] in _THOUGHTS)
        if not is_thought:
            is_held = mark["tag"] and (self._held or name not in NAMES.tags) and self._is_held(mark, name)
            return self._state if is_held else None
        if mark["self"]:
            return self._state
        is_word = mark[0][0] == "[" and not (mark["slash_2"] or written.isupper())
        if is_word and self._state == "words" and self._has_words:
            return None  # in brackets, in the middle of what is said
        return self._marked(is_closing=bool(mark["slash"] or mark["slash_2"]))

    def _is_held(self, mark: re.Match[str], name: str) -> bool:
        """Hold an element of no known name that opens the reply: a thought, if it is closed and words follow it."""
        if name in self._known or self._state != "words":
            return False
        is_new = self._opened == (name if mark["slash"] else "") and not (self._has_words or mark["self"])
        if is_new and not is_taken(name):
            self._held += mark[0]
            self._opened, self._has_thought = ("", True) if mark["slash"] else (name, False)
            return True
        self._kept.append(self._held)
        self._held = self._opened = ""
        return False

    def _after_token(self, name: str) -> State | Literal["void"] | None:
        if _HEADS.fullmatch(name):
            self._header = ""
            return "header"
        if self._state == "header":
            self._has_thought = True
            return "words" if self._header.strip() in ("", "assistant", "final") else "thought"
        if name in ("end", "return", "call"):
            return "words"
        if _TOKEN.search(name):
            return self._marked(is_closing=name.startswith("end"))
        return self._state if _AROUND.match(name) else None

    def _marked(self, *, is_closing: bool) -> State | Literal["void"]:
        self._has_thought = True
        return "thought" if not is_closing else "words" if self._state == "thought" else "void"
