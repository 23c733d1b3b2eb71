"""Choose what to search for, and rank the moments found. Pure.

The score is BM25 on the name and the text, half as much on that with the moments before and after it, divided by the
best; then a share of the neighbours' scores, a little for the named speaker, for recency and for importance. Measured
on ten public conversations: the text alone finds 55 of 100 among the first ten, with all this 72. Where moments are
searched by meaning too, a nearness between 0 and 1 is added before the neighbours' share: 73, and across languages.
Source: the memory design, F1; Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import exp2, log, sqrt
from unicodedata import category, normalize

from msgspec import Struct
from msgspec.structs import replace
from Stemmer import Stemmer

from claudius.home import shipped
from claudius.prompt import MARK
from claudius.recollection import Moment

K1, B = 1.2, 0.75
CONTEXT_SHARE, NEIGHBOUR_SHARE = 0.5, 0.3
NAMED, RECENCY, IMPORTANCE = 0.2, 0.05, 0.10
RECENCY_HALF_S = 30 * 86_400
SITTING_S = 3600
"""Moments of one conversation at most this far apart belong to the same sitting."""
RESTATED = 0.5
"""The share of the shorter one's words that two messages of a person have in common if the newer restates the older."""
_NONE: frozenset[str] = frozenset()
BEFORE_SHARE = 0.5
"""The weight of the words of the message before the one that was heard."""
_ASKS = re.compile(r"[?？؟՞⁇⁈\u037e፧]+|(?<=[\u0370-\u03ff\u1f00-\u1fff]);")
"""A question mark of any script; after a Greek letter it looks like a semicolon."""
MOST_TERMS = 16
STATED = 2 / 3
"""The part of the floor that holds for a statement, whose words are shared in both directions."""
ALONE_ASKED, ALONE_STATED = (5, 50), (2, 300)
"""A moment that holds one term alone bears on a question, or a statement, where at most so many moments hold it: the
larger of a number and one in so many. Else "how are you today?" would bring back whatever was said of a day."""
COMMON = 0.20
"""A term that occurs in more than this share of all moments is not searched for."""
SMALL = 100
"""With fewer moments than this, every term counts."""
MOST_POSTINGS = 4000
"""Upper limit on postings looked up, however much is kept; the rarest term is always included."""


class Beside(Struct, frozen=True):
    """The ids of the moments next to one in its conversation; 0 = none that may be shown."""

    before: int = 0
    after: int = 0


class Found(Struct, frozen=True, kw_only=True):
    """What may be relevant to a message and may be shown where it was heard."""

    moments: Mapping[int, Moment] = {}
    """The moments that share a term with it, and those next to them, by id."""
    hits: Mapping[int, frozenset[str]] = {}
    """Which of the terms searched for each holds; none if it is missing."""
    beside: Mapping[int, Beside] = {}
    """Of each moment that shares a term: what is next to it."""
    frequencies: Mapping[str, int] = {}
    """In how many moments each term searched for occurs."""
    total: int = 0
    """The number of all moments."""
    nearness: Mapping[int, float] = {}
    """How near in meaning to what was heard moments are, 0 to 1; empty without the search by meaning."""
    nearest: tuple[int, ...] = ()
    """Those that are near enough to be found by their meaning alone."""

    def beyond(self, turns: Collection[str]) -> Found:
        """Return what was found as if nothing that these turns said had been kept: a history shows it. Pure."""
        seen = {key for key, one in self.moments.items() if one.turn in turns}
        again = Counter([term for key in seen for term in self.hits.get(key, ())])
        return replace(
            self,
            hits={key: held for key, held in self.hits.items() if key not in seen},
            frequencies={term: count - again[term] for term, count in self.frequencies.items() if count > again[term]},
            nearest=tuple([key for key in self.nearest if key not in seen]),
        )


class Ranked(Struct, frozen=True):
    """One moment found, and the one before it in the same sitting."""

    moment: Moment
    before: Moment | None


def asked_for(heard: str, before: str = "", *, name: str = "") -> dict[str, float]:
    """Return the terms to search for, each with its weight: what was heard, and half of what was said before. Pure.

    `name`: the soul's own, which is never searched for.
    """
    own = stemmed("", name)
    wanted = {one: BEFORE_SHARE for one in stemmed(before) if one not in own}
    return wanted | {one: 1.0 for one in stemmed(heard) if one not in own}


