"""The chain: which provider is asked, how often, and when the chain gives up. Fake provider, clock and chance."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.config.schema import ModelSettings
from claudius.errors import (
    AuthFailed,
    BadRequest,
    Crashed,
    Cut,
    Overloaded,
    ProviderError,
    RateLimited,
    RefusedReply,
    SessionGone,
    SpendLimit,
    TimedOut,
    TooLong,
    Unavailable,
    Unreachable,
)
from claudius.provider import Delta, Done, Event, Failing, Message, Provider, Request, Reset
from claudius.providers.chain import Chain
from claudius.providers.scripted import Line, Reply, Scripted
from claudius.testing.provider_contract.voice import ASK, ending, fails, hear, said, until

RETRYABLE = (Overloaded, Unreachable, TimedOut, Crashed, Cut, SessionGone, RateLimited)
NEVER = (AuthFailed, SpendLimit, BadRequest, TooLong, RefusedReply, Unavailable)
PATIENT = ModelSettings(first_byte_s=60, idle_s=60, total_s=60, retries=3)


class World:
    """A clock that only sleeping advances, and a chance that is always the maximum."""

    def __init__(self) -> None:
        """Start the clock."""
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.slept.append(seconds)
        self.now += seconds

    def chain(self, *voices: Provider, settings: ModelSettings = PATIENT, chance: float = 1.0) -> Chain:
        """Return a chain with this clock and chance."""
        return Chain(voices, settings, clock=lambda: self.now, sleep=self.sleep, chance=lambda: chance)


@pytest.fixture
def world() -> World:
    """Return a new world for each test."""
    return World()


def voice(*replies: Reply, default: Reply = "fine", name: str = "one") -> Scripted:
    """Return a scripted provider."""
    return Scripted(replies, default=default, name=name, model=f"model of {name}")


async def test_the_first_voice_speaks_and_the_others_are_not_asked(world: World) -> None:
    """Order: a fallback is not called while it is not needed; Done names the provider that replied."""
    one, two = voice("Hello"), voice(name="two")

    done = ending(await hear(world.chain(one, two), ASK))

    assert (done.text, done.provider) == ("Hello", "one")
    assert two.requests == []


@pytest.mark.parametrize("error", [TooLong, BadRequest])
async def test_a_prompt_that_was_too_long_is_told_for_an_hour(error: type[ProviderError], world: World) -> None:
    """The owner reads of it among the notices, also where the server did not say so and takes half; not for ever."""
    chain, talk = world.chain(voice(error())), (Message("user", "a"), Message("assistant", "b"))
    await fails(chain, replace(ASK, history=talk))
    await hear(chain, ASK)

    assert "too long" in "".join(chain.notices())
    world.now += 3600
    assert chain.notices() == []


async def test_a_prompt_that_was_refused_once_and_taken_as_it_is_was_not_too_long(world: World) -> None:
    """A shorter one later says nothing of it."""
    chain, talk = world.chain(voice(BadRequest())), (Message("user", "a"), Message("assistant", "b"))
    await fails(chain, replace(ASK, history=talk))
    await hear(chain, replace(ASK, history=talk))
    await hear(chain, ASK)

    assert chain.notices() == []


@pytest.mark.parametrize("kind", RETRYABLE)
async def test_then_the_next_voice_is_asked(kind: type[ProviderError], world: World) -> None:
    """When the retries are used up, the next provider in the chain is asked."""
    one, two = voice(default=kind()), voice("Hello", name="two")

    done = ending(await hear(world.chain(one, two), ASK))

    assert (done.text, done.provider) == ("Hello", "two")
    assert len(one.requests) == 4


async def test_the_last_voices_error_is_raised_where_none_speaks(world: World) -> None:
    """If no provider replies, the caller gets one typed error, which names its provider."""
    error = await fails(world.chain(voice(default=Overloaded()), voice(default=Unreachable(), name="two")), ASK)

    assert isinstance(error, Unreachable)
    assert error.provider == "two"


@pytest.mark.parametrize("kind", NEVER)
async def test_what_cannot_pass_is_raised_at_once(kind: type[ProviderError], world: World) -> None:
    """An error that is not retryable causes no retry and no fallback."""
    one, two = voice(kind()), voice(name="two")

    error = await fails(world.chain(one, two), ASK)

    assert isinstance(error, kind)
    assert error.provider == "one"
    assert len(one.requests) == 1
    assert two.requests == []
    assert world.slept == []


@pytest.mark.parametrize("kind", [AuthFailed, SpendLimit, Unavailable])
async def test_a_shut_account_rests_for_ten_minutes(kind: type[ProviderError], world: World) -> None:
    """After an auth or spend error the provider rests for ten minutes, and the next one is asked meanwhile."""
    one, two = voice(kind()), voice(default="I step in", name="two")
    chain = world.chain(one, two)
    await fails(chain, ASK)

    during = ending(await hear(chain, ASK))
    resting = chain.resting()
    world.now += 600
    later = ending(await hear(chain, ASK))

    assert (during.provider, [(one.name, one.left_s) for one in resting]) == ("two", [("one", 600.0)])
    assert (later.provider, chain.resting()) == ("one", ())


@pytest.mark.parametrize("error", [AuthFailed(), SpendLimit(), Unavailable(), RateLimited(after_s=61)])
async def test_an_owner_has_a_resting_voice_asked_at_once(error: ProviderError, world: World) -> None:
    """Whoever may have paid, or mended it, need not wait; the voice rests no more for anybody once it answers."""
    one = voice(error)
    chain = world.chain(one)
    failed = await fails(chain, ASK)
    assert (await fails(chain, ASK)).after_s == failed.after_s

    assert ending(await hear(chain, replace(ASK, tries_now=True))).provider == "one"
    assert ending(await hear(chain, ASK)).provider == "one"


async def test_where_all_rest_nobody_is_asked(world: World) -> None:
    """If the only provider rests, its error is raised again with the seconds left, without a call."""
    one = voice(SpendLimit("no money"))
    chain = world.chain(one)
    await fails(chain, ASK)
    world.now += 100

    error = await fails(chain, ASK)

    assert isinstance(error, SpendLimit)
    assert (error.message, error.provider, error.after_s) == ("no money", "one", 500.0)
    assert len(one.requests) == 1


async def test_the_back_off_doubles_up_to_its_cap_with_full_jitter(world: World) -> None:
    """Backoff: the wait is chance x min(cap, base x 2^n)."""
    settings = ModelSettings(retries=6)

    await fails(world.chain(voice(default=Overloaded()), settings=settings), ASK)
    await fails(world.chain(voice(default=Overloaded()), settings=settings, chance=0.0), ASK)

    assert world.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0] + [0.0] * 6


async def test_a_long_retry_after_counts_as_down(world: World) -> None:
    """If the Retry-After is over a minute, the next provider is asked at once, and this one not before that time."""
    one, two = voice(RateLimited(after_s=61), default="back"), voice(default="I step in", name="two")
    chain = world.chain(one, two)

    first = ending(await hear(chain, ASK)).provider
    second = ending(await hear(chain, ASK)).provider
    world.now += 61
    third = ending(await hear(chain, ASK)).provider

    assert [first, second, third] == ["two", "two", "one"]
    assert world.slept == []


@pytest.mark.parametrize("kind", [*RETRYABLE, *NEVER])
async def test_after_the_first_delta_an_error_is_the_callers(kind: type[ProviderError], world: World) -> None:
    """After half a reply was heard, no provider is asked again; the caller repairs the reply."""
    one, two = voice(Line(deltas=("Half ", "a reply"), fault=kind(), after=1)), voice(name="two")
    heard: list[Event] = []

    error = await fails(world.chain(one, two), ASK, heard)

    assert isinstance(error, kind)
    assert said(heard) == "Half "
    assert two.requests == []
    assert len(one.requests) == 1


async def test_a_reset_passes_and_does_not_make_a_reply_unsaid(world: World) -> None:
    """A reset voids the text before it, but that text was heard, so nothing is retried after it."""
    whole = voice(Line(deltas=("a", "b"), reset_after=1))
    broken = voice(Line(deltas=("a", "b"), reset_after=1, fault=Overloaded(), after=0))

    events = await hear(world.chain(whole), ASK)
    error = await fails(world.chain(broken), ASK)

    assert [type(event) for event in events] == [Delta, Reset, Delta, Delta, Done]
    assert ending(events).text == "ab"
    assert isinstance(error, Overloaded)
    assert len(broken.requests) == 1


@pytest.mark.parametrize(
    ("settings", "line", "which"),
    [
        (ModelSettings(first_byte_s=0.05, retries=0), Line(hang=True), "first byte"),
        (ModelSettings(idle_s=0.05, retries=0), Line(deltas=("a", "b"), hang=True, after=1), "idle"),
        (ModelSettings(total_s=0.1, retries=0), Line(deltas=("a",) * 1000, gap_s=0.01), "total"),
    ],
)
async def test_deadlines_hold_for_every_voice(settings: ModelSettings, line: Line, which: str, world: World) -> None:
    """First-byte, idle and total timeouts: TimedOut says which one, and the call is released."""
    one = voice(line)

    error = await fails(world.chain(one, settings=settings), ASK)

    assert isinstance(error, TimedOut)
    assert which in error.message
    assert one.open == 0


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_deadline_leaves_no_cancellation_behind(goes_on: bool, world: World) -> None:  # noqa: FBT001 - a row
    """A provider may make another error of its cancellation, or go on; each event may be heard by another task."""

    class Deaf(Scripted):
        """A provider that does not end where it is cancelled."""

        async def complete(self, request: Request) -> AsyncIterator[Event]:
            """Hang, and hang again where it goes on."""
            while True:
                yield Reset()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError as error:
                    if not goes_on:
                        raise Unreachable(request.tail) from error

    stream = world.chain(Deaf(), settings=ModelSettings(first_byte_s=0.05, retries=0)).complete(ASK)
    heard = [(await asyncio.create_task(_next(stream))) for _ in range(2 + goes_on)]

    assert {cancelling for _, cancelling in heard} == {0}
    assert isinstance(heard[-1][0], Reset if goes_on else Failing)


async def _next(stream: AsyncIterator[Event]) -> tuple[Event, int]:
    task = asyncio.current_task()
    assert task
    return await anext(stream), task.cancelling()


async def test_a_slow_listener_is_not_a_silent_model(world: World) -> None:
    """The idle timeout counts only the model's silence, not the time that the caller spends on a delta."""
    settings = ModelSettings(idle_s=0.05, retries=0)
    chain = world.chain(voice(Line(deltas=("a", "b"))), settings=settings)

    heard = []
    async with aclosing(chain.complete(ASK)) as events:
        async for event in events:
            heard.append(event)
            await _until_later_than(settings.idle_s)

    assert ending(heard).text == "ab"


