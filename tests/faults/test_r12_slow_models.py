"""R12: a model is silent, slow, or stops midway. Its message gets a reply or an apology, and no one else waits."""

from __future__ import annotations

import pytest

from claudius.home import Home
from driven import reply
from lab.loopback.model import Reply
from voiced import voiced

DEADLINES = {
    "CLAUDIUS_MODEL_FIRST_BYTE_S": "1",
    "CLAUDIUS_MODEL_IDLE_S": "0.5",
    "CLAUDIUS_MODEL_TOTAL_S": "3",
    "CLAUDIUS_MODEL_RETRIES": "1",
    "CLAUDIUS_RUNTIME_PATIENCE_S": "2",
}
MONOLOGUE = "<internal_monologue>CANARY in thought, quite long enough to be a thought.</internal_monologue>\n"
SLOW = {
    "no byte": Reply(text=reply("late"), fault="hang", when="slowly", keep=True),
    "one byte now and then": Reply(text=reply("late"), gap_s=2.0, when="slowly", keep=True),
    "silent after the monologue": Reply(text=MONOLOGUE + "<external_dial", when="slowly", fault="hang_mid", keep=True),
}


@pytest.mark.parametrize("kind", SLOW)
async def test_r12_the_asker_is_answered_once_and_nobody_else_waits(home: Home, kind: str) -> None:
    """The asker gets one reply or apology, in character, and another person is answered while the model hangs."""
    async with voiced(home, SLOW[kind], default=reply("at once"), **DEADLINES) as all_of_it:
        await all_of_it.hear("slowly please")
        other = await all_of_it.heard("hello", person="ben")
        seen = await all_of_it.soul.network.until_visible(2, within_s=60)

    assert other == "at once"
    assert [one.conversation for one in seen] == ["rehearsal:t:dm-ben:", "rehearsal:t:dm-ana:"]
    assert "CANARY" not in seen[1].text


async def test_r12_a_model_that_comes_back_is_heard(home: Home) -> None:
    """If it hangs twice and then speaks, it is asked again within the turn's timeout, without an apology."""
    hang = Reply(fault="hang")
    async with voiced(
        home, hang, hang, default=reply("here I am"), **DEADLINES | {"CLAUDIUS_RUNTIME_PATIENCE_S": "60"}
    ) as it:
        said = await it.heard("hello")

        assert said == "here I am"
        assert len(it.model.asked) == 3


async def test_r12_a_short_turn_timeout_is_kept_whatever_the_deadlines_of_a_call(home: Home) -> None:
    """A silent model is given up at the turn's timeout, not after each call's minute and its retries."""
    hang = Reply(text=reply("late"), fault="hang", keep=True)
    async with voiced(home, hang, default=reply("x"), CLAUDIUS_RUNTIME_PATIENCE_S="1") as it:
        said = await it.heard("hello")

        assert "model" in said
        assert len(it.model.asked) == 1
