"""A conversation through each provider: the real client, the real command, a model server on loopback."""

import asyncio
import json

import pytest

from driven import Machine, reply
from lab.loopback.model import ModelServer

LEARNED = """<internal_monologue verb="noticed">S1-PRIVATE</internal_monologue>
<external_dialogue verb="offered">Good to meet you.</external_dialogue>
<user_model_check>true</user_model_check>
<user_model_update section="Persona">- Builds bridges.</user_model_update>
<model_change_note>Learned the trade.</model_change_note>"""
STATE = """<internal_monologue>S2</internal_monologue><external_dialogue>Three coats.</external_dialogue>
<user_model_check>false</user_model_check><soul_state_check>true</soul_state_check>
<soul_state_update>currentTopic: rust</soul_state_update>"""

LINES = ("I build bridges.", "One rusts.", "How many coats?", "And then?")


def environment(name: str, url: str) -> dict[str, str]:
    """Return the environment that selects this provider with that server."""
    common = {"CLAUDIUS_PROVIDERS": name, "LOGNAME": "ada"}
    if name == "openai_compat":
        return common | {
            "CLAUDIUS_OPENAI_BASE_URL": f"{url}/v1",
            "CLAUDIUS_OPENAI_MODEL": "claude-loopback",
            "CLAUDIUS_OPENAI_PROFILE": "full",
        }
    return common | {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        "CLAUDIUS_ANTHROPIC_MODEL": "claude-loopback",
        "CLAUDIUS_CLAUDE_MODEL": "claude-loopback",
    }


@pytest.mark.parametrize(
    "name",
    [
        "anthropic_api",
        "openai_compat",
        pytest.param("claude_cli", marks=pytest.mark.slow),
        pytest.param("agent_sdk", marks=pytest.mark.slow),
    ],
)
async def test_a_conversation_through(name: str, machine: Machine) -> None:
    """The third request holds both exchanges, soul and state; the user model is written, committed, shown, gated."""
    async with ModelServer([LEARNED, reply("Paint it."), STATE, reply("Wait.")]) as server:
        env = environment(name, server.url)
        said = []
        for line in LINES:
            ran = await asyncio.to_thread(machine.run, "chat", "--once", line, "--json", env=env)
            said.append(ran.json)
        asked = [json.dumps(call.body, ensure_ascii=False) for call in server.asked]
        told = await asyncio.to_thread(machine.run, "users", "log", "terminal:local:ada", "--json", env=env)

    assert [one["reply"] for one in said] == ["Good to meet you.", "Paint it.", "Three coats.", "Wait."]
    assert {one["provider"] for one in said} == {name}
    assert all(one["usage"]["output_tokens"] > 0 for one in said)
    assert len(asked) == 4
    assert "Claudius, Artifex Maximus" in asked[2]
    for text in ("I build bridges.", "Good to meet you.", "One rusts.", "Paint it.", "How many coats?"):
        assert text in asked[2], text
    assert "Builds bridges." in asked[1]
    assert "currentTopic" in asked[3].replace("currentTopic: what", "")
    (version,) = told.json
    assert (version["version"], version["note"]) == (1, "Learned the trade.")
    assert version["commit"]
