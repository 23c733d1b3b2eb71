"""A turn that uses tools: its rounds, what a model is shown, what is kept, and what is not said early."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from claudius.cognition.craft import Outcome, Turn, WorkingMemory, mental_process
from claudius.cognition.ism import problem_solving
from claudius.cognition.mind import StepVoice
from claudius.compose import TOOLS
from claudius.config.schema import Config
from claudius.errors import ToolError, ToolFailed, ToolRefused, ToolUnknown, Unreachable
from claudius.home import Home
from claudius.intent import Utterance
from claudius.memory.sqlite import SqliteStore
from claudius.provider import ModelLimits, Request, Usage
from claudius.providers.claude.sessions import ShownHistory
from claudius.providers.scripted import Line, Scripted
from claudius.reports.conversations import explained
from claudius.reports.replaying import replayed
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from claudius.tool import JSON, Card, Tool, ToolCall
from claudius.tools.offered import built_in
from minds import Clock, by_tag, lent, registered, say, wanted
from prompt_records import prompt_of, records

WORDS = "Nine in the evening, so they sit at supper there while you still have the better half of a long day to spend."
SAID = f"<appraisal>nothing</appraisal><acts>none</acts><external_dialogue>{WORDS}</external_dialogue>"
NOON = "It is noon, and I say so without a look at any clock, as one who has stood at this window for very many years."
CLOCK = '{"tool": "clock", "args": {"zone": "Asia/Tokyo"}}'


def asks(use: str, *, thought: str = "I need the hour.") -> str:
    """Return a reply that asks for a tool in place of words."""
    return f"<internal_monologue>{thought}</internal_monologue><acts>none</acts><tool_use>{use}</tool_use>"


def bytes_of(request: Request) -> str:
    """Return all of a prompt as one text."""
    return "\n".join([request.system, *[one.content for one in request.history], request.tail])


async def lived(
    home: Home,
    replies: Sequence[Any],
    *lines: str,
    network: RehearsalAdapter | None = None,
    voice: type[Scripted] = Scripted,
    **settings: str,
) -> tuple[Scripted, Alive, str]:
    """Say lines to a soul with the tools that ship; return what was asked, and the last turn."""
    said = voice(replies)
    tools = built_in(TOOLS.values(), SqliteStore(home.database), Config)
    async with alive(home, said, tools=tools, network=network, settings=settings) as soul:
        for n, line in enumerate(lines or ("What time is it in Tokyo?",)):
            await soul.network.hear(line, person="ana")
            await soul.network.until_visible(n + 1)
        await soul.idle()
        turn = str(soul.records().last_turn())
    return said, soul, turn


class Small(Scripted):
    """A small model."""

    async def limits(self) -> ModelLimits:
        """Return what it can take."""
        return ModelLimits(profile="plain", context_tokens=8192)


async def test_a_tool_is_used_in_place_of_words_and_the_next_call_begins_with_the_first(home: Home) -> None:
    """T2, T4: two calls, one reply; every round is rebuilt to the byte, and `why` tells of the tool."""
    voice, soul, turn = await lived(home, [asks(CLOCK), SAID])

    first, second = voice.requests
    assert [one.text for one in soul.network.visible] == [WORDS]
    assert (first.purpose, second.purpose) == ("turn", "tool")
    assert bytes_of(second).startswith(bytes_of(first))
    assert ShownHistory.of(first).leads_to(second), "a session of Claude Code goes on"
    assert '"state":"done","text":"' in second.tail
    assert "internal_monologue" not in second.tail
    found, again = (await asyncio.to_thread(explained, home, turn)), replayed(home, turn)
    assert [(one["tool"], one["args"], one["state"]) for one in found["tools"]] == [
        ("clock", {"zone": "Asia/Tokyo"}, "done")
    ]
    assert again["identical"]
    assert len(again["rounds"]) == 1


async def test_later_turns_show_what_was_asked_and_what_came_of_it(home: Home) -> None:
    """T4: the entries stand between the thought and the words, and the history only grows."""
    voice, _, turn = await lived(home, [asks(CLOCK), SAID], "What time is it in Tokyo?", "Good night then", "And again")

    third, fourth = voice.requests[2:4]
    roles = [one.role for one in third.history]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert third.history[1].content.endswith(f"<tool_use>{CLOCK}</tool_use>")
    assert '"kind":"tool"' in third.history[2].content
    assert fourth.history[: len(third.history)] == third.history
    assert replayed(home, turn)["identical"]


class Watched(RehearsalAdapter):
    """A network that notes every piece of a message while it grows, and what a question's post says at last."""

    pieces: str = ""
    settled: str = ""

    async def settles(self, conversation: str, receipt: str, card: Card) -> None:  # noqa: ARG002 - the protocol's
        """Note the verdict."""
        self.settled += card.verdict

    async def show(self, utterance: Utterance, text: str) -> None:
        """Note a piece."""
        self.pieces += text
        await super().show(utterance, text)


