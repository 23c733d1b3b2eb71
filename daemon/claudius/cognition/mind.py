"""Hold what a turn needs to run (`Mind`: store, provider, soul, clock …), and the stages of the budgets.

`compose` builds one `Mind`, and every turn reads it. As spending nears a cap, features stop in a fixed order. Source:
the design, section 7: whispers first, then the cortex, then model updates, then a polite refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from time import monotonic
from typing import Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.hooks import Hooks
from claudius.config.schema import Config
from claudius.config.tables import BudgetSettings
from claudius.memory.store import Store
from claudius.memory.turns import SpendingCap
from claudius.observed import ConsultAnswer, ConsultRequest
from claudius.perception import Perception, Place, is_terminal
from claudius.provider import Provider, SecondVoice, Slot
from claudius.psyche.attend import acknowledgement
from claudius.recollection import Recollection
from claudius.soul import SoulText
from claudius.tool import Hands


def is_by_owner(perceptions: Sequence[Perception], config: Config) -> bool:
    """Return whether an owner said one of them. Pure."""
    return any(one.is_owner or one.person in config.owners for one in perceptions)


class Stage(StrEnum):
    """How close spending is to a cap."""

    OPEN = "open"
    WHISPERS_OFF = "whispers_off"
    CORTEX_OFF = "cortex_off"
    UPDATES_OFF = "updates_off"
    REFUSING = "refusing"


_FROM = ((1.0, Stage.REFUSING), (0.95, Stage.UPDATES_OFF), (0.9, Stage.CORTEX_OFF), (0.8, Stage.WHISPERS_OFF))


def stage(limit_usd: float, spent_usd: float) -> Stage:
    """Return the stage that spending has reached; a limit of 0 means no limit. Pure."""
    if limit_usd <= 0:
        return Stage.OPEN
    share = spent_usd / limit_usd
    return next((found for least, found in _FROM if share >= least), Stage.OPEN)


def day_start(now: datetime) -> datetime:
    """Return the start of the UTC day. Pure."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


class Cap(Struct, frozen=True, kw_only=True):
    """One budget: its limit, and what was spent of it."""

    name: str
    """Its setting, as in `budget.daily_usd`."""
    of: str = ""
    """The person or channel that it applies to; empty = the whole soul."""
    limit_usd: float
    """0 = there is none."""
    spent_usd: float

    @property
    def stage(self) -> Stage:
        """How close spending is to it."""
        return stage(self.limit_usd, self.spent_usd)


def caps(budget: BudgetSettings, day_usd: float, month_usd: float) -> tuple[Cap, Cap]:
    """Return the budgets of the whole soul: of this UTC day and of this month. Pure."""
    return (
        Cap(name="budget.daily_usd", limit_usd=budget.daily_usd, spent_usd=day_usd),
        Cap(name="budget.monthly_usd", limit_usd=budget.monthly_usd, spent_usd=month_usd),
    )


def tightest(found: Sequence[Cap]) -> Cap:
    """Return the budget that is nearest to its limit; the first one if none has a limit. Pure."""
    return max(found, key=lambda one: one.spent_usd / one.limit_usd if one.limit_usd else -1.0)


def spending(store: Store, budget: BudgetSettings, now: datetime) -> tuple[Cap, Cap]:
    """Return the budgets of the whole soul with what was spent of them."""
    today = day_start(now)
    since = (today, today.replace(day=1))
    return caps(budget, *[store.turns.spent_since(one) for one in since])


T = TypeVar("T")

FRESH_S = 0.1
"""How long a read of a watched file stays valid; an edit takes effect within 300 ms."""


def lately(
    read: Callable[[], T],
    fresh_s: float = FRESH_S,
    monotonic: Callable[[], float] = monotonic,
    mark: Callable[[], str] = str,
) -> Callable[[], T]:
    """Return a cached `read` that reads again when its last value is older than `fresh_s` seconds, or `mark` moved."""
    last: list[tuple[float, str, T]] = []

    def reading() -> T:
        now = monotonic()
        if not last or now - last[0][0] >= fresh_s or last[0][1] != mark():
            value = read()  # which may move the mark
            last[:] = [(now, mark(), value)]
        return last[0][2]

    return reading


class Show(Protocol):
    """Takes text of the reply as it becomes speakable; set if the conversation's adapter streams."""

    async def __call__(self, text: str) -> None:
        """Show the next piece."""


class StepVoice(Struct, frozen=True):
    """The provider and model that answer one cognitive step."""

    provider: Provider
    model: str | None = None
    """None = the provider's own model."""


