"""Speaking cases: exactly one message per part, a receipt, an honest answer if its fate is unknown; and closing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from claudius.cognition.output.splitting import in_posts
from claudius.errors import AdapterRefused, DeliveryLater, DeliveryRefused, DeliveryUnknown
from claudius.testing.adapter_contract.ground import Ear, Listening, Make, answer, case, heard, listening
from claudius.testing.adapter_contract.stage import CHANNEL, DM, PATIENCE_S, Stage, Trouble

LONG = "One.\n\n```py\n" + "print('a line of code that is not short')\n" * 150 + "```\n\n" + "The end of it. " * 200


def utf16(text: str) -> int:
    """Return a text's length in UTF-16 units, as networks count it. Pure."""
    return len(text.encode("utf-16-le")) // 2


@case("A15", "what is said is visible once, word for word; looked for, its receipt is found")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        said = answer(heard, "*here* <I> am & so on")
        receipt = await one.adapter.speak(said)
        found = await one.adapter.find(said, decided_at=datetime.now(UTC))
        other = await one.adapter.find(answer(heard, "never said", n=1, of=2), decided_at=datetime.now(UTC))
    assert [shown.text for shown in await stage.visible()] == ["*here* <I> am & so on"]
    assert receipt
    assert found in (receipt, None)  # a network that deduplicates by key need not look
    assert other is None


@case("A16", "applied, and the answer lost: it says that it does not know, and finds it", "lost answers")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        await stage.lose_answer(is_applied=True)
        said = answer(heard, "here")
        receipt = await _unknown(one.adapter.speak(said))
        found = await one.adapter.find(said, decided_at=datetime.now(UTC))
    (shown,) = await stage.visible()
    assert receipt in ("", shown.id)
    assert found == shown.id


@case("A17", "never applied: nothing is visible, and nothing is found", "lost answers")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        await stage.lose_answer(is_applied=False)
        said = answer(heard, "here")
        receipt = await _unknown(one.adapter.speak(said))
        found = await one.adapter.find(said, decided_at=datetime.now(UTC))
    seen = [shown.id for shown in await stage.visible()]
    assert (seen, found) == (([receipt], receipt) if receipt else ([], None))  # a client library may have retried


async def _unknown(speaking: object) -> str:
    """Return the receipt; empty if the delivery's fate is unknown."""
    try:
        return str(await speaking)  # type: ignore[misc] # a coroutine of the adapter's own
    except DeliveryUnknown:
        return ""


@case("A18", "where it is to wait, no try comes earlier, or the caller is told how long", "limits")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        await stage.trouble("slow")
        began_s = asyncio.get_running_loop().time()
        told_s, shown = 0.0, ["here"]
        try:
            await one.adapter.speak(answer(heard, "here"))
        except DeliveryLater as error:
            told_s, shown = error.after_s or 0.0, []
        waited_s = asyncio.get_running_loop().time() - began_s
    assert max(told_s, waited_s) >= 1.0
    assert [each.text for each in await stage.visible()] == shown


@case("A19", "a place that is closed to us refuses, and says why", "limits")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(CHANNEL, "hello", calls=True)
        heard = (await one.ear.until(1))[0]
        await stage.trouble("closed")
        code = ""
        try:
            await one.adapter.speak(answer(heard, "here"))
        except DeliveryRefused as error:
            code = error.code
    assert code
    assert await stage.visible() == []


@case("A20", "a long text comes in parts that fit, in order, in one conversation, with its fences whole")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        limit = one.adapter.post_chars or len(LONG)
        _, posts = in_posts(LONG, limit)
        for n, post in enumerate(posts):
            await one.adapter.speak(answer(heard, post, n=n, of=len(posts)))
        shown = await stage.until_visible(len(posts))
    assert [each.text.strip() for each in shown] == [post.strip() for post in posts]  # networks trim whitespace
    assert {(each.where, each.thread) for each in shown} == {(DM, "")}
    assert all(utf16(each.text) <= limit and each.text.count("```") % 2 == 0 for each in shown)


