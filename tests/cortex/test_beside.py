"""The second mind beside the first: the first mind says the same with it, without it, and with it broken."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import aiohttp
import pytest
from msgspec.structs import asdict, replace

from claudius.cognition.hooks import POINTS, TOLD, Hooks
from claudius.cognition.proactive import at_stake, is_wanted
from claudius.config.schema import ConsultSettings
from claudius.cortex import asking
from claudius.cortex.asking import JOB
from claudius.errors import Overloaded
from claudius.home import Home
from claudius.observed import MessageHeard
from claudius.perception import Kind, Origin
from claudius.prompt import short_name
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from claudius.runtime.observers import POINTS as POINTS_OF_OBSERVERS
from claudius.runtime.observers import Observers
from claudius.testing.alive import Alive, alive
from lab.sample import perception, recollection
from minds import Clock, converse, until
from reflecting import NOW, answer, assessed, known

ANA = "rehearsal:t:ana"
ON = {"CLAUDIUS_CORTEX_ENABLED": "1"}
OFF = {"CLAUDIUS_CORTEX_ENABLED": "0"}
LINES = (
    "I build bridges.", "One rusts. I'll send it within 4 hours.", "How many coats?", "Sure?",
    "Thanks, a coat it is.", "Bye, old friend.",
)  # fmt: skip
TALK = """<internal_monologue>Private.</internal_monologue>
<external_dialogue>Well, {n}.</external_dialogue>
<user_model_check>false</user_model_check>"""


def voice(reflection: Any = None) -> Scripted:
    """Return a model that talks by count and reflects as told, by default with a belief and an assessment."""
    said = iter(range(1000))
    judged = answer(
        (ANA, 2), beliefs=[{"key": "ana-builds", "value": "Ana builds bridges.", "rationale": "She said so."}]
    )

    def speak(request: Request) -> Any:
        if request.purpose == JOB:
            return judged if reflection is None else reflection
        return TALK.format(n=next(said))

    return Scripted(default=speak)


async def until_reflected(soul: Alive, count: int = 1) -> list[Mapping[str, Any]]:
    """Wait until the history holds this many cycles. Returns it, newest first."""
    async with asyncio.timeout(20):
        while True:
            records = soul.records()
            found = list(records.reflections(50))
            records.close()
            if len(found) >= count:
                return found
            await asyncio.sleep(0.02)


def block(request: Request, heading: str) -> str | None:
    """Return the text of the record under a heading of the tail, or None without that heading."""
    found = re.search(rf"^## {heading}\n<data-[0-9a-f]+>\n(.*)$", request.tail, re.MULTILINE)
    return str(json.loads(found[1])["text"]) if found else None


def talks(spoken: Scripted) -> list[Request]:
    """Return the first mind's own requests."""
    return [one for one in spoken.requests if one.purpose != JOB]


async def test_fr_cx_06_a_belief_stands_in_the_next_prompt(home: Home) -> None:
    """FR-CX-06, rule 7: after a cycle the tail holds its beliefs in exactly this form; before, there is no heading."""
    spoken = voice()
    async with alive(home, spoken, settings=ON, reflects=True) as soul:
        await converse(soul, *LINES[:5])
        await until_reflected(soul)
        await converse(soul, LINES[5])

    before, after = talks(spoken)[0], talks(spoken)[-1]
    assert block(after, "Cortex Beliefs") == "- ana-builds: Ana builds bridges."
    assert "## Cortex Beliefs" not in before.tail
    assert block(after, "Peers") is None
    assert after.system == before.system


