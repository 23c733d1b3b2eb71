"""T38: ten talks of a day, with links, notes, a diary and mails: how often a person is asked."""

import json
from collections import Counter
from typing import Any

from case_rows import ROOT
from claudius.compose import TOOLS
from claudius.config.schema import Config
from claudius.home import Home
from claudius.memory.store import Store
from claudius.perception import shared
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from claudius.tool import JSON, Tool, ToolCall, ToolClass
from claudius.tools.offered import built_in
from driven import reply
from minds import heard, lent

TALKS: list[dict[str, Any]] = json.loads((ROOT / "talks.json").read_text("utf-8"))
USES = {line: (name, args) for talk in TALKS for line, name, args in talk["lines"] if name}
LENT = {
    "diary.add": ("write", ("text",), True),
    "mail.send": ("send", ("to", "text"), True),
    "notes.read": ("read", ("name",), True),
    "web.read": ("read", ("url",), False),
}
ANA = "rehearsal:t:ana"


async def _given(args: JSON, _: ToolCall) -> str:
    return f"It says enough of {' and '.join(map(str, args.values()))}."


def tools_of(store: Store) -> list[Tool]:
    """Return the tools that look, and four others in which nothing happens."""
    looks = built_in(TOOLS.values(), store, Config)
    others = [
        lent(name, cls, _given, *args, where=("owner",) if is_mine else (), is_mine=is_mine)
        for name, (cls, args, is_mine) in LENT.items()
    ]
    return [*[one for one in looks() if one.cls is ToolClass.LOOK], *others]


def speak(request: Request) -> str:
    """Ask for the tool that a line needs, then speak."""
    name, args = USES.get(heard(request)[-1], ("", {})) if request.purpose == "turn" else ("", {})
    return f"<tool_use>{json.dumps({'tool': name, 'args': args})}</tool_use>" if name else reply("So it is.")


async def test_t38_a_person_is_asked_once_in_a_talk_by_what_reads_and_each_time_by_what_sends(home: Home) -> None:
    """Where it may, they allow the talk; the questions are exactly those of `talks.json`, and every use was made."""
    tools: list[Tool] = []
    asked: dict[str, Counter[str]] = {}
    settings = {"CLAUDIUS_OWNERS": ANA}
    async with alive(home, Scripted(default=speak), tools=lambda: tools, settings=settings) as soul:
        store = soul.mind.store
        tools += tools_of(store)
        for n, talk in enumerate(TALKS):
            is_shared, asked[talk["talk"]] = talk.get("shared", False), Counter()
            place = f"rehearsal:t:{'C1' if is_shared else 'dm-ana'}:{n}"
            soul.network.audiences[shared(place)] = (ANA, "rehearsal:t:ben")
            for line, *_ in talk["lines"]:
                await soul.network.hear(line, person="ana", conversation=place, is_shared=is_shared)
                await soul.idle()
                for call in store.calls.waiting():
                    asked[talk["talk"]][call.tool] += 1
                    word = " talk" if call.cls is not ToolClass.SEND else ""
                    await soul.network.hear(f"!allow{word}", person="ana", conversation=place, is_shared=is_shared)
                    await soul.idle()
        rows = soul.records().calls(99)

    assert asked == {talk["talk"]: talk["asked"] for talk in TALKS}
    assert {one["state"] for one in rows} == {"done"}
    assert len(rows) == sum(bool(name) for talk in TALKS for _, name, _ in talk["lines"])
    reads = [(talk, tool) for talk, found in asked.items() for tool in found if LENT[tool][0] == "read"]
    assert max(asked[talk][tool] for talk, tool in reads) == 1
