"""S15, S17: over whole conversations, a secret told in private is in no request made for any other audience."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import repeated
from minds import Clock

PEOPLE = ("ana", "ben", "dee")
CHANNELS = ("ops", "all")
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a directory of our own is made there

STEPS = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(["", "", *CHANNELS]))
"""Who speaks, and where; nowhere = directly."""
COMPANY = st.fixed_dictionaries({channel: st.frozensets(st.sampled_from(PEOPLE), min_size=2) for channel in CHANNELS})
SCRIPTS = st.lists(STEPS, min_size=3, max_size=8)


class Unlisting(RehearsalAdapter):
    """A network that lists no members and reports what one person sees."""

    async def members(self, audience: str) -> Sequence[str] | None:  # noqa: ARG002 - the protocol's signature
        """Return None: the members are unknown."""
        return None

    async def sees(self, person: str, audiences: Sequence[str]) -> Sequence[str]:
        """Return what that person sees."""
        return [audience for audience in audiences if person in self.audiences.get(audience, ())]


def secret(person: str) -> str:
    """Return what a person tells in private alone."""
    return f"canary of {person} in the cellar"


REMIND = "Remind us in 10 minutes to eat."
EAT = '{"do": "remind", "at": "2026-01-05T12:10", "zone": "UTC", "text": "eat"}'


def learn(request: Request) -> str:
    """Say, think, and write down everywhere what was just said."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    return repeated(text, acts=EAT) if text == REMIND else repeated(text)


async def live(
    script: Sequence[tuple[str, str]],
    company: dict[str, frozenset[str]],
    kind: type[RehearsalAdapter] = RehearsalAdapter,
) -> list[Request]:
    """Play a script through the whole soul. Returns every request that was made."""
    voice = Scripted(default=learn)
    network = kind()
    network.audiences = {
        f"shared:rehearsal:t:{channel}": tuple(f"rehearsal:t:{one}" for one in sorted(people))
        for channel, people in company.items()
    }
    settings_ = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1", "CLAUDIUS_USER_MODEL_INTERVAL": "1"}
    with tempfile.TemporaryDirectory(prefix="claudius-s15-", dir=IN_MEMORY) as root:
        home = Home(Path(root))
        home.create()
        async with alive(home, voice, network=network, settings=settings_) as soul:
            for person, channel in script:
                if channel:
                    place = f"rehearsal:t:{channel}:1"
                    await network.hear(
                        f"{person} speaks in {channel}", person=person, conversation=place, is_shared=True
                    )
                else:
                    await network.hear(secret(person), person=person)
                await soul.idle()
    return list(voice.requests)


@given(SCRIPTS, COMPANY, st.sampled_from([RehearsalAdapter, Unlisting]))
@settings(max_examples=max(8, settings().max_examples // 12))
def test_s15_a_secret_is_in_no_request_for_another_audience(
    script: list[tuple[str, str]], company: dict[str, frozenset[str]], kind: type[RehearsalAdapter]
) -> None:
    """S15 P: only requests for a person's own direct messages hold that person's secret. Every part is checked.

    What a channel taught is shown directly only to those who see that channel, however the network reports it.
    """
    requests = asyncio.run(live(script, company, kind))

    assert len(requests) >= len(script)
    for request in requests:
        whole = "\n".join([request.system, *(message.content for message in request.history), request.tail])
        for person in PEOPLE:
            if secret(person) in whole:
                assert request.conversation == f"rehearsal:t:dm-{person}:"
            for channel, people in company.items():
                if request.conversation == f"rehearsal:t:dm-{person}:" and f"speaks in {channel}" in whole:
                    assert person in people


@pytest.mark.parametrize("kind", [RehearsalAdapter, Unlisting])
def test_s17_a_portrait_is_shown_only_where_it_was_learned_or_all_could_see_it(kind: type[RehearsalAdapter]) -> None:
    """S17: a channel shows what was learned there; a direct message also shows what its person could see."""
    everyone = {channel: frozenset(PEOPLE) for channel in CHANNELS}
    script = [("ana", ""), ("ana", "ops"), ("ana", "ops"), ("ana", "all"), ("ana", "")]

    *_, in_ops, in_all, direct = asyncio.run(live(script, everyone, kind))

    assert "ana speaks in ops" in in_ops.tail
    assert secret("ana") not in in_ops.tail + in_all.tail
    assert secret("ana") in direct.tail + "".join(message.content for message in direct.history)
    assert "ana speaks in ops" in direct.tail


async def test_s15_a_reminder_at_a_shared_terminal_makes_nobody_absent(home: Home) -> None:
    """S15: no network reports who shares a terminal, and a reminder that fires there does not make them forgotten."""
    voice, clock = Scripted(default=learn), Clock()
    network = RehearsalAdapter(name="terminal")
    kitchen = "terminal:local:main:kitchen"

    async with alive(home, voice, network=network, clock=clock) as soul:
        for person in ("ben", "ana"):
            await network.hear("We are two here.", person=person, conversation=kitchen)
            await soul.idle()
        await network.hear(secret("ana"), conversation="terminal:local:main:ana")
        await network.hear(REMIND, conversation=kitchen)
        await soul.idle()
        clock.forward(minutes=11)
        soul.server.tick()
        await soul.until_said(5, network)
        asked = len(voice.requests)
        await network.hear("Are we still two?", conversation=kitchen)
        await soul.idle()

    assert any("It is time for what they asked" in request.tail for request in voice.requests)
    assert secret("ana") not in "".join(request.tail for request in voice.requests[asked:])
