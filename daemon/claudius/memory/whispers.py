"""The topic `store.whispers`: what daimons are told, what they whisper, and how asking them went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from claudius.memory.database import Core, Database, Decoding, Row, dump, instant, maybe_instant, parse_strings, stamp
from claudius.memory.inbox import Pending
from claudius.memory.seeing import Seeing
from claudius.perception import SELF, Origin, Perception
from claudius.recollection import STATE_DEFAULTS, Intuition, StateKey

Transport = Literal["http", "model", "offer", "manual"]
HEARD_BEFORE = 10
"""A whisper that equals one of this many last whispers of its daimon is not kept."""


class Whisper(Struct, frozen=True, kw_only=True):
    """One line of advice, sanitised, about to be stored."""

    daimon: str
    text: str
    transport: Transport
    sources: tuple[str, ...]
    """The audiences of what was sent to the daimon for it."""
    at: datetime
    expires_at: datetime
    influence: str = ""
    conversation: str = ""


class DaimonScene(Struct, frozen=True, kw_only=True):
    """What a daimon may be told of one conversation, the one that was active last."""

    conversation: str = ""
    """Empty if nothing has happened since, or nothing that may be told."""
    audience: str = ""
    person: str = ""
    monologue: str = ""
    state: Mapping[str, str] = field(default_factory=dict)
    """The values of the soul's state for that audience."""
    mood: str = ""
    """The soul's own mood, independent of whom it talks with."""
    interactions: int = 0
    """The number of turns with somebody, ever."""


class DaimonRecord(Struct, frozen=True, kw_only=True):
    """The record of asking one daimon."""

    asked_at: datetime | None = None
    failures: int = 0
    rests_until: datetime | None = None
    reason: str = ""
    mode: str = ""
    """The mode set by the owner; empty means as configured."""
    today: int = 0
    """The number of whispers today."""
    has_active: bool = False
    """Whether one of its whispers waits to be felt."""
    lately: tuple[str, ...] = ()
    """Its last lines, newest first."""


FELT = 2
"""Upper limit on whispers in one prompt, each of another daimon."""
HEARS = ("whisper", "both")
_EPOCH = "0"


class Claims(Struct):
    """Which turn has claimed which whisper, in this process only; a crash releases every claim."""

    held: dict[int, str] = field(default_factory=dict)

    def release(self, turn: str) -> None:
        """Release what a turn has claimed."""
        for whisper in [one for one, holder in self.held.items() if holder == turn]:
            del self.held[whisper]

    def feel(self, db: Database, pending: Pending, now: datetime, modes: Mapping[str, str]) -> tuple[Intuition, ...]:
        """Claim for a turn the whispers that it may feel: one per daimon, a strong one first, then the oldest."""
        perception = pending.perceptions[-1]
        self.release(pending.turn)
        if perception.origin is not Origin.EXTERNAL:
            return ()
        rows = [row for row in db.all("whispers_active") if row["id"] not in self.held and _expires_at(row) > now]
        if not rows:
            return ()
        seeing, heard = Seeing(db, perception), _modes(db, perception.conversation, modes)
        found: dict[str, Intuition] = {}
        for row in sorted(rows, key=lambda row: (row["influence"] != "strong", row["id"])):
            daimon = row["daimon"]
            with Decoding("whisper", row["id"]):
                may = heard.get(daimon, "off") in HEARS and seeing.may(parse_strings(row["sources"]))
            if may and daimon not in found and len(found) < FELT:
                found[daimon] = Intuition(whisper=row["id"], daimon=daimon, text=row["text"])
        self.held |= {one.whisper: pending.turn for one in found.values()}
        return tuple(found.values())


def _expires_at(row: Row) -> datetime:
    with Decoding("whisper", row["id"]):
        return instant(row["expires_at"])


def _modes(db: Database, conversation: str, modes: Mapping[str, str]) -> dict[str, str]:
    rows = (*db.all("daimon_modes"), *db.all("daimon_modes_here", conversation=conversation))
    return {**modes, **{row["daimon"]: row["mode"] for row in rows if row["daimon"] in modes}}


