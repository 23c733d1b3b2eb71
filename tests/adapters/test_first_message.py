"""The first direct message of a person: below its answer stands, once, what the soul can do for them and what not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from both import SIDES
from case_rows import Row, rows
from claudius.home import Home, shipped
from claudius.providers.scripted import Scripted
from claudius.runtime.adapter import Adapter
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from ear import echo

LINE = (shipped("soul") / "processes/greeting.md").read_text("utf-8").partition("## first_message\n")[2].strip()


def introducing(make: Callable[[], Adapter]) -> Adapter:
    """Create an adapter as it ships."""
    made: Any = make()
    del made.introduces
    return made  # type: ignore[no-any-return] # what was made


MUST = {"three things that it can and one that it cannot, once"}


@pytest.mark.parametrize("network", sorted(SIDES))
@pytest.mark.parametrize("row", rows("newcomer", "any", only="first-dm"))
async def test_the_first_direct_message_is_answered_with_what_it_can(row: Row, network: str, home: Home) -> None:
    """In a channel nobody is told; directly once, whoever was met in a channel too, and not after a restart."""
    assert set(row.right["must"]) == MUST
    async with SIDES[network]() as shy:
        side = replace(shy, make=partial(introducing, shy.make))
        for says in ([(CHANNEL, "are you there?"), (DM, row.input["says"][0]), (DM, "and again")], [(DM, "once more")]):
            async with side.wake(home, Scripted(default=echo)) as soul:
                for place, text in says:
                    before = len(await side.stage.visible())
                    await side.stage.say(place, text, calls=place == CHANNEL)
                    await side.stage.until_visible(before + 1)
                    await soul.idle()
        said = [one.text for one in await side.stage.visible()]

    assert LINE.startswith("Three things I can do")
    assert "One I cannot" in LINE
    assert [LINE in one for one in said] == [False, True, False, False]
    assert said[1].startswith("re hi")
