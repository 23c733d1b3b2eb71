"""The provider in force: an edit of the settings takes effect at the next call, whatever is running."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import aclosing, suppress

import pytest

from claudius.config.load import Loaded, load
from claudius.errors import BadConfiguration, Unavailable
from claudius.failure import Failure, failure_of
from claudius.home import Home
from claudius.provider import Failing, Provider, Request
from claudius.providers.chain import Chain, NoVoice
from claudius.providers.current import LOOK_FOR_S, CurrentVoice
from claudius.providers.scripted import Line, Scripted
from claudius.testing.provider_contract.voice import ASK, hear, said, streaming


class Owner:
    """Edits the settings; every chain built from them names its model."""

    def __init__(self, home: Home) -> None:
        """Start with a model named "first"."""
        self._home = home
        self.made: list[Scripted] = []
        self.edit("first")
        self.voice = CurrentVoice(self.build(self.loaded), lambda: self.loaded, self.build)

    def edit(self, model: str) -> None:
        """Set another model."""
        self.loaded = load(self._home, {"CLAUDIUS_ANTHROPIC_MODEL": model})

    def build(self, loaded: Loaded) -> Chain:
        """Return a provider that says its model's name in three pieces."""
        model = loaded.config.anthropic.model
        if model == "broken":
            raise BadConfiguration("config.toml", "anthropic.model", "cannot be", "name another")
        self.made.append(Scripted(default=Line(deltas=tuple(model))))
        return Chain(self.made[-1:], loaded.config.model)

    async def asked(self, request: Request = ASK) -> str:
        """Return the reply of the provider in force."""
        return said(await hear(self.voice, request))


async def test_an_edit_of_the_settings_is_heard_in_the_next_call(home: Home) -> None:
    """Without a restart, the next call asks the model of the new settings; unchanged settings build no new provider."""
    owner = Owner(home)

    before = [await owner.asked(), await owner.asked()]
    owner.edit("next")
    after = [await owner.asked(), await owner.asked()]

    assert (before, after) == (["first", "first"], ["next", "next"])
    assert [one.closed for one in owner.made] == [True, False]


async def test_a_call_under_way_ends_with_the_voice_that_it_began_with(home: Home) -> None:
    """The old provider is closed when its last call has ended, not in the middle of a reply."""
    owner = Owner(home)

    async with aclosing(streaming(owner.voice, ASK)) as events:
        begun = [await anext(events)]
        owner.edit("next")
        other = await owner.asked()
        was_closed = owner.made[0].closed
        begun += [event async for event in events]

    assert other == "next"
    assert said(begun) == "first"
    assert (was_closed, owner.made[0].closed) == (False, True)


async def test_settings_that_make_no_voice_leave_the_last_one_in_force(home: Home) -> None:
    """After a bad edit the soul keeps its provider and reports the reason; the next good edit takes effect."""
    owner = Owner(home)

    owner.edit("broken")
    meanwhile, problem = await owner.asked(), owner.voice.problem
    owner.edit("mended")
    mended = await owner.asked()

    assert meanwhile == "first"
    assert "anthropic.model" in str(problem)
    assert (mended, owner.voice.problem) == ("mended", None)


async def test_a_change_that_is_cut_off_is_made_by_the_next_call(home: Home) -> None:
    """A turn that is given up while the new provider loads leaves no soul that speaks with the old one for ever."""
    owner, may_build = Owner(home), threading.Event()
    build = owner.voice._build

    def slowly(loaded: Loaded) -> Chain:
        """Build once the test allows it."""
        may_build.wait(30)
        return build(loaded)

    owner.voice._build = slowly
    owner.edit("next")
    first = asyncio.create_task(owner.asked())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    may_build.set()
    with suppress(asyncio.CancelledError):
        await first

    assert await owner.asked() == "next"


class Search:
    """A machine on which `auto` finds each time the next of these; its clock stands still but for the waits."""

    def __init__(self, home: Home, found: Sequence[Provider]) -> None:
        """Begin with the first."""
        self.loaded, self.found, self.now_s, self.met = load(home, {}), list(found), 0.0, 0
        self.voice = CurrentVoice(
            self.build(self.loaded),
            lambda: self.loaded,
            self.build,
            met=self.meet,
            clock=lambda: self.now_s,
            sleep=self.sleep,
        )

    def build(self, loaded: Loaded) -> Chain:
        """Return a chain of what is found now; the last stays."""
        return Chain([self.found.pop(0) if len(self.found) > 1 else self.found[0]], loaded.config.model)

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

    def meet(self) -> None:
        """Count how often a model was met for the first time."""
        self.met += 1


async def test_a_model_that_appears_while_a_call_waits_answers_it(home: Home) -> None:
    """No one speaks where `auto` found no model: the call waits a moment for one, says so, and has its answer."""
    model = Scripted(default="Here I am.")
    model.name = "openai_compat"
    search = Search(home, [NoVoice(), NoVoice(), model])

    events = await hear(search.voice, ASK)

    assert said(events) == "Here I am."
    assert [type(one.error) for one in events if isinstance(one, Failing)] == [Unavailable] * 2
    assert (search.voice.name, search.met) == ("openai_compat", 1)


async def test_a_model_that_never_appears_is_told_with_what_to_do(home: Home) -> None:
    """After some seconds the call fails with what was told meanwhile; `status` names the remedy without any call."""
    search = Search(home, [NoVoice()])
    told: list[Failure] = []
    at_once = search.voice.inner.last_error

    async def asked() -> None:
        """Note what is told until the call fails."""
        async for event in search.voice.complete(ASK):
            assert isinstance(event, Failing)
            told.append(failure_of(event.error))

    with pytest.raises(Unavailable, match="no model was found") as raised:
        await asked()

    assert "Ollama" in raised.value.fix
    assert {failure.detail for failure in (*told, failure_of(raised.value))} == {"no model was found"}
    assert at_once is not None
    assert search.now_s <= LOOK_FOR_S + 1


async def test_the_rehearsal_voice_gives_way_to_a_model_that_appears(home: Home) -> None:
    """While the rehearsal voice speaks under `auto`, calls look for a model again, but not for each call."""
    rehearsal, model = Scripted(default="I rehearse."), Scripted(default="Here I am.")
    rehearsal.name = "rehearsal"
    search = Search(home, [rehearsal, rehearsal, model])

    await hear(search.voice, ASK)
    at_once = len(search.found)
    search.now_s += 60
    await hear(search.voice, ASK)
    still = search.voice.name
    search.now_s += 60
    words = said(await hear(search.voice, ASK))

    assert (at_once, still, words) == (2, "rehearsal", "Here I am.")