class Mind(Struct, frozen=True, kw_only=True):
    """Everything a turn needs to run. `compose` builds it once; tests build their own."""

    store: Store
    provider: Provider
    soul: Callable[[], SoulText]
    """Returns the current soul text; called once per turn."""
    config: Callable[[], Config]
    """Returns the current configuration; called once per turn."""
    clock: Callable[[], datetime]
    """Wall time, aware, UTC."""
    nonce: Callable[[], str]
    """Returns 128 random bits as 32 hex digits."""
    aged_at: Callable[[], datetime | None] = lambda: None
    """The instant that ages are measured from if the wall clock is in doubt."""
    voices: Mapping[str, StepVoice] = field(default_factory=dict)
    """Cognitive step → its own voice; such a step is asked in a separate call."""
    secrets: Sequence[str] = ()
    """Values that no reply may contain; a key that is edited while the soul is awake is added."""
    hooks: Hooks = field(default_factory=Hooks)
    """The observers of turns."""
    reflects: Callable[[], bool] = lambda: False
    """Whether the cortex is running: its beliefs are recalled, and turns do not assess peers."""
    slot: Slot = field(default_factory=Slot)
    """Who uses a model whose server answers one call at a time."""
    transcribe: Callable[[bytes, str, str], Awaitable[str]] | None = None
    """Writes down a recording, of which it is given the bytes, the name and the media type; None = nothing does."""
    hands: Hands | None = None
    """Does tools; None = there are none, and nothing is said of them."""
    consult: Callable[[ConsultRequest], Awaitable[ConsultAnswer]] | None = None
    """Consults the cortex before speaking; None = there is none."""

    def beside(self) -> Mind:
        """Return the mind of what thinks beside the turns."""
        return replace(self, provider=SecondVoice(self.provider, self.slot))

    def spending(self, perception: Perception | None = None) -> Sequence[Cap]:
        """Return the budgets with what was spent of them; for a perception, its person's and its channel's too."""
        budget, now = self.config().budget, self.clock()
        is_capped = budget.daily_usd or budget.monthly_usd or not perception
        found: list[Cap] = [*spending(self.store, budget, now)] if is_capped else []
        if perception is None:
            return found
        person, channel, limit_usd = perception.person, "", budget.person_daily_usd
        if limit_usd and person:
            spent = self.store.turns.spent_since(day_start(now), person=person)
            found.append(Cap(name="budget.person_daily_usd", of=person, limit_usd=limit_usd, spent_usd=spent))
        if (limit_usd := budget.channel_daily_usd) and not perception.audience.startswith("private:"):
            channel = Place.of(perception.conversation).of_channel
            spent = self.store.turns.spent_since(day_start(now), channel=channel)
            found.append(Cap(name="budget.channel_daily_usd", of=channel, limit_usd=limit_usd, spent_usd=spent))
        return found

    async def may_ask(self, known: Recollection) -> bool:
        """Book the next call of a turn; False if a budget is spent, with what other processes have booked."""
        budget = self.config().budget
        if not (budget.daily_usd or budget.monthly_usd or budget.person_daily_usd or budget.channel_daily_usd):
            return True
        today, person = day_start(self.clock()), known.speaker.person if known.speaker else ""
        channel = "" if known.audience.startswith("private:") else Place.of(known.conversation).of_channel
        caps = (
            SpendingCap(limit_usd=budget.daily_usd, since=today),
            SpendingCap(limit_usd=budget.monthly_usd, since=today.replace(day=1)),
            SpendingCap(limit_usd=budget.person_daily_usd if person else 0.0, since=today, person=person),
            SpendingCap(limit_usd=budget.channel_daily_usd if channel else 0.0, since=today, channel=channel),
        )
        return await self.store.turns.reserve(known.conversation, person, [one for one in caps if one.limit_usd])

    def stage(self, perception: Perception | None = None) -> Stage:
        """Return how close spending is to the tightest budget that applies to a perception, or to the soul's own work.

        While the soul is paused, it does no work of its own.
        """
        if perception is None and self.is_paused():
            return Stage.REFUSING
        budget = self.config().budget
        is_capped = budget.daily_usd or budget.monthly_usd
        if not is_capped and not (perception and (budget.person_daily_usd or budget.channel_daily_usd)):
            return Stage.OPEN
        found = self.spending(perception)
        return tightest(found).stage if found else Stage.OPEN

    def is_paused(self) -> bool:
        """Return whether the soul is paused: by the settings here, or for every process that shares its store."""
        return self.config().runtime.paused or self.store.leases.is_paused()

    async def is_silent(self, conversation: str) -> bool:
        """Return whether nobody but an owner is answered here; if only this process is paused, others get the lane."""
        if is_terminal(conversation):
            return self.is_paused()
        if is_paused := self.config().runtime.paused:  # while the whole soul is, `oldest` finds nothing
            await self.store.leases.release(conversation, -1)
        return is_paused

    def acknowledgement(self, turn: str) -> str:
        """Return the line for a turn that needs no thought; empty if the soul has none."""
        lines = self.soul().steps["external_dialogue"].acknowledge
        return acknowledgement(turn, lines) if lines else ""
