"""Collect what a turn's reply must not say, and decide by rungs what it lets the soul say; no rung tells a secret.

The rungs of the ladder are complete, plain, repair, cut, fixed; `climb` returns NeedsRepair if a repair call is needed
first. The rules are built once per turn, and again when the turn has thought something that its next call is shown.
`Overlap` detects whether a text repeats a long stretch of the forbidden texts; it is fast, because every turn runs it.
Source: the pipeline design, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import islice

from msgspec import Struct, field

from claudius.cognition.plan import EngineSettings, Plan, allowed_verbs, own_name
from claudius.cognition.reply.parser import Parsed, read_verb
from claudius.cognition.reply.tags import NAMES, Names, find_head, is_blank, is_disguised, is_structured, plain_form
from claudius.cognition.steps import names_of
from claudius.intent import Rung
from claudius.perception import Origin
from claudius.prompt import next_nonce
from claudius.psyche.scrubber import FEELINGS, spoken_without_numbers
from claudius.recollection import EntryType, PastTurn, Recollection, once
from claudius.soul import SoulText

SPAN = 64
"""This many equal characters in a row are no accident."""
LEAST_SUSPICION = 16
"""A stream is held back from this many equal characters on."""

MANY = 500
"""Above this many candidate places, comparing each would cost more than comparing everything."""

_STEP = 3
"""Every third piece of the spoken text is looked up."""
_REMEMBERED_CHARS = 2000
"""The pieces of a longer text are computed anew each time, so that the cache stays small."""


class Overlap:
    """Texts that must not be repeated. A check is cheap, because only a few pieces of each side are looked up.

    A piece is three eighths of a span. Every n-th piece of the texts is indexed, and every third piece of the spoken
    text is looked up; n and 3 have no common divisor, and 3n positions plus a piece fit into a span, so every equal
    stretch of one span contains a piece that is both indexed and looked up.
    """

    def __init__(self, texts: Iterable[str] = (), span: int = SPAN, *, aloud: Iterable[str] = ()) -> None:
        """`span`: how many equal characters in a row are a repetition; text in `aloud` may be repeated."""
        self._texts = tuple([text for text in texts if text])
        self._aloud = tuple([text for text in aloud if len(text) >= span])
        self.span = span
        self._piece = span * 3 // 8
        every = (span - self._piece + 1) // _STEP
        self._every = every if every % _STEP else every - 1

    @cached_property
    def text(self) -> str:
        """All texts joined."""
        return "\0".join(self._texts)

    @cached_property
    def _known(self) -> tuple[frozenset[str], ...]:
        return tuple(
            [
                (_remembered if len(text) <= _REMEMBERED_CHARS else _pieces)(text, self._piece, self._every)
                for text in self._texts
            ]
        )

    @cached_property
    def _windows(self) -> frozenset[str]:
        return _pieces(self.text, self.span, 1)

    @cached_property
    def _known_aloud(self) -> frozenset[str]:
        return _pieces("\0".join(self._aloud), self.span, 1)

    def repeated_in(self, spoken: str) -> bool:
        """Return whether `spoken` contains `span` characters in a row from these texts. Pure.

        Compares the surroundings of each piece found in both. If the texts repeat themselves a lot, all stretches are
        compared instead.
        """
        if len(spoken) < self.span or not self._texts:
            return False
        asked = _asked(spoken, self._piece, _STEP)
        if all(map(asked.isdisjoint, self._known)):
            return False
        likely = list(islice(self._places(spoken), MANY))
        if len(likely) < MANY:
            is_repeated = any(self._reaches(spoken, at, place) for at, place in likely)
        else:
            is_repeated = not self._windows.isdisjoint(_pieces(spoken, self.span, 1))
        if not is_repeated or not self._aloud:
            return is_repeated
        # all of it may have been said aloud before, word for word
        return not self._windows & _pieces(spoken, self.span, 1) <= self._known_aloud

    def _places(self, spoken: str) -> Iterator[tuple[int, int]]:
        """Yield the position of each looked-up piece in `spoken` and in the texts."""
        known = frozenset().union(*self._known)
        for at in range(0, len(spoken) - self._piece + 1, _STEP):
            piece = spoken[at : at + self._piece]
            place = self.text.find(piece) if piece in known else -1
            while place >= 0:
                yield at, place
                place = self.text.find(piece, place + 1)

    def _reaches(self, spoken: str, at: int, place: int) -> bool:
        """Return whether the piece at `at` and `place` is part of an equal stretch of a whole span."""
        text, rest = self.text, self.span - self._piece
        left, most = 0, min(rest, at, place)
        while left < most and spoken[at - left - 1] == text[place - left - 1]:
            left += 1
        start, end = self._piece, self.span - left
        return spoken[at + start : at + end] == text[place + start : place + end] and at + end <= len(spoken)

    def tail(self, spoken: str) -> int:
        """Return the length of the longest end of `spoken` found in these texts; 0 below `LEAST_SUSPICION`. Pure.

        At most `span`.
        """
        if len(spoken) < LEAST_SUSPICION or spoken[-LEAST_SUSPICION:] not in self.text:
            return 0
        length, most = LEAST_SUSPICION, min(self.span, len(spoken))
        while length < most and spoken[-length - 1 :] in self.text:
            length += 1
        return length


def _pieces(text: str, length: int, every: int) -> frozenset[str]:
    return frozenset([text[at : at + length] for at in range(0, len(text) - length + 1, every)])


_remembered = lru_cache(maxsize=2048)(_pieces)
"""A past thought is checked in the twenty turns after it, an instruction in every turn."""


_asked = lru_cache(maxsize=2)(_pieces)
"""One text is checked several times in a row."""


SPEECH = "external_dialogue"
ACTS = "acts"
SAID = "said"
ELLIPSIS = " …"
_PRIVATE = (EntryType.INTERNAL_MONOLOGUE, EntryType.DAIMONIC_INTUITION)
_TOLD = re.compile(r'"text": ?"((?:[^"\\]|\\.)*)"')
_ALOUD = (EntryType.USER_MESSAGE, EntryType.EXTERNAL_DIALOG, EntryType.DAIMON_SPEECH)


class Mentionable(Struct, frozen=True, kw_only=True):
    """Whom a text may mention. Ids are persons' ids (`slack:T1:U1`); a network's mention contains their last part."""

    answered: str = ""
    """The only person who may be pinged."""
    members: Mapping[str, str] = field(default_factory=dict)
    """The members of this conversation, who may be named: id → display name."""

    def is_answered(self, ident: str) -> bool:
        """Return whether a network's id is that of the person answered."""
        return ident == self.answered.rpartition(":")[2] != ""

    def name_of(self, ident: str) -> str:
        """Return the display name for a network's id; empty for someone who is not here."""
        return next((name for person, name in self.members.items() if person.rpartition(":")[2] == ident), "")


