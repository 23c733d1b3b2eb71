"""Lines that no thought chose never stand in a prompt as the soul's own speech, whichever provider answers."""

from claudius.errors import Unavailable
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from minds import by_tag

GARBLED = "<internal_monologue>Only a thought.</internal_monologue>"


async def say(soul: Alive, text: str) -> str:
    """Say one line, wait for what becomes visible, and return that."""
    answered = len(soul.network.visible)
    await soul.network.hear(text)
    seen = await soul.network.until_visible(answered + 1)
    await soul.idle()
    return seen[-1].text


def shown(provider: Scripted) -> str:
    """Return everything that the last request showed the model, apart from the static part."""
    last = provider.requests[-1]
    return "\n".join([*(one.content for one in last.history), last.tail])


async def test_local_l7_the_fixed_line_does_not_teach(home: Home) -> None:
    """After a garbled reply and its garbled repair, the fixed line is said and is in no later prompt.

    The first line that somebody hears is never the one that asks to be asked again.
    """
    provider = Scripted([GARBLED, GARBLED] * 2, default=by_tag())
    async with alive(home, provider) as soul:
        step = soul.mind.soul().steps["external_dialogue"]
        assert await say(soul, "Good evening, all.") == step.lines["first"].replace("$name", "Claudius")
        fixed = await say(soul, "How do I hang a door?")
        assert fixed == step.fallback
        await say(soul, "And the hinges?")

    assert "How do I hang a door?" in shown(provider)
    assert fixed not in shown(provider)


async def test_local_l7_an_apology_does_not_teach(home: Home) -> None:
    """An apology is said in its turn's place and is in no later prompt; the question is."""
    provider = Scripted([Unavailable("gone")], default=by_tag())
    async with alive(home, provider, settings={"CLAUDIUS_MODEL_RETRIES": "0"}) as soul:
        apology = await say(soul, "How do I hang a door?")
        assert apology == soul.mind.soul().steps["external_dialogue"].lines["first_down"].replace("$name", "Claudius")
        await say(soul, "And the hinges?")

    assert "How do I hang a door?" in shown(provider)
    assert "The model that I think with does not answer" not in shown(provider)


async def test_local_l7_an_acknowledgement_does_not_teach(home: Home) -> None:
    """A line that acknowledges a trivial message is in no later prompt."""
    provider = Scripted(default=by_tag(external_dialogue="The third hinge bears the weight."))
    async with alive(home, provider) as soul:
        await say(soul, "How do I hang a door?")
        calls = len(provider.requests)
        noted = await say(soul, "ok, thanks")
        assert len(provider.requests) == calls
        await say(soul, "And how heavy may the door be?")

    assert f">{noted}<" not in shown(provider)
    assert "The third hinge bears the weight." in shown(provider)