async def _until_later_than(seconds: float) -> None:
    """Let the event loop's own clock pass a deadline."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(2 * seconds, passed.set)
    await passed.wait()


async def test_a_voice_that_ends_without_done_was_cut(world: World) -> None:
    """A third-party provider that ends without Done has given no reply."""

    class Forgetful(Scripted):
        """A provider that forgets its Done."""

        async def complete(self, request: Request) -> AsyncIterator[Event]:
            """Yield the deltas but no Done."""
            yield Delta(request.tail)

    error = await fails(world.chain(Forgetful()), ASK)

    assert isinstance(error, Cut)


async def test_whoever_stops_listening_frees_the_voice(world: World) -> None:
    """Closing the chain's stream closes the provider's, at any depth; so does cancelling the task that listens."""
    one = voice(Line(deltas=("a", "b"), hang=True, after=1), Line(hang=True))

    async with aclosing(world.chain(one).complete(ASK)) as events:
        assert await anext(events) == Delta("a")
        assert one.open == 1
    closed = one.open
    task = asyncio.create_task(hear(world.chain(one), ASK))
    await until(lambda: bool(one.open))
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert (closed, one.open) == (0, 0)


async def test_closing_the_chain_closes_every_voice(world: World) -> None:
    """One provider that fails to close does not keep the others open."""

    class Stuck(Scripted):
        """A provider that cannot be closed."""

        async def aclose(self) -> None:
            """Raise an error."""
            raise RuntimeError("stuck")

    two = voice(name="two")

    with pytest.raises(RuntimeError, match="stuck"):
        await world.chain(Stuck(), two).aclose()

    assert two.closed


async def test_forgetting_reaches_every_voice_that_keeps_sessions(world: World) -> None:
    """Erasure: each provider that keeps sessions ends that conversation's session; others have nothing to forget."""
    forgotten = []

    class Remembering(Scripted):
        """A provider that keeps sessions."""

        async def forget(self, conversation: str) -> None:
            """Record the call."""
            forgotten.append(conversation)

    await world.chain(voice(), Remembering()).forget("c")

    assert forgotten == ["c"]