class OutputRules(Struct, frozen=True, kw_only=True):
    """What may be said in one turn. The ladder reads the first half of the fields, the gate all of them."""

    fallback: str = ""
    """The fixed line, in character."""
    verbs: Sequence[str] = (SAID,)
    default_verb: str = SAID
    owed: bool = True
    """Whether a reply is owed: if nothing can be said, the fixed line is."""
    repairs: int = 1
    """Repair calls left."""
    is_words_alone: bool = False
    """The words aloud were asked, and nothing else."""
    heard: tuple[str, ...] = ()
    """What is answered: words alone that only repeat it are none."""
    names: Names = NAMES
    """The tags that a reply may hold: those of the owner's own steps, too."""
    private: Overlap = field(default_factory=Overlap)
    """The private entries and whispers in this prompt."""
    nonces: tuple[str, ...] = ()
    """Every nonce in this prompt."""
    feels: bool = False
    """Whether the soul has a psyche: a sentence that puts a number on its feelings is then not said."""
    instructions: Overlap = field(default_factory=Overlap)
    """The step instructions, and the samples of how to answer."""
    secrets: tuple[str, ...] = ()
    """Secret values held by the daemon."""
    forbidden: Overlap = field(default_factory=Overlap)
    """Recalled texts whose sources may not be shown here; empty if the audience rule held."""
    guarded: Overlap = field(default_factory=Overlap)
    """Texts that may be discussed but not carried away in a link: user models, soul state, beliefs."""
    mentions: Mentionable = field(default_factory=Mentionable)

    def has_nonce(self, text: str) -> bool:
        """Return whether a text contains a nonce of this prompt."""
        folded = text.casefold()
        return [nonce for nonce in self.nonces if nonce and nonce.casefold() in folded] != []

    @property
    def hidden(self) -> str:
        """All private texts joined; no link may carry a piece of them."""
        return "\0".join((self.private.text, self.forbidden.text, self.guarded.text, *self.secrets))