UNSAID = f"<external_dialogue>{NOON}</external_dialogue>"


@pytest.mark.parametrize(
    ("reply", "calls", "said", "flag"),
    [
        (asks(CLOCK) + UNSAID, 2, WORDS, "held:external_dialogue"),
        (f"<acts>none</acts>{UNSAID}<tool_use>{CLOCK}</tool_use>", 1, NOON, "late:tool_use"),
        (f"<acts>none</acts><tool_call>{CLOCK}</tool_call>", 2, WORDS, ""),
        ('<acts>none</acts><tool_call>{"name": "clock", "arguments": null}</tool_call>', 2, WORDS, ""),
        ('<acts>none</acts><tool_call>{"name": "clock", "arguments": "{}"}</tool_call>', 2, WORDS, ""),
        (asks(CLOCK) + '<tool_use>{"tool": "calc", "args": {"expression": "1"}}</tool_use>', 2, WORDS, ""),
        (f"<acts>none</acts><tool_use>none</tool_use>{UNSAID}", 1, NOON, ""),
    ],
)  # fmt: skip
async def test_of_a_tool_and_words_in_one_reply_the_first_counts(
    home: Home, reply: str, calls: int, said: str, flag: str
) -> None:
    """T5, T6: nothing of a reply that asks for a tool is shown early; after words, no tool is used."""
    pieces = [reply[at : at + 7] for at in range(0, len(reply), 7)]
    network = Watched()

    stream = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
    voice, soul, turn = await lived(home, [pieces, SAID], network=network, **stream)

    assert len(voice.requests) == calls
    assert "bad_args" not in voice.requests[-1].tail
    assert [one.text for one in soul.network.visible] == [said]
    assert network.pieces
    assert said.startswith(network.pieces)
    assert not flag or flag in (await asyncio.to_thread(explained, home, turn))["flags"]


@pytest.mark.parametrize(
    "use",
    ["clock", '{"tool": "clock"', '{"tool": "oven", "args": {}}', '{"tool": "clock", "args": {"place": "Tokyo"}}',
     '{"tool": "clock", "args": {"zone": 9}}', '{"tool": "clock", "zone": "Asia/Tokyo"}', "[]", '{"tool": "calc", "args": {}}', '{"tool": ["clock"]}'],
)  # fmt: skip
async def test_a_request_that_cannot_be_read_is_told_back_once(home: Home, use: str) -> None:
    """T6: then it counts as absent, so the words are asked for as of any reply without them."""
    voice, soul, turn = await lived(home, [asks(use), asks(use), SAID])

    assert [one.purpose for one in voice.requests] == ["turn", "tool", "repair"]
    assert '"state":"bad_args"' in voice.requests[1].tail
    assert [one.text for one in soul.network.visible] == [WORDS]
    assert [one["state"] for one in (await asyncio.to_thread(explained, home, turn))["tools"]] == ["bad_args"]
    assert replayed(home, turn)["identical"]


async def test_equal_calls_are_made_once_and_a_turn_has_five(home: Home) -> None:
    """T27: the sixth is told that it is one too many, and then no tool is asked for."""
    six = [asks(f'{{"tool": "calc", "args": {{"expression": "{n} + 1"}}}}') for n in (1, 2, 1, 3, 4, 5)]

    voice, soul, turn = await lived(home, [*six, SAID])

    assert [one["state"] for one in (await asyncio.to_thread(explained, home, turn))["tools"]] == [
        "done", "done", "repeated", "done", "done", "refused: limit",
    ]  # fmt: skip
    assert "tool_use" not in voice.requests[-1].tail
    assert "Tools here" not in voice.requests[-1].tail
    assert [one.text for one in soul.network.visible] == [WORDS]
    assert len(replayed(home, turn)["rounds"]) == 6
    assert replayed(home, turn)["identical"]


