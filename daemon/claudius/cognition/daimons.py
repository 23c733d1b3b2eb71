"""Daimons: what one is told about the soul, what a whisper may contain, how a turn uses it, and what one says aloud.

The module is not loaded while no daimon is enabled. A line said aloud after the soul's reply passes the same parser and
output gate as the soul's own.

Source: seed 000, section 3b; the daimon design, sections 3 to 5 and 7.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.conclude.conclusion import conclude_reflection, utterance_key
from claudius.cognition.history import feels
from claudius.cognition.output.gate import gate, has_secret
from claudius.cognition.output.rules import OutputRules, whole_sentences
from claudius.cognition.reply.parser import plain_reply
from claudius.cognition.reply.tags import LT, UNSEEN, find_head, is_disguised
from claudius.cognition.turn_state import TurnState, recorded
from claudius.config.schema import DaimonSettings
from claudius.intent import Intent, Thought, Utterance
from claudius.memory.whispers import DaimonScene
from claudius.perception import SELF
from claudius.prompt import Scalar, data_line, fence, valid
from claudius.provider import Request
from claudius.recollection import Entry, EntryType, Recollection, StateKey
from claudius.soul import SoulText

MONOLOGUE_CHARS = 200
"""How much of a thought a daimon is told."""
MAX_TOKENS = 150
"""Tokens of the longest whisper of a model."""
TTL_HOURS = 24
"""After how long an unused whisper fades."""
WHISPER_CHARS = 500
REQUEST_BYTES = 4096
STEP = "daimonic_intuition"
"""The step name under which `claudius why` shows the whispers of a turn."""
PURPOSE = "whisper"
"""The purpose under which its model calls are accounted."""

_TOLD = (StateKey.EMOTIONAL_STATE, StateKey.CURRENT_TOPIC, StateKey.CURRENT_PROJECT)
_STATE_CHARS = 200
_TAG = re.compile(r"<[/!?\s]*[A-Za-z_][^<>]{0,200}>")
_URL = re.compile(r"(?i)[a-z0-9+.\-]{0,20}://\S*|www\.\S*|mailto:\S*")
_MENTION = re.compile(r"@[\w.\-]*")
_BREAKS = re.compile(r"[\s\u0085\u2028\u2029]+")
_DISGUISED = re.compile(r"[<>＜＞﹤﹥`]")
_CLEANED = 8
"""Removing one pattern may form another, so cleaning repeats up to this many times."""


class Context(Struct, frozen=True, kw_only=True):
    """What is sent to a daimon for a whisper, and the audiences it was learned from."""

    soul_state: Mapping[str, str]
    recent_monologue: str
    interaction_count: int
    sources: tuple[str, ...]
    conversation: str = ""

    def document(self, source: str) -> dict[str, Any]:
        """Return the body of `POST /api/whisper`; `source` names the caller. Pure."""
        return {
            "source": source,
            "context": {
                "soul_state": dict(self.soul_state),
                "recent_monologue": self.recent_monologue,
                "interaction_count": self.interaction_count,
            },
        }


def told(scene: DaimonScene, daimon: DaimonSettings, owners: Collection[str]) -> Context:
    """Return what a daimon is told about the soul: one conversation, or only its mood. Pure.

    Direct messages of non-owners are shared only with `share_private`: an outside program is not in their audience.
    """
    is_private = scene.audience.startswith("private:")
    is_owners = scene.audience.removeprefix("private:") in owners
    may = bool(scene.conversation) and (not is_private or is_owners or daimon.share_private)
    state = {key.value: scene.state.get(key, "")[:_STATE_CHARS] if may else "" for key in _TOLD}
    thought = _one_line(valid(scene.monologue))[:MONOLOGUE_CHARS] if may else ""
    has_learned = bool(thought or state[StateKey.CURRENT_TOPIC] or state[StateKey.CURRENT_PROJECT])
    context = Context(
        soul_state={**state, StateKey.EMOTIONAL_STATE.value: scene.mood},
        recent_monologue=thought,
        interaction_count=scene.interactions,
        sources=(scene.audience,) if has_learned else (SELF,),
        conversation=scene.conversation if has_learned else "",
    )
    # the monologue is shortened until the request fits its size limit
    while len(json.dumps(context.document("s" * 64)).encode()) > REQUEST_BYTES and context.recent_monologue:
        context = replace(context, recent_monologue=context.recent_monologue[: len(context.recent_monologue) * 3 // 4])
    return context


def sanitised(text: object, daimon: str, *, lately: Sequence[str] = (), secrets: Sequence[str] = ()) -> str:
    """Return a whisper cleaned for storage; empty = it is refused. Pure.

    One that holds a tag, however disguised, is refused: it is structure, and no line of counsel. The result cannot form
    a fence, a link or a mention; it is one line of at most 500 characters, differs from the daimon's last ones, and
    contains nothing shaped like a secret.
    """
    if not isinstance(text, str):
        return ""
    line = unicodedata.normalize("NFC", valid(text[: 40 * WHISPER_CHARS].replace("\0", "")))
    if has_secret(line, OutputRules(secrets=tuple(secrets))) or _holds_tag(line):
        return ""
    for _ in range(_CLEANED):
        before = line
        line = _one_line(line)
        line = re.sub(rf"(?i)^\s*{re.escape(daimon)}\s+whispers?\s*:\s*", "", line)
        for taken_out in (LT, _URL, _MENTION, _DISGUISED):
            line = taken_out.sub("", line)
        if line == before:
            break
    line = _cut(_one_line(_DISGUISED.sub("", line)))
    if not any(letter.isalnum() for letter in line) or line in lately:
        return ""
    return "" if has_secret(line, OutputRules(secrets=tuple(secrets))) or _holds_tag(line) else line


def _holds_tag(text: str) -> bool:
    plain = unicodedata.normalize("NFKC", html.unescape(UNSEEN.sub("", text)))
    return _TAG.search(plain) is not None or find_head(plain) is not None or is_disguised(plain)


def _one_line(text: str) -> str:
    return " ".join(_BREAKS.sub(" ", UNSEEN.sub("", _BREAKS.sub(" ", text))).split())


def _cut(line: str) -> str:
    if len(line) <= WHISPER_CHARS:
        return line
    whole, blank, _ = line[: WHISPER_CHARS + 1].rpartition(" ")
    return whole.rstrip() if blank else line[:WHISPER_CHARS]


def character(name: str, daimon: DaimonSettings, soul: SoulText) -> str:
    """Return the text of a daimon's character; empty if there is none. Pure."""
    path = (daimon.soul_md or f"daimons/{name}.md").removeprefix("soul/")
    return soul.text(path) if path in soul.files else ""