class WhisperStore:
    """What daimons keep and recall."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def scene(self, since: datetime | None) -> DaimonScene:
        """Return the scene of the conversation active last, after `since`; without a conversation if there was none."""
        with self._core.snapshot() as db:
            newest = db.one("latest_external", since=stamp(since) if since else _EPOCH, most=1)
            mood = db.one("state_of_keys", keys=dump([StateKey.EMOTIONAL_STATE]))
            known = DaimonScene(
                mood=mood["value"] if mood and mood["value"] else STATE_DEFAULTS[StateKey.EMOTIONAL_STATE],
                interactions=db.value("turns_ever"),
            )
            if newest is None:
                return known
            conversation, audience = newest["conversation"], newest["audience"]
            thought = db.value("monologue_of", conversation=conversation, number=newest["number"])
            seeing = Seeing(db, _listener(conversation, audience, instant(newest["at"])))
            rows = db.all("state_of_audiences", audiences=seeing.audiences())
            state = {row["key"]: row["value"] for row in sorted(rows, key=itemgetter("id"))}
        return DaimonScene(
            conversation=conversation,
            audience=audience,
            person=newest["person"],
            monologue=thought or "",
            state=state,
            mood=known.mood,
            interactions=known.interactions,
        )

    def standing(self, daimon: str, now: datetime) -> DaimonRecord:
        """Return the record of asking a daimon, and what it has said."""
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        with self._core.snapshot() as db:
            row = db.one("daimon", daimon=daimon)
            said_today = db.value("whispers_since", daimon=daimon, since=stamp(today))
            lately = db.values("whispers_last", daimon=daimon, most=HEARD_BEFORE)
            active = db.one("whispers_active_of", daimon=daimon, now=stamp(now))
        return DaimonRecord(
            asked_at=maybe_instant(row["asked_at"]) if row else None,
            failures=row["failures"] if row else 0,
            rests_until=maybe_instant(row["rests_until"]) if row else None,
            reason=row["reason"] if row else "",
            mode=(row["mode"] or "") if row else "",
            today=said_today,
            has_active=active is not None,
            lately=tuple(lately),
        )

    async def asked(self, daimon: str, now: datetime) -> None:
        """Record that a daimon is being asked."""
        await self._core.write(lambda db: db.change("daimon_asked", daimon=daimon, now=stamp(now)))

    async def fared(self, daimon: str, *, failures: int, rests_until: datetime | None, reason: str) -> None:
        """Record the outcome of asking a daimon."""
        until = stamp(rests_until) if rests_until else None
        values = {"daimon": daimon, "failures": failures, "rests_until": until, "reason": reason}
        await self._core.write(lambda db: db.change("daimon_fared", **values))

    async def keep_whisper(self, whisper: Whisper) -> int:
        """Store a whisper, replacing an active one of the same daimon and sources; return its number."""
        place = {"daimon": whisper.daimon, "sources": dump(sorted(whisper.sources or (SELF,)))}
        values = asdict(whisper) | place | {name: stamp(getattr(whisper, name)) for name in ("at", "expires_at")}

        def write(db: Database) -> int:
            db.run("whispers_expire", now=stamp(whisper.at))
            db.run("whisper_replaced", **place)
            return int(db.value("whisper_new", **values))

        return await self._core.write(write)

    async def set_mode(self, daimon: str, mode: str, conversation: str = "") -> None:
        """Set a daimon's mode for the owner, in one conversation or everywhere."""
        if conversation:
            values = {"conversation": conversation, "daimon": daimon, "mode": mode}
            await self._core.write(lambda db: db.change("daimon_moded_here", **values))
        else:
            await self._core.write(lambda db: db.change("daimon_moded", daimon=daimon, mode=mode or None))

    def mode_of(self, daimon: str, conversation: str, otherwise: str) -> str:
        """Return the mode of a daimon in a conversation."""
        with self._core.snapshot() as db:
            return _modes(db, conversation, {daimon: otherwise})[daimon]

    def surfacing(
        self, perception: Perception, now: datetime, modes: Mapping[str, str], *, own_only: bool = False
    ) -> str:
        """Return the newest whisper that may be felt here, without using it; empty if there is none.

        `own_only` is that of `RecallLimits`.
        """
        with self._core.snapshot() as db:
            seeing = Seeing(db, perception, own_only=own_only)
            heard = _modes(db, perception.conversation, modes)
            for row in sorted(db.all("whispers_active"), key=itemgetter("id"), reverse=True):
                if _expires_at(row) <= now or heard.get(row["daimon"], "off") not in HEARS:
                    continue
                with Decoding("whisper", row["id"]):
                    if seeing.may(parse_strings(row["sources"])):
                        return str(row["text"])
        return ""


def _listener(conversation: str, audience: str, at: datetime) -> Perception:
    """Return a perception that represents a conversation's audience, with no speaker and no owner."""
    return Perception(
        key="", conversation=conversation, audience=audience, person="", name="", text="", at=at, position=""
    )