def output_rules(
    plan: Plan,
    recollection: Recollection,
    soul: SoulText,
    settings: EngineSettings,
    secrets: Sequence[str] = (),
    thought: Iterable[str] = (),
) -> OutputRules:
    """Return the rules of a turn. Pure.

    `thought`: the private thoughts of this turn that its next call is shown, to protect that call's reply.
    """
    instructions = soul.derived.get("instructions")
    if not isinstance(instructions, Overlap):
        samples = [soul.text(name) for name in ("example.md", "exchanges.md", "plain.md")]
        instructions = Overlap([*[step.instruction for step in soul.steps.values()], *samples])
        soul.derived["instructions"] = instructions
    verbs, default = allowed_verbs(SPEECH, plan, soul)
    speech, is_first = soul.steps[SPEECH], recollection.speaker is not None and recollection.speaker.is_stranger
    models = [model.markdown for one in recollection.people for model in one.models]
    thought = tuple(thought)
    heard, past = recollection.perceptions, [(turn.nonce, *once(turn, _said)) for turn in recollection.past]
    return OutputRules(
        fallback=speech.line("first", name=own_name(soul)) if is_first and "first" in speech.lines else speech.fallback,
        verbs=verbs,
        default_verb=default,
        owed=plan.owes,
        repairs=settings.repairs,
        names=names_of(soul),
        is_words_alone=settings.profile == "plain" or settings.form == "words",
        heard=tuple([one.text for one in heard]),
        nonces=(recollection.nonce, next_nonce(recollection.nonce), *[nonce for nonce, _, _ in past]),
        private=Overlap(
            [
                *[text for _, private, _ in past for text in private],
                *[one.text for one in recollection.intuitions],
                *thought,
            ],
            aloud=[
                *[text for _, _, aloud in past for text in aloud],
                *[one.text for one in heard if one.origin is Origin.EXTERNAL],
                *told_in(thought),
            ],
        ),
        feels=settings.psyche,
        instructions=instructions,
        secrets=tuple(secrets),
        guarded=Overlap([*models, *[value.value for value in recollection.state]]),
        mentions=Mentionable(
            answered=heard[-1].person if heard else "",
            members={one.person: recollection.called(one) for one in heard if one.person}
            | {other.person: other.name for other in recollection.others},
        ),
    )


def _said(past: PastTurn) -> tuple[list[str], list[str]]:
    acts = [entry.content for entry in past.entries if entry.metadata.get("query") == ACTS]
    private = [entry.content for entry in past.entries if entry.entry_type in _PRIVATE]
    aloud = [entry.content for entry in past.entries if entry.entry_type in _ALOUD]
    return [*private, *acts], [*aloud, *told_in(acts)]


def told_in(acts: Iterable[str]) -> list[str]:
    """Return the texts that acts hold: what is to be reminded of may be said, how it was written may not. Pure."""
    return [words for one in acts for words in _TOLD.findall(one)]


CUT_CHARS = 40
"""A cut dialogue shorter than this is not said; its last sentence end is searched for beyond this point."""

