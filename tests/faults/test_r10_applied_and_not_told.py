"""R10: Slack applied a call and did not say so. One copy is visible; without a lookup one or none, reported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.loopback.slack.faults import FaultKind
from slack_daemon import PATIENCE_S, slack_daemon

pytestmark = pytest.mark.slow

ENDINGS: tuple[tuple[FaultKind, str], ...] = (
    ("reset", ""),
    ("hang", ""),
    ("status", ""),
    ("cut", ""),
    ("bad_json", ""),
    ("error", "fatal_error"),
    ("error", "internal_error"),
    ("error", "service_unavailable"),
    ("error", "request_timeout"),
)


async def test_r10_one_copy_however_the_answer_is_lost(tmp_path: Path) -> None:
    """The answer is lost in every way, before and after the post was applied, each in its own conversation."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await daemon.start()
        cases = [(kind, error, is_applied) for kind, error in ENDINGS for is_applied in (True, False)]
        for number, (kind, error, is_applied) in enumerate(cases, 2):
            await slack.add_user(f"U{number}", f"person {number}")
            direct = await slack.open_dm(f"U{number}")
            facts = {"error": error} if error else {}
            await slack.fault("chat.postMessage", kind, is_applied=is_applied, where={"channel": direct}, **facts)
            await slack.say(direct, f"U{number}", "hello")
        await slack.until_visible(len(cases), within_s=PATIENCE_S)
        await daemon.drained(heard=len(cases))
        await daemon.stop()

        assert len(await slack.visible()) == len(cases)
        assert sum(bool(call.fault) for call in await slack.calls("chat.postMessage")) == len(cases)
        assert not await daemon.judged()


async def test_r10_what_can_never_be_proved_is_given_up_and_reported(tmp_path: Path) -> None:
    """If no one may read the history, no second copy is posted. After its time the post is dead and in status."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await slack.add_user("U2", "ben")
        other = await slack.open_dm("U2")
        await slack.fault("conversations.history", "error", error="missing_scope", times=999)
        for channel, is_applied in (("D1", True), (other, False)):
            await slack.fault("chat.postMessage", "status", is_applied=is_applied, where={"channel": channel})
        await daemon.start()
        await slack.say("D1", "U1", "hello")
        await slack.say(other, "U2", "hello")
        await daemon.until(
            lambda: len(daemon.rows("SELECT 1 FROM outbox WHERE reason LIKE 'unproven%'")) == 2, what="two doubts"
        )
        await daemon.stop()
        later = (datetime.now(UTC) + timedelta(hours=25)).isoformat()
        await daemon.start(env={"CLAUDIUS_CLOCK": later})
        await daemon.drained(heard=2)
        status = await daemon.status()
        await daemon.stop()

        assert daemon.rows("SELECT DISTINCT state, reason FROM outbox") == [("dead", "unproven")]
        assert (status["outbox"]["failed"], status["inbox"]["dead"]) == (2, 2)
        assert [entry.channel for entry in await slack.visible()] == ["D1"]
        broken = await daemon.judged()
        assert [rule.partition(":")[0] for rule in broken] in (["O1", "O6"], ["O1"])
