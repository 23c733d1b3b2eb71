"""Whether the soul hears, thinks and stores: one list of problems for health, metrics, alerts and doctor."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind, caps, day_start
from claudius.config.tables import AlertSettings, BudgetSettings
from claudius.errors import StoreAway, StoreError
from claudius.home import Home
from claudius.memory.database import in_thread
from claudius.memory.records import Records
from claudius.provider import TellsState, VoiceState
from claudius.runtime.jobs.upkeep import BACKUP
from claudius.runtime.process_resources import Disk
from claudius.runtime.turn_log import TurnLog

OfStore = Literal["store", "backup", "given_up", "disk", "archive"]
Kind = Literal[OfStore, "network", "voice", "budget", "apologies", "tools", "observer", "withheld"]

EMPTY_BYTES = 525_000
"""About the size of a database before its first turn: empty tables and indexes take a page each."""
APOLOGIES_PER_HOUR = 10
FRESH_S = 5.0
"""For how long what was read from the store is used again."""
WRITES_S = 2.0
"""How long the store may take to write what is queued."""
NEAR, SPENT = 80, 100
"""The shares of a budget, in percent, that are problems."""


class Hearing(Struct, frozen=True, kw_only=True):
    """Whether one network is heard."""

    unheard_s: float | None = None
    """For how many seconds it has not been heard; None = it is heard."""
    detail: str = ""
    heard_s: float | None = None
    """Seconds since something was last heard from it; None = never."""
    reconnects: int = 0


class Spending(Struct, frozen=True):
    """One budget, and what was spent of it."""

    budget: str
    limit_usd: float
    """0 = no limit."""
    spent_usd: float

    @property
    def percent(self) -> float:
        """The share that is spent; 0 without a limit."""
        return 100.0 * self.spent_usd / self.limit_usd if self.limit_usd > 0 else 0.0


ROOM = "make room or permit writing as it says; nothing that was accepted is lost"
"""What to do where the store takes no writes, if nothing better is known."""


class Kept(Struct, frozen=True, kw_only=True):
    """What the store says of itself."""

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """As `Records.counts`."""
    waits_since: Mapping[str, datetime] = field(default_factory=dict)
    """`inbox` and `outbox` → since when the oldest unfinished row waits."""
    archive_lag: int = 0
    beliefs: int = 0
    """Those of the cortex that are in force."""
    database_bytes: int = 0
    bytes_per_turn: float | None = None
    disk_free_bytes: int = 0
    disk_days_left: int | None = None
    """How long the disk lasts at the present rate; None = not known yet."""
    spending: tuple[Spending, ...] = ()
    """The budgets of the whole soul."""
    backup_failure: str = ""
    """Why the newest backup failed; empty = it did not."""
    backup_at: datetime | None = None
    """When the newest backup was made."""


class HealthFacts(Struct, frozen=True, kw_only=True):
    """Everything that health depends on, at one instant."""

    at: datetime
    networks: Mapping[str, Hearing]
    voice: VoiceState
    store: str = ""
    """What keeps the store from writing; empty = nothing."""
    store_fix: str = ROOM
    """What to do about it."""
    archive: str = ""
    """What keeps commits from the archive's remote; empty = nothing."""
    tools: Mapping[str, str] = {}
    """What is wrong with each server of tools."""
    observers: Mapping[str, str] = {}
    """What is wrong with each observer of the owner's."""
    apologies: int = 0
    """In the last hour."""
    withheld: Mapping[str, str] = {}
    """As `TurnLog.withheld_lately`."""
    kept: Kept = Kept()


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and what the owner can do about it."""

    kind: Kind
    subject: str = ""
    """Which network or budget, where there are several."""
    detail: str
    fix: str
    fails: bool = True
    """Whether `/health` fails for it; otherwise it is only reported."""
    grade: int = 0
    """How bad it is; the owner is told again when it grows."""
    since: datetime | None = None
    """Since when there is this problem; None = its facts do not say."""

    @property
    def reason(self) -> str:
        """The problem in one line."""
        return f"{self.subject or self.kind}: {self.detail}"


def problems(facts: HealthFacts, settings: AlertSettings) -> tuple[Problem, ...]:
    """Return everything that is wrong, the worst first. Pure."""
    found = [
        Problem(
            kind="network",
            subject=name,
            detail=f"does not hear: {one.detail}" if one.detail else "does not hear",
            fix="`claudius doctor --live` asks the network why; messages that were missed are answered afterwards",
            since=facts.at - timedelta(seconds=one.unheard_s),
        )
        for name, one in facts.networks.items()
        if one.unheard_s is not None
    ]
    if facts.store:
        found.append(Problem(kind="store", detail=facts.store, fix=facts.store_fix))
    found += _of_voice(facts.voice)
    found += [one for spent in facts.kept.spending if (one := _of_budget(spent))]
    kept = facts.kept
    if kept.backup_failure:
        fix = "free some space or correct the path, then run `claudius backup create`"
        found.append(Problem(kind="backup", detail=f"the last backup failed: {kept.backup_failure}", fix=fix))
    if facts.apologies > APOLOGIES_PER_HOUR:
        detail = f"{facts.apologies} in the last hour"
        fix = "`claudius daemon logs` names each turn that failed, `claudius why TURN` its reason"
        found.append(Problem(kind="apologies", detail=detail, fix=fix, fails=False))
    dead = kept.counts["inbox"]["dead"] + kept.counts["outbox"]["failed"] if kept.counts else 0
    if dead:
        detail, fix = f"{dead} messages or replies were given up", "`claudius doctor` names each with its reason"
        found.append(Problem(kind="given_up", detail=detail, fix=fix, fails=False, grade=dead))
    if kept.disk_days_left is not None and kept.disk_days_left < settings.disk_days:
        fix = "free some space, or lower memory.records_days"
        detail = f"at the present rate the disk is full in {kept.disk_days_left} days"
        found.append(Problem(kind="disk", detail=detail, fix=fix, fails=False))
    if facts.archive:
        fix = "see that archive.remote can be reached and lets us in; it is tried again until it does"
        detail = f"not copied to the remote: {facts.archive}"
        found.append(Problem(kind="archive", detail=detail, fix=fix, fails=False))
    found += [
        Problem(
            kind="tools",
            subject=name,
            detail=detail,
            fix=f"`claudius tools check {name}` tries it again, and shows what differs",
            fails=False,
        )
        for name, detail in facts.tools.items()
    ]
    fix = "correct it and `claudius daemon restart`; `claudius daemon logs` names each fault"
    found += [
        Problem(kind="observer", subject=name, detail=detail, fix=fix, fails=False)
        for name, detail in facts.observers.items()
    ]
    fix = "The reply was withheld; `claudius daemon logs` names each such turn"
    found += [
        Problem(kind="withheld", subject=_WITHHELD[rule][0], detail=_WITHHELD[rule][1] + turn, fix=fix, fails=False)
        for rule, turn in sorted(facts.withheld.items())
    ]
    return tuple(found)


_WITHHELD = {
    "G4": ("secret", "I was about to say one, or what has the form of one, in turn "),
    "G5": ("memory", "I was about to repeat what may not be shown there, in turn "),
}


def _of_voice(voice: VoiceState) -> list[Problem]:
    noticed = [
        Problem(kind="voice", subject=f"model{number or ''}", detail=one, fix=_MODELS_AT_HOME, fails=False)
        for number, one in enumerate(voice.notices)
    ]
    if voice.is_well:
        return noticed
    resting = [f"{one.name} rests for {one.left_s:.0f} s: {one.why}" for one in voice.resting]
    detail = "; ".join(resting) or f"the last call failed: {voice.last_error}"
    return [Problem(kind="voice", detail=detail, fix="`claudius doctor --live` asks the model for one word"), *noticed]


_MODELS_AT_HOME = "docs/providers.md says more of models at home"


def _of_budget(spent: Spending) -> Problem | None:
    if spent.percent < NEAR:
        return None
    is_spent = spent.percent >= SPENT
    amount = f"${spent.spent_usd:.2f} of ${spent.limit_usd:.2f} ({spent.budget})"
    return Problem(
        kind="budget",
        subject=spent.budget,
        detail=f"the budget is spent: {amount}" if is_spent else f"{spent.percent:.0f} % is spent: {amount}",
        fix="`claudius usage` says for what; raise it with `claudius config set`, or wait for the next day or month",
        fails=is_spent,
        grade=SPENT if is_spent else NEAR,
    )


def growth(size: Mapping[str, Any], free_bytes: int) -> tuple[float | None, int | None]:
    """Return how many bytes a turn adds, and in how many days the disk is full at this rate. Pure.

    `size` is as `Records.size`; None = not known yet: no turn, or less than a day of them.
    """
    if not size["turns"]:
        return None, None
    a_turn = max(size["bytes"] - EMPTY_BYTES, 0) / size["turns"]
    if size["days"] < 1:
        return a_turn, None
    return a_turn, int(free_bytes / (max(a_turn, 1.0) * size["turns"] / size["days"]))


class Report(Struct, frozen=True, kw_only=True):
    """What is wrong, and the facts that say so."""

    facts: HealthFacts
    problems: tuple[Problem, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong that makes health fail."""
        return not any(one.fails for one in self.problems)

    def document(self, *, is_brief: bool = False) -> dict[str, Any]:
        """Return what `/health` says. `is_brief`: without details, for a reader who showed no token."""
        failing = [one for one in self.problems if one.fails]
        return {
            "ok": self.is_well,
            "reasons": [
                (f"{one.kind}: {one.subject}" if one.subject else one.kind) if is_brief else one.reason
                for one in failing
            ],
            "networks": {name: one.unheard_s is None for name, one in self.facts.networks.items()},
            "voice": self.facts.voice.is_well,
            "store": not self.facts.store,
        }


