"""A change may come before the message that it is about: networks promise no order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from claudius.home import Home
from claudius.perception import Kind, Perception, private
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive

ANA, DM = "rehearsal:t:ana", "rehearsal:t:dm-ana:"


def echo(request: Request) -> str:
    """Answer with the message itself."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    return f"<internal_monologue>hm</internal_monologue><external_dialogue>re {text}</external_dialogue>"


def event(key: str, text: str, position: str, kind: Kind, of: str = "") -> Perception:
    """Return what the network tells."""
    return Perception(
        key=key,
        conversation=DM,
        audience=private(ANA),
        person=ANA,
        name="Ana",
        text=text,
        at=datetime.now(UTC),
        position=position,
        kind=kind,
        owes=not of,
        extra={"of": of} if of else {},
    )


@pytest.mark.parametrize(("changes", "answered"), [(("b", "a"), ["re b"]), (("",), []), (("", "a"), [])])
async def test_a_change_that_came_before_its_message_is_in_force(
    home: Home, changes: tuple[str, ...], answered: list[str]
) -> None:
    """The newest words are thought about, and what was taken down is answered by nobody."""
    async with alive(home, Scripted(default=echo)) as soul:
        accept = soul.network._accept
        assert accept is not None
        for text in changes:
            assert not await accept(event(f"c{text}", text, f"1.{text}", Kind.EDIT if text else Kind.DELETE, "m"))
        assert await accept(event("m", "the old words", "1", Kind.MESSAGE))
        await soul.idle()

    assert [one.text for one in soul.network.visible] == answered
