"""Make a server enforce the form of a reply: a grammar, or a JSON schema whose reply is turned into the same sections.

The grammar is GBNF, which llama.cpp takes; the schema is what Ollama takes as `format`, and vLLM and LM Studio as
`response_format`. Both are made from the steps of one request, so that a reply has those sections and no others.

Source: github.com/ggml-org/llama.cpp, grammars/README.md; docs.ollama.com/capabilities/structured-outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from claudius.cognition.reply.tags import STEPS as NAMES
from claudius.provider import FormStep

THOUGHT_CHARS, SPEECH_CHARS, LINE_CHARS = 400, 1200, 200
"""The longest section of each kind. Without a limit, a small model continues until the reply is cut."""
SPEECH = "external_dialogue"


def grammar(steps: Sequence[FormStep]) -> str:
    """Return the grammar whose only texts are these sections, in this order. Pure.

    A section that depends on a check is left out, or not, as the check was answered.
    """
    rules: list[str] = []
    names: list[str] = []
    for place, step in enumerate(steps):
        depending = [one for one in steps if one.check == step.name]
        if step.check and any(one.name == step.check for one in steps):
            continue  # it is part of its check's rule
        rules.append(f"s{place} ::= {_rule(step, place, depending)}")
        names.append(f"s{place}{'?' * step.may_lack}")
        rules += [f"v{place} ::= {' | '.join(map(_literal, step.verbs))}"] if step.verbs else []
    acts = _ACTS if any(step.value == "acts" for step in steps) else ()
    return "\n".join([f"root ::= {' '.join(names)}", *rules, *_VALUES, *acts]) + "\n"


def _rule(step: FormStep, place: int, depending: Sequence[FormStep]) -> str:
    if not depending:
        return _section(step, _value(step), place)
    rest = " ".join(_section(one, _value(one), 0) for one in depending)
    no, yes = _section(step, _literal("false"), place), _section(step, _literal("true"), place)
    return f"{no} | {yes} {rest}"


def _section(step: FormStep, value: str, place: int) -> str:
    verb = f"{_literal(' verb=' + chr(34))} v{place} {_literal(chr(34))}" if step.verbs else ""
    opening = f"{_literal('<' + step.name)} {verb} {_literal('>')}"
    closing = _literal(f"</{step.name}>\n")
    return f"{opening} {value} {closing}"


def _literal(text: str) -> str:
    return json.dumps(text)


def _value(step: FormStep) -> str:
    if step.choices:
        return f"({' | '.join(map(_literal, step.choices))})"
    if step.value in _RULES:
        return _RULES[step.value]
    if step.name == SPEECH or step.value == "markdown":
        return "speech"
    return "thought" if step.value in ("text", "lines") else "line"


_RULES = {"bool": "truth", "acts": "acts", "portrait": "portrait"}
_VALUES = (
    'truth ::= "true" | "false"',
    f"thought ::= [^<> \\t\\r\\n] [^<>\\r]{{1,{THOUGHT_CHARS}}}",
    f"speech ::= [^<> \\t\\r\\n] [^<>\\r]{{1,{SPEECH_CHARS}}}",
    f"line ::= [^<> \\t\\r\\n] [^<>\\r\\n]{{1,{LINE_CHARS}}}",
    r'portrait ::= "- " [^<> \t\r\n] [^<>\r\n]{7,160} ("\n- " [^<> \t\r\n] [^<>\r\n]{7,160}){0,7}',
)


_KINDS = ("constraint", "kin", "home", "work", "plan", "taste", "other")
_ACTS = (
    'acts ::= "none" | act ("\\n" act){0,2}',
    "act ::= know | remind | open",
    r"""know ::= "{\"do\": \"know\", \"text\": " words ", \"kind\": \"" kind "\", \"keys\": [" keys "]}" """,
    'keys ::= word (", " word){2,5}',
    r"""remind ::= "{\"do\": \"remind\", \"at\": \"" at "\", \"text\": " words "}" """,
    r"""open ::= "{\"do\": \"open\", \"text\": " words "}" """,
    f"kind ::= {' | '.join(map(_literal, _KINDS))}",
    r"""words ::= "\"" [^"\\<>\t\r\n]{3,160} "\"" """,
    r"""word ::= "\"" [^"\\<>\t\r\n]{1,24} "\"" """,
    'at ::= "20" [0-9][0-9] "-" [01][0-9] "-" [0-3][0-9] "T" [0-2][0-9] ":" [0-5][0-9]',
)
"""Up to three of the acts that a small model can be trusted to write, each whole."""


def schema(steps: Sequence[FormStep]) -> dict[str, Any]:
    """Return the JSON schema with one string for each section, in order. Pure."""
    return {
        "type": "object",
        "properties": {step.name: _property(step) for step in steps},
        "required": [step.name for step in steps if not (step.check or step.may_lack)],
        "additionalProperties": False,
    }


def _property(step: FormStep) -> dict[str, Any]:
    if closed := ("true", "false") if step.value == "bool" else step.choices:
        return {"type": "string", "enum": [*closed]}
    longest = {
        "speech": SPEECH_CHARS,
        "thought": THOUGHT_CHARS,
        "acts": THOUGHT_CHARS,
        "portrait": SPEECH_CHARS,
        "line": LINE_CHARS,
    }[_value(step)]
    return {"type": "string", "minLength": 1, "maxLength": longest}


_ESCAPE = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": "", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_HEAD_BEGUN = re.compile(r"<[\s/a-zA-Z_]{0,40}\Z")
"""The end of a piece that may be the beginning of a tag: it waits for the next piece."""


class JsonSections:
    """Turns a JSON object of strings into tagged sections while it streams.

    What is not such an object yields nothing after the point where it went wrong, so that JSON is never speech: an open
    section stays without its closing tag, and counts as cut. Text that does not begin as JSON passes as it is.
    """

    def __init__(self, steps: Sequence[FormStep]) -> None:
        self._names = {step.name for step in steps}
        self._tags = re.compile(
            rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, (*NAMES, *self._names)))})\b)", re.IGNORECASE
        )
        self._held = ""
        self._rest, self._key, self._state = "", "", "begin"

    def feed(self, text: str) -> str:
        """Take the next piece, and return the sections' text that it completes."""
        self._rest += text
        return "".join(self._read())

    def finish(self) -> str:
        """End the reply; return what is still due."""
        return self._rest if self._state == "free" else ""

    def _read(self) -> Iterator[str]:
        while self._rest:
            before = len(self._rest), self._state
            yield getattr(self, f"_{self._state}")()
            if (len(self._rest), self._state) == before:
                return

    def _begin(self) -> str:
        self._rest = self._rest.lstrip()
        for lead in ("```json", "```"):
            self._rest = self._rest.removeprefix(lead).lstrip()
        if "```json".startswith(self._rest):
            return ""
        self._state = "between" if self._rest[0] == "{" else "free"
        return ""

    def _free(self) -> str:
        text, self._rest = self._rest, ""
        return text

    def _broken(self) -> str:
        self._rest = ""
        return ""

    def _between(self) -> str:
        """Skip to the next key, read it whole, and to the beginning of its value."""
        found = re.match(r'[{,\s]*"([a-z_]+)"\s*:\s*("|true|false)', self._rest)
        if found:
            self._key = found[1] if found[1] in self._names else ""
            is_text = found[2] == '"'
            self._rest = self._rest[found.end() if is_text else found.start(2) :]
            self._state = "inside" if is_text else "bare"
            return f"<{self._key}>" if self._key else ""
        if re.match(r"[\s,]*\}", self._rest):
            self._state = "broken"  # the end: nothing after it counts
        elif not re.fullmatch(r'[{,\s]*("[a-z_]*("\s*(:\s*[a-z]*)?)?)?', self._rest):
            self._state = "broken"
        return ""

    def _bare(self) -> str:
        found = re.match(r"(true|false)(?=[\s,}])", self._rest)
        if not found:
            return ""
        self._rest, self._state = self._rest[found.end() :], "between"
        return f"{found[1]}</{self._key}>\n" if self._key else ""

    def _inside(self) -> str:
        """Read a string as far as it goes; our tags cannot arise from its text."""
        made: list[str] = []
        place, text = 0, self._rest
        while place < len(text):
            char = text[place]
            if char == '"':
                self._rest, self._state = text[place + 1 :], "between"
                return f"{self._safe(''.join(made), is_end=True)}</{self._key}>\n" if self._key else ""
            if char != "\\":
                made.append(char)
                place += 1
                continue
            if text[place + 1 : place + 2] == "u":
                if len(text) < place + 6:
                    break
                if not _HEX.fullmatch(text[place + 2 : place + 6]):
                    self._state = "broken"
                    break
                made.append(chr(int(text[place + 2 : place + 6], 16)))
                place += 6
            elif len(text) < place + 2:
                break
            else:
                made.append(_ESCAPE.get(text[place + 1], ""))
                place += 2
        self._rest = text[place:]
        return self._safe("".join(made)) if self._key else ""

    def _safe(self, text: str, *, is_end: bool = False) -> str:
        """Escape every tag of ours within a value; hold back an end that may become one."""
        text, self._held = self._held + text, ""
        if not is_end and (begun := _HEAD_BEGUN.search(text)):
            text, self._held = text[: begun.start()], text[begun.start() :]
        return self._tags.sub("&lt;", text)