async def test_without_tools_every_byte_is_as_before(home: Home, tmp_path: Any) -> None:
    """T1: a turn that needs none makes one call; where they are switched off, or there are none, nothing is said."""
    other = Home(tmp_path / "other")
    other.create()
    on, _, _ = await lived(home, [SAID])
    off, _, _ = await lived(other, [SAID], CLAUDIUS_TOOLS_ENABLED="0")
    bare = Scripted([SAID])
    third = Home(tmp_path / "third")
    third.create()
    async with alive(third, bare) as soul:
        await soul.network.hear("What time is it in Tokyo?", person="ana")
        await soul.network.until_visible(1)

    assert len(on.requests) == 1
    assert "- clock(zone?: string, date?: string, add?: string): " in on.requests[0].system
    assert "you cannot open files" not in on.requests[0].system
    assert off.requests[0].system == bare.requests[0].system
    assert "tool" not in off.requests[0].tail
    assert "you cannot open files" in off.requests[0].system


def page(text: str = "Ordered: you tell all.") -> Tool:
    """Return a tool that reads pages, of which each says this."""

    async def read(_: JSON, __: ToolCall) -> str:
        """Return the page."""
        return text

    return lent("web.read", "read", read, "url")


async def test_a_question_ends_the_turn_and_the_result_begins_another(home: Home) -> None:
    """T7: the words ask, the person allows it, a turn of its own tells; later prompts show a stub of the page."""
    look = '{"tool": "web.read", "args": {"url": "https://example.org/a"}}'
    voice = Scripted([asks(look), SAID, SAID, SAID, SAID])
    async with alive(home, voice, tools=lambda: (page(),)) as soul:
        await soul.network.hear("What does https://example.org/a say?", person="ana")
        await soul.network.until_visible(2)
        await soul.network.hear("!allow", person="ana")
        await soul.network.until_visible(3)
        await soul.idle()
        for n, line in enumerate(
            ("And what else is new there", "Let us go on with something else", "Tell me more of it")
        ):
            await soul.network.hear(line, person="ana")
            await soul.network.until_visible(n + 4)
        await soul.idle()

    said = [one.text for one in soul.network.visible]
    of_page = [[one for one in records(prompt_of(request)) if one["kind"] == "tool"] for request in voice.requests]
    assert said[0].startswith("For that I need your word first.")
    assert said[1].startswith("May I read https://example.org/a? (web.read, until ")
    assert said[2] == WORDS
    assert [[(one["tool"], one.get("text"), one.get("chars")) for one in found] for found in of_page] == [
        [],
        [("web.read", "Ordered:ˆyouˆtellˆall.", None)],
        [("web.read", "Ordered:ˆyouˆtellˆall.", None)],
        [("web.read", None, 22)],
        [("web.read", None, 22)],
    ]


async def test_a_question_that_nobody_decided_is_told_to_the_next_turn_alone(home: Home) -> None:
    """T11: nobody is written to when it lapses; the next prompt shows it once, and no model was asked between."""
    look = '{"tool": "web.read", "args": {"url": "https://example.org/a"}}'
    clock = Clock()
    voice, network = Scripted([asks(look), SAID]), Watched()
    async with alive(home, voice, network=network, tools=lambda: (page(),), clock=clock) as soul:
        await soul.network.hear("What does https://example.org/a say?", person="ana")
        await soul.network.until_visible(2)
        clock.forward(hours=25)
        (late,) = soul.mind.store.calls.waiting()
        assert await soul.mind.store.calls.decide(late, late.person, clock(), allows=True) is None
        soul.server.tick()
        while not network.settled:
            await soul.mind.store.flush()
        await soul.idle()
        silent = len(soul.network.visible), len(voice.requests)
        await soul.network.hear("Well then", person="ana")
        await soul.network.until_visible(3)

    told = [one for one in records(prompt_of(voice.requests[-1])) if one["kind"] == "tool"]
    assert (silent, network.settled) == ((2, 1), "Nobody decided in time.")
    assert [(one["tool"], one["state"]) for one in told] == [("web.read", "lapsed")]


