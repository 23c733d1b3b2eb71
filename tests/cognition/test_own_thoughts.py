"""A turn's own thoughts are private to the calls that see them: the repair, the next step, the next process."""

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from minds import by_tag

THOUGHT = "The otter sleeps under the seventh stone by the mill, and that is for nobody else to know."
SAID = "The port is nearly done: what it lacks is a harness, two tests, and someone who reads the notes."


async def spoken(home: Home, voice: Scripted, *heard: str, mode: str = "fused") -> list[str]:
    """Say these one after the other. Returns the replies."""
    async with alive(home, voice, settings={"CLAUDIUS_PIPELINE_MODE": mode}) as soul:
        for line in heard:
            await soul.network.hear(line)
            await soul.idle()
        return [one.text for one in soul.network.visible]


async def test_a_step_apart_does_not_say_what_an_earlier_one_thought(home: Home) -> None:
    """In split mode the dialogue's prompt holds the thought. If it is said there, a repair is asked for."""
    apart = by_tag(internal_monologue=THOUGHT, external_dialogue=THOUGHT)
    voice = Scripted(default=lambda request: "Hello." if '"kind":"draft"' in request.tail else apart(request))

    assert await spoken(home, voice, "Hello?", mode="split") == ["Hello."]


async def test_what_all_have_heard_may_be_quoted(home: Home) -> None:
    """A thought that repeats a message or a reply does not make it secret."""
    voice = Scripted(default=by_tag(internal_monologue=f"They said: {SAID}", external_dialogue=f"You said: {SAID}"))

    assert await spoken(home, voice, SAID, "What did I say?") == [f"You said: {SAID}"] * 2