def request(system: str, context: Context, soul: SoulText, nonce: str, daimon: DaimonSettings) -> Request:
    """Return the request to a model that whispers in a daimon's name. Pure."""
    return Request(
        system=f"{system.strip()}\n\n{soul.text('whisper.md').strip()}",
        history=(),
        tail=fenced(context, nonce),
        max_tokens=MAX_TOKENS,
        keep_session=False,
        purpose=PURPOSE,
        model=model_of(daimon),
        temperature=daimon.temperature,
    )


def model_of(daimon: DaimonSettings) -> str | None:
    """Return the model to ask, or None if only the Groq default is set and the provider is another. Pure."""
    is_known = daimon.provider == DaimonSettings().provider or daimon.model != DaimonSettings().model
    return (daimon.model or None) if is_known else None


def fenced(context: Context, nonce: str) -> str:
    """Return the context as one fenced line of data. Pure."""
    record: dict[str, Scalar] = {
        "kind": "context",
        **context.soul_state,
        "recent_monologue": context.recent_monologue,
        "interaction_count": context.interaction_count,
    }
    return fence(data_line(record), nonce)


def felt(intent: Intent, recollection: Recollection) -> Intent:
    """Mark the whispers that were in a prompt as used when its turn is committed. Pure."""
    if intent.held or intent.rung == "apology" or not feels(intent.steps):
        return intent
    entries = tuple(
        Entry(
            entry_type=EntryType.DAIMONIC_INTUITION,
            content=one.text,
            at=recollection.now,
            metadata={"daimon": one.daimon, "whisper": one.whisper},
        )
        for one in recollection.intuitions
    )
    shown = tuple(Thought(step=STEP, content=one.text, verb=one.daimon) for one in recollection.intuitions)
    return replace(
        intent,
        entries=(*intent.entries, *entries),
        thoughts=(*shown, *intent.thoughts),
        whispers=tuple(one.whisper for one in recollection.intuitions),
    )


SPEECH_CHARS = 1500


def conclude_daimon(name: str, text: str, turn: TurnState) -> Intent | None:
    """Conclude a daimon's line; return None if nothing of it may be said. Replaces `turn.recollection`."""
    recollection = turn.recollection
    line = re.sub(rf"(?i)^\s*\**{re.escape(name)}(?:\s+(?:says|whispers))?\s*:\**\s*", "", plain_reply(text)).strip()
    if not any(map(str.isalnum, line)):
        return None
    line = line if len(line) <= SPEECH_CHARS else whole_sentences(line[:SPEECH_CHARS])
    gated = gate(line, turn.rules)
    if gated.is_replaced:
        return None
    entry = Entry(
        entry_type=EntryType.DAIMON_SPEECH,
        content=gated.text,
        at=recollection.now,
        name=name.capitalize(),
        metadata={"daimon": name},
    )
    said = Utterance(
        key=utterance_key(recollection.turn, 0),
        turn=recollection.turn,
        conversation=recollection.conversation,
        body=f"{name.capitalize()}: {gated.text}",
        kind="daimon",
        person=recollection.perception.person,
    )
    why = {"outcome": "daimon", "reason": f"{name} may be heard here"}
    turn.recollection = replace(recollection, perceptions=())
    return replace(recorded(turn, conclude_reflection(recollection, turn.plan, (entry,), why)), utterances=(said,))
