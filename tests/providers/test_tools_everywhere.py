"""T3: a tool is used alike whoever is asked, the two Claude transports through the real command; no one is offered a tool."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from claudius.compose import TOOLS
from claudius.config.load import Loaded
from claudius.config.schema import Config
from claudius.errors import Unavailable
from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.providers import agent_sdk, anthropic_api, claude_cli, openai_compat
from claudius.providers.claude import command
from claudius.reports.conversations import explained
from claudius.testing.alive import alive
from claudius.testing.provider_contract.voice import in_order
from claudius.tools.offered import built_in
from lab.loopback.model import ModelServer
from minds import say

WORDS = "Nine in the evening, and the fish market has long been swept."
REPLIES = (
    (
        "<internal_monologue>I need the hour.</internal_monologue><appraisal>nothing</appraisal><acts>none</acts>"
        '<tool_use>{"tool": "clock", "args": {"zone": "Asia/Tokyo"}}</tool_use>'
    ),
    f"<appraisal>nothing</appraisal><acts>none</acts><external_dialogue>{WORDS}</external_dialogue>",
)
KEPT = ["userMessage", "internalMonologue", "toolUse", "toolResult", "mentalQuery", "mentalQuery", "externalDialog"]
VOICES: dict[str, Any] = {
    "anthropic_api": anthropic_api,
    "openai_compat": openai_compat,
    "claude_cli": claude_cli,
    "agent_sdk": agent_sdk,
}


@pytest.mark.parametrize("name", VOICES)
@pytest.mark.usefixtures("claude_home")
async def test_t3_a_tool_is_used_alike_by_every_provider(
    name: str, server: ModelServer, settings: Callable[..., Loaded], home: Home
) -> None:
    """Two calls, of which the second begins with the first, and one reply; a session of Claude Code goes on."""
    if name in ("claude_cli", "agent_sdk"):
        try:
            command.find("")
        except Unavailable as error:
            pytest.skip(error.message)
    server.say(*REPLIES)
    voice = VOICES[name].build(settings(), home)
    tools = built_in(TOOLS.values(), SqliteStore(home.database), Config)

    async with alive(home, voice, tools=tools) as soul:
        said = await say(soul, "What time is it in Tokyo?")
        turn = str(soul.records().last_turn())
    await voice.aclose()
    found = await asyncio.to_thread(explained, home, turn)

    first, second = server.asked
    assert said == [WORDS]
    assert [(one["tool"], one["args"], one["state"]) for one in found["tools"]] == [
        ("clock", {"zone": "Asia/Tokyo"}, "done")
    ]
    assert [one["entry_type"] for one in found["entries"]] == KEPT
    assert not first.body.get("tools")
    assert not second.body.get("tools")
    assert second.system == first.system
    assert in_order(
        [text for role, text in first.messages if role != "system"], "\n".join(t for _, t in second.messages)
    )
