"""Reduce a text to the stems by which moments are found, in the language that its most common words belong to. Pure.

Snowball stems some thirty languages. The language of a text is that of its script, or else the one with most of its
function words; a text without any counts as English. Source: https://snowballstem.org
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

TEXT_CHARS = 2000
"""How much of a text is kept and searched."""
FUNCTION_WORDS = frozenset(
    """a about above after again against all also am an and any anyone anything are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during
    each either else ever every everyone everything few for from further get gets getting give go goes going gonna got
    had hadn't has hasn't have haven't having he he's her here here's hers herself hey hi him himself his how how's i
    i'd i'll i'm i've if in into is isn't it it's its itself just know let let's like me might more most much must my
    myself need never no nobody none nor not nothing now of off oh ok okay on once one only or other our ours
    ourselves out over own per please quite rather really said same say says see she she's should shouldn't since so
    some someone something still such sure than thank thanks that that's the their theirs them themselves then there
    there's these they they'd they'll they're they've thing things this those though through to too under until up us
    very want wants was wasn't we we'd we'll we're we've well were weren't what what's when where where's which while
    who who's whom why will with without won't would wouldn't yes yet you you'd you'll you're you've your yours
    yourself yourselves""".split()  # noqa: SIM905 - a list of words reads best as words
)
FUNCTION_WORDS_OF: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "german": """ich und der die das nicht ist ein eine einen einem ist sind war bin mit auf für von zu zum zur den
            dem des es er sie wir ihr mein meine dein deine auch aber wie was wann wo wer hast habe hat haben kann wird
            bei nach noch schon mich mir dich dir uns im am um an als wenn dass oder""",
        "french": """je et le la les un une des du de est pas ne que qui dans pour sur avec il elle nous vous mon ma mes
            ton ta tes son sa ses ce cette suis es sont ai as a été au aux où quand quel quelle mais ou donc me te se
            moi toi en sais sait c'est j'ai qu'est""",
        "spanish": """yo y el la los las un una unos de del es no que en por para con mi mis tu tus su sus soy eres son
            está estoy he ha muy pero como cuándo dónde qué cuál quién lo le me te se al o más también hay""",
        "italian": """io e il lo la i gli le un una di del della è non che in per con mio mia miei tuo tua suo sua sono
            sei ho hai ha ma come quando dove cosa chi mi ti si al alla o più anche c'è""",
        "portuguese": """eu e o a os as um uma de do da dos das é não que em no na por para com meu minha teu sua seu
            sou são está estou mas como quando onde quem me te se ao à ou mais também há você""",
        "dutch": """ik en de het een niet is zijn was ben met op voor van te naar dat die dit wij jij hij mijn jouw ook
            maar hoe wat wanneer waar wie heb heeft hebben kan wordt bij nog al mij je we om als of""",
        "swedish": """jag och det den en ett inte är var med på för av till som att han hon vi du min mitt mina din ditt
            också men hur vad när vem har kan blir hos från mig dig oss om eller""",
        "danish": """jeg og det den en et ikke er var med på for af til som at han hun vi du min mit mine din dit også
            men hvordan hvad hvornår hvor hvem har kan bliver hos fra mig dig os om eller""",
        "finnish": """minä ja on ei se en olen oli että mutta kun missä milloin mikä kuka minun sinun myös tai hän""",
        "turkish": """ben ve bir bu şu da de mi mı ne için ile çok değil var yok benim senin nerede kim ama""",
        "romanian": """eu și un o de la este nu că în pe cu mea meu ta sunt ai am dar cum când unde cine sau""",
        "hungarian": """én és a az egy nem van volt hogy is de mikor hol ki mi vagyok vagy nekem""",
    }.items()
}
_SCRIPTS = (
    ("russian", re.compile(r"[\u0400-\u04ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("hindi", re.compile(r"[\u0900-\u097f]")),
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that are written without spaces: pairs of characters stand for words."""


def language_of(text: str, words: list[str]) -> str:
    """Return the Snowball name of a text's language. Pure."""
    if not text.isascii():
        for language, script in _SCRIPTS:
            if script.search(text):
                return language
    seen = set(words)
    best, most = "english", len(seen & FUNCTION_WORDS)
    for language, common in FUNCTION_WORDS_OF.items():
        if (count := len(seen & common)) > most:
            best, most = language, count
    return best


def is_english(text: str) -> bool:
    """Return whether a text is stemmed as English. Pure; cached with its stems."""
    return _read(text.strip())[0] == "english"


def stemmed(text: str, name: str = "") -> tuple[str, ...]:
    """Return the stems of a name and of a text's content words, in order, with repetitions. Pure."""
    language, found = _read(text.strip())  # the index adds blanks to what was heard
    return (*[stem(word, language) for word in _WORD.findall(name.lower())], *found) if name else found


@lru_cache(maxsize=2048)
def _read(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text's language, and the stems of its content words. Pure."""
    said = text[:TEXT_CHARS].lower().replace("’", "'")
    words = _WORD.findall(said)
    language = language_of(said, words)
    dropped = FUNCTION_WORDS if language == "english" else FUNCTION_WORDS | FUNCTION_WORDS_OF.get(language, frozenset())
    found: list[str] = []
    for word in words:
        if not word.isascii() and _WIDE.search(word):
            found += [word[n : n + 2] for n in range(len(word) - 1)] or [word]
        elif word not in dropped and (len(word) > 1 or word.isdigit()):
            bare = max(word.split("'"), key=len)  # Ana's, l'insuline
            found.append(stem(bare, language))
    return language, tuple(found)


@lru_cache(maxsize=16_384)
def stem(word: str, language: str) -> str:
    """Return the stem of one word. Pure."""
    import snowballstemmer  # noqa: PLC0415 - tens of milliseconds, for the daemon's first thought and not its start

    return str(snowballstemmer.stemmer(language).stemWord(word))
