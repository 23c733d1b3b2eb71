"""What becomes of a call of a tool while its process lives: how it ends, who waits for it, and who hears of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from claudius.errors import ToolFailed, ToolRefused, ToolTimedOut
from claudius.home import Home
from claudius.memory.store import Store
from claudius.providers.scripted import Scripted
from claudius.runtime.access import Membership
from claudius.runtime.hands import LaneHands, ToolRunner
from claudius.testing.alive import Alive, alive
from claudius.tool import JSON, TIMED_OUT, CallState, Tool, ToolCall
from contracts.store.calls import asked
from contracts.store.ground import NOW, heard
from driven import reply
from minds import lent

WHERE = "rehearsal:local:talk:"


def made(run: Callable[[JSON, ToolCall], Awaitable[str]], cls: str = "read", key_arg: str = "") -> Tool:
    """Return a tool that does this."""
    return lent(f"test.{cls}", cls, run, key_arg=key_arg)


def use(tool: Tool, turn: str = "turn", n: int = 0) -> ToolCall:
    """Return a call of a tool."""
    return ToolCall(
        id=f"{turn}/{n}", turn=turn, conversation=WHERE, audience="private:ana", person="ana",
        tool=tool.name, cls=tool.cls, args={"n": n}, allowed_by="test",
    )  # fmt: skip


@asynccontextmanager
async def hands(home: Home, *tools: Tool, **settings: str) -> AsyncIterator[tuple[LaneHands, ToolRunner, Alive]]:
    """Wake a soul with these tools; yield what does the calls of one conversation."""
    async with alive(home, Scripted(default=reply("It says so.")), tools=lambda: tools, settings=settings) as soul:
        runner = ToolRunner(soul.mind, soul.server.wake, Membership(soul.mind.store, {}, soul.mind.clock))
        yield runner.of(soul.mind.store, WHERE), runner, soul
        await runner.close()


def kept(soul: Alive, call: ToolCall) -> ToolCall:
    """Return a call as it stands."""
    found = soul.mind.store.calls.find(call.id)
    assert found is not None
    return found


class Gate:
    """A tool that waits until it is let on, and counts how often it was used."""

    def __init__(self) -> None:
        self.used, self.open, self.begun = 0, asyncio.Event(), asyncio.Event()

    async def run(self, _: JSON, __: ToolCall) -> str:
        """Wait at the gate."""
        self.used += 1
        self.begun.set()
        await self.open.wait()
        return "through"


def failing(error: BaseException) -> Callable[[JSON, ToolCall], Awaitable[str]]:
    """Return a tool that raises."""

    async def run(_: JSON, __: ToolCall) -> str:
        """Fail."""
        raise error

    return run


ENDS = [
    (ToolFailed("t", "no such page"), CallState.FAILED, CallState.FAILED),
    (ToolRefused("t", "changed"), CallState.FAILED, CallState.FAILED),
    (ValueError("words of the tool"), CallState.FAILED, CallState.FAILED),
    (ToolTimedOut("t", "silent"), CallState.FAILED, CallState.UNKNOWN),
    (ConnectionResetError("died"), CallState.FAILED, CallState.UNKNOWN),
    (OSError("gone"), CallState.FAILED, CallState.UNKNOWN),
]


@pytest.mark.parametrize(("error", "safe", "unsafe"), ENDS, ids=lambda one: type(one).__name__)
async def test_the_class_decides_what_a_missing_answer_means(
    home: Home, error: BaseException, safe: CallState, unsafe: CallState
) -> None:
    """What a tool says itself is a failure; silence is one only where it harms nothing."""
    tools = [made(failing(error), cls) for cls in ("look", "read", "write", "send")]
    async with hands(home, *tools) as (doing, _, soul):
        for n, tool in enumerate(tools):
            call = use(tool, n=n)
            done = await doing.do(call, tool)

            assert done.state is (safe if tool.cls.is_safe else unsafe)
            assert done.reason != TIMED_OUT  # it came in time
            again = await doing.do(call, tool)
            assert (again.state, again.result, again.reason) == (done.state, done.result, done.reason)
            assert "words of the tool" not in repr(soul.mind.store.calls.find(call.id))


async def test_a_result_is_cut_and_has_no_secrets_before_it_is_kept(home: Home) -> None:
    """The row holds what the model is shown, and a re-run of the turn shows the same bytes."""
    key, starts = "xoxb-1234567890-abcdef", [0]

    async def ready() -> None:
        """Start, once, for longer than a call may take."""
        while starts:
            await asyncio.sleep(starts.pop())

    async def run(_: JSON, __: ToolCall) -> str:
        """Tell a key at length."""
        await ready()
        return f"key {key} and " + "long " * 9000

    tool = replace(made(run), timeout_s=1e-9, ready=ready)
    async with hands(home, tool) as (doing, _, soul):
        call = use(tool)
        done = await doing.do(call, tool)

        assert kept(soul, call).result == done.result
        head, tail = done.result.split("\n[… 29,012 characters are left out here …]\n")
        assert (head[:17], len(head), len(tail)) == ("key *** and long ", 12_000, 4_000)
        with pytest.raises(ToolRefused):
            await doing.do(replace(call, args={"n": 9}), tool)


async def test_what_takes_longer_than_a_turn_goes_on_and_its_end_is_heard(home: Home) -> None:
    """The turn is told `started`; the end comes as a perception, is answered once, and used the tool once."""
    gate = Gate()
    tool = made(gate.run)
    async with hands(home, tool, CLAUDIUS_TOOLS_TURN_SECONDS="0.01") as (doing, runner, soul):
        call = use(tool)
        assert (await doing.do(call, tool)).state is CallState.STARTED
        assert (await doing.do(call, tool)).state is CallState.STARTED
        gate.open.set()
        await soul.until_said(1)

        found = kept(soul, call)
        assert (found.state, found.result, gate.used, runner.is_busy()) == (CallState.DONE, "through", 1, False)
        assert [one.text for one in soul.network.visible] == ["It says so."]
        assert found.told_turn


@pytest.mark.parametrize(("cls", "state"), [("read", CallState.FAILED), ("send", CallState.DONE)])
async def test_a_turn_that_is_cancelled_ends_a_read_and_leaves_a_send_alone(
    home: Home, cls: str, state: CallState
) -> None:
    """A send under way goes on and is told; no one is told of a read that was stopped."""
    gate = Gate()
    tool = made(gate.run, cls)
    async with hands(home, tool) as (doing, runner, soul):
        call = use(tool)
        turn = asyncio.create_task(doing.do(call, tool))
        await gate.begun.wait()
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        assert runner.is_busy(WHERE)
        gate.open.set()
        task = runner.under_way(call.id)
        if task:
            await task
        if cls == "send":
            await soul.network.until_visible(1)
        await soul.idle()

        found = kept(soul, call)
        assert found.state is state
        assert len(soul.network.visible) == int(cls == "send")


@pytest.mark.parametrize(("cls", "by_whom", "state"), [
    ("read", "ana", CallState.FAILED), ("send", "ana", CallState.DONE), ("read", "ben", CallState.DONE),
])  # fmt: skip
async def test_t28_stop_ends_a_read_that_outlived_its_turn(
    home: Home, cls: str, by_whom: str, state: CallState
) -> None:
    """A read of theirs ends and is not told; a send goes on, and so does what another asked for."""
    gate = Gate()
    tool = made(gate.run, cls)
    settings = {"CLAUDIUS_TOOLS_TURN_SECONDS": "0.01"}
    voice = Scripted(default=reply("It says so."))
    async with alive(home, voice, tools=lambda: (tool,), settings=settings) as soul:
        runner = soul.server._lanes.hands
        call = replace(use(tool), person="rehearsal:t:ana")
        await runner.of(soul.mind.store, WHERE).do(call, tool)
        await soul.network.hear("!stop", person=by_whom, conversation=WHERE)
        gate.open.set()
        while runner.is_busy():
            await soul.mind.store.flush()
        await soul.idle()

        found = kept(soul, call)
        assert found.state is state
        assert [one.text for one in soul.network.visible] == ["It says so."][: int(state is CallState.DONE)]


async def test_a_call_with_a_key_is_made_again_once_if_its_server_dies(home: Home) -> None:
    """The key is the call's id; the second attempt is the last."""
    keys: list[str] = []

    async def run(args: JSON, _: ToolCall) -> str:
        """Note the key, and die."""
        keys.append(args["key"])
        raise ConnectionResetError("died")

    tool = made(run, "send", key_arg="key")
    async with hands(home, tool) as (doing, _, soul):
        call = use(tool)
        done = await doing.do(call, tool)

        assert (keys, done.state) == ([call.id, call.id], CallState.UNKNOWN)
        found = kept(soul, call)
        assert found.attempts == 2