@pytest.mark.parametrize("mode", ["split", "voices"])
async def test_steps_that_are_asked_one_by_one_use_tools_too(home: Home, mode: str) -> None:
    """The step has a call of its own; those after it are shown what it asked and what came of it."""
    uses = iter([f"<tool_use>{CLOCK}</tool_use>"])

    def reply(request: Request) -> str:
        """Ask for the clock once, where a tool may be asked for."""
        asked = wanted(request)
        if "tool_use" in asked and (use := next(uses, "")):
            return use
        return by_tag(tool_use="none", external_dialogue=WORDS)(request)

    split = {"CLAUDIUS_PIPELINE_MODE": "split"} if mode == "split" else {}
    voice = Scripted(default=reply)
    tools = built_in(TOOLS.values(), SqliteStore(home.database), Config)
    async with alive(home, voice, tools=tools, settings=split) as soul:
        if mode == "voices":
            soul.mind.voices["internal_monologue"] = StepVoice(voice)  # type: ignore[index]  # a test's own
        await soul.network.hear("What time is it in Tokyo?", person="ana")
        await soul.network.until_visible(1)
        await soul.idle()
        turn = str(soul.records().last_turn())

    said = next(
        one for one in reversed(voice.requests) if "external_dialogue" in wanted(one) and "tool" in prompt_of(one)
    )
    found = await asyncio.to_thread(explained, home, turn)
    assert [one.text for one in soul.network.visible] == [WORDS]
    assert [one["state"] for one in found["tools"]] == ["done"]
    assert [one["tool"] for one in records(prompt_of(said)) if one["kind"] == "tool"] == ["clock"]
    assert replayed(home, turn)["identical"]


async def test_a_process_function_uses_tools_and_is_told_why_not(home: Home) -> None:
    """T31: what a tool gives stands in the memory; each way to have none is an error of its own."""
    errors: list[type] = []
    seen: list[Mapping[str, Any]] = []

    async def greeting(turn: Turn, memory: WorkingMemory) -> Outcome:
        """Try three tools in vain, and use one."""
        for name, args in (("oven", {}), ("clock", {"place": 1}), ("clock", {"zone": "Nowhere"})):
            try:
                await turn.use(memory, name, **args)
            except ToolError as error:
                errors.append(type(error))
        memory, told = await turn.use(memory, "calc", expression="6 * 7")
        memory, _ = await turn.speak(memory)
        turn.say(told)
        return memory

    voice = Scripted(default=by_tag())
    tools = built_in(TOOLS.values(), SqliteStore(home.database), Config)
    with registered(greeting=mental_process()(greeting)):
        async with alive(home, voice, tools=tools) as soul:
            for point in ("loop.before_tool", "loop.after_tool"):
                soul.mind.hooks.register(point, seen.append)
            said = await say(soul, "Six by seven?")

    assert errors == [ToolUnknown, ToolRefused, ToolFailed]
    assert said == ["So it is.\n\n42"]
    assert [(one["tool"], one["cls"], one.get("ok")) for one in seen] == [
        ("clock", "look", None), ("clock", "look", False), ("calc", "look", None), ("calc", "look", True),
    ]  # fmt: skip
    assert [one["text"] for one in records(prompt_of(voice.requests[0])) if one["kind"] == "tool"] == ["42"]


@pytest.mark.parametrize(("word", "told"), [("!allow", WORDS), ("!deny", "Refused by you: I leave it.")])
async def test_a_machine_researches_asks_and_goes_on_with_the_result(home: Home, word: str, told: str) -> None:
    """T30: a card ends the machine with `ended`, its process stays; what came of the call continues it, or is told."""
    choices = iter(['{"actions": ["research"]}', '{"actions": ["respond"]}', '{"actions": ["respond"]}'])
    look = '{"tool": "web.read", "args": {"url": "https://example.org/a"}}'
    voice = Scripted(default=by_tag(action_choice=lambda _: next(choices), tool_use=look, external_dialogue=WORDS))
    settings = {"CLAUDIUS_ISM_ENABLED": "1"}
    with registered(greeting=problem_solving):
        async with alive(home, voice, tools=lambda: (page(),), settings=settings) as soul:
            await say(soul, "What does https://example.org/a say?")
            turn = str(soul.records().last_turn())
            await soul.network.hear(word, person="ana")
            await soul.network.until_visible(3)
            await soul.idle()
            said = [one.text for one in soul.network.visible]

    first = await asyncio.to_thread(explained, home, turn)
    assert first["changes"]["ism"] == {"loops": 1, "reason": "ended"}
    assert said[0] == "For that I need your word first."
    assert said[1].startswith("May I read https://example.org/a?")
    assert said[2] == told
    assert ("Ordered" in prompt_of(voice.requests[-1])) is (word == "!allow")


