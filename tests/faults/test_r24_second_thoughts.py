"""R24: edits and deletions before, during and after the turn, removal from a channel, a deleted one. Both networks."""

from both import Side
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Line, Reply, Scripted
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from ear import echo
from judging import judged
from lab.loopback.discord import state
from lab.loopback.slack.state import BOT_USER
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage


def slowly(request: Request) -> Reply:
    """Take a moment over each answer."""
    return Line(deltas=(echo(request),), delay_s=0.05)


async def test_r24_every_second_thought_at_every_moment(side: Side, home: Home) -> None:
    """Many messages are edited or deleted at once, a moment later, or after the answer: no rule is broken."""
    kept = 0
    async with side.wake(home, Scripted(default=slowly)) as soul:
        for number in range(12):
            message = await side.stage.say(DM, f"m{number}")
            if number % 3 == 1:
                await side.stage.until_told()
            elif number % 3 == 2:
                await soul.idle()
            if number % 4 == 0:
                await side.stage.delete(DM, (message,))
            elif number % 4 == 1:
                await side.stage.edit(DM, message, f"m{number}, better")
            kept += number % 4 != 0
            await side.stage.until_told()
        shown = await soul.until_said(kept, side.stage)

    assert len(shown) >= kept
    assert not await judged(side, home)


async def test_r24_where_it_may_not_speak_any_more_it_gives_up_once(side: Side, home: Home) -> None:
    """If the channel is archived or the bot removed before it speaks: dead with a reason, and others are answered."""
    stage = side.stage
    async with side.wake(home, Scripted([Line(deltas=(echo_of("hello"),), delay_s=0.3)], default=echo)) as soul:
        await stage.say(CHANNEL, "hello", calls=True)
        await stage.until_told()
        if isinstance(stage, SlackStage):
            await stage.world.leave("C1", BOT_USER)
        else:
            assert isinstance(stage, DiscordStage)
            await stage.world.overwrite(state.CHANNEL, deny=["view_channel", "send_messages"])
        await stage.say(DM, "and here?")
        await stage.until_visible(1)
        await soul.idle()
        records = soul.records()
        dead = records.dead()
        records.close()

    assert [one.where for one in await stage.visible()] == [DM]
    assert {one["reason"] for one in dead} <= {"not_in_channel", "channel_not_found", "50001", "50013", "thread_gone"}
    assert dead
    broken = await judged(side, home)
    assert [rule.partition(":")[0] for rule in broken] == ["O1"]


def echo_of(text: str) -> str:
    """Return a whole reply that echoes."""
    return f"<internal_monologue>hm</internal_monologue><external_dialogue>re {text}</external_dialogue>"
