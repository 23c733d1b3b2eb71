"""A soul on a real network's library whose model is obedient: it writes the sections that a row names, on a real wire."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import anthropic  # noqa: F401 - a second or two to import, which is no part of any deadline here

from both import SIDES, Side
from claudius.compose import provider
from claudius.config.load import load
from claudius.home import Home
from claudius.testing.adapter_contract.stage import ANA, DM
from claudius.testing.alive import UNHURRIED, Alive, alive
from claudius.testing.model_calls import Call
from lab.loopback.discord.state import GUILD
from lab.loopback.model import MODEL, ModelServer
from minds import until, wanted

WIRES = {"openai": "openai_compat", "anthropic": "anthropic_api"}
LINE = "So it is."
Section = str | Callable[[str], str]


def way(row: str, network: str = "") -> tuple[str, str]:
    """Return the network and the wire by which a row goes: each kind has rows enough for all four."""
    number = crc32(row.encode())
    return network if network in SIDES else ("slack", "discord")[number % 2], ("openai", "anthropic")[number // 2 % 2]


@dataclass(slots=True)
class Acted:
    """A running soul, its people, its model, and a clock that goes on from where it was put."""

    side: Side
    model: ModelServer
    ahead: timedelta
    given: Mapping[str, Section] = field(default_factory=dict)
    """The sections of the next replies, or what writes one from its prompt; any other that is asked for is `false`."""
    soul: Alive = field(init=False)
    said: str = ""
    """The id of the last line that somebody said."""

    def now(self) -> datetime:
        """Return the time of the soul and of its network."""
        return datetime.now(UTC) + self.ahead

    def answer(self, call: Call) -> str:
        """Write the sections that a call asks for."""
        if "external_dialogue" not in call.tail:
            return "They talked."
        asked = SimpleNamespace(tail=call.tail, history=())
        given: dict[str, Section] = {
            "internal_monologue": "It was asked.",
            "appraisal": "nothing",
            "acts": "none",
            "external_dialogue": LINE,
        }
        given |= self.given
        tags = wanted(asked) if "Write in this order: " in call.tail else list(given)  # type: ignore[arg-type] # a call
        texts = [(tag, given.get(tag, "false")) for tag in tags]
        return "\n".join(f"<{tag}>{text(call.tail) if callable(text) else text}</{tag}>" for tag, text in texts)

    async def says(
        self, text: str, *, where: str = DM, by: str = ANA, thread: str = "", calls: bool = False, **sections: Section
    ) -> str:
        """Have a person say a line; return the tail of its prompt once it is answered; empty if none was asked."""
        asked, self.given = len(self.tails()), sections
        self.said = await self.side.stage.say(where, text, by=by, thread=thread, calls=calls)
        await self.settled()
        self.given = {}
        return next(iter(self.tails()[asked:]), "")

    async def settled(self) -> None:
        """Wait until everything that was said is heard, answered and done."""
        await self.side.stage.until_told()
        adapter = self.soul.server._lanes._adapters[self.side.stage.name]
        await until(lambda: not (getattr(adapter, "_hearing", ()) or self.soul.server.busy))

    def tails(self) -> list[str]:
        """Return the last user message of each call that asked for words."""
        return [one.tail for one in self.model.asked if "external_dialogue" in one.tail]

    async def until(self, then: datetime, step: timedelta = timedelta(minutes=30)) -> None:
        """Let time go on until an instant, and what is due happen."""
        while (left := then - self.now()) > timedelta():
            await self.shift(min(step, left))
            self.soul.server.tick()
            await asyncio.sleep(0)
            await until(lambda: not self._due())
            await self.settled()

    def _due(self) -> bool:
        return any(one <= self.now() - timedelta(seconds=5) for one, *_ in self.plans())

    async def shift(self, by: timedelta) -> None:
        """Put all clocks forward."""
        self.ahead += by
        await self.side.stage.world.shift_clock(by.total_seconds())  # type: ignore[attr-defined] # each has a world

    def plans(self) -> list[tuple[datetime, str, str]]:
        """Return what waits: when, its text, its repetition; soonest first."""
        kept = self.soul.records().plans()
        return [(datetime.fromisoformat(one["due_at"]), one.get("text", ""), one.get("repeat", "")) for one in kept]

    async def posts(self) -> list[str]:
        """Return what people see of the soul's, the small print of Slack's context blocks below it."""
        seen = [one for one in await self.side.stage.world.visible() if not one.to]  # type: ignore[attr-defined] # each has a world
        small = [[one for one in getattr(post, "blocks", ()) if one.get("type") == "context"] for post in seen]
        return [
            "\n".join([post.text, *(part["text"] for one in blocks for part in one["elements"])])
            for post, blocks in zip(seen, small, strict=True)
        ]


@asynccontextmanager
async def acting(
    home: Home, row: str, *, clock: str, zone: str = "UTC", network: str = "", locale: str = "en-GB", **settings: str
) -> AsyncIterator[Acted]:
    """Start a soul at an instant, on the network and the wire of a row, where the people live in a zone."""
    where, wire = way(row, network)
    ahead = datetime.fromisoformat(clock) - datetime.now(UTC)
    async with SIDES[where]() as side, ModelServer() as model:
        made = Acted(side, model, ahead)
        model.default = made.answer
        space = side.stage.world.service.space  # type: ignore[attr-defined] # each has a world
        setattr(space, "_last_us" if where == "slack" else "_last_id", 0)  # somebody joined before the clock was set
        await side.stage.world.shift_clock(ahead.total_seconds())  # type: ignore[attr-defined] # each has a world
        if where == "slack":
            people: Any = side.stage.world
            await people.add_user("U1", "ana", real_name="Ana Alvarez", tz=zone, locale=locale)
        env = UNHURRIED | {
            "ANTHROPIC_API_KEY": "sk-ant-canary",
            "ANTHROPIC_BASE_URL": model.url,
            "CLAUDIUS_ANTHROPIC_MODEL": MODEL,
            "CLAUDIUS_OPENAI_BASE_URL": model.url + "/v1",
            "CLAUDIUS_OPENAI_MODEL": MODEL,
            "CLAUDIUS_OPENAI_PROFILE": "full",
            "CLAUDIUS_DISCORD_GUILDS": GUILD,
            "CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0",
            "CLAUDIUS_CLOCK_TIMEZONE": zone if where == "discord" else "UTC",
            **settings,
        }
        chain, adapter = provider(load(home, env), home, [WIRES[wire]]), side.make()
        async with alive(
            home,
            chain,
            adapter=adapter,
            settings=env,
            clock=made.now,
            running=lambda: time.monotonic() + (made.ahead - ahead).total_seconds(),
        ) as soul:
            made.soul = soul
            async with asyncio.timeout(20):
                await adapter.link.tried()
            yield made


def acts(*made: Mapping[str, Any]) -> str:
    """Return the section that these acts are."""
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in made) or "none"


def block(tail: str, heading: str) -> str:
    """Return what stands in a prompt under a heading."""
    return tail.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def id_of(tail: str, text: str) -> str:
    """Return the short id under which a text stands in a prompt. Raises: AssertionError if it stands nowhere."""
    for line in re.split(r"\\n|\n", tail):
        if text in line and (found := re.search(r"\b([pfm]\d+) ", line)):
            return found[1]
    raise AssertionError(f"{text!r} stands under no id in the prompt: {tail[-1500:]}")


def instants(texts: Sequence[str]) -> Iterator[datetime]:
    """Read instants."""
    return map(datetime.fromisoformat, texts)
