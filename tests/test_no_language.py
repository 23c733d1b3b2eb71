"""A17: nothing in the engine reads human language by a list of words, outside the few places that may."""

import ast
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tree import REPOSITORY as ROOT

PACKAGE = ROOT / "daemon" / "claudius"
READS = ("compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub")
SPOKEN = frozenset((ROOT / "tests" / "cases" / "spoken.txt").read_text("utf-8").split())
"""Words that people say to each other and code seldom names anything by: three of them in one pattern are a reader."""

MAY = {
    "daemon/claudius/providers/rehearsal/": "the voice without a model: English patterns of its own",
    "daemon/claudius/psyche/lexicon.toml": "the gate's weak hint at what is overheard and owed to nobody",
    "daemon/claudius/psyche/events.py": "the gate: likewise",
    "daemon/claudius/psyche/context.py": "the gate: whether somebody is addressed",
    "daemon/claudius/psyche/words.py": "the gate: a cue that is negated is none",
    "daemon/claudius/psyche/scrubber.py": "guards: no number of a feeling is said",
    "daemon/claudius/cognition/output/rules.py": "guards: a model that thinks aloud has not spoken",
    "daemon/claudius/cognition/steps/user_model.py": "guards: no instruction stands in a portrait",
    "daemon/claudius/prompt.py": "writes a date",
    "daemon/claudius/cognition/prompt/present.py": "writes the weekday",
    "daemon/claudius/eval/checks.py": "measures: in which language a reply is",
    "soul/eval/": "what a scene looks for",
}
"""Where words may be read by rule, and why (the design of acts, section 1)."""


def words(text: str) -> set[str]:
    """Return the words of people in a pattern, its escapes left out."""
    plain = re.sub(r"\\.|\[[^\]]*\]", " ", text).lower()
    return set(re.findall(r"(?<![\w/])[^\W\d_]+(?:'[^\W\d_]+)?(?![\w/])", plain)) & SPOKEN


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the pattern or the whole of a collection that a node of code is."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="re")), args=[first, *_]) if name in READS:
            yield " ".join(_strings(first))
        case ast.Call(func=ast.Attribute(attr="split", value=ast.Constant(value=str(text))), args=[]):
            yield text
        case ast.Set() | ast.Tuple() | ast.List():
            yield " ".join(one for child in node.elts for one in _plain(child))
        case ast.Dict():
            yield " ".join(one for child in node.keys if child for one in _plain(child))


def _strings(node: ast.AST) -> Iterator[str]:
    return (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _plain(node: ast.AST) -> Iterator[str]:
    """Yield a string of a collection, if it is a word or two; a sentence is spoken, not read by."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) <= 3:
        yield node.value


def lists(value: Any) -> Iterator[str]:
    """Yield the lists of words of a data file."""
    match value:
        case dict():
            yield " ".join(one for one in value if len(one.split()) <= 3)
            for one in value.values():
                yield from lists(one)
        case list():
            yield " ".join(one for one in value if isinstance(one, str) and len(one.split()) <= 3)
            for one in value:
                yield from lists(one) if isinstance(one, (dict, list)) else ()


def found() -> Iterator[tuple[str, set[str]]]:
    """Yield each file that reads by words, with those of its most talkative pattern."""
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml"), *(ROOT / "soul").rglob("*.toml")]):
        text = path.read_text("utf-8")
        if path.suffix == ".py":
            patterns = [one for node in ast.walk(ast.parse(text)) for one in texts(node)]
        else:
            patterns = list(lists(tomllib.loads(text)))
        said = max(map(words, patterns), key=len, default=set())
        if len(said) >= 3:
            yield str(path.relative_to(ROOT)), said


def test_words_are_read_only_where_no_model_could() -> None:
    """A pattern or a list that holds three words of speech stands in a file that is named here with its reason."""
    reading = dict(found())

    assert {one: said for one, said in reading.items() if not any(one.startswith(place) for place in MAY)} == {}
    assert [place for place in MAY if not any(one.startswith(place) for one in reading)] == [], "it reads nothing now"


@pytest.mark.parametrize(
    "code",
    [
        r"NEVER = re.compile(r'\b(i will|tomorrow|remind)\b')",
        "DAYS = ('monday', 'tuesday', 'friday')",
        "GREETING = frozenset('hello hi hey'.split())",
        "MEANS = {'morgen': 1, 'heute': 0, 'gestern': -1}",
    ],
)
def test_a_reader_is_found_in_every_form(code: str) -> None:
    """A regular expression, a collection, a text that is split and the keys of a table."""
    assert any(len(words(one)) >= 3 for node in ast.walk(ast.parse(code)) for one in texts(node))