_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)|[。！？]++[”’」』）]*+")
_BABBLE = re.compile(
    r"\b(?:internal[\W_]monologue|external[\W_]dialog(?:ue)?|user[\W_]model[\W_](?:check|update)"
    r"|soul[\W_]state[\W_](?:check|update)|model[\W_]change[\W_]note)"
)
"""Names of our steps. Text without tags that says one is talk about the form, not speech."""
_MUSING = re.compile(
    r"\W*(?:(?:okay|ok|alright|right|hmm+|so|well|now|first)\b\W*)*"
    r"(?:the user(?!\w| interface)|(?:i|we) (?:need to|should|must|have to) (?:respond|reply|answer)\b"
    r"|(?:here(?:['’]s| is) (?:my|the) )?(?:thought|thinking|reasoning)(?: process)?:)"
)
"""How a model begins that thinks aloud without any mark: it speaks of its listener, not to them."""
_BOM = "\ufeff"


class Spoken(Struct, frozen=True, kw_only=True):
    """What to say, before the output gate. Empty speech means silence, and nothing is owed."""

    speech: str
    rung: Rung
    verb: str
    flags: tuple[str, ...]
    truncated: bool = False
    """The speech ends before it was finished; stored in the entry's metadata."""


class NeedsRepair(Struct, frozen=True):
    """Nothing can be said yet: request external_dialogue once more, then climb again with that reply."""

    flags: tuple[str, ...]


def climb(
    reply: Parsed, rules: OutputRules, *, refused: bool = False, streamed: str = "", repair: Parsed | None = None
) -> Spoken | NeedsRepair:
    """Decide what to say from a reply. Pure.

    `refused`: the provider declined, so a second call would not help; `streamed`: what the listener has seen of the
    first dialogue; `repair`: the repair call's reply, None before it or if it failed (then with no repairs left).
    """
    flags = tuple(dict.fromkeys((*reply.flags, *(repair.flags if repair else ()))))
    if streamed:
        return _continued(reply, rules, streamed, flags)
    newest = repair or reply
    winner = newest.winner
    text = winner.text if winner else newest.raw.removeprefix(_BOM).strip()
    is_broken = newest.truncated and not (rules.is_words_alone and ends_a_sentence(text))
    is_plain = not (winner or is_broken or is_structured(newest.raw, rules.names) or _why_not_plain(newest.raw, rules))
    if (winner or is_plain) and not _is_unfit(text, rules):
        rung: Rung = "repair" if repair else "complete" if winner else "plain"
        return _spoken(text, rung, winner.verb if winner else None, rules, flags)
    text = text if winner or not newest.dialogues else newest.dialogues[-1].text
    flags = (*flags, *(why_not_alone(text, rules) if rules.is_words_alone else _why_not_plain(newest.raw, rules)))
    if not rules.owed:
        return Spoken(speech="", rung="silent", verb=rules.default_verb, flags=flags)
    is_cut_well = rules.is_words_alone and _cut(newest, rules) is not None
    if repair is None and rules.repairs > 0 and not (refused or is_cut_well):
        return NeedsRepair(flags)
    cuts = [_cut(candidate, rules) for candidate in (repair, reply) if candidate]
    if cut := next(filter(None, cuts), None):
        return _spoken(cut[0], "cut", cut[1], rules, flags)
    return Spoken(speech=rules.fallback, rung="fixed", verb=SAID, flags=flags)


def _continued(reply: Parsed, rules: OutputRules, streamed: str, flags: tuple[str, ...]) -> Spoken:
    """Continue from the text already shown, because it cannot be taken back."""
    first = reply.dialogues[0] if reply.dialogues else None
    written = first.verb if first else None
    is_whole = first is not None and first.closed and (first.state == "complete" or first.text == streamed.rstrip())
    if first and is_whole and not _is_tainted(first.text, rules):
        return _spoken(first.text, "complete", written, rules, flags)
    return _spoken(streamed.rstrip() + ELLIPSIS, "cut", written, rules, flags)