@case("A21", "what is posted notifies nobody and unfolds nothing, whatever it says", "limits")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(CHANNEL, "hello", calls=True)
        (heard,) = await one.ear.until(1)
        await one.adapter.speak(answer(heard, "@everyone @here <@&1> look: https://example.com"))
        await stage.until_visible(1)
    assert await stage.is_quiet()


@case("A22", "the sign that it thinks comes and goes, and holds nothing up")
async def _(make: Make, stage: Stage) -> None:
    async with listening(make) as one:
        await stage.say(DM, "hello")
        (heard,) = await one.ear.until(1)
        for on in (True, True, False, False):
            await one.adapter.working(heard, on=on)
        await one.adapter.speak(answer(heard, "here"))
    assert [shown.text for shown in await stage.visible()] == ["here"]


@case("A23", "a socket that is cut is made again, and what is said then is heard", "sockets")
async def _(make: Make, stage: Stage) -> None:
    await _heard_again(make, stage, "dropped")


@case("A25", "a socket that is open and tells nothing is found out", "sockets")
async def _(make: Make, stage: Stage) -> None:
    await _heard_again(make, stage, "deaf")


@case("A26", "a session that cannot be taken up again is begun anew", "sockets")
async def _(make: Make, stage: Stage) -> None:
    await _heard_again(make, stage, "renewed")


async def _heard_again(make: Make, stage: Stage, trouble: Trouble) -> None:
    async with listening(make) as one:
        await stage.say(DM, "before")
        (before,) = await one.ear.until(1)
        await stage.trouble(trouble)
        await stage.say(DM, "after")
        async with asyncio.timeout(PATIENCE_S):
            while len(one.ear.heard) < 2:
                await asyncio.sleep(0.01)
                if one.missed.is_set():
                    with suppress(DeliveryLater, DeliveryUnknown):  # between two sockets, or while one closes
                        await one.sweep(before)
    assert [each.text for each in one.ear.heard.values()] == ["before", "after"]


@case("A27", "a token that is not good ends it at once, and is named", "sockets")
async def _(make: Make, stage: Stage) -> None:
    await stage.trouble("shut out")
    adapter, named = make(), ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await adapter.listen(Ear().accept)
    except AdapterRefused as error:
        named = str(error)
    await adapter.close()
    assert "TOKEN" in named


@case("A30", "after the end nothing is heard, and no task is left")
async def _(make: Make, stage: Stage) -> None:
    before = asyncio.all_tasks()
    async with listening(make) as one:
        await stage.say(DM, "hello")
        await one.ear.until(1)
    await stage.say(DM, "too late")
    assert [heard.text for heard in one.ear.heard.values()] == ["hello"]
    async with asyncio.timeout(PATIENCE_S):
        while left := {task for task in asyncio.all_tasks() - before if not task.get_name().startswith("Task-")}:
            await asyncio.wait(left, timeout=0.1)  # tasks of client libraries have default names


@case("A31", "listening is taken away and given back, and speaking goes on; then what was missed is heard", "sockets")
async def _(make: Make, stage: Stage) -> None:
    adapter, missed = make(), asyncio.Event()
    one = Listening(adapter, Ear(), missed)
    adapter.link.on_missed(lambda _: missed.set())
    assert adapter.logs_in
    await adapter.log_in()
    async with heard(one):
        await stage.say(DM, "first")
        (first,) = await one.ear.until(1)
        speaking = asyncio.create_task(adapter.speak(answer(first, "under way", of=2)))
        await asyncio.sleep(0)
    missed.clear()
    await stage.say(DM, "meanwhile")
    await speaking
    await adapter.speak(answer(first, "nobody listens", n=1, of=2))
    assert [each.text for each in one.ear.heard.values()] == ["first"]
    assert (adapter.link.connected, adapter.link.hears, adapter.link.unheard_s()) == (True, False, None)
    async with heard(one):
        await stage.say(DM, "again")
        async with asyncio.timeout(PATIENCE_S):
            await missed.wait()
        await one.sweep(first)
        await one.ear.until(3)
    await adapter.close()
    assert {each.text for each in one.ear.heard.values()} == {"first", "meanwhile", "again"}
    assert [each.text for each in await stage.visible()] == ["under way", "nobody listens"]
