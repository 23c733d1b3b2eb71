"""The contract of every provider, built-in or third-party, as numbered cases.

    @pytest.mark.parametrize("case", CASES, ids=str)
    async def test_my_voice_keeps_the_contract(case):
        async with ModelServer() as server:
            await check_provider(case, Voice(make=lambda: MyVoice(server.url), say=server.say, server=server))

A case whose needs a provider does not meet raises `NotClaimed`, to be skipped by name. Faults are the loopback model's,
so that a real client library is driven through them. Source: the chat design, section 9.5.
"""

from __future__ import annotations

from claudius.testing.provider_contract import conversation, endings, faults, prompt, reply
from claudius.testing.provider_contract.faults import FAULTS, check_cut_at
from claudius.testing.provider_contract.voice import CASES, Case, NotClaimed, Voice

__all__ = ["CASES", "FAULTS", "ROOMS", "Case", "NotClaimed", "Voice", "check_cut_at", "check_provider"]

ROOMS = (reply, prompt, conversation, endings, faults)
"""The modules that hold the cases; importing them fills `CASES`."""


async def check_provider(case: Case, voice: Voice) -> None:
    """Check one rule on a provider. Raises: AssertionError if broken, NotClaimed if it lacks what the case needs."""
    if missing := case.needs - voice.has:
        raise NotClaimed(f"{case}: needs {', '.join(sorted(missing))}")
    await case.run(voice)
