"""Makes trouble on order: at the Web API, at the sockets, on the way of events."""

from dataclasses import dataclass
from typing import Any

from lab.loopback.slack.envelopes import Order
from lab.loopback.slack.faults import Fault, FaultKind
from lab.loopback.slack.service import Service
from lab.loopback.slack.sockets import Health, Reason, Socket


@dataclass(frozen=True)
class Trouble:
    """What goes wrong because a test wants it."""

    service: Service

    async def fault(self, method: str, kind: FaultKind, **facts: Any) -> None:
        """Order a fault of the Web API; facts are the fields of `Fault`."""
        self.service.faults.ordered.append(Fault(method, kind, **facts))

    async def heal(self) -> None:
        """Take back every order that is still open; sockets are live again."""
        sockets, post = self.service.sockets, self.service.post
        self.service.faults.ordered.clear()
        sockets.refusing = sockets.spoiling = post.losing = post.doubling = 0
        await self.sicken("live")
        post.release("same", 0)

    async def sicken(self, health: Health, *, is_lasting: bool = False) -> int:
        """Make every open socket deaf or half-open, and new ones too if it `is_lasting`; give their number."""
        sockets = self.service.sockets
        for socket in sockets.open.values():
            socket.health = health
        sockets.newcomers = health if is_lasting or health == "live" else sockets.newcomers
        return len(sockets.open)

    async def refuse_upgrades(self, times: int) -> None:
        """Refuse so many sockets; negative = all."""
        self.service.sockets.refusing = times

    async def spoil_tickets(self, times: int) -> None:
        """Issue so many tickets that open nothing; negative = all."""
        self.service.sockets.spoiling = times

    async def drop_sockets(self) -> int:
        """Cut every socket without a close frame; give their number."""
        return self.service.sockets.drop()

    async def close_sockets(self) -> int:
        """Close every socket properly; give their number."""
        sockets = list(self.service.sockets.open.values())
        for socket in sockets:
            self.service.post.start(_closed(socket), f"slack-close-{socket.id}")
        return len(sockets)

    async def disconnect(self, reason: Reason) -> None:
        """Send a `disconnect` frame; but for a warning, the socket ends after `refresh_grace_s`."""
        for socket in list(self.service.sockets.open.values()):
            self.service.post.start(self.service.sockets.announce(socket, reason), f"slack-refresh-{socket.id}")

    async def double_events(self, times: int) -> None:
        """Bring so many events to come twice, each in an envelope of its own."""
        self.service.post.doubling = times

    async def hold_events(self) -> None:
        """Keep events back until they are released."""
        self.service.post.held = self.service.post.held or []

    async def release_events(self, order: Order = "same", *, seed: int = 0) -> int:
        """Let go of the events that were kept back, in this order; give their number."""
        return self.service.post.release(order, seed)


async def _closed(socket: Socket) -> None:
    await socket.wire.close()
