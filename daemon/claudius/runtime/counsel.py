"""What stands behind the door: the soul as somebody's daimon, the counsel that others offer, health and numbers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import claudius
from claudius.cognition.budget import Stage, day_start
from claudius.cognition.daimonic import Context, character, request, sanitised
from claudius.cognition.mind import Mind
from claudius.config import Daimon, Loaded, daimons
from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.memory.sqlite import SqliteRecords
from claudius.memory.whispers import Whisper
from claudius.perception import SELF
from claudius.runtime.daimons_lazily import LazyDaimons
from claudius.runtime.door import OWNER, HttpDoor, Reply, Rooms

ANSWER_S = 4.0
"""Inside the patience of whoever asks."""
OWN = Daimon(provider="own", soul_md="soul.md", model="")
"""How the soul whispers: on its own text, with its own voice."""
_KEYS = ("emotionalState", "currentTopic", "currentProject")
_CHARS = 400


class Counsel:
    """One soul, asked and advised by others."""

    def __init__(self, mind: Mind, home: Home, daimons: LazyDaimons) -> None:
        """Answer for `mind`."""
        self._mind, self._home, self._daimons = mind, home, daimons

    async def whisper(self, context: Mapping[str, Any]) -> Reply:
        """Answer `{"source", "context"}`: one call on the soul's own text; of its memory only the mood is in it."""
        mind = self._mind
        if await mind.stage() is not Stage.OPEN:
            return Reply(status=503, retry_after_s=3600)
        soul, now, scene = mind.soul(), mind.clock(), await mind.store.scene(None)
        asked = request(character("", OWN, soul), _told(context, scene.mood), soul, mind.nonce(), OWN)
        digest = hashlib.sha256(asked.tail.encode()).hexdigest()[:16]
        try:
            text = await self._daimons.get().think(mind.provider, asked, ANSWER_S, f"asked:{digest}:{now.isoformat()}")
        except (ClaudiusError, TimeoutError):
            return Reply(status=503, retry_after_s=60)
        line = sanitised(text, "claudius", secrets=mind.secrets)
        return Reply(status=200, document={"whisper": line, "influence": "subtle"}) if line else Reply(status=204)

    async def take(self, source: str, body: Mapping[str, Any]) -> Reply:
        """Take counsel that nobody asked for, of the daimon named."""
        mind, now = self._mind, self._mind.clock()
        daimon = daimons(mind.config()).get(source)
        if daimon is None or not daimon.is_on:
            return Reply(status=403, document={"error": "that is no daimon of mine"})
        standing = await mind.store.standing(source, now)
        if (standing.mode or daimon.mode) == "off":
            return Reply(status=409, document={"error": "it is off"})
        if standing.today >= daimon.daily_max:
            until = day_start(now) + timedelta(days=1) - now
            return Reply(status=429, retry_after_s=int(until.total_seconds()) + 1)
        text = sanitised(body["whisper"], source, lately=standing.lately, secrets=mind.secrets)
        if not text:
            return Reply(status=400, document={"error": "that cannot be kept"})
        influence = body.get("influence")
        kept = Whisper(
            daimon=source,
            text=text,
            transport="offer",
            sources=(SELF,),
            at=now,
            expires_at=now + timedelta(hours=daimon.ttl_hours),
            influence=influence if influence in ("subtle", "strong") else "",
        )
        number = await mind.store.keep_whisper(kept)
        mind.hooks.emit("daimon.after_whisper", {"daimon": source, "text": text, "timestamp": now})
        return Reply(status=202, document={"stored": True, "id": str(number)})

    async def metrics(self) -> str:
        """Count what waits and what was done, in the text form of Prometheus."""
        counts = await asyncio.to_thread(self._count, self._mind.clock())
        lines = []
        for section, values in counts.items():
            for name, value in values.items():
                lines += [f"# TYPE claudius_{section}_{name} gauge", f"claudius_{section}_{name} {value}"]
        return "\n".join(lines) + "\n"

    def _count(self, now: datetime) -> Mapping[str, Any]:
        records = SqliteRecords(self._home.database)
        try:
            return records.counts(now)
        finally:
            records.close()


def _told(context: Mapping[str, Any], mood: str) -> Context:
    """Read what another soul tells of itself; beside it stands this soul's own mood. Pure."""
    state = context.get("soul_state")
    given = state if isinstance(state, Mapping) else {}
    count = context.get("interaction_count")
    return Context(
        soul_state={**{key: str(given.get(key, ""))[:_CHARS] for key in _KEYS}, "your_own_mood": mood},
        recent_monologue=str(context.get("recent_monologue", ""))[:_CHARS],
        interaction_count=count if isinstance(count, int) else 0,
        sources=(SELF,),
    )


def door_of(mind: Mind, home: Home, loaded: Callable[[], Loaded], daimons_of: LazyDaimons) -> HttpDoor:
    """Put the door before one soul. Raises: BadConfiguration."""
    counsel = Counsel(mind, home, daimons_of)

    def tokens() -> Mapping[str, str]:
        own = {OWNER: loaded().secret("CLAUDIUS_HTTP_TOKEN")}
        theirs = {name: daimons_of.token(name) for name in daimons(loaded().config)}
        return {name: token for name, token in (theirs | own).items() if token}

    rooms = Rooms(
        counsel=counsel.whisper,
        take=counsel.take,
        tokens=tokens,
        health=lambda: {"ok": True, "version": claudius.__version__, "provider": mind.provider.name},
        metrics=counsel.metrics,
    )
    return HttpDoor(rooms, loaded().config.http.listen)
