"""The topic `store.plans`: what the soul intends to do later, and when the scheduler's jobs are due."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from hashlib import sha256
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from claudius.acts import PlanCancelled, PlanMade, PlanMoved, ZoneSet
from claudius.errors import RowInvalid
from claudius.intent import LAPSES_AT, PROMISE_DUE, WHAT, Intent, Schedule
from claudius.memory.database import Core, Database, Decoding, Row, dump, instant, parse_object, stamp
from claudius.memory.facts import called_here, plain
from claudius.memory.inbox import hold, keep, position
from claudius.memory.seeing import Seeing, ids_of
from claudius.perception import SELF, Kind, Origin, Perception, Place, ScheduledExtra, TickExtra
from claudius.prompt import valid
from claudius.psyche_types import Milestone
from claudius.receipts import dropped, planned, unplanned, zone_set
from claudius.recollection import PlanHere, turn_of
from claudius.recurrence import fitting, following, local_instant, zone_named

MOST_OPEN = 100
"""Pending plans allowed in one conversation; further ones are refused."""

TOO_MANY = f"{MOST_OPEN} plans wait in this conversation already"
"""Why a plan was refused, as shown by `claudius why`."""


class Due(Struct, frozen=True):
    """When a job is due next."""

    next_due: datetime
    failures: int = 0
    """Number of consecutive failures."""


log = logging.getLogger(__name__)
MILESTONE = "milestone"
NOTICED_AFTER = timedelta(minutes=30)
"""How long after a milestone the soul notices it."""
LATE = timedelta(minutes=5)
"""A plan heard later than this states when it was due."""
PROMISE = "promise"
AT_ONCE = 100
"""Plans turned into perceptions in one pass; the rest follow in the next."""


def keep_plans(db: Database, intent: Intent, at: str) -> int:
    """Write what a turn plans, leaves to the next one, and keeps outside itself; return how many plans were refused."""
    for key in intent.held:
        hold(db, key)
    planned = intent.planned
    if planned is None:
        return 0
    for schedule_id in planned.cancels:
        cancel(db, schedule_id)
    refused = sum([not plan(db, one) for one in planned.schedules])
    for name, value in planned.kept.items():
        db.run("keep_kept", conversation=intent.conversation, name=name, value=dump(dict(value)))
    if planned.participation is not None:
        db.run("participate", conversation=intent.conversation, participation=planned.participation)
    if planned.closes:
        answered = intent.answers[-1] if intent.answers else ""
        db.run("close_conversation", conversation=intent.conversation, at=at)
        db.run("plans_close", conversation=intent.conversation)
        db.run("heard_out", conversation=intent.conversation, key=answered, now=at)
    return refused


def cancel(db: Database, schedule_id: int, why: str = "") -> int:
    """Cancel a plan that was not heard yet; return how many plans that were."""
    return db.change("plan_cancel", id=schedule_id, why=why)


def book_plan(db: Database, intent: Intent, act: PlanMade | PlanMoved | PlanCancelled | ZoneSet) -> str:
    """Book one act about plans or the zone; return its receipt, empty if it has none."""
    match act:
        case PlanMade():
            return _made(db, intent, act)
        case PlanMoved():
            return _moved(db, intent, act)
        case PlanCancelled():
            rows = [row for one in act.plans if (row := db.one("plan_here", id=one)) is not None]
            called = {row["id"]: called_here(db, intent, row["person"], f"p{row['short']}") for row in rows}
            gone = [one for one in called if not cancel(db, one, f"turn {intent.turn}")]
            return dropped([called[one] for one in called if one not in gone], [called[one] for one in gone])
        case ZoneSet():
            ids = ids_of(db, act.person)
            db.run("zone_told", ids=dump(ids), zone=act.zone)
            others = defaultdict[str, list[str]](list)
            rows = db.all("plans_of_speaker", persons=dump(ids), audience=intent.audience)
            for row in sorted(rows, key=itemgetter("short")):
                if row["zone"] != act.zone:
                    others[row["zone"]].append(called_here(db, intent, act.person, f"p{row['short']}"))
            return zone_set(act.zone, others)


def _made(db: Database, intent: Intent, act: PlanMade) -> str:
    """Store a plan, or find the same one there already."""
    where, text, person = intent.conversation, valid(act.text), _id_here(db, act.person, intent.conversation)
    there = db.all("plans_at", conversation=where, minute=stamp(act.at)[:16], person=person)
    same = next((row["id"] for row in there if plain(row["text"]) == plain(text)), None)
    if same is None and act.at <= intent.at and _is_said_now(db, intent, text):
        return ""  # a model that only repeats itself would plan it again and again
    if same is None:
        if (intent.planned and intent.planned.closes) or open_plans(db, where) >= MOST_OPEN:
            log.info("a plan was refused", extra={"conversation": where})
            return unplanned(text)
        short = number(db, act.person, intent.audience, "p")
        digest = sha256(f"{intent.turn}:{act.person}:p{short}".encode("utf-8", "surrogatepass")).digest()
        same = int.from_bytes(digest[:6], "big")
        db.run(
            "plan_booked",
            id=same,
            kind=f"schedule/{same}",
            at=stamp(act.at),
            first_at=_first(act),
            zone=act.zone,
            repeat=act.repeat,
            until=act.until and act.until.isoformat(),
            conversation=where,
            params=dump({WHAT: text} | ({"event": PROMISE_DUE} if act.kind == PROMISE else {})),
            text=text,
            audience=intent.audience,
            person=person,
            asked_by=_id_here(db, intent.person or act.person, where),
            short=short,
            made_as=act.kind,
            made_by=intent.turn,
        )
    return _receipt(db, intent, same)


def _is_said_now(db: Database, intent: Intent, text: str) -> bool:
    """Return whether a plan with these words is what the turn carries out."""
    plans = [key.split(":")[1].partition("/")[2] for key in intent.answers if key.startswith("due:schedule/")]
    return plain(text) in [plain(row["text"]) for one in plans if (row := db.one("plan_here", id=int(one)))]


def _first(act: PlanMade | PlanMoved) -> str | None:
    """Return what a repetition keeps: the wall clock as it was written, else an instant."""
    return act.wall.isoformat() if act.wall else stamp(act.at) if act.at else None


def _moved(db: Database, intent: Intent, act: PlanMoved) -> str:
    """Give a plan another time or rhythm; return its receipt."""
    row = db.one("plan_here", id=act.plan)
    if row is None:
        return dropped(())
    if row["fired_turn"] is not None:
        return dropped((), [called_here(db, intent, row["person"], f"p{row['short']}")])
    move_plan(db, row, act)
    return _receipt(db, intent, act.plan)


def move_plan(db: Database, row: Row, act: PlanMoved) -> None:
    """Change a plan that waits. A zone without a time keeps the hour on the wall."""
    with Decoding("due", row["id"]):
        next_at = instant(row["scheduled_for"])
    at, zone = act.at, act.zone or row["zone"] or ""
    rhythm = row["repeat"] if act.repeat is None else act.repeat
    if at is None and zone != (row["zone"] or ""):
        here = next_at.astimezone(zone_named(row["zone"]))
        at = local_instant(here.date(), here.time(), zone_named(zone))
    then = stamp(act.at or fitting(at or next_at, zone_named(zone), act.repeat or ""))
    until = act.until.isoformat() if act.until else row["until"]
    db.run(
        "plan_moved",
        id=row["id"],
        at=then,
        first_at=_first(act) or (then if at or act.repeat is not None else row["first_at"]),
        zone=zone,
        repeat=rhythm,
        until=until if rhythm else None,
    )


def _receipt(db: Database, intent: Intent, plan_id: int) -> str:
    """Return the receipt of a plan as it stands in the books now."""
    row = db.one("plan_here", id=plan_id)
    if row is None:
        return dropped(())
    with Decoding("due", plan_id):
        at, until = instant(row["scheduled_for"]), date.fromisoformat(row["until"]) if row["until"] else None
    called = called_here(db, intent, row["person"], f"p{row['short']}")
    return planned(
        at, zone_named(row["zone"]), row["text"], called, repeat=row["repeat"], until=until, locale=intent.locale
    )


def _id_here(db: Database, person: str, conversation: str) -> str:
    """Return the id by which the network of a conversation knows a person."""
    network = f"{Place.of(conversation).network}:"
    return next((one for one in ids_of(db, person) if one.startswith(network)), person)


def plans_here(db: Database, ids: Iterable[str], audience: str) -> tuple[PlanHere, ...]:
    """Return what waits for a person, by any of their ids, in the places of an audience, soonest first."""
    rows = db.all("plans_of_speaker", persons=dump(list(ids)), audience=audience)
    return tuple([plan_here(row) for row in sorted(rows, key=itemgetter("scheduled_for", "id"))])


def plan_here(row: Row) -> PlanHere:
    """Return a plan that waits, as its row has it."""
    with Decoding("due", row["id"]):
        return PlanHere(
            id=row["id"],
            short=f"p{row['short']}",
            at=instant(row["scheduled_for"]),
            zone=row["zone"] or "",
            text=row["text"],
            repeat=row["repeat"],
            until=date.fromisoformat(row["until"]) if row["until"] else None,
            is_asked=row["made_as"] != PROMISE,
        )


def number(db: Database, person: str, audience: str, letter: str) -> int:
    """Return the next number for what somebody calls by a letter and a number; none is given twice."""
    return int(db.value("number_next", person=person, audience=audience, letter=letter))


def open_plans(db: Database, conversation: str) -> int:
    """Return the number of pending plans of a conversation."""
    return int(db.value("plans_open", conversation=conversation))


def plan(db: Database, schedule: Schedule) -> bool:
    """Store one plan; a pending one with its key, or with its words, stays. False if too many are pending there."""
    where = schedule.conversation
    words = {"text": valid(schedule.text), "process": schedule.process, "params": dump(dict(schedule.params))}
    if db.one("plan_twin", conversation=schedule.conversation, minute=stamp(schedule.at)[:16], **words):
        return True
    if open_plans(db, where) >= MOST_OPEN and not db.one("plan_waits", conversation=where, key=schedule.key):
        log.info("a plan was refused", extra={"conversation": where})
        return False
    what = {"kind": f"schedule/{schedule.id}", "process": schedule.process or None, "text": valid(schedule.text)}
    encoded = {"at": stamp(schedule.at), "params": dump(dict(schedule.params))}
    db.run("plan_new", **asdict(schedule) | what | encoded)
    if schedule.instead_of:
        db.run("plan_inherits", id=schedule.id, before=schedule.instead_of)
    return True


def plan_milestone(db: Database, intent: Intent, milestone: Milestone) -> None:
    """Plan that the soul notices a milestone in the conversation where it was reached, once nobody is busy there."""
    key = f"milestone:{milestone.name}"
    digest = sha256(f"{key}:{intent.turn}".encode()).digest()
    made = Schedule(
        id=int.from_bytes(digest[:6], "big"),
        conversation=intent.conversation,
        at=intent.at + NOTICED_AFTER,
        text=milestone.text,
        process="proactive",
        params={"event": MILESTONE, "level": milestone.level},
        key=key,
        audience=intent.audience,
        person=intent.person,
    )
    plan(db, made)


def fire_due(db: Database, now: datetime, grace: timedelta) -> tuple[str, ...]:
    """Create a perception for each plan that is due; return the conversations affected."""
    fired: dict[str, None] = {}
    for row in db.all("plans_due", now=stamp(now), most=AT_ONCE):
        schedule_id = row["id"]
        with Decoding("due", schedule_id):
            at = instant(row["scheduled_for"])
        if row["closed_at"] or (not row["asked_by"] and now - at > grace):
            why = "the conversation was ended" if row["closed_at"] else "it was too late"
            db.run("plan_fired", id=schedule_id, turn="", lapsed_at=stamp(now), state="lapsed", why=why)
            continue
        later = _next_time(row, at) if row["repeat"] else None
        while later is not None and later <= now:  # one that was missed is told once, by its last time
            at, later = later, _next_time(row, later)
        perception = _perception(db, row, at, now)
        if later is not None:
            db.run("plan_next_time", id=schedule_id, at=stamp(later))
        else:
            turn = turn_of(perception.key)
            state = "missed" if now - at > LATE else "said"
            db.run("plan_fired", id=schedule_id, turn=turn, lapsed_at=None, state=state, why="")
        keep(db, perception, stamp(now))
        fired[row["conversation"]] = None
    return tuple(fired)


def _next_time(row: Row, at: datetime) -> datetime | None:
    """Return when a repetition comes after one of its instants; None if that was the last."""
    with Decoding("due", row["id"]):
        first = datetime.fromisoformat(row["first_at"]) if row["first_at"] else at
        until = date.fromisoformat(row["until"]) if row["until"] else None
    return following(first, zone_named(row["zone"]), row["repeat"], at, until)


def _perception(db: Database, row: Row, at: datetime, now: datetime) -> Perception:
    schedule_id, conversation, process, text = row["id"], row["conversation"], row["process"], row["text"]
    given = _params(schedule_id, row["params"])
    known = given or {}
    is_event = known.get("event") in (MILESTONE, PROMISE_DUE)
    extra = ScheduledExtra(
        schedule=schedule_id,
        due_at=stamp(at),
        process=(process or "") if given is not None else "",
        params=known if process else {},
        event=known["event"] if is_event else "",
        level=known.get("level", 0.0) if is_event else 0.0,
        what=known.get(WHAT, "" if is_event else text),
        lapses_at=instant(known[LAPSES_AT]) if LAPSES_AT in known else None,
        asked_by=row["asked_by"] or "",
        in_answer=bool(row["in_answer"]),
        made_as=row["made_as"],
    )
    here, is_late = at.astimezone(zone_named(row["zone"])), now - at > LATE
    return Perception(
        key=f"due:{row['kind']}:{stamp(at)}",
        conversation=conversation,
        audience=row["audience"],
        person=row["person"],
        text=f"{text} (this was due at {here:%Y-%m-%d %H:%M} {here.tzinfo})" if is_late else text,
        at=now,
        position=position(db, conversation, schedule_id),
        kind=Kind.SCHEDULED,
        origin=Origin.INTERNAL,
        owes=bool(row["asked_by"]),
        extra=extra,
    )


def _params(schedule_id: int, params: str) -> dict[str, Any] | None:
    """Decode the parameters of a plan's process; None if damaged, in which case the plan's text is still heard."""
    try:
        with Decoding("due", schedule_id):
            return parse_object(params)
    except RowInvalid as error:
        log.error("a plan runs without its process", extra={"error": error.message})  # noqa: TRY400 - no trace
        return None


class PlanStore:
    """Plans, and the jobs of the scheduler.

    A turn's own plans are written by its commit, which records in the turn's `changes` how many were refused.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def fire_due(self, now: datetime, grace_hours: float) -> tuple[str, ...]:
        """Create a perception for each plan that is due; return the conversations affected.

        What a person asked for is heard, no matter how late. A plan of the soul's own lapses after `grace_hours`, and
        so does a plan for a conversation that the soul has ended. Each plan is heard exactly once, even with
        concurrent callers.
        """
        return await self._core.write(lambda db: fire_due(db, now, timedelta(hours=grace_hours)))

    def next_due(self) -> datetime | None:
        """Return when the next plan is due; None if there is none."""
        at = self._core.value("plan_next")
        with Decoding("due", "next"):
            return None if at is None else instant(at)

    def open_plans(self, conversation: str) -> int:
        """Return the number of pending plans of a conversation."""
        with self._core.snapshot() as db:
            return open_plans(db, conversation)

    def waiting(self, perception: Perception) -> tuple[PlanHere, ...]:
        """Return what waits for a speaker in the places that share the audience where they spoke, soonest first."""
        with self._core.snapshot() as db:
            seeing = Seeing(db, perception)
            return plans_here(db, seeing.ids(seeing.speaker), seeing.audience)

    def undertaken(self, person: str, audience: str) -> str:
        """Return what the soul undertook for a person in exactly this audience and has not done; empty if nothing."""
        with self._core.snapshot() as db:
            return db.value("undertaken", persons=dump(list(ids_of(db, person))), audience=audience) or ""

    async def move(self, schedule_id: int, at: datetime) -> bool:
        """Move a plan that waits to another time; False if there is none."""

        def write(db: Database) -> bool:
            row = db.one("plan_here", id=schedule_id)
            if row is None or row["fired_turn"] is not None:
                return False
            move_plan(db, row, PlanMoved(plan=schedule_id, at=at))
            return True

        return await self._core.write(write)

    async def plan(self, schedule: Schedule) -> bool:
        """Store a plan outside any turn; False if `MOST_OPEN` are already pending there.

        A pending plan with the same conversation and key stays unchanged.
        """
        return await self._core.write(lambda db: plan(db, schedule))

    async def cancel(self, schedule_id: int) -> bool:
        """Cancel a plan that was not heard yet; False if there is none."""
        return bool(await self._core.write(lambda db: cancel(db, schedule_id)))

    def jobs(self) -> Mapping[str, Due]:
        """Return every job that was ever armed."""
        return {row["job"]: Due(instant(row["next_due"]), row["failures"]) for row in self._core.look("jobs")}

    async def arm(self, due: Mapping[str, datetime], gone: Sequence[str] = ()) -> None:
        """Set when jobs are due next, and delete the jobs in `gone`."""

        def write(db: Database) -> None:
            for job, at in due.items():
                db.run("job_armed", job=job, next_due=stamp(at))
            for job in gone:
                db.run("job_gone", job=job)

        await self._core.write(write)

    async def ring(self, job: str, conversation: str, due: datetime, next_due: datetime, now: datetime) -> bool:
        """Create a perception for a due job and set when it is due next, in one transaction.

        Returns False if nothing new is heard, because its last run still waits or this instant was heard before.
        """
        perception = Perception(
            key=f"due:{job}:{stamp(due)}",
            conversation=conversation,
            audience=SELF,
            at=now,
            position=stamp(due),
            kind=Kind.TICK,
            origin=Origin.INTERNAL,
            owes=False,
            extra=TickExtra(job=job, due_at=stamp(due)),
        )

        def write(db: Database) -> bool:
            if not db.change("job_rung", job=job, due=stamp(due), next_due=stamp(next_due)):
                return False
            if db.one("job_waits", conversation=conversation):
                return False
            return keep(db, perception, stamp(now))

        return await self._core.write(write)

    async def job_ended(self, job: str, started_at: datetime, ended_at: datetime, outcome: str, failures: int) -> None:
        """Record the outcome of a job's work."""
        values = {"started_at": stamp(started_at), "ended_at": stamp(ended_at), "outcome": outcome}
        await self._core.write(lambda db: db.change("job_ended", job=job, failures=failures, **values))