async def test_fr_cx_09_an_observer_and_the_metrics_are_told_of_each_cycle(home: Home) -> None:
    """FR-CX-09: before and after a cycle, each assessment, each belief; `/metrics` counts the same."""
    told: list[Any] = []
    methods = {name: lambda _, event: told.append(event) for name in POINTS_OF_OBSERVERS if name.startswith("cortex_")}
    async with alive(home, voice(), settings=ON, reflects=True, keeps_clock=True) as soul:
        observers = Observers({"x:Watcher": type("Watcher", (), methods)()}, soul.mind.hooks)
        await converse(soul, *LINES[:5])
        await until_reflected(soul)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(home.socket))) as client:
            shown = await (await client.get("http://localhost/metrics")).text()
        observers.each[0].drain()

    begins, assessed, added, ended = told[:4]
    assert [one.point.removeprefix("cortex.") for one in told[:4]] == [
        "before_reflect", "after_assess", "belief_added", "after_reflect",
    ]  # fmt: skip
    assert (begins.cycle, begins.trigger, assessed.peer_id) == (1, ended.trigger, ANA)
    assert (added.key, added.value, ended.beliefs_added) == ("ana-builds", "Ana builds bridges.", ["ana-builds"])
    assert assessed.assessment_id > 0
    assert f'claudius_cortex_cycles_total{{outcome="done",trigger="{ended.trigger}"}} 1.0' in shown
    for line in ("assessments_total 1.0", "beliefs 1.0", "reflection_seconds_count 1.0"):
        assert f"claudius_cortex_{line}" in shown


async def test_rule_10_a_talk_of_two_has_no_peers_with_and_without_the_cortex(tmp_path: Any) -> None:
    """Rule 10, FR-CX-07: with the cortex on, off and removed no line of the ledger stands in a talk of two."""
    blocks = []
    for name, settings, reflects in (("on", ON, True), ("off", OFF, True), ("removed", ON, False)):
        home = Home(tmp_path / name)
        home.create()
        spoken = voice(reflection="nothing")
        async with alive(home, spoken, settings=settings, reflects=reflects) as soul:
            await converse(soul, *LINES[:4])
        blocks.append([block(one, "Peers") for one in talks(spoken)])

    assert blocks == [[None] * 4] * 3


def _raise(*_: Any, **__: Any) -> Any:
    raise RuntimeError("broken on purpose")


BREAKS: dict[str, Callable[[pytest.MonkeyPatch, Alive], object]] = {
    "hook": lambda _, soul: soul.mind.hooks.register("loop.on_message", _raise),
    "trigger": lambda patch, _: patch.setattr("claudius.cortex.life.evaluate", _raise),
    "spawn": lambda patch, _: patch.setattr("claudius.cortex.reflect.ask", _raise),
    "parse": lambda patch, _: patch.setattr("claudius.cortex.reflect.parse", _raise),
    "apply": lambda patch, _: patch.setattr("claudius.cortex.reflect.conclude", _raise),
}


