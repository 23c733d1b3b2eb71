"""R13: errors of a model's service. Only temporary ones are retried, and no other model replaces it unasked."""

from __future__ import annotations

from itertools import pairwise

import pytest

from claudius.home import Home
from driven import reply
from lab.loopback.model import Reply
from voiced import voiced

PASSING = {
    "429": Reply(fault="status", status=429, retry_after=1),
    "529": Reply(fault="status", status=529),
    "500": Reply(fault="status", status=500),
    "an error inside a 200": Reply(text=reply("never"), fault="error_event", at=0),
}
FINAL = {
    "no credit": Reply(fault="status", status=400, message="Your credit balance is too low to access the API"),
    "spend limit": Reply(fault="status", status=429, message="You have reached your specified API usage limits"),
    "401": Reply(fault="status", status=401, message="invalid x-api-key"),
    "403": Reply(fault="status", status=403),
}


@pytest.mark.parametrize("kind", PASSING)
async def test_r13_what_passes_is_asked_again(home: Home, kind: str) -> None:
    """The answer comes after a wait, never before the service's Retry-After, and without an apology."""
    async with voiced(home, PASSING[kind], default=reply("here")) as it:
        said = await it.heard("hello")

        assert said == "here"
        assert len(it.model.asked) == 2
        waits = [after.at - before.at for before, after in pairwise(it.model.asked)]
        assert min(waits) >= (PASSING[kind].retry_after or 0)


@pytest.mark.parametrize("kind", FINAL)
async def test_r13_what_does_not_pass_is_asked_once_and_no_rehearsal_stands_in(home: Home, kind: str) -> None:
    """One call and one apology: the rehearsal is next in the chain, and stays silent."""
    async with voiced(home, default=FINAL[kind], voices=("anthropic_api", "rehearsal")) as it:
        said = await it.heard("hello")
        entries = (it.soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]
        spoken = [entry for entry in entries if entry["entry_type"] == "externalDialog"]

        assert len(it.model.asked) == 1
        assert [entry["metadata"]["apology"] for entry in spoken] == ["provider_down"]
        assert spoken[0]["turn"] not in said


async def test_r13_a_closed_account_rests_and_the_next_provider_answers(home: Home) -> None:
    """After a refusal the account is not asked again, and the next provider of the chain is asked once each time."""
    refusal = FINAL["401"]
    async with voiced(home, refusal, default=reply("the other"), voices=("anthropic_api", "openai_compat")) as it:
        apology = await it.heard("one")
        said = await it.heard("two")

        assert "model" in apology
        assert said == "the other"
        assert [call.path for call in it.model.asked] == ["/v1/messages", "/v1/chat/completions"]