class Health:
    """Looks at everything that health depends on."""

    def __init__(  # noqa: PLR0913 - one for each that health depends on
        self,
        mind: Mind,
        home: Home,
        disk: Disk,
        *,
        networks: Callable[[], Mapping[str, Hearing]],
        turns: TurnLog,
        records: Callable[[], Records],
        archive: Callable[[], str | None] = lambda: None,
        tools: Callable[[], Mapping[str, str]] = dict,
        observers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Look at `mind` and what carries it; `records` opens what reads beside the store.

        `archive` returns what keeps commits from its remote, `tools` and
        `observers` what is wrong with each of their servers, and of the owner's.
        """
        self._mind, self._home, self._disk, self._networks = mind, home, disk, networks
        self._turns, self._open, self._archive, self._tools = turns, records, archive, tools
        self._observers = observers
        self._records: Records | None = None
        self._reading = asyncio.Lock()
        self._read: tuple[float, Kept | StoreError] | None = None
        self._since: dict[tuple[Kind, str], datetime] = {}

    async def look(self, fresh_s: float = FRESH_S) -> Report:
        """Return what is wrong now. What the store says of itself may be `fresh_s` seconds old."""
        mind, now = self._mind, self._mind.clock()
        kept = await self._kept(now, fresh_s)
        error: StoreError | None = self._disk.shut.error if self._disk.shut else None
        if isinstance(kept, StoreError):
            error, kept = error or kept, Kept()
        else:
            try:
                async with asyncio.timeout(WRITES_S):
                    await mind.store.flush()
            except TimeoutError:
                error = error or StoreError(f"what is queued was not written within {WRITES_S:.0f} s")
            except StoreError as failed:
                error = error or failed
        fix = error.fix if isinstance(error, StoreAway) and error.fix else ROOM
        voices = (mind.provider, *(one.provider for one in mind.voices.values()))
        states = [voice.state() for voice in {id(one): one for one in voices}.values() if isinstance(voice, TellsState)]
        facts = HealthFacts(
            at=now,
            networks=self._networks(),
            voice=VoiceState(
                last_error=next((one.last_error for one in states if one.last_error), ""),
                resting=tuple(resting for one in states for resting in one.resting),
                notices=tuple(dict.fromkeys(notice for one in states for notice in one.notices)),
            ),
            store=error.message.removesuffix(f"; {fix}") if error else "",
            store_fix=fix,
            archive=self._archive() or "",
            tools=self._tools(),
            observers=self._observers(),
            apologies=self._turns.apologies_lately(),
            withheld=self._turns.withheld_lately(),
            kept=kept,
        )
        return Report(facts=facts, problems=self._dated(problems(facts, mind.config().alerts), now))

    def close(self) -> None:
        """Close what reads beside the store."""
        if self._records:
            self._records.close()
            self._records = None

    def _dated(self, found: Sequence[Problem], now: datetime) -> tuple[Problem, ...]:
        """Add to each problem since when it exists, where its own facts do not say so."""
        self._since = {
            (one.kind, one.subject): one.since or self._since.get((one.kind, one.subject), now) for one in found
        }
        return tuple(replace(one, since=self._since[one.kind, one.subject]) for one in found)

    async def _kept(self, now: datetime, fresh_s: float) -> Kept | StoreError:
        loop = asyncio.get_running_loop()
        async with self._reading:
            if self._read is None or loop.time() - self._read[0] >= fresh_s:
                self._read = (loop.time(), await in_thread(self._look_inside, now))
            return self._read[1]

    def _look_inside(self, now: datetime) -> Kept | StoreError:
        try:
            self._records = self._records or self._open()
            return read(self._records, self._home, self._mind.config().budget, now)
        except StoreError as error:
            self.close()
            return error


def read(records: Records, home: Home, budget: BudgetSettings, now: datetime) -> Kept:
    """Return what a store says of itself. Blocks. Raises: StoreError."""
    today = day_start(now)
    spent = caps(budget, records.spent_since(today), records.spent_since(today.replace(day=1)))
    size, free = records.size(), shutil.disk_usage(home.root).free
    a_turn, days = growth(size, free)
    return Kept(
        counts=records.counts(now),
        beliefs=len(records.beliefs(now)["beliefs"]),
        waits_since=records.waits_since(),
        archive_lag=records.archive_lag(),
        database_bytes=size["bytes"],
        bytes_per_turn=a_turn,
        disk_free_bytes=free,
        disk_days_left=days,
        spending=tuple(
            Spending(one.name.removeprefix("budget.").removesuffix("_usd"), one.limit_usd, one.spent_usd)
            for one in spent
        ),
        backup_failure=backup_failure(records, home),
        backup_at=last_backup(home),
    )


def backup_failure(records: Records, home: Home) -> str:
    """Return why the newest backup failed; empty if it did not, or if there is a newer one. Raises: StoreError."""
    job = next((row for row in records.jobs() if row["job"] == BACKUP.name and row["failures"]), None)
    made = last_backup(home)
    if job is None or (made and made >= datetime.fromisoformat(job["ended_at"])):
        return ""
    return str(job["outcome"]).removeprefix("failed: ")


def last_backup(home: Home) -> datetime | None:
    """Return when the newest backup was made; None if there is none."""
    from claudius.memory.sqlite.backups import copies_in, made_at  # noqa: PLC0415 - not needed by a turn

    found = copies_in(home.backups)
    return made_at(found[-1]) if found else None