@pytest.mark.parametrize("allows", [True, False])
async def test_what_is_allowed_is_done_by_its_lane_and_answered(home: Home, *, allows: bool) -> None:
    """Allowed: one use, shown as such, and a second turn speaks of it. Refused: its fixed line, and no model is asked."""
    gate, seen = Gate(), list[object]()
    gate.open.set()
    tool = made(gate.run)
    async with hands(home, tool) as (_, __, soul):
        store: Store = soul.mind.store
        for point in ("loop.before_tool", "loop.after_tool"):
            soul.mind.hooks.register(point, lambda one: seen.append((one["call"], one.get("state"))))
        call = await asked(store, heard("Read it.", at=WHERE), tool=tool.name, cls=tool.cls)
        assert await store.calls.decide(call, "slack:T1:oz", NOW, allows=allows)
        soul.server.wake(WHERE)
        await soul.until_said(2)

        found = kept(soul, call)
        assert seen == ([(call.id, None), (call.id, "done")] if allows else [])
        assert (found.state, gate.used) == ((CallState.DONE, 1) if allows else (CallState.REFUSED, 0))
        assert [one.text for one in soul.network.visible][1:] == [
            "It says so." if allows else "Refused by oz: I leave it."
        ]
        assert await store.inbox.unfinished(WHERE) == []
