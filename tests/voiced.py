"""Shared by the fault tests of providers: a complete soul whose provider is a real client of a loopback model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anthropic  # noqa: F401 - a second or two to import, which is no part of any deadline here

from claudius.compose import provider
from claudius.config.load import load
from claudius.home import Home
from claudius.perception import Perception
from claudius.testing.alive import UNHURRIED, Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from lab.loopback.model import MODEL, Answer, ModelServer
from lab.oracle import Posted, Visible, World, judge


@dataclass(slots=True)
class Voiced:
    """A running soul and the model server that it asks."""

    soul: Alive
    model: ModelServer
    said: list[Perception] = field(default_factory=list)

    async def hear(self, text: str, person: str = "ana") -> None:
        """Have a person say something in a DM."""
        self.said.append(await self.soul.network.hear(text, person=person))

    async def heard(self, text: str, person: str = "ana") -> str:
        """Say something, wait for what becomes visible, and return that."""
        before = len(self.soul.network.visible)
        await self.hear(text, person)
        seen = await self.soul.network.until_visible(before + 1, within_s=60)
        return seen[-1].text

    def judged(self) -> list[str]:
        """Return the rules of the oracle that are broken. Call it when nothing is left to do."""
        posted = [Posted(key=one.key, conversation=one.conversation, position=one.position) for one in self.said]
        seen = self.soul.network.visible
        visible = [Visible(conversation=one.conversation, text=one.text, key=one.key) for one in seen]
        return judge(World(posted=posted, visible=visible), self.soul.home)


@asynccontextmanager
async def voiced(
    home: Home,
    *answers: Answer,
    default: Answer,
    network: RehearsalAdapter | None = None,
    voices: Sequence[str] = ("anthropic_api",),
    **settings: str,
) -> AsyncIterator[Voiced]:
    """Start a soul with the real clients of `voices` and a model server with these answers; judge it at the end."""
    async with ModelServer(answers, default=default) as model:
        env = UNHURRIED | {
            "ANTHROPIC_API_KEY": "sk-ant-canary",
            "ANTHROPIC_BASE_URL": model.url,
            "CLAUDIUS_ANTHROPIC_MODEL": MODEL,
            "CLAUDIUS_OPENAI_BASE_URL": model.url + "/v1",
            "CLAUDIUS_OPENAI_MODEL": MODEL,
            "CLAUDIUS_OPENAI_PROFILE": "full",
            "CLAUDIUS_PSYCHE_ENABLED": "0",  # no archive runs here: a mood that changes would wait for git forever
            **settings,
        }
        chain = provider(load(home, env), home, list(voices))
        async with alive(home, chain, settings=env, network=network) as soul:
            made = Voiced(soul, model)
            yield made
            await soul.idle()
        assert not made.judged()
