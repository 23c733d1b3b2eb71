"""Tell the owners once when something is wrong, and once when it is resolved: by direct message, and by webhook.

An alert needs no store: it is sent even while the disk is full. What was told is kept in `run/alerts`, so that a
restart does not repeat it. Of several processes of one soul that find the same, one tells.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from msgspec import Struct

import claudius
from claudius.cognition.mind import Mind
from claudius.cognition.timing import is_quiet, known_zone, read_hours
from claudius.config.load import blot
from claudius.decoding import decoder
from claudius.errors import DeliveryLater, DeliveryRefused, DeliveryUnknown, StoreError
from claudius.foreign import unquoted
from claudius.home import Home, write_private
from claudius.proxies import proxy_of
from claudius.runtime.adapter import Adapter
from claudius.runtime.health import Health, Kind, Problem

log = logging.getLogger(__name__)

LOOK_S = 10.0
"""How often health is checked."""
URGENT: tuple[Kind, ...] = ("network", "store", "disk")
"""Told at once, even in quiet hours."""
OF_THE_MACHINE: Kind = "disk"
"""Told of each machine, though they share a soul."""
PATIENCE: dict[Kind, timedelta] = {"network": timedelta(minutes=2), "voice": timedelta(seconds=30)}
"""For how long a network is not heard, or the model fails, before it is told: a retry often succeeds."""
KEPT_HOURS = 24
"""For how long the delivery of an alert is retried."""
POST_S = 10.0
"""How long the webhook may take."""
WEBHOOK = "webhook"


class ToldAlert(Struct, frozen=True, kw_only=True):
    """A problem that the owners were told of."""

    kind: Kind
    subject: str
    grade: int
    reason: str
    since: datetime


class Alert(Struct, frozen=True, kw_only=True):
    """One thing to tell."""

    state: Literal["firing", "resolved"]
    kind: Kind
    subject: str
    detail: str
    fix: str
    since: datetime
    at: datetime

    @property
    def text(self) -> str:
        """The line for a person."""
        if self.state == "resolved":
            return f"Mended: {self.detail}"
        return f"Something is wrong, since {self.since:%Y-%m-%d %H:%M} UTC: {self.detail}. {self.fix}"

    def document(self) -> dict[str, Any]:
        """Return what the webhook receives."""
        told = {name: msgspec.to_builtins(getattr(self, name)) for name in self.__struct_fields__}
        return {"source": "claudius", "version": claudius.__version__, "text": self.text, **told}


def decide(
    told: Sequence[ToldAlert], found: Sequence[Problem], now: datetime, *, is_silent: bool
) -> tuple[tuple[ToldAlert, ...], tuple[Alert, ...]]:
    """Return what counts as told from now on, and the alerts to send now. Pure.

    `is_silent`: these are quiet hours, in which only what is urgent is told.
    """
    due = [
        one
        for one in found
        if (one.kind in URGENT or not is_silent) and now - (one.since or now) >= PATIENCE.get(one.kind, timedelta())
    ]
    known = {(one.kind, one.subject): one for one in told}
    standing = {(one.kind, one.subject) for one in found}
    alerts = []
    for key, before in tuple(known.items()):
        if key not in standing and (before.kind in URGENT or not is_silent):
            alerts.append(_alert("resolved", before, before.reason, "", now))
            del known[key]
    for one in due:
        key = (one.kind, one.subject)
        if key in known and known[key].grade >= one.grade:
            continue
        known[key] = ToldAlert(
            kind=one.kind, subject=one.subject, grade=one.grade, reason=one.reason, since=one.since or now
        )
        alerts.append(_alert("firing", known[key], one.reason, one.fix, now))
    return tuple(known.values()), tuple(alerts)


def _alert(state: Literal["firing", "resolved"], told: ToldAlert, detail: str, fix: str, now: datetime) -> Alert:
    return Alert(state=state, kind=told.kind, subject=told.subject, detail=detail, fix=fix, since=told.since, at=now)


class _Unsent(Struct):
    alert: Alert
    to: set[str]
    """The webhook and the persons that have not received it yet."""


class Alerts:
    """Tells the owners of one soul."""

    def __init__(self, mind: Mind, health: Health, adapters: Mapping[str, Adapter], home: Home) -> None:
        """Report what `health` finds, through `adapters` and the webhook of the settings."""
        self._mind, self._health, self._adapters = mind, health, adapters
        self._path = home.run / "alerts"
        self._told: tuple[ToldAlert, ...] = self._read()
        self._shared: tuple[ToldAlert, ...] | None = None
        """What the other processes know that is told here."""
        self._unsent: list[_Unsent] = []

    async def run(self) -> None:
        """Check every few seconds, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Check once, and send the alerts that are due."""
        config, now = self._mind.config(), self._mind.clock()
        report = await self._health.look()
        is_silent = is_quiet(now, known_zone(config.clock.timezone), read_hours(config.clock.quiet))
        told, alerts = decide(self._told, report.problems, now, is_silent=is_silent)
        for alert in await self._not_told_elsewhere(told, alerts):
            log.warning(
                "alert", extra={"state": alert.state, "kind": alert.kind, "subject": alert.subject, "why": alert.detail}
            )
            hooked = {WEBHOOK} if config.alerts.webhook else set()
            heard = {name for name, one in report.facts.networks.items() if one.unheard_s is None}
            self._unsent.append(_Unsent(alert, hooked | await self._owners(heard)))
        if told != self._told:
            self._told = told
            self._write()
        oldest = now - timedelta(hours=KEPT_HOURS)
        self._unsent = [one for one in self._unsent if one.alert.at > oldest]
        for unsent in self._unsent:
            for to in sorted(unsent.to):
                if await self._send(unsent.alert, to, config.alerts.webhook):
                    unsent.to.discard(to)
        self._unsent = [one for one in self._unsent if one.to]

    async def _not_told_elsewhere(self, told: tuple[ToldAlert, ...], alerts: Sequence[Alert]) -> Sequence[Alert]:
        """Return the alerts that no other process has sent, or will send once it is over there, too."""
        if told == self._shared:
            return alerts
        here = {f"{one.kind} {one.subject}": one.grade for one in told if one.kind != OF_THE_MACHINE}
        try:
            elsewhere = await self._mind.store.leases.told_elsewhere(here)
        except StoreError:
            return alerts
        self._shared = told
        return [one for one in alerts if elsewhere.get(name := f"{one.kind} {one.subject}", -1) < here.get(name, 0)]

    async def _owners(self, heard: set[str]) -> set[str]:
        """Return one id of each owner: the first on a network that is heard, else the first that can be told at all."""
        chosen: dict[str, str] = {}
        telling = [name for name, one in self._adapters.items() if one.tells]
        reachable = [one for one in self._mind.config().owners if one.partition(":")[0] in telling]
        for person in sorted(reachable, key=lambda one: one.partition(":")[0] not in heard):
            ids = [person]
            with suppress(StoreError):
                ids = sorted({person, *await self._mind.store.people.ids_of(person)})
            chosen.setdefault(ids[0], person)
        return set(chosen.values())

    async def _send(self, alert: Alert, to: str, webhook: str) -> bool:
        """Send an alert once. Returns whether nothing is left to try."""
        try:
            if to == WEBHOOK:
                return await _post(webhook, alert.document(), self._mind.secrets) if webhook else True
            if adapter := self._adapters.get(to.partition(":")[0]):
                await adapter.tell(to, blot(alert.text, self._mind.secrets))
        except (DeliveryRefused, DeliveryUnknown) as error:  # what may have arrived is not said twice
            log.warning("an owner was not told", extra={"person": to, "error": unquoted(error)})
        except (DeliveryLater, OSError, TimeoutError) as error:
            log.info("an owner is told later", extra={"person": to, "error": unquoted(error)})
            return False
        return True

    def _read(self) -> tuple[ToldAlert, ...]:
        try:
            return decoder(tuple[ToldAlert, ...]).decode(self._path.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return ()

    def _write(self) -> None:
        """Keep what was told. If that fails, a restart tells it again."""
        with suppress(OSError):
            write_private(self._path, msgspec.json.encode(self._told).decode())


async def _post(url: str, document: Mapping[str, Any], secrets: Sequence[str]) -> bool:
    """Post a document. Returns whether it arrived, or never will. Raises: OSError, TimeoutError."""
    import aiohttp  # noqa: PLC0415 - only where there is a webhook

    body = blot(msgspec.json.encode(document).decode(), secrets).encode()
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=POST_S)) as session,
            session.post(
                url, data=body, headers={"Content-Type": "application/json"}, allow_redirects=False, proxy=proxy_of(url)
            ) as answered,
        ):
            if answered.status < 300:
                return True
            log.warning("the webhook refused an alert", extra={"status": answered.status})
            return answered.status not in (408, 429) and answered.status < 500
    except aiohttp.ClientError as error:
        raise ConnectionError(f"the webhook: {type(error).__name__}") from error
