"""Brings each event to the app: in an envelope, to one of its sockets, again until it is acknowledged."""

import asyncio
import random
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from lab.loopback.slack.records import Delivery, Journal
from lab.loopback.slack.settings import Settings
from lab.loopback.slack.sockets import Sockets

Order = Literal["same", "reversed", "shuffled"]


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is to be brought, however many envelopes it takes."""

    kind: Literal["events_api", "slash_commands", "interactive"]
    payload: Mapping[str, Any]
    event: str
    channel: str = ""
    ts: str = ""

    @property
    def event_id(self) -> str:
        """The event's own id: the same in every envelope. Commands and buttons have none."""
        return str(self.payload.get("event_id", ""))


@dataclass(slots=True)
class Post:
    """The post office. `losing` and `doubling` count the parcels to come; `held` is set while parcels are kept back."""

    settings: Settings
    journal: Journal
    sockets: Sockets
    losing: int = 0
    doubling: int = 0
    held: list[Parcel] | None = None
    on_the_way: int = 0
    """Parcels that are neither acknowledged nor given up."""
    _acks: dict[str, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def bring(self, parcel: Parcel) -> None:
        """Bring a parcel; return at once."""
        if self.losing:
            self.losing -= 1
            self.lose(parcel)
        elif self.held is not None:
            self.held.append(parcel)
        else:
            self._start(parcel)
            if self.doubling:
                self.doubling -= 1
                self._start(parcel)

    def lose(self, parcel: Parcel) -> None:
        """Write down that a parcel never left."""
        self._note(parcel, "", 0, "", 0).fate = "lost"

    def release(self, order: Order, seed: int) -> int:
        """Let go of the parcels that were kept back; give their number."""
        parcels, self.held = self.held or [], None
        if order == "reversed":
            parcels.reverse()
        elif order == "shuffled":
            random.Random(seed).shuffle(parcels)  # noqa: S311 - a test's order, no secret
        for parcel in parcels:
            self._start(parcel)
        return len(parcels)

    def acknowledge(self, envelope_id: str, answer: dict[str, Any]) -> None:
        """Take an ack; one that comes after the deadline counts for nothing."""
        ack = self._acks.get(envelope_id)
        if ack is not None and not ack.done():
            ack.set_result(answer)

    async def close(self) -> None:
        """Give up what is on the way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run something beside, until it ends or the server does."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _start(self, parcel: Parcel) -> None:
        self.on_the_way += 1
        self.start(self._carry(parcel), f"slack-{parcel.event}")

    async def _carry(self, parcel: Parcel) -> None:
        # Source: docs.slack.dev/apis/events-api, "Error handling". Commands and buttons are not tried again.
        delays = self.settings.retry_delays_s if parcel.kind == "events_api" else ()
        try:
            for attempt, delay_s in enumerate((0.0, *delays)):
                if attempt:
                    await asyncio.sleep(delay_s)
                if await self._is_done(parcel, attempt):
                    break
        finally:
            self.on_the_way -= 1
            self.journal.changes.happened()

    async def _is_done(self, parcel: Parcel, attempt: int) -> bool:
        """Try once."""
        envelope_id = str(uuid4())
        socket = self.sockets.pick()
        # `retry_attempt` 0 and an empty reason on the first try; Source: python-slack-events-api#93.
        reason = "timeout" if attempt else ""
        delivery = self._note(parcel, envelope_id, attempt, reason, socket.id if socket else 0)
        if socket is None:
            delivery.fate = "offline"
            self.journal.changes.happened()
            return self.settings.offline == "lose"
        ack = self._acks[envelope_id] = asyncio.get_running_loop().create_future()
        envelope: dict[str, Any] = {
            "envelope_id": envelope_id,
            "type": parcel.kind,
            "payload": parcel.payload,
            "accepts_response_payload": parcel.kind != "events_api",
        }
        if parcel.kind == "events_api":
            envelope |= {"retry_attempt": attempt, "retry_reason": reason}
        try:
            await socket.send(envelope)
            delivery.answer = await asyncio.wait_for(ack, self.settings.ack_deadline_s)
            delivery.fate, delivery.acked_at = "acked", self.journal.now()
        except TimeoutError:
            delivery.fate = "timeout"
        finally:
            del self._acks[envelope_id]
            self.journal.changes.happened()
        return delivery.fate == "acked"

    def _note(self, parcel: Parcel, envelope_id: str, attempt: int, reason: str, socket: int) -> Delivery:
        deliveries = self.journal.deliveries
        delivery = Delivery(
            n=len(deliveries) + 1,
            at=self.journal.now(),
            envelope_id=envelope_id,
            kind=parcel.kind,
            event=parcel.event,
            event_id=parcel.event_id,
            channel=parcel.channel,
            ts=parcel.ts,
            attempt=attempt,
            reason=reason,
            socket=socket,
        )
        deliveries.append(delivery)
        self.journal.changes.happened()
        return delivery
