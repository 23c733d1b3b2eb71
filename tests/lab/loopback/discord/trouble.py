"""Makes trouble on order: at the API, at the sockets, on the way of events."""

from dataclasses import dataclass
from typing import Any

from lab.loopback.discord.faults import Fault, FaultKind
from lab.loopback.discord.post import Meant, Order
from lab.loopback.discord.service import Service
from lab.loopback.discord.sessions import Health


@dataclass(frozen=True)
class Trouble:
    """What goes wrong because a test wants it."""

    service: Service

    async def fault(self, route: str, kind: FaultKind, **facts: Any) -> None:
        """Order a fault of the API; facts are the fields of `Fault`."""
        self.service.faults.ordered.append(Fault(route, kind, **facts))

    async def heal(self) -> None:
        """Take back every order that is still open; sockets are live again."""
        self.service.faults.ordered.clear()
        self.service.gateway.refusing = 0
        self.service.post.losing = self.service.post.doubling = Meant()
        await self.sicken("live")
        self.service.post.release("same", 0)

    async def sicken(self, health: Health, *, is_lasting: bool = False) -> int:
        """Make every open socket deaf, zombie or half-open, and new ones if it `is_lasting`; give their number."""
        gateway = self.service.gateway
        for socket in gateway.sockets.values():
            socket.health = health
        gateway.newcomers = health if is_lasting or health == "live" else gateway.newcomers
        return len(gateway.sockets)

    async def refuse_upgrades(self, times: int) -> None:
        """Refuse so many sockets; negative = all."""
        self.service.gateway.refusing = times

    async def drop_sockets(self, *, is_reset: bool = False) -> int:
        """Cut every socket without a close frame; give their number."""
        return await self.service.gateway.each(lambda socket: socket.cut(is_reset=is_reset))

    async def close_sockets(self, code: int = 4000) -> int:
        """Close every socket with this code; give their number."""
        return await self.service.gateway.each(lambda socket: socket.close(code))

    async def reconnect(self) -> int:
        """Ask every socket to reconnect (op 7); give their number."""
        return await self.service.gateway.each(lambda socket: socket.put(7))

    async def invalidate(self, *, is_resumable: bool) -> int:
        """Call every session invalid (op 9); one that is not resumable is gone. Give the number of sockets."""
        if not is_resumable:
            self.service.sessions.open.clear()
        return await self.service.gateway.each(lambda socket: socket.put(9, is_resumable))

    async def expire_sessions(self) -> int:
        """Forget every session, so that a RESUME is answered with an invalid session; give their number."""
        number = len(self.service.sessions.open)
        self.service.sessions.open.clear()
        return number

    async def double_events(self, times: int, event: str = "") -> None:
        """Bring so many events to come twice, each with a number of its own."""
        self.service.post.doubling = Meant(times, event)

    async def hold_events(self) -> None:
        """Keep events back until they are released."""
        self.service.post.held = self.service.post.held or []

    async def release_events(self, order: Order = "same", *, seed: int = 0) -> int:
        """Let go of the events that were kept back, in this order; give their number."""
        return self.service.post.release(order, seed)