def test_a_chain_is_a_provider_that_bears_the_first_ones_name(world: World) -> None:
    """So status shows who would reply; a chain without providers is refused at start, not at the first message."""
    chain = world.chain(voice(), voice(name="two"))

    assert isinstance(chain, Provider)
    assert (chain.name, chain.model) == ("one", "model of one")
    with pytest.raises(ValueError, match="needs a provider"):
        Chain([], ModelSettings())


_OUTCOMES = st.sampled_from(
    [*(kind() for kind in (*RETRYABLE, *NEVER)), "fine", Line(deltas=("a", "b"), fault=Cut(), after=1)]
)


@given(st.lists(st.lists(_OUTCOMES, max_size=6), min_size=1, max_size=3), st.integers(0, 3))
def test_it_always_ends_in_one_reply_or_one_error(scripts: list[list[Reply]], retries: int) -> None:
    """Any sequence of outcomes gives one Done or one typed error, in bounded calls, in the order of the chain."""
    voices = [voice(*script, default=Overloaded(), name=f"v{number}") for number, script in enumerate(scripts)]
    chain = World().chain(*voices, settings=_asking_again(retries))

    heard: list[Event] = []
    error = asyncio.run(fails(chain, ASK, heard))

    assert (error is None) == any(isinstance(event, Done) for event in heard)
    counts = [len(one.requests) for one in voices]
    assert all(count <= retries + 1 for count in counts)
    assert 0 not in counts[: 1 + max(number for number, count in enumerate(counts) if count)]


def _asking_again(retries: int) -> ModelSettings:
    return ModelSettings(first_byte_s=60, idle_s=60, total_s=60, retries=retries)


async def test_each_request_is_passed_on_unchanged(world: World) -> None:
    """A retry sends exactly the same request."""
    one = voice(Overloaded(), "fine")
    request = replace(ASK, tail="exactly this", conversation="c", cached=0)

    await hear(world.chain(one), request)

    assert one.requests == [request, request]
