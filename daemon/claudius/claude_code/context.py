"""What a Claude Code session sees of the soul, and what the soul stores of a session.

A session has tools, so it is given nothing that another person could have worded: only what was learned from the owner
alone, and the soul's own words. `ensoul.shared` gives it everything that may be shown to the owner.

Source: the daimon design, section 10.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from claudius.acts import TEXT_CHARS
from claudius.claude_code.hooks import CONTEXT_CHARS, REMEMBERED_CHARS, cut, is_session, mark, spool_of
from claudius.cognition.mind import Mind
from claudius.config.schema import daimon_modes
from claudius.foreign import unquoted
from claudius.home import Home
from claudius.memory.facts import bears_on
from claudius.memory.inbox import Pending
from claudius.memory.ranking import marks
from claudius.memory.recall import RecallLimits
from claudius.perception import Kind, MessageExtra, Perception, private
from claudius.prompt import RecordKind, Scalar, data_line, fence
from claudius.recollection import Recollection, turn_of
from claudius.runtime.control import ControlConnection

log = logging.getLogger(__name__)

NETWORK = "claude_code"
MOST_FOUND = 8
SOUL_CHARS, MODEL_CHARS, BELIEF_CHARS, BELIEFS = 4500, 1500, 200, 5
_NOT_A_NAME = re.compile(r"[^0-9A-Za-z._-]+")


class Ensouled:
    """Serves the hooks of the sessions of one home, and `claudius mcp`."""

    def __init__(self, mind: Mind, home: Home, owner: Callable[[], str]) -> None:
        """Serve for `mind`; `owner` returns the owner of this terminal."""
        self._mind, self._home, self._owner = mind, home, owner
        self._wake: Callable[[str], None] = lambda _: None

    @property
    def handlers(self) -> Mapping[str, Any]:
        """The operations that the control socket answers for both."""
        return {
            "ensouled": self._ensouled, "remember": self._remember,
            "recalled": self._recalled, "told": self._told, "mood": self._mood,
        }  # fmt: skip

    async def start(self, wake: Callable[[str], None]) -> None:
        """Start, and take in what hooks spooled while the soul was not running."""
        self._wake = wake
        spool = spool_of(self._home)
        for path in await asyncio.to_thread(lambda: sorted(spool.glob("*.json"))):
            told = await asyncio.to_thread(_read, path)
            if told:
                await self._keep(told)
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _ensouled(self, connection: ControlConnection, _: Mapping[str, Any]) -> None:
        await connection.send({"event": "ensouled", "text": await self.text()})

    async def _remember(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        told = frame.get("told")
        is_kept = isinstance(told, dict) and await self._keep(told)
        await connection.send({"event": "remembered" if is_kept else "error", "message": "" if is_kept else "not kept"})

    async def _recalled(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Send what the owner alone said, was answered and has kept, if it shares words with what is looked for."""
        words, store = str(frame.get("words", "")), self._mind.store
        asked, stems = replace(self._perception(), text=words), marks(words)
        known = await self._recall(asked, own_only=True)
        found = store.moments.search(asked, words, MOST_FOUND, own_only=True)
        lines = [f"Of you: {fact.text}" for fact in known.known if bears_on(fact, stems)]
        for one in found:
            who = "you" if one.person and not one.is_own else "I"
            lines.append(f"{datetime.fromtimestamp(one.at_s, UTC).date()} {who}: {one.text}")
        await connection.send({"event": "recalled", "text": "\n".join(lines)})

    async def _told(self, connection: ControlConnection, frame: Mapping[str, Any]) -> None:
        """Keep a fact of the owner's. No model is asked."""
        text, asked = " ".join(str(frame.get("text", "")).split()), self._perception()
        if not text or len(text) > TEXT_CHARS:
            await connection.send({"event": "error", "message": f"a fact has 1 to {TEXT_CHARS} characters"})
            return
        await self._mind.store.facts.told(asked.person, text, turn_of(asked.key), asked.at)
        await connection.send({"event": "kept", "text": text})

    async def _mood(self, connection: ControlConnection, _: Mapping[str, Any]) -> None:
        await connection.send({"event": "mood", "text": self._mind.store.whispers.scene(None).mood})

    async def text(self) -> str:
        """Return the text for a session: a mark, the soul, its state, the owner's user model, beliefs, an intuition."""
        mind, soul, perception = self._mind, self._mind.soul(), self._perception()
        own_only = not mind.config().ensoul.shared
        known = await self._recall(perception, own_only=own_only)
        modes = daimon_modes(mind.config())
        intuition = mind.store.whispers.surfacing(perception, known.now, modes, own_only=own_only) if modes else ""
        parts = [
            mark(soul.text("soul.md")),
            soul.text("ensoul.md").strip(),
            cut(soul.text("soul.md"), SOUL_CHARS),
            *(fence(data_line(record), known.nonce) for record in _records(known, intuition)),
        ]
        while len("\n\n".join(parts)) > CONTEXT_CHARS and len(parts) > 3:
            parts.pop()
        return "\n\n".join(parts)[:CONTEXT_CHARS]

    def _perception(self) -> Perception:
        """Return a look from the owner's own audience, with nobody else in it."""
        now, owner = self._mind.clock(), self._owner()
        return Perception(
            key=f"{NETWORK}:{now.isoformat()}",
            conversation=f"{NETWORK}:here:look:look",
            audience=private(owner),
            person=owner,
            at=now,
            owes=False,
        )

    async def _keep(self, told: Mapping[str, Any]) -> bool:
        """Store a prompt and its answer as an interaction in the owner's own audience. Raises: StoreError."""
        session, prompt, answer = told.get("session"), told.get("prompt"), told.get("answer")
        if not (isinstance(session, str) and isinstance(prompt, str) and isinstance(answer, str)):
            return False
        if not is_session(session) or not self._mind.config().ensoul.remember:
            return False
        now, owner = self._mind.clock(), self._owner()
        at = told.get("at")
        perception = Perception(
            key=f"{NETWORK}:{session}:{str(told.get('id', ''))[:64]}",
            conversation=conversation_of(str(told.get("project", "")), session),
            audience=private(owner),
            person=owner,
            text=prompt[:REMEMBERED_CHARS],
            at=datetime.fromtimestamp(at, UTC) if isinstance(at, float) else now,
            position=f"{now.timestamp():020.6f}",
            kind=Kind.MESSAGE,
            owes=False,
            extra=MessageExtra(answer=answer[:REMEMBERED_CHARS]),
        )
        await self._mind.store.inbox.accept((perception,), now)
        self._wake(perception.conversation)
        return True

    async def _recall(self, perception: Perception, *, own_only: bool) -> Recollection:
        pending = Pending(seq=0, perception=perception, turn=turn_of(perception.key), heard_at=perception.at)
        limits = RecallLimits(ttl_hours=self._mind.config().memory.ttl_hours, beliefs=True, own_only=own_only)
        return await self._mind.store.turns.recall(pending, nonce=self._mind.nonce(), now=perception.at, limits=limits)