def _spoken(speech: str, rung: Rung, written: str | None, rules: OutputRules, flags: tuple[str, ...]) -> Spoken:
    verb, is_bad = read_verb(written, rules.verbs, rules.default_verb)
    flags = tuple(dict.fromkeys((*flags, "bad_verb"))) if is_bad else flags
    return Spoken(speech=speech, rung=rung, verb=verb, flags=flags, truncated=rung == "cut")


def _is_tainted(text: str, rules: OutputRules) -> bool:
    return rules.has_nonce(text) or is_disguised(text, rules.names) or rules.private.repeated_in(text)


def _is_unfit(text: str, rules: OutputRules) -> bool:
    feels = rules.feels and any(map(text.lower().__contains__, FEELINGS))
    is_numbers_only = feels and is_blank(spoken_without_numbers(text))
    is_no_answer = rules.is_words_alone and why_not_alone(text, rules) != ()
    return is_numbers_only or is_no_answer or _is_tainted(text, rules)


def why_not_alone(text: str, rules: OutputRules) -> tuple[str, ...]:
    """Return flags for what prevents the words of a small model from being said. Pure."""
    if is_structured(text, rules.names):
        return ("structured",)
    is_echo = repeats(text, rules) or rules.instructions.repeated_in(text)
    return (*_why_not_plain(text, rules), *(("echo",) if is_echo else ()))


_WORDS = re.compile(r"\w+")
ECHO_SHARE, ECHO_WORDS = 0.6, 4
"""The share of a message that a reply repeats in one piece, and is made of, to count as its echo; and the least words
of one, and the share of the reply that may be its own."""


def repeats(text: str, rules: OutputRules) -> bool:
    """Return whether words only repeat what they answer. Pure."""
    return any(echoes(text, one) for one in rules.heard)


def echoes(reply: str, message: str) -> bool:
    """Return whether a reply is mostly the message that it answers, and says nothing of its own. Pure."""
    heard, said = _WORDS.findall(message.casefold()), _WORDS.findall(reply.casefold())
    own = set(said) - set(heard)
    if min(len(heard), len(said)) < ECHO_WORDS or (own and len(heard) < 3 * ECHO_WORDS):
        return False
    least = ECHO_SHARE * (max(len(heard), len(said)) if own else len(heard))
    if sum(map(set(said).__contains__, heard)) < least:  # the most that one piece could repeat
        return False
    return SequenceMatcher(None, heard, said, autojunk=False).find_longest_match().size >= least


def _why_not_plain(raw: str, rules: OutputRules) -> tuple[str, ...]:
    """Return flags for what prevents a text without tags from being spoken as it is."""
    if is_blank(raw):
        return ("empty",)
    plain = plain_form(raw)
    if find_head(raw, rules.names) is not None:
        return ()
    if rules.names.label.search(plain):
        return ("label",)
    return ("babble",) if _BABBLE.search(plain) else ("musing",) if _MUSING.match(plain) else ()


def _cut(reply: Parsed, rules: OutputRules) -> tuple[str, str | None] | None:
    """Return the words and the verb as written of the last cut dialogue that is long enough to say."""
    if "ambiguous" in reply.flags:
        return None
    for dialogue in reversed(reply.dialogues):
        if dialogue.state == "cut" and len(dialogue.text) >= CUT_CHARS and not _is_unfit(dialogue.text, rules):
            return whole_sentences(dialogue.text) + ELLIPSIS, dialogue.verb
    return None


def ends_a_sentence(text: str) -> bool:
    """Return whether a text ends where a sentence does. Pure."""
    return any(found.end() == len(text) for found in _SENTENCE_END.finditer(text))


def whole_sentences(text: str) -> str:
    """Return a cut text up to its last sentence end beyond `CUT_CHARS`, else up to its last whole word. Pure."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text) if found.end() >= CUT_CHARS]
    if ends:
        return text[: ends[-1]]
    words = text.rsplit(maxsplit=1)
    return words[0] if len(words) > 1 and len(words[0]) >= CUT_CHARS else text