def rarest(asked: Mapping[str, float], frequencies: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Return the terms worth searching for: at most sixteen, the highest weight first, none that is common. Pure."""
    worth = sorted(
        [
            (-asked.get(term, 1.0) * rarity(count, total), term)
            for term, count in frequencies.items()
            if count and (count <= COMMON * total or total < SMALL)
        ]
    )
    kept: list[str] = []
    places = 0
    for _, term in worth[:MOST_TERMS]:
        places += frequencies[term]
        if kept and places > MOST_POSTINGS:
            break
        kept.append(term)
    return tuple(kept)


def rarity(count: int, total: int) -> float:
    """Return the BM25 weight of a term that occurs in `count` of `total` moments. Pure."""
    return log(1.0 + (total - count + 0.5) / (count + 0.5)) if total >= count else 0.0


def questions(text: str) -> int:
    """Count the questions of a text by the question marks of all scripts; several in a row are one. Pure."""
    return len(_ASKS.findall(text))


class Floor(Struct, frozen=True):
    """What a moment must hold of a message for anything to be shown."""

    share: float = 0.0
    """The least share of a question that one moment must hold, of a person whom it names if it names any, else nothing
    bears on it; of a statement, two thirds of it for each moment, in both directions. 0 = none."""
    is_question: bool = True
    common: frozenset[str] = _NONE
    """Stems of the message that carry no memory alone, but where one moment holds all of a question; see `common`."""

    def least(self, asked: Mapping[str, float], weights: Mapping[str, float], total: int) -> float:
        """Return the least weight of what a moment must hold to pass. Pure."""
        share = STATED * self.share
        of_statement = _whole(asked, weights, total) * share / (2 - share)
        own = sum([weight for term, weight in weights.items() if asked[term] == 1.0])
        of_question = self.share * (own or sum(weights.values()))
        return (of_question if self.is_question else of_statement) - 1e-9  # rounding of sums

    def may_bear(self, found: Found, holding: Mapping[str, set[int]], enough: Collection[int]) -> bool:
        """Return whether one of the moments that hold enough may pass, by which hold each term; there is one. Pure."""
        alone = set[int]().union(*map(holding.__getitem__, self.rare(found)))
        return not alone.isdisjoint(enough) or max([sum([o in held for held in holding.values()]) for o in enough]) > 1

    def rare(self, found: Found) -> set[str]:
        """Return the terms that bear alone. Pure."""
        least, one_in = ALONE_ASKED if self.is_question else ALONE_STATED
        return {term for term, count in found.frequencies.items() if count <= max(least, found.total / one_in)}


NO_FLOOR = Floor()


def rank(
    asked: Mapping[str, float], found: Found, now_s: float, *, most: int, floor: Floor = NO_FLOOR
) -> tuple[Ranked, ...]:
    """Return the moments that are relevant to what is asked, at most `most`, best first. Pure."""
    weights = {term: asked[term] * rarity(count, found.total) for term, count in found.frequencies.items()}
    moments = found.moments
    if not moments or not (weights or found.nearness):
        return ()
    hits = {key: found.hits.get(key, _NONE) for key in moments}
    named = {name for name in {one.name for one in moments.values()} if not asked.keys().isdisjoint(stemmed("", name))}
    rare = floor.rare(found) if floor.share else weights.keys()
    own = {one for one, weight in asked.items() if weight == 1.0}
    is_held = floor.is_question and len(own) > 1 and any(map(own.issubset, hits.values()))
    small = _NONE if named or found.nearest or is_held else floor.common
    telling = {
        key: held if (len(held) > 1 or held <= rare) and not held <= small else _NONE for key, held in hits.items()
    }
    if floor.share and floor.is_question:
        named_hits = [telling[key] for key, one in moments.items() if not named or one.name in named]
        if max([sum(map(weights.__getitem__, one)) for one in named_hits]) < floor.least(asked, weights, found.total):
            return ()
    is_whole = floor.is_question or not floor.share
    bears = set(moments) if is_whole else _bearing(asked, weights, found, telling, STATED * floor.share)
    if not bears:
        return ()
    near = _neighbours(found)
    raw = _raw(weights, hits, {key: len(one.text) for key, one in moments.items()}, near)
    if found.nearness:
        raw = _fused(raw, found, near)
    best = max(raw.values()) or 1.0
    scores: dict[int, float] = {}
    for key, one in moments.items():
        score = raw[key]
        for other in near.get(key, ()):
            if raw[other] and _is_one_sitting(one, moments[other]):
                score += NEIGHBOUR_SHARE * raw[other]
        if score > 0.0:
            recent = exp2(-max(0.0, now_s - one.at_s) / RECENCY_HALF_S)
            more = NAMED * (one.name in named) + RECENCY * recent + IMPORTANCE * one.importance / 100
            scores[key] = score / best + more
    best_first = sorted(scores, key=lambda key: (-scores[key], -key))[:most]
    order = _newest_first([moments[key] for key in best_first if key in bears], hits)
    return tuple([Ranked(moments[key], _before(found, near, key)) for key in order])


def _bearing(
    asked: Mapping[str, float],
    weights: Mapping[str, float],
    found: Found,
    hits: Mapping[int, frozenset[str]],
    least: float,
) -> set[int]:
    """Return the moments that bear on a statement: near in meaning, or the words shared are so great a part of both.

    The part is the harmonic mean of the share of the statement that a moment holds, and of what part of its words that
    is. By it, of sixty plain facts of life 40 are found by what touches them, and of a hundred lines of small talk 90
    find nothing in talks of months; by the statement's share alone, with as few of those, 3 are found.
    """
    whole = _whole(asked, weights, found.total)
    bears = set(found.nearest)
    for key, held in hits.items():
        of_asked = sum(map(weights.__getitem__, held)) / whole
        if 2 * of_asked / (1 + of_asked) >= least:  # else no part of its words is enough
            of_moment = min(1.0, len(held) / max(1, len(set(stemmed(found.moments[key].text)))))
            if 2 * of_asked * of_moment / (of_asked + of_moment) >= least:
                bears.add(key)
    return bears


def _whole(asked: Mapping[str, float], weights: Mapping[str, float], total: int) -> float:
    """Return the weight of all that is asked, of what no moment holds too."""
    unknown = sum([asked[one] for one in asked.keys() - weights.keys()])
    return sum(weights.values()) + unknown * rarity(1, total) or 1.0


def _fused(raw: Mapping[int, float], found: Found, near: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return the score by words over the best, and the nearness with a share of the mean of it and those next to it.

    0 for what is only next to something that was found, in another sitting.
    """
    best, moments, nearness = max(raw.values()) or 1.0, found.moments, found.nearness
    bears = {key for key, score in raw.items() if score or key in found.nearest}
    close = {key: [o for o in others if _is_one_sitting(moments[o], moments[key])] for key, others in near.items()}
    fused = dict.fromkeys(raw, 0.0)
    for key in bears | {other for one in bears for other in close.get(one, ())}:
        own, around = nearness.get(key, 0.0), [nearness.get(one, 0.0) for one in (key, *close.get(key, ()))]
        fused[key] = raw[key] / best + (own + CONTEXT_SHARE * sum(around) / len(around)) / (1 + CONTEXT_SHARE)
    return fused


def _newest_first(ranked: Sequence[Moment], hits: Mapping[int, frozenset[str]]) -> list[int]:
    """Return the ids, each moment after newer ones that restate it and hold all that it holds of what is asked.

    `hits`: what each holds of that. So what was put right stands before what it was, in any language.
    """
    order: list[int] = []
    stems = {one.id: frozenset(stemmed(one.text)) for one in ranked}
    for one in ranked:
        again = [
            other
            for other in ranked
            if other.id > one.id
            and other.person == one.person
            and other.is_own == one.is_own
            and hits[other.id] >= hits[one.id]
            and len(stems[other.id] & stems[one.id]) >= RESTATED * min(len(stems[other.id]), len(stems[one.id]))
        ]
        order += [other.id for other in sorted(again, key=lambda other: -other.id)] + [one.id]
    return list(dict.fromkeys(order))


def _raw(
    weights: Mapping[str, float],
    hits: Mapping[int, frozenset[str]],
    sizes: Mapping[int, int],
    near: Mapping[int, Sequence[int]],
) -> dict[int, float]:
    """Return BM25 of each moment, and a share of that of the moment with those next to it."""
    average = sum(sizes.values()) / len(sizes) or 1.0
    widths = {key: size + sum(map(sizes.__getitem__, near.get(key, ()))) for key, size in sizes.items()}
    wide = sum(widths.values()) / len(widths) or 1.0
    raw: dict[int, float] = {}
    for key, own in hits.items():
        both = [*own, *[stem for other in near.get(key, ()) for stem in hits[other]]]
        raw[key] = CONTEXT_SHARE * _bm25(weights, Counter(both), widths[key] / wide) if both else 0.0
        if own:
            raw[key] += _bm25(weights, dict.fromkeys(own, 1), sizes[key] / average)
    return raw


def _neighbours(found: Found) -> dict[int, tuple[int, ...]]:
    near: dict[int, set[int]] = {}
    for key, beside in found.beside.items():
        for other in (beside.before, beside.after):
            if other in found.moments and not (found.moments[other].is_diary or found.moments[key].is_diary):
                near.setdefault(key, set()).add(other)
                near.setdefault(other, set()).add(key)
    return {key: tuple(sorted(others)) for key, others in near.items()}


def _before(found: Found, near: Mapping[int, Sequence[int]], key: int) -> Moment | None:
    one = found.moments[key]
    same = [found.moments[n] for n in near.get(key, ()) if n < key and _is_one_sitting(one, found.moments[n])]
    return same[-1] if same else None


def _is_one_sitting(one: Moment, other: Moment) -> bool:
    return abs(one.at_s - other.at_s) <= SITTING_S


def _bm25(weights: Mapping[str, float], counts: Mapping[str, int], size: float) -> float:
    """`size`: the length of the document over the average."""
    flat = K1 * (1.0 - B + B * size)
    return sum([weights[stem] * count * (K1 + 1.0) / (count + flat) for stem, count in counts.items()])


TEXT_CHARS = 2000
"""How much of a text is kept and searched."""


def _by_language(name: str) -> dict[str, frozenset[str]]:
    """Read a list of words: of each language a line, its name first."""
    lines = (shipped("memory") / name).read_text("utf-8").splitlines()
    return {language: frozenset(words) for language, *words in map(str.split, lines)}


FUNCTION_WORDS_OF: Mapping[str, frozenset[str]] = _by_language("function_words.txt")
FUNCTION_WORDS = FUNCTION_WORDS_OF["english"]
COMMON_WORDS_OF: Mapping[str, frozenset[str]] = _by_language("common_words.txt")
"""What every talk is made of, and what tells nothing of what it is about."""
_SCRIPTS = (
    ("russian", re.compile(r"[\u0400-\u04ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("hindi", re.compile(r"[\u0900-\u097f]")),
)
_PICTURE = r"[\u2600-\u27bf\U0001f300-\U0001faff]"
_WORD = re.compile(rf"[^\W_]+(?:['’][^\W_]+)*|{_PICTURE}")
_SPELLED = re.compile(r"[^\W\d_]+")
UNSEEN = 0.3
"""How often three letters count as seen in a language that has none of them."""
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Scripts that are written without spaces, or with endings on every word: pairs of characters stand for words."""
_ASKING = re.compile(
    "어디(?:에서|에)?|언제|누가|누구|무엇|뭐(?:였지|예요|야|지)?|있(?:습니다|습니까|어요|지요|지|어|나|니)|알아"
    "|どこ|いつ|だれ|誰|なに|何|(?:です|ます|でした)(?:か|っけ)|哪里|哪裡|哪儿|什么时候|什么|什麼|何时|谁|誰|几点|怎么"
    "|ทไหน|อยไหน|เมอไหร|เมอไร|ใคร|อะไร|ไหม"
)
"""What asks or only says that something is, in those scripts, as `folded` writes it: no term of a text."""
LEAST_MISSPELT = 6
"""A shorter word is another one where a letter differs."""


_LETTERS = {"finnish": frozenset("äö"), "turkish": frozenset("ğış"), "hungarian": frozenset("őű")}
"""What decides between languages of which a text holds as many words."""


def language_of(text: str, words: list[str]) -> str:
    """Return the Snowball name of a text's language. Pure."""
    if not text.isascii():
        for language, script in _SCRIPTS:
            if script.search(text):
                return language
    seen = set(words)
    best, most = "english", len(seen & FUNCTION_WORDS)
    for language, common in FUNCTION_WORDS_OF.items():
        count = len(seen & common)
        if count > most or (count == most > 0 and not _LETTERS.get(language, _NONE).isdisjoint(text)):
            best, most = language, count
    return best


@lru_cache(maxsize=4)
def _tongues(*more: tuple[str, str]) -> dict[str, tuple[frozenset[str], dict[str, float], float]]:
    """Return of each language its words, and how likely each three letters and any others are in it. Pure."""
    texts = {one: [*words, *FUNCTION_WORDS_OF.get(one, ())] for one, words in COMMON_WORDS_OF.items()}
    for language, text in more:
        texts.setdefault(language.lower() or "english", []).append(text)  # of an owner's own lines
    words = {one: frozenset(_SPELLED.findall(" ".join(said).lower())) for one, said in texts.items()}
    threes = {
        one: Counter([f" {it} "[at : at + 3] for it in held for at in range(len(it))]) for one, held in words.items()
    }
    most = UNSEEN * len(set[str]().union(*threes.values()))
    sizes = {one: counts.total() + most for one, counts in threes.items()}
    likely = {one: {it: log((count + UNSEEN) / sizes[one]) for it, count in has.items()} for one, has in threes.items()}
    return {one: (words[one], likely[one], log(UNSEEN / sizes[one])) for one in words}


def tongue(text: str, *more: tuple[str, str]) -> str:
    """Return the language that a text fits best, "" if none; `more`: further texts of languages. Pure."""
    known, said, near = _tongues(*more), frozenset(_SPELLED.findall(text[:300].lower())), {"english": 0.0}
    threes = [f" {word} "[at : at + 3] for word in said for at in range(len(word))]
    held = Counter([word for words, _, _ in known.values() for word in said & words])
    for language, (words, likely, unseen) in known.items() if held else ():
        near[language] = sum([1 / sqrt(held[word]) for word in said & words], 0.3 * (language == "english"))
        near[language] += 0.1 * sum([likely.get(one, unseen) for one in threes])
    best = max(near, key=near.__getitem__)
    is_name = len(said) == 1 and re.search("[a-z]", text)  # such as Zoë
    return best if best != "english" or text.isascii() or is_name or said & known[best][0] else ""


def stemmed(text: str, name: str = "") -> tuple[str, ...]:
    """Return the stems of a name and of a text's content words, in order, with repetitions. Pure."""
    language, found, _, _ = _read(text.strip())  # the index adds blanks to what was heard
    return (*[stem(word, language) for word in _WORD.findall(name.lower())], *found) if name else found


def common(text: str) -> frozenset[str]:
    """Return the stems of those words of a text that are common in the language that has the most of them. Pure."""
    _, stems, words, said = _read(text.strip())
    told = {*words, *said}
    held = [language & told for language in COMMON_WORDS_OF.values()]
    most = max(map(len, held))
    found = set[str]().union(*[one for one in held if len(one) == most])
    return frozenset([one for one, word in zip(stems, words, strict=True) if word in found])


def marks(text: str) -> set[str]:
    """Return the stems by which a text may be told from others, by its own language and by English. Pure.

    Of a few words the language is a guess, and the same word has one stem in English at least.
    """
    found, text = set[str](), text.replace(MARK, " ")
    for at in range(0, len(text), TEXT_CHARS):
        language, stems, words, _ = _read(text[at : at + TEXT_CHARS].strip())
        found.update(stems)
        if language != "english":
            found.update(stem(word, "english") for word in words)
    return {one for one in found if len(one) > 1}


@lru_cache(maxsize=2048)
def _read(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return a text's language, the stems of its content words, those words, and all its words. Pure."""
    said = text[:TEXT_CHARS].lower().replace("’", "'")
    words = _WORD.findall(said if said.isascii() else _ASKING.sub(" ", folded(said)))
    language = language_of(said, words)
    dropped = FUNCTION_WORDS if language == "english" else FUNCTION_WORDS | FUNCTION_WORDS_OF.get(language, frozenset())
    found: list[str] = []
    bared: list[str] = []
    for word in words:
        if not word.isascii() and _WIDE.search(word):
            pairs = [word[n : n + 2] for n in range(len(word) - 1)] or [word]
            found += pairs
            bared += pairs
        elif word not in dropped and (len(word) > 1 or word.isdigit() or word >= "\u2600"):
            bare = max(word.split("'"), key=len)  # Ana's, l'insuline
            found.append(stem(bare, language))
            bared.append(bare)
    return language, tuple(found), tuple(bared), tuple(words)


def folded(text: str) -> str:
    """Return a lower text in one spelling: full width as plain, marks that do not belong to a letter left out. Pure."""
    return "".join([one for one in normalize("NFKC", text) if category(one)[0] != "M"]).replace("ı", "i")


def begins_alike(term: str) -> str:
    """Return how every term begins that one which is nowhere may stand for; empty if none may. Pure."""
    if len(term) == 1 and _WIDE.match(term):
        return term
    return term[:2] if len(term) >= LEAST_MISSPELT and term.isalpha() and not _WIDE.search(term) else ""


def is_alike(term: str, other: str) -> bool:
    """Return whether a term that is nowhere may stand for another: a pair of its one character, or a slip. Pure.

    A slip is one letter too many or missing, or two in each other's place; another letter makes another word.
    """
    if len(term) == 1:
        return other.startswith(term)
    pairs = enumerate(zip(term, other, strict=False))
    at = next((n for n, (one, two) in pairs if one != two), min(len(term), len(other)))
    mine, its = term[at:], other[at:]
    return mine[1:] == its or mine == its[1:] or (mine[:2] == its[1::-1] and mine[2:] == its[2:])


def stem(word: str, language: str) -> str:
    """Return the stem of one word. Pure."""
    return str(Stemmer(language, 0).stemWord(word))
