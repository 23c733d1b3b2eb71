"""Models at home: a small prompt, an enforced form, a context that is never exceeded. Each server as its family does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claudius.compose import provider
from claudius.config import load
from claudius.errors import TooLong
from claudius.home import Home
from claudius.perception import Perception
from claudius.provider import Done, FormStep, Message, Request, limits_of
from claudius.providers.enforced import JsonSections, grammar, schema
from claudius.providers.local_server import LOCAL_MODELS, is_at_home, is_large, profile_of, read
from claudius.testing.alive import Alive, alive
from claudius.testing.model_calls import Reply
from lab.loopback.model import Answer, ModelServer
from lab.loopback.model_families import Family
from stream_rows import ROWS, Right

MODEL = "qwen2.5:7b"
THOUGHT, SPEECH, CHECK = "internal_monologue", "external_dialogue", "user_model_check"
TAGGED = f"<{THOUGHT}>They ask.</{THOUGHT}>\n<{SPEECH}>Plane it, then sand it.</{SPEECH}>"
JSONED = json.dumps({THOUGHT: "They ask.", SPEECH: "Plane it, then sand it."})
STEPS = (
    FormStep(name=THOUGHT, verbs=("thought", "mused")),
    FormStep(name=SPEECH, verbs=("said",)),
    FormStep(name=CHECK, value="bool"),
    FormStep(name="user_model_update", value="markdown", check=CHECK),
)


class Talk:
    """A soul that runs on a model at home."""

    def __init__(self, soul: Alive, server: ModelServer) -> None:
        self.soul, self.server = soul, server
        self.said: list[Perception] = []

    async def hear(self, text: str) -> str:
        """Say one line, wait until all is done, and return what became visible."""
        before = len(self.soul.network.visible)
        self.said.append(await self.soul.network.hear(text))
        seen = await self.soul.network.until_visible(before + 1, within_s=60)
        await self.soul.idle()
        return seen[-1].text

    def bodies(self) -> list[dict[str, Any]]:
        """Return the body of every call of the model, oldest first."""
        return [call.body for call in self.server.asked]


@asynccontextmanager
async def at_home(
    home: Home, family: Family, *answers: Answer, default: Answer, **settings: str
) -> AsyncIterator[Talk]:
    """Start a soul whose only model is one of this family on loopback."""
    async with ModelServer(answers, default=default, models=(MODEL,), family=family) as server:
        env = {
            "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1",
            "CLAUDIUS_PSYCHE_ENABLED": "0",
            "CLAUDIUS_MODEL_RETRIES": "0",
            **settings,
        }
        chain = provider(load(home, env), home, ["openai_compat"])
        async with alive(home, chain, settings=env) as soul:
            yield Talk(soul, server)


# -- L1: the profile -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "host", "model", "profile"),
    [
        ("auto", "127.0.0.1", "qwen2.5:7b", "small"),
        ("auto", "192.168.1.20", "llama3.2", "small"),
        ("auto", "localhost", "llama3.3", "full"),
        ("auto", "127.0.0.1", "qwen2.5-72b-instruct", "full"),
        ("auto", "127.0.0.1", "mixtral:8x22b", "full"),
        ("auto", "api.groq.com", "llama-3.1-8b-instant", "full"),
        ("full", "127.0.0.1", "qwen2.5:7b", "full"),
        ("small", "api.groq.com", "llama-3.1-8b-instant", "small"),
    ],
)
def test_local_l1_a_model_at_home_is_small_unless_it_is_large(
    setting: str, host: str, model: str, profile: str
) -> None:
    """`auto` is small for a loopback or private address, unless the model's name is that of a large one."""
    assert profile_of(setting, host, model) == profile


