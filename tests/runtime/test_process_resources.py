"""Admission before a turn, and recovery after an unclean stop."""

import asyncio
import os
import signal

from claudius.home import Home
from claudius.providers.scripted import Line, Scripted
from claudius.runtime.failures import CAREFUL_S, CrashRecovery
from claudius.runtime.process_resources import ABREAST, BUSY_S, Admission, Clock, Disk, ProcessResources
from claudius.testing.alive import alive
from driven import Machine, reply, until
from lab.sample import NOW


async def _passes(count: int) -> None:
    """Let the event loop run this many passes."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_few_turns_at_a_time_are_on_their_way_to_the_model() -> None:
    """Of a burst a few turns begin; the next one begins when one of them waits for the model, the oldest first."""
    admission = Admission()

    lanes = [asyncio.create_task(admission.through()) for _ in range(ABREAST + 2)]
    await _passes(4)
    begun = [lane.done() for lane in lanes]
    with (await lanes[0]).waiting():
        await _passes(4)
        begun_then = [lane.done() for lane in lanes]

    assert begun == [True] * ABREAST + [False] * 2
    assert begun_then == [True] * (ABREAST + 1) + [False]
    for lane in lanes:
        lane.cancel()


async def test_what_has_its_answer_ends_before_anything_begins() -> None:
    """While a few turns go on from the model's answer to their end, no other one begins."""
    admission = Admission()
    answered = [await admission.through() for _ in range(ABREAST)]
    for one in answered:
        with one.waiting():
            pass
    another = asyncio.create_task(admission.through())
    await _passes(4)
    begun = another.done()
    answered[0].end()
    await another

    assert not begun


async def test_a_turn_that_waits_for_something_else_keeps_others_back_for_a_quarter_of_a_second() -> None:
    """A turn may fetch a file for minutes before it asks, and others begin all the same."""
    admission = Admission()
    for _ in range(ABREAST):
        await admission.through()

    async with asyncio.timeout(20 * BUSY_S):
        await admission.through()


async def test_a_lane_that_is_cancelled_at_the_turnstile_keeps_nobody_back() -> None:
    """If a waiting lane is cancelled, the next one in the queue takes its place."""
    admission = Admission()
    first, *_ = [await admission.through() for _ in range(ABREAST)]
    gone, stays = (asyncio.create_task(admission.through()) for _ in range(2))
    await _passes(3)
    gone.cancel()
    first.end()

    await stays
    assert gone.cancelled()


async def crashed(home: Home, people: int) -> None:
    """Leave a home as a crash does: one accepted message of each person, and no record of a clean stop."""
    async with alive(home, Scripted(default=Line(hang=True)), clean=False) as soul:
        for number in range(people):
            await soul.network.hear("m", person=f"p{number}")
        await soul.mind.store.core.write(lambda db: db.run("boot_clean", boot="nobody"))  # type: ignore[attr-defined] - the real store
        await soul.mind.store.close(clean=False)


async def test_what_a_crash_left_is_thought_one_turn_at_a_time(home: Home) -> None:
    """After a crash, turns run one at a time until the backlog is done; then this mode is off."""
    await crashed(home, 5)
    resources = ProcessResources(clock=Clock(lambda: NOW), disk=Disk(home, lambda: 0))
    at_once, most = 0, 0

    class Counting(Scripted):
        """Counts how many calls run at once."""

        async def complete(self, request):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - the door's own type
            """Count the call, then reply."""
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            try:
                async for event in super().complete(request):
                    await asyncio.sleep(0)
                    yield event
            finally:
                at_once -= 1

    async with alive(home, Counting(default=reply("Yes.")), resources=resources) as soul:
        was_on = resources.recovery.is_on
        await soul.until_said(5)
        is_on = resources.recovery.is_on

    assert (was_on, is_on) == (True, False)
    assert most == 1


async def test_the_mode_ends_after_a_minute_and_frees_who_waits() -> None:
    """A turn that hangs delays the others for at most 60 s."""
    now_s = 0.0
    recovery = CrashRecovery(lambda: now_s)
    recovery.begin(["a", "b"])
    order = []

    async def think(name: str, *, until_told: asyncio.Event | None = None) -> None:
        """Run a turn that ends when the test says so."""
        async with recovery.turn():
            order.append(name)
            if until_told:
                await until_told.wait()

    told = asyncio.Event()
    hanging = asyncio.create_task(think("a", until_told=told))
    while not order:
        await asyncio.sleep(0)
    waiting = asyncio.create_task(think("b"))
    await asyncio.sleep(0)
    before = list(order)
    now_s = CAREFUL_S
    await recovery.done("a")
    await waiting
    told.set()
    await hanging

    assert (before, order) == (["a"], ["a", "b"])
    assert not recovery.is_on


async def test_a_turn_that_is_to_be_alone_waits_for_the_others_and_keeps_later_ones_waiting() -> None:
    """A turn that needs to run alone waits for the others and delays later ones, for at most 60 s; then all go on."""
    now_s = 0.0
    recovery = CrashRecovery(lambda: now_s)
    order, told = [], asyncio.Event()
    goes_on = {name: asyncio.Event() for name in ("before", "alone", "after")}

    async def think(name: str, *, alone: bool = False) -> None:
        """Run a turn that ends when the test says so."""
        async with recovery.turn(alone=alone):
            order.append(name)
            told.set()
            await goes_on[name].wait()

    async def settle() -> None:
        """Let every task run that can."""
        for _ in range(10):
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(think("before"))]
    await settle()
    tasks.append(asyncio.create_task(think("alone", alone=True)))
    await settle()
    tasks.append(asyncio.create_task(think("after")))
    await settle()
    waiting_for_the_first = list(order)
    goes_on["before"].set()
    await settle()
    alone, was_on = list(order), recovery.is_on
    now_s = CAREFUL_S
    async with recovery.turn():
        order.append("late")
    await settle()
    goes_on["alone"].set()
    goes_on["after"].set()
    await asyncio.gather(*tasks)

    assert waiting_for_the_first == ["before"]
    assert (alone, was_on) == (["before", "alone"], True)
    assert order == ["before", "alone", "late", "after"]
    assert not recovery.is_on


def test_a_message_that_kills_the_process_at_once_is_apologised_for(machine: Machine) -> None:
    """The process really dies as soon as the model is asked. After three counted deaths the message is given up.

    The first death may go uncounted, because that process was not in crash recovery.
    """
    machine.scripted(*[{"deltas": [reply("never")], "delay_s": 60}] * 5)
    with machine.daemon(is_stopped=False) as pid:
        machine.run("chat", "--once", "poison", "--timeout", "0.5")
        until(pid, lambda: asked(machine))
        os.kill(pid, signal.SIGKILL)
    for death in (2, 3, 4, 5):
        with machine.daemon(is_stopped=False) as pid:
            until(pid, lambda death=death: asked(machine) == death or is_given_up(machine))
            if is_given_up(machine):
                machine.ok("daemon", "stop")
                break
            os.kill(pid, signal.SIGKILL)
    machine.scripted(reply("fine"))
    ran = machine.ok("chat", "--once", "hello")

    assert is_given_up(machine)
    assert asked(machine) - 1 in (3, 4)
    assert ran.stdout == "fine\n"
    assert ran.stderr.startswith("(earlier) I was interrupted")


def is_given_up(machine: Machine) -> bool:
    """Return whether a perception was given up."""
    return any(event["event"] == "turn given up" for event in machine.events())


def asked(machine: Machine) -> int:
    """Return how many requests the scripted provider received."""
    return len(machine.requests.read_text().splitlines()) if machine.requests.exists() else 0