def _records(known: Recollection, intuition: str) -> list[dict[str, Scalar]]:
    """Return what is known, each as one flat record. Pure."""
    found: list[dict[str, Scalar]] = []
    state = {one.key: one.value for one in known.state}
    if state:
        found.append({"kind": RecordKind.SOUL_STATE, **state})
    if known.speaker:
        written = [model.markdown[:MODEL_CHARS] for model in known.speaker.models[:2] if model.version]
        found += [{"kind": RecordKind.USER_MODEL, "text": text} for text in written]
    own = known.speaker.person if known.speaker else ""
    beliefs = [one for one in known.beliefs if one.peer_id in ("", None, own)]
    found += [
        {"kind": RecordKind.BELIEF, "text": f"{one.key}: {one.value}"[:BELIEF_CHARS]} for one in beliefs[:BELIEFS]
    ]
    if intuition:
        found.append({"kind": RecordKind.INTUITION, "text": intuition})
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        log.warning("a spooled session could not be read", extra={"file": path.name, "error": unquoted(error)})
        return None
    return told if isinstance(told, dict) else None


def conversation_of(project: str, session: str) -> str:
    """Return the key of a session's conversation. Pure except for the host's name."""
    host = _NOT_A_NAME.sub("-", socket.gethostname())[:40] or "here"
    name = _NOT_A_NAME.sub("-", Path(project).name)[:40] or "project"
    return f"{NETWORK}:{host}:{name}:{session}"