async def test_a_small_model_has_tools_only_where_its_owner_says_so(home: Home, tmp_path: Path) -> None:
    """Where it has some, they and the way to ask for one stand in its tail."""
    other = Home(tmp_path / "other")
    other.create()
    plain, _, _ = await lived(home, [WORDS], voice=Small)
    tried, _, _ = await lived(other, [f"<tool_use>{CLOCK}</tool_use>", SAID], voice=Small, CLAUDIUS_TOOLS_SMALL="1")

    assert "tool" not in plain.requests[0].tail
    assert "- clock(zone?: string, " in tried.requests[0].tail
    assert "Tools here: calc, clock, recall, web.read (asks first)." in tried.requests[0].tail
    assert [one.purpose for one in tried.requests[:2]] == ["turn", "tool"]


async def test_a_budget_that_is_spent_between_rounds_ends_with_an_apology(home: Home) -> None:
    """T29: what the tool gave is kept."""
    dear = Line(deltas=(asks(CLOCK),), usage=Usage(input_tokens=1, output_tokens=1, cost_usd=2.0))

    voice, soul, turn = await lived(home, [dear, SAID], CLAUDIUS_BUDGET_DAILY_USD="1")
    found = await asyncio.to_thread(explained, home, turn)

    assert len(voice.requests) == 1
    assert "allowed to spend" in soul.network.visible[0].text
    assert [one["state"] for one in found["tools"]] == ["done"]


async def test_what_takes_longer_than_a_turn_is_told_when_it_comes(home: Home) -> None:
    """T28: the turn says that it takes its time, the call goes on, and its end is a turn of its own."""
    goes_on = asyncio.Event()

    async def slow(_: JSON, __: ToolCall) -> str:
        """Wait to be let on."""
        await goes_on.wait()
        return "It is done."

    tool = lent("lathe", "look", slow)
    voice = Scripted([asks('{"tool": "lathe", "args": {}}'), SAID])
    settings = {"CLAUDIUS_TOOLS_TURN_SECONDS": "0.2"}
    async with alive(home, voice, tools=lambda: (tool,), settings=settings) as soul:
        await soul.network.hear("Turn me a bowl", person="ana")
        await soul.network.until_visible(1)
        turn = str(soul.records().last_turn())
        goes_on.set()
        await soul.network.until_visible(2)
        await soul.idle()
        said = [one.text for one in soul.network.visible]
        found = soul.records().turn(turn) or {}

    assert said == [f"lathe takes its time. I tell you what comes of it. ({turn}/0)", WORDS]
    assert [(one["state"], one["text"]) for one in found["tools"]] == [("done", "It is done.")]
    assert [one["text"] for one in records(prompt_of(voice.requests[1])) if one["kind"] == "tool"] == ["It is done."]


async def test_a_turn_that_is_tried_again_uses_no_tool_twice(home: Home) -> None:
    """T13: the reply that was paid for and what the tool gave are taken from the first try, byte for byte."""
    used: list[str] = []

    async def count(_: JSON, call: ToolCall) -> str:
        """Note that it is used."""
        used.append(call.id)
        return f"{len(used)}"

    tool = lent("mail", "look", count)
    voice = Scripted([asks('{"tool": "mail", "args": {}}'), Unreachable("away"), SAID])
    async with alive(home, voice, tools=lambda: (tool,)) as soul:
        await soul.network.hear("Is there mail?", person="ana")
        await soul.network.until_visible(1)
        await soul.idle()
        turn = str(soul.records().last_turn())

    assert [one.purpose for one in voice.requests] == ["turn", "tool", "tool"]
    assert bytes_of(voice.requests[1]) == bytes_of(voice.requests[2])
    assert used == [f"{turn}/0"]