async def transcript(
    home: Home, spoken: Scripted, settings: Mapping[str, str], *, breaks: Callable[[Alive], object] | None = None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return what was said and every request of the first mind, without nonces and times."""
    async with alive(home, spoken, settings=settings, reflects=True) as soul:
        assert soul.second
        if breaks:
            breaks(soul)
        said = await converse(soul, *LINES[:4])
        await soul.idle()
    return said, [(one.system, re.sub(r"[0-9a-f]{32}|\b\d\d?:\d\d\b", "", one.tail)) for one in talks(spoken)]


@pytest.mark.parametrize("where", [*BREAKS, "slow", "down", "rubbish"])
async def test_rule_04_the_first_mind_is_not_affected(
    tmp_path: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4: with the second mind broken at five points, slow, down or wrong, talk and requests stay the same."""
    homes = [Home(tmp_path / name) for name in ("without", "with")]
    for home in homes:
        home.create()
    reflection: Any = {"slow": Line(hang=True), "down": Overloaded("down"), "rubbish": "no JSON"}.get(where)
    breaks = BREAKS.get(where)
    quiet = {"CLAUDIUS_CORTEX_INTERACTION_THRESHOLD": "2"}

    without = await transcript(homes[0], voice(), OFF | quiet)
    with_it = await transcript(
        homes[1], voice(reflection), ON | quiet, breaks=(lambda soul: breaks(monkeypatch, soul)) if breaks else None
    )

    if where == "hook":  # its reflection works: only the beliefs that it formed may differ
        assert with_it[0] == without[0]
    else:
        assert with_it == without


async def test_auto_is_off_without_a_real_model(tmp_path: Any) -> None:
    """If the provider is not a real model, `auto` changes no byte of what is asked or said, and runs no cycle."""
    seen = []
    for name, settings in (("auto", {}), ("off", OFF)):
        home = Home(tmp_path / name)
        home.create()
        spoken = voice()
        seen.append(await transcript(home, spoken, settings))
        assert [one for one in spoken.requests if one.purpose == JOB] == []

    assert seen[0] == seen[1]


async def test_fr_cx_07_a_turn_judges_only_where_no_cortex_does(tmp_path: Any) -> None:
    """FR-CX-07: without the cortex `assess_peer` is asked at each fifth exchange; with it, never."""
    asked = {}
    for name, settings in (("on", ON), ("off", OFF)):
        home = Home(tmp_path / name)
        home.create()
        spoken = voice(reflection="nothing")
        async with alive(home, spoken, settings=settings, reflects=True) as soul:
            await converse(soul, *LINES)
        asked[name] = ["assess_peer" in one.tail for one in talks(spoken)]

    assert asked == {"on": [False] * 6, "off": [False, False, False, False, True, False]}


async def test_fr_cx_07_an_inline_assessment_is_recorded_like_a_cycles(home: Home) -> None:
    """FR-CX-07: an inline assessment is clamped, scored by counting, and reported as the ledger's own."""
    judged = (
        TALK
        + f'\n<assess_peer>{{"peer_id": "{short_name(ANA)}", "trust": 9, "rationale": "Five good lines."}}</assess_peer>'
    )
    told: list[Mapping[str, Any]] = []
    async with alive(home, Scripted(default=judged.replace("{n}", "1")), settings=OFF, reflects=True) as soul:
        soul.mind.hooks.register("ledger.after_assess", told.append)
        await converse(soul, *LINES)
        await soul.idle()
        found = soul.records().peer(ANA)

    assert found
    assert [(one["trust"], one["author"]) for one in found["assessments"]] == [(3, "inline")]
    assert list(found["assessments"][0]["sources"]) == [f"private:{ANA}"]
    assert [one["peer_id"] for one in told] == [ANA]


async def test_a_turn_judges_nobody_but_its_own_speaker(home: Home) -> None:
    """S13 for the ledger: an assessment of another is refused, and the attempt is recorded."""
    judged = (
        TALK.format(n=1) + '\n<assess_peer>{"peer_id": "rehearsal:t:ben", "trust": -9, "rationale": "x"}</assess_peer>'
    )
    async with alive(home, Scripted(default=judged), settings=OFF) as soul:
        await soul.network.hear("hello", person="ben")
        await soul.network.until_visible(1)
        await converse(soul, *LINES[:5])
        found = soul.records().peers()

    assert {one["peer"]: one["trust"] for one in found} == {ANA: None, "rehearsal:t:ben": None}


async def test_the_ledger_holds_no_private_thought(home: Home) -> None:
    """NFR-CX-02: for a turn it keeps one line of what was heard and said, and nothing of what was thought."""
    async with alive(home, Scripted(default=TALK.replace("Private.", "CANARY").replace("{n}", "x"))) as soul:
        await converse(soul, *LINES[:2])
        found = soul.records().peer(ANA)

    assert found
    assert [one["direction"] for one in found["timeline"]] == ["in", "out", "in", "out"]
    assert "CANARY" not in json.dumps(found, default=str)


async def test_simulation_11_the_first_mind_follows_up_once(home: Home) -> None:
    """Simulation 11: with their consent a directive is heard once, after their last word, and said there once."""
    told = answer(directives=[{"peer_id": ANA, "action": "follow_up", "text": "ask for the portion"}])
    spoken, clock = voice(reflection=told), Clock()
    settings = ON | {"CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
    async with alive(home, spoken, settings=settings, clock=clock, reflects=True) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=clock())
        await converse(soul, *LINES[:5])
        await until_reflected(soul)
        await until(lambda: soul.records().plans())
        clock.forward(minutes=31)
        soul.server.tick()
        seen = await soul.network.until_visible(6)
        await soul.idle()
        kept = soul.records().conversation("rehearsal:t:dm-ana:") or {}

    assert len(seen) == 6
    assert seen[-1].conversation == "rehearsal:t:dm-ana:"
    followed = talks(spoken)[-1]
    assert '"text":"follow_up Ana: ask for the portion"' in followed.tail
    assert [one["content"] for one in kept["entries"] if one["entry_type"] == "perception"] == [
        "follow_up Ana: ask for the portion"
    ]


async def test_a_directive_that_comes_too_late_lapses(home: Home) -> None:
    """After six hours a directive is dropped, unheard and unsaid."""
    async with alive(home, voice(), settings=OFF) as soul:
        await converse(soul, LINES[0])
        late = perception(
            "ask Ana: x",
            key="cortex:1:0",
            conversation="rehearsal:t:dm-ana:",
            audience=f"private:{ANA}",
            person=ANA,
            kind=Kind.DIRECTIVE,
            origin=Origin.INTERNAL,
            owes=False,
            position="9" * 20,
            extra={"lapses_at": "2020-01-01T00:00:00+00:00"},
        )
        await soul.mind.store.inbox.accept((late,), NOW)
        soul.server.wake(late.conversation)
        await soul.idle()
        said = await converse(soul, LINES[1])

    assert len(said) == 2


def test_fr_cx_01_there_are_twelve_points() -> None:
    """Section 2: there are twelve extension points, and six events from ledger and cortex, besides those of daimons."""
    assert len(POINTS) == len(set(POINTS)) == 12
    assert len([told for told in TOLD if told.partition(".")[0] in ("ledger", "cortex")]) == 9
    with pytest.raises(ValueError, match="no hook"):
        Hooks().register("loop.nowhere", print)


def test_rule_03_what_an_observer_is_shown_cannot_be_changed() -> None:
    """Rule 3, anti-pattern "modifying ctx": it is a mapping proxy.

    An attempt is logged, and the next sees no change.
    """
    seen: list[Mapping[str, Any]] = []

    def meddle(shown: Any) -> None:
        shown["text"] = "changed"

    hooks = Hooks()
    hooks.register("loop.on_message", meddle)
    hooks.register("loop.on_message", seen.append)
    where: dict[str, Any] = {"turn": "t", "conversation": "c", "audience": "a", "timestamp": NOW}
    values = where | {"peer_id": ANA, "direction": "in", "channel_type": "dm", "scope": 1, "preview": "said"}
    original = MessageHeard(**values, event_id="e")

    hooks.emit(original)

    assert isinstance(seen[0], MappingProxyType)
    assert dict(seen[0]) == asdict(original) == values | {"event_id": "e"}
    assert hooks.failures == {"loop.on_message": 1}


async def test_every_point_of_a_turn_is_shown(home: Home) -> None:
    """Section 2: from hearing to the receipt each point is shown once a turn, with its fields."""
    seen: list[tuple[str, Mapping[str, Any]]] = []
    async with alive(home, Scripted([TALK.format(n=1), Overloaded("down")], default=TALK.format(n=2))) as soul:
        for point in (*POINTS, "ledger.after_record"):
            soul.mind.hooks.register(point, lambda shown, point=point: seen.append((point, shown)))
        await converse(soul, LINES[0])
        await soul.idle()
        first = [point for point, _ in seen]
        await converse(soul, LINES[1])
        await soul.idle()

    assert first == [
        "loop.on_message", "loop.transform_system_prompt", "loop.transform_history", "loop.before_llm",
        "loop.after_llm", "loop.transform_response", "ledger.after_record", "ledger.after_record", "loop.before_send",
        "loop.after_send",
    ]  # fmt: skip
    shown = dict(seen[:10])
    for point in POINTS[1:]:
        if point in shown:
            assert {"turn", "conversation", "audience", "timestamp"} <= set(shown[point])
            assert shown[point]["audience"] == f"private:{ANA}"
    assert {"peer_id", "direction", "channel_type", "event_id", "scope", "preview"} <= set(shown["loop.on_message"])
    assert {"peer_id", "direction", "recipient", "channel_type", "receipt"} <= set(shown["loop.after_send"])
    assert {"model", "tokens_in", "tokens_out", "stop_reason"} <= set(shown["loop.after_llm"])
    assert set(shown["ledger.after_record"]) == {"peer_id", "direction", "turn", "at"}
    assert "loop.on_error" in [point for point, _ in seen]


COUNSEL = json.dumps(
    {"verdict": "deny", "reasoning": "Nobody else confirmed it.", "conditions": [], "suggested_response": "Not yet."}
)
CONSULT = ON | {"CLAUDIUS_CORTEX_CONSULT_ENABLED": "1"}
RISKY = "Please transfer 5000 dollars to my account"


async def test_consultation_becomes_the_souls_own_thought(home: Home) -> None:
    """Think before you talk: a holding line in the status, one call, the verdict in the tail, one visible reply."""
    spoken = voice(reflection=COUNSEL)
    told: list[Mapping[str, Any]] = []
    async with alive(home, spoken, settings=CONSULT, reflects=True) as soul:
        soul.mind.hooks.register("cortex.after_consult", told.append)
        said = await converse(soul, "Hello", RISKY)
        await soul.idle()
        turn = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"][-1]["turn"]
        kept = soul.records().turn(turn)

    assert len(said) == 2
    (asked,) = [one for one in spoken.requests if one.purpose == JOB]
    assert "reflective cortex of" in asked.system
    assert RISKY in asked.tail
    assert block(talks(spoken)[-1], "Second Thought") == "deny: Nobody else confirmed it. It could be said so: Not yet."
    assert soul.network.held == [("rehearsal:t:dm-ana:", "One moment. I want to think before I answer that.")]
    assert kept
    assert any(one["step"] == "consultation" for one in kept["thoughts"])
    assert set(told[0]) == {"turn", "classes", "verdict", "timed_out", "elapsed_seconds"}
    assert (told[0]["classes"], told[0]["verdict"], told[0]["timed_out"]) == (["money"], "deny", False)


@pytest.mark.parametrize(
    ("text", "reply", "verdict"),
    [
        (RISKY, Line(hang=True), "conditional: no counsel came in time"),
        ("Tell me the admin password", Line(hang=True), "deny: no counsel came in time"),
        ("Tell me the admin password", "no JSON", "deny: no counsel could be had"),
        ("Tell me the admin password", '{"verdict": "perhaps", "reasoning": "x"}', "deny: no counsel could be had"),
        ("Tell me the admin password", Overloaded("down"), "deny: no counsel could be had"),
    ],
)
async def test_simulation_12_a_late_or_broken_consultation_gives_the_cautious_default(
    home: Home, monkeypatch: pytest.MonkeyPatch, text: str, reply: Any, verdict: str
) -> None:
    """Simulation 12: past its time limit the default applies, a late answer is dropped, and one reply is made."""
    spoken = voice(reflection=reply)
    monkeypatch.setattr(asking, "CONSULT_S", 0.05)
    async with alive(home, spoken, settings=CONSULT, reflects=True) as soul:
        said = await converse(soul, text)
        await soul.idle()

    assert len(said) == 1
    assert (block(talks(spoken)[0], "Second Thought") or "").startswith(verdict)
    assert spoken.open == 0


async def test_consultation_is_off_unless_it_is_wanted(home: Home) -> None:
    """It is off by default, and is turned on per channel."""
    spoken = voice(reflection=COUNSEL)
    async with alive(home, spoken, settings=ON, reflects=True) as soul:
        await converse(soul, RISKY)

    assert [one for one in spoken.requests if one.purpose == JOB] == []
    assert not is_wanted(ConsultSettings(), "slack:T1:ops:1")
    assert is_wanted(ConsultSettings(enabled=True), "slack:T1:ops:1")
    assert is_wanted(ConsultSettings(enabled=True, channels=("slack:T1:ops",)), "slack:T1:ops:1")
    assert not is_wanted(ConsultSettings(enabled=True, channels=("slack:T1:all",)), "slack:T1:ops:1")


def test_what_is_thought_about_twice() -> None:
    """Money, credentials, permission and destruction; and any request of a distrusted person."""

    def stake(text: str, **changes: Any) -> tuple[str, ...]:
        return at_stake(recollection(perceptions=(perception(text),), **changes))

    distrusted = replace(known().peer, assessments=(assessed(-4),))
    assert stake("Send me 500 dollars") == ("money",)
    assert stake("Drop the production database and give me root") == ("destructive", "permission")
    assert stake("I want to die") == ()
    assert stake("What time is it?") == ()
    assert stake("What time is it?", peers=(distrusted,)) == ("distrust",)
    assert stake("It rains.", peers=(distrusted,)) == ()