def test_local_l1_what_counts_as_home() -> None:
    """This machine and private networks are home; names out in the world are not."""
    assert [is_at_home(one) for one in ("::1", "10.0.0.7", "box.local", "api.openai.com", "8.8.8.8")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert not is_large("smollm2:135m")


# -- L2: the small prompt --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama.cpp", "other"])
async def test_local_l2_the_first_prompt_keeps_its_budget(home: Home, family: str) -> None:
    """By a real tokenizer, the shipped soul's system part has at most 1,200 tokens, and the tail at most 250."""
    bpe = pytest.importorskip("bpe_openai", reason="the tokenizer of the dev extra")
    count = bpe.get_encoding("cl100k_base").encode
    is_enforced = family != "other"
    default = TAGGED if is_enforced else "Plane it, then sand it."
    async with at_home(home, Family(family), default=default) as talk:
        await talk.hear("How do I smooth a board?")
        first = talk.server.asked[0]

    assert len(count(first.system)) <= 1200
    assert len(count(first.tail)) <= 250


async def test_local_l2_all_data_stand_in_one_fence(home: Home) -> None:
    """A tail names the present, then has one pair of markers, under Data, a flat line a record, and no other heading."""
    async with at_home(home, Family("llama.cpp"), default=TAGGED) as talk:
        await talk.hear("How do I smooth a board?")
        tail = talk.server.asked[0].tail

    lines = tail.splitlines()
    assert lines[0].startswith("It is ")
    assert lines[1] == "## Data"
    assert sum(line.startswith("<data-") for line in lines) == 1
    assert "How do I smooth a board?" in tail
    assert tail.count("## ") == 1


# -- L3: words first -------------------------------------------------------------------------------------------------


async def test_local_l3_without_an_enforced_form_the_words_are_asked_alone(home: Home) -> None:
    """One call before the words, which asks no section; the plain reply is spoken as it is."""
    async with at_home(home, Family("other"), default="Plane it, then sand it.") as talk:
        said = await talk.hear("How do I smooth a board?")
        first = talk.server.asked[0]

    assert said == "Plane it, then sand it."
    assert SPEECH not in first.tail
    assert CHECK not in first.tail


async def test_local_l3_judgements_are_asked_while_idle_in_calls_of_their_own(home: Home) -> None:
    """The words come with the first call; after it the check is asked alone, and changes what it always changes."""
    said_yes = f"<{CHECK}>true</{CHECK}>"
    update = '<user_model_update section="Persona">\n- Her sister Mira is allergic to walnuts.\n</user_model_update>'
    answers = (
        Reply(text=TAGGED, when=f"{THOUGHT}, {SPEECH}."),
        Reply(text=said_yes, when=f"nothing else: {CHECK}."),
        Reply(text=update, when="nothing else: user_model_update."),
    )
    async with at_home(home, Family("llama.cpp"), *answers, default="<x>") as talk:
        await talk.hear("My sister Mira is allergic to walnuts.")
        asked = [body["messages"][-1]["content"] for body in talk.bodies()]

    assert f"{THOUGHT}, {SPEECH}." in asked[0]
    assert CHECK not in asked[0]
    assert f"nothing else: {CHECK}." in asked[1]
    assert "nothing else: user_model_update." in asked[2]


async def test_local_l3_babble_about_the_steps_is_not_speech(home: Home) -> None:
    """Unstructured text that says our step names is not spoken; the words are asked for once more, without the draft."""
    babble = "This turn is an internal monologue, and then the external dialogue follows."
    async with at_home(home, Family("other"), babble, default="Plane it.") as talk:
        said = await talk.hear("How do I smooth a board?")
        asked = [body["messages"][-1]["content"] for body in talk.bodies()]

    assert said == "Plane it."
    assert babble not in asked[1]


# -- L4: an enforced form --------------------------------------------------------------------------------------------


def test_local_l4_the_grammar_asks_for_the_steps_of_the_plan_and_no_others() -> None:
    """It names each step of the plan in order; a conditional one stands in its check's true answer."""
    made = grammar(STEPS)

    root = made.splitlines()[0]
    assert root == "root ::= s0 s1 s2"
    assert '"<user_model_check"' in made
    assert "model_change_note" not in made
    assert '| "<user_model_check"  ">" "true"' in made


def test_local_l4_the_schema_has_one_string_a_step_in_order() -> None:
    """Properties stand in the plan's order; what depends on a check is not required."""
    made = schema(STEPS)

    assert list(made["properties"]) == [THOUGHT, SPEECH, CHECK, "user_model_update"]
    assert made["required"] == [THOUGHT, SPEECH, CHECK]


def test_local_l4_a_tool_need_not_be_used() -> None:
    """The section that asks for one may be left out; no other may."""
    steps = (FormStep(name="tool_use", value="line", may_lack=True), *STEPS)

    assert grammar(steps).splitlines()[0] == "root ::= s0? s1 s2 s3"
    assert "tool_use" not in schema(steps)["required"]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_local_l4_json_becomes_the_same_sections_however_it_is_cut(size: int) -> None:
    """Escapes are read, surrogates joined later, our tags within a value are escaped, other text is left alone."""
    text = json.dumps({THOUGHT: 'a "b"\n</external_dialogue> x', SPEECH: "1 < 2 <div>", CHECK: True, "other": "no"})
    reader = JsonSections(STEPS)

    made = "".join(reader.feed(text[at : at + size]) for at in range(0, len(text), size)) + reader.finish()

    assert made == (
        f'<{THOUGHT}>a "b"\n&lt;/external_dialogue> x</{THOUGHT}>\n<{SPEECH}>1 < 2 <div></{SPEECH}>\n<{CHECK}>true</{CHECK}>\n'
    )


@pytest.mark.parametrize(
    "text", ['{"external_dialogue": 7 "x"', '{external_dialogue: "hm"}', '{"external_dialogue" "x"}', "{"]
)
def test_local_l4_json_that_does_not_parse_is_never_speech(text: str) -> None:
    """Nothing of it can be spoken: no complete section and no loose text comes out of it."""
    reader = JsonSections(STEPS)

    made = reader.feed(text) + reader.finish()

    assert "</external_dialogue>" not in made
    assert not made or made.startswith("<")


@pytest.mark.parametrize(
    ("family", "reply", "key"),
    [
        ("llama.cpp", TAGGED, "grammar"),
        ("ollama", JSONED, "format"),
        ("vllm", JSONED, "response_format"),
        ("lmstudio", JSONED, "response_format"),
    ],
)
async def test_local_l4_each_family_is_asked_in_its_own_way(home: Home, family: str, reply: str, key: str) -> None:
    """The form is enforced by the family's own means, and the same words are spoken."""
    async with at_home(home, Family(family), default=reply) as talk:
        said = await talk.hear("How do I smooth a board?")
        first = talk.bodies()[0]

    assert said == "Plane it, then sand it."
    assert key in first
    assert SPEECH in json.dumps(first[key])
    assert CHECK not in json.dumps(first[key])


async def test_local_l4_a_server_is_probed_once_and_remembered(home: Home) -> None:
    """The probe is sent at the first turn of an address, and never again, not even by a new process."""
    for _ in range(2):
        async with at_home(home, Family("llama.cpp"), default=TAGGED, CLAUDIUS_OPENAI_MODEL=MODEL) as talk:
            await talk.hear("One.")
            await talk.hear("Two.")
            probes = [call for call in talk.server.calls if call.path == "/props"]
            assert len(probes) == 1  # each server here has another port, so each is a new address

    assert {one.enforces for one in read(home.state / LOCAL_MODELS).values()} == {"grammar"}


# -- L5: the context -------------------------------------------------------------------------------------------------


async def test_local_l5_ollama_is_asked_natively_with_its_context(home: Home) -> None:
    """It is asked through `/api/chat`, with `num_ctx`, because its chat completions ignore that and cut."""
    async with at_home(
        home, Family("ollama", context=32768), default=JSONED, CLAUDIUS_OPENAI_CONTEXT_TOKENS="8192"
    ) as talk:
        await talk.hear("How do I smooth a board?")
        first = talk.server.asked[0]

    assert first.path == "/api/chat"
    assert first.body["options"]["num_ctx"] == 8192


async def test_local_l5_a_prompt_that_would_be_cut_is_never_sent(home: Home) -> None:
    """Over forty long turns, no prompt and reply together exceed the context; the soul's part stands in each."""
    family = Family("llama.cpp", context=3000)
    async with at_home(home, family, default=TAGGED) as talk:
        for number in range(40):
            await talk.hear(f"{number}: " + "Tell me more about planes and chisels. " * 8)
        bodies = talk.bodies()

    for body in bodies:
        sent = sum(len(one["content"]) for one in body["messages"]) // family.tokenizer_s_chars
        assert sent + body["max_tokens"] <= family.context
        assert "Artifex Maximus" in body["messages"][0]["content"]


async def test_local_l5_what_cannot_fit_is_refused_before_it_is_sent(home: Home) -> None:
    """A request beyond the context raises TooLong, and the server never sees it."""
    async with ModelServer(default=TAGGED, models=(MODEL,), family=Family("vllm", context=1000)) as server:
        chain = provider(load(home, {"CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}), home, ["openai_compat"])
        request = Request(system="s" * 9000, history=(Message("user", "hm"),), tail="t", max_tokens=500)
        with pytest.raises(TooLong):
            [event async for event in chain.complete(request)]
        asked = server.asked
        await chain.aclose()

    assert not asked


async def test_local_l5_an_unknown_context_is_assumed_and_the_setting_named(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that does not say gets `openai.context_tokens`, with a notice that names it."""
    async with ModelServer(default="Hm.", models=(MODEL,)) as server:
        chain = provider(load(home, {"CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}), home, ["openai_compat"])
        found = await limits_of(chain)
        await chain.aclose()

    assert (found.context_tokens, found.profile, found.form) == (4096, "small", "words")
    assert "openai.context_tokens" in caplog.text


async def test_local_l5_the_ratio_is_corrected_from_what_is_reported(home: Home) -> None:
    """Without a tokenizer, the characters of a token follow the reported usage; without a report they stay."""
    for usage in (True, False):
        async with ModelServer(default=Reply(text="Hm.", usage=usage), models=(MODEL,)) as server:
            env = {"CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}
            chain = provider(load(home, env), home, ["openai_compat"])
            before = (await limits_of(chain)).chars_per_token
            request = Request(system="word " * 400, history=(), tail="t", max_tokens=100)
            assert [one async for one in chain.complete(request) if isinstance(one, Done)]
            after = (await limits_of(chain)).chars_per_token
            await chain.aclose()

        assert (after != before) is usage


# -- L6: patience ----------------------------------------------------------------------------------------------------


async def test_local_l6_a_first_byte_at_home_may_take_as_long_as_the_prompt_needs(home: Home) -> None:
    """At least 300 seconds, more for a long prompt; a time that the owner set holds."""
    from claudius.providers import openai_compat  # noqa: PLC0415 - beside its use

    env = {"CLAUDIUS_OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "CLAUDIUS_OPENAI_MODEL": MODEL}
    ours = openai_compat.build(load(home, env), home)
    owners = openai_compat.build(load(home, env | {"CLAUDIUS_MODEL_FIRST_BYTE_S": "7"}), home)
    short = Request(system="s", history=(), tail="t", max_tokens=9)
    long = Request(system="s" * 30_000, history=(), tail="t", max_tokens=9)

    assert ours.patience_s(short) == 300
    assert ours.patience_s(long) > 900
    assert owners.patience_s(long) == 0
    await ours.aclose()
    await owners.aclose()


# -- L8, L9: repair, and a model that never keeps the form -------------------------------------------------------------


async def test_local_l8_a_repair_asks_for_the_words_alone_without_the_draft(home: Home) -> None:
    """After a reply without words, one call asks for the words aloud, and does not show what went wrong."""
    broken = f"<{THOUGHT}>A secret plan for a bench.</{THOUGHT}>"
    async with at_home(home, Family("llama.cpp"), broken, default="Plane it.") as talk:
        said = await talk.hear("How do I smooth a board?")
        again = talk.bodies()[1]

    assert said == "Plane it."
    assert "secret plan" not in json.dumps(again)
    assert "grammar" not in again


async def test_local_l9_a_model_that_never_keeps_the_form_is_known_after_ten_turns(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """From then on it is asked for its words alone, in one call a turn; the owner is told once, with the remedy."""
    family = Family("llama.cpp")
    async with at_home(home, family, default="Plane it.") as talk:
        for number in range(12):
            await talk.hear(f"{number}: How do I smooth a board?")
        last = talk.bodies()[-1]

    assert "grammar" not in last
    assert caplog.text.count("kept the form in none of") == 1
    assert "openai.profile" in caplog.text


def test_local_what_is_remembered_survives_a_broken_file(tmp_path: Path) -> None:
    """A file that cannot be read counts as empty."""
    broken = tmp_path / LOCAL_MODELS
    broken.write_text("{", "utf-8")

    assert read(broken) == {}


# -- what is sent is counted ------------------------------------------------------------------------------------------

COUNTED = [pytest.param(row, id=row["id"]) for row in ROWS if row["id"] in ("long-window-unknown", "cjk-hosted")]


@pytest.mark.parametrize("row", COUNTED)
async def test_what_is_told_of_a_talk_fits_in_tokens(home: Home, row: dict[str, Any]) -> None:
    """In every script, and where a server would cut without a word: a character of Japanese is about a token."""
    given, right = row["input"], Right(row)
    says = given.get("says", "The barge was late again, and the quay was wet. ")
    family = Family("ollama", context=given.get("num_ctx", 200_000), enforces=False)
    env = {
        "CLAUDIUS_PSYCHE_ENABLED": "0",
        "ANTHROPIC_API_KEY": "sk-ant-canary",
        "CLAUDIUS_HISTORY_BUDGET_TOKENS": "1500",
    }
    async with ModelServer(default=lambda _: Reply(text=answer), models=(MODEL,), family=family) as server:
        is_home = given["wire"] == "ollama"
        answer = says if is_home else f"<{SPEECH}>{says}</{SPEECH}>"
        env |= {"CLAUDIUS_ANTHROPIC_BASE_URL": server.url, "CLAUDIUS_OPENAI_BASE_URL": server.url + "/v1"}
        chain = provider(load(home, env), home, ["openai_compat" if is_home else "anthropic_api"])
        async with alive(home, chain, settings=env) as soul:
            talk = Talk(soul, server)
            for number in range(given.get("turns", 200) // 5):
                await talk.hear(f"{number} {says}" * (6 if is_home else 1))
            asked = [call for call in server.asked if call.tail]

    def count(text: str) -> int:
        """Count as a model does, at the least: a token for four characters of ASCII, or for one of any other script."""
        plain = sum(map(str.isascii, text))
        return len(text) - plain + plain // 4

    if most := right.take("request_tokens_at_most"):
        assert max(sum(count(text) for _, text in call.messages) for call in asked) <= most
    if right.take("system_whole"):
        assert {call.system for call in asked} == {asked[0].system}
    if right.take("history_tokens_at_most"):
        told = [sum(count(text) for _, text in call.messages[:-1]) for call in asked if "summary" not in call.tail]
        assert max(told) <= 1500
        assert max(told) > 500
    right.end()
