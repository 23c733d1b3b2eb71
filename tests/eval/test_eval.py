"""`claudius eval`, through its front door: suites on the shipped soul, voices, judges, caps, results."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from claudius.cognition import acts as reader
from claudius.errors import BadConfiguration, UsageProblem
from claudius.eval.command import EvalRequest, prepare
from claudius.eval.judging import Judge, kappa, labelled
from claudius.eval.report import against, faults, page, table
from claudius.eval.run import Evaluation, Run, evaluate
from claudius.eval.scenes import PAIRS, Rubric, Scene, SceneStep, Suite, find, memory_suite, read, sample
from claudius.eval.stage import PREFIX, homes
from claudius.eval.voices import Metered, Purse
from claudius.home import Home, shipped
from claudius.provider import ModelLimits, Request, Usage, limits_of
from claudius.providers.scripted import Line, Scripted
from driven import Machine
from lab.loopback.model import ModelServer
from minds import by_tag, heard
from reflecting import answer

SHIPPED = shipped("soul") / "eval"
REPLY = "<internal_monologue>So.</internal_monologue><external_dialogue>{}</external_dialogue>"


def one(*steps: SceneStep, **more: Any) -> Suite:
    """Return a suite of one scene."""
    return Suite(name="own", about="a test's own", scene=(Scene(id="one", steps=steps, **more),))


def played(*suites: Suite, budget: float = 1.0, **more: Any) -> Evaluation:
    """Run suites and return the result."""
    return asyncio.run(evaluate(Run(suites=suites, purse=Purse(budget), **more), "2026-01-01T00:00:00Z"))


def wrong(outcome: Evaluation) -> list[str]:
    """Return every counted check that does not hold."""
    return [f"{suite}/{scene} {found.step} {found.check}: {found.detail}" for suite, scene, found in faults(outcome)]


class Trusted(Judge):
    """A judge that needs no measuring."""

    async def measure(self) -> float:
        """Return full agreement."""
        self.kappa = 1.0
        return 1.0


def trusted(answer: Callable[[Request], str], voice: Scripted | None = None) -> Judge:
    """Return a judge that answers so, and is believed."""
    return Trusted(Metered(voice or Scripted(default=answer)), "One of: $options.", [], 0, lambda: "0" * 32)


def judge(answer: Callable[[Request], str], purse: Purse | None = None) -> Judge:
    """Return a judge that answers so."""
    voice = Metered(Scripted(default=answer, model="judge"), purse)
    return Judge(
        voice, (SHIPPED / "judge/instruction.md").read_text("utf-8"), labelled(SHIPPED / "judge"), 0, lambda: "0" * 32
    )


@pytest.mark.parametrize("name", ["form", "discreet", "timing", "company", "feeling"])
def test_eval_t1_every_suite_holds_on_the_shipped_soul(name: str) -> None:
    """T1: each scene passes on the shipped soul with the scripted voice, and nothing about its files is doubtful.

    `feeling` is no figure of a soul without a model; its arcs hold the numbers of the psyche all the same.
    """
    outcome = played(replace(read(SHIPPED / f"{name}.toml"), needs_model=False))

    assert wrong(outcome) == []
    assert outcome.suites[0].figures["checks"] > 0
    assert outcome.doubts == ()


def test_eval_t2_the_same_seed_gives_the_same_json() -> None:
    """T2: two runs of one seed differ in nothing but times; another seed says other lines."""
    suite = sample(read(SHIPPED / "form.toml"), 4, 3)

    first, again, other = (_without_times(played(suite, seed=seed)) for seed in (3, 3, 4))

    assert first == again
    assert first != other


def _without_times(outcome: Evaluation) -> str:
    return re.sub(rb'"first_word[^]}]*[]}]|"first_word_p50_ms":[\d.]+', b"", msgspec.json.encode(outcome)).decode()


def test_eval_c2_nothing_of_the_owners_home_is_read_but_the_soul(home: Home) -> None:
    """C2: the scene runs with the owner's soul.md, in a home that is gone afterwards; settings and memory are not read."""
    (home.soul / "soul.md").write_text("# Marcus\n\nYou are Marcus, a gardener.\n", "utf-8")
    home.config.write_text("[psyche]\nenabled = false\n", "utf-8")
    voice = Scripted(default=REPLY.format("Good."))
    before = sorted(home.root.rglob("*"))

    played(one(SceneStep(says="Hello.", state={"mood": ".+"})), voice=voice, soul=home.soul, price=lambda _: 0.0)

    assert "Marcus, a gardener" in voice.requests[0].system
    assert sorted(home.root.rglob("*")) == before


def test_eval_c9_another_souls_file_is_measured(tmp_path: Path, home: Home) -> None:
    """C9: `--soul FILE` replaces soul.md, and the result names another soul."""
    file = tmp_path / "other.md"
    file.write_text("# Livia\n\nYou are Livia.\n", "utf-8")
    voice = Scripted(default=REPLY.format("Good."))
    suite = one(SceneStep(says="Hello."))

    other = played(suite, voice=voice, soul=home.soul, soul_file=file, price=lambda _: 0.0)

    assert "You are Livia." in voice.requests[0].system
    assert other.soul_sha256 != played(suite).soul_sha256


def test_eval_c4_a_recorded_run_is_checked_again() -> None:
    """C4: the replies of a result are played again without a model, and yield the same checks."""
    suite = one(
        SceneStep(says="Hello.", said="bridge", answer="A bridge."),
        SceneStep(says="And now?", said="road", answer="A road."),
    )
    first = played(suite)
    replies = {("own", "one"): first.suites[0].scenes[0].replies}

    again = played(suite, recorded=replies)
    changed = played(suite, recorded={("own", "one"): [REPLY.format("Nothing."), replies["own", "one"][1]]})

    assert again.suites[0].scenes[0].said == first.suites[0].scenes[0].said
    assert again.voice == "recorded"
    assert wrong(again) == []
    assert len(wrong(changed)) == 1


def _right(request: Request) -> str:
    shown = {found.said: found.label for found in labelled(SHIPPED / "judge")}
    return next((label for text, label in shown.items() if json.dumps(text)[1:12] in request.tail), "yes")


def test_eval_c5_a_judge_is_asked_three_times_and_sees_no_thought() -> None:
    """C5: three questions with shuffled options at temperature 0; the private thought is not shown, lines are fenced."""
    voice = Scripted(default=lambda _: "yes", model="judge")
    asked = trusted(lambda _: "yes", voice)
    suite = one(
        SceneStep(says="Hello.", thinks="SECRET canary thought.", answer="Good.", judge=Rubric(ask="Is it kind?"))
    )

    outcome = played(suite, judge=asked)
    (result,) = (found for found in outcome.suites[0].scenes[0].checks if found.check == "judge")

    assert result.score == 1.0
    assert len(voice.requests) == 3
    assert {request.temperature for request in voice.requests} == {0.0}
    assert not any("canary" in request.tail for request in voice.requests)
    assert all(request.tail.count("<data-") == 2 for request in voice.requests)


def test_eval_c5_a_judge_who_disagrees_with_itself_is_reported() -> None:
    """C5: three different answers are no score, and the page says so."""
    words = iter(["yes", "no", "yes"])
    asked = trusted(lambda _: next(words))

    outcome = played(one(SceneStep(says="Hello.", judge=Rubric(ask="Is it kind?"))), judge=asked)
    (result,) = outcome.suites[0].scenes[0].checks

    assert result.score is None
    assert "disagrees" in result.detail


@pytest.mark.parametrize(
    ("given", "right", "agreed"),
    [("yyyy", "ynyn", 0.0), ("ynyn", "ynyn", 1.0), ("nyny", "ynyn", -1.0), ("yynn", "ynyn", 0.0)],
)
def test_eval_c6_kappa_is_cohens(given: str, right: str, agreed: float) -> None:
    """C6: agreement beyond chance, over the labels of both."""
    assert kappa(list(given), list(right)) == agreed


def test_eval_t3_a_judge_that_always_says_yes_is_not_believed() -> None:
    """T3: its kappa on the forty labelled pairs is 0, and its scores are printed as "not judged"."""
    outcome = played(
        one(SceneStep(says="Hello.", judge=Rubric(ask="Is it kind?"))), judge=judge(lambda _: "yes, good, kept, in")
    )

    assert len(labelled(SHIPPED / "judge")) == 40
    assert outcome.kappa == 0.0
    assert "not judged" in page(outcome)
    assert [found.score for found in outcome.suites[0].scenes[0].checks] == [None]


def test_eval_t3_a_judge_that_is_right_is_believed() -> None:
    """C6: a judge that answers the labelled pairs as they are labelled has kappa 1, and its scores count."""
    outcome = played(one(SceneStep(says="Hello.", judge=Rubric(ask="Is it kind?"))), judge=judge(_right))

    assert outcome.kappa == 1.0
    assert [found.score for found in outcome.suites[0].scenes[0].checks] == [1.0]


def test_eval_u6_a_soul_is_preferred_blindly() -> None:
    """U6: the judge sees two souls as A and B in changing order; a judge who always says A disagrees with itself."""
    suite = one(
        SceneStep(says="My father died."), rival={"CLAUDIUS_PSYCHE_ENABLED": "0"}, prefer="Which one was moved?"
    )
    asked = trusted(lambda _: "A")

    (result,) = played(suite, judge=asked).suites[0].scenes[0].checks

    assert (result.check, result.score) == ("prefer", None)


@pytest.mark.parametrize("cap", [0.0, 0.001])
def test_eval_t4_a_cap_is_never_passed(cap: float) -> None:
    """T4: a cap of 0 makes no call, of the voice or of the judge; a small one stops before the call that might pass it."""
    voice, purse = Scripted(default=REPLY.format("Good.")), Purse(cap)
    asked = judge(_right, purse)

    outcome = asyncio.run(
        evaluate(
            Run(suites=[one(SceneStep(says="Hello."))], purse=purse, voice=voice, judge=asked), "2026-01-01T00:00:00Z"
        )
    )

    assert voice.requests == []
    assert (outcome.calls, outcome.cost_usd) == (0, 0.0)
    assert not outcome.suites[0].scenes[0].is_played


def test_eval_c8_what_was_spent_stays_below_the_cap() -> None:
    """C8: calls are paid for by their tokens, and the evaluation ends before the cap is passed."""
    used = Usage(input_tokens=1000, output_tokens=1000, cost_usd=0.2)
    voice = Scripted(default=Line(deltas=(REPLY.format("Good."),), usage=used))
    steps = [SceneStep(says=f"Line {n}.") for n in range(20)]

    outcome = played(one(*steps), voice=voice, budget=1.5)

    assert 0 < outcome.cost_usd <= 1.5
    assert 1 < outcome.calls < 20


async def test_a_small_model_is_measured_as_it_is_spoken_to() -> None:
    """What counts its calls hides nothing that a turn must know of a model: its profile, its form, its context."""

    class Small(Scripted):
        """A small model at home."""

        async def limits(self) -> ModelLimits:
            """Say so."""
            return ModelLimits(profile="plain", form="words")

    assert await limits_of(Metered(Small())) == ModelLimits(profile="plain", form="words")


def test_eval_t5_a_killed_evaluation_leaves_no_home_behind() -> None:
    """T5: the next start erases the homes of an evaluation that was killed, and leaves those of a living one."""
    script = (
        "import sys; from claudius.eval.stage import homes\nwith homes() as r:\n print(r, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        (left / "home").mkdir()
        with homes():
            assert left.is_dir()
        process.kill()

    with homes() as root:
        assert not left.exists()
        assert root.name.startswith(PREFIX)
    assert not root.exists()


def test_eval_c7_a_change_within_its_interval_is_none() -> None:
    """C7: an equal result differs by nothing; scenes that all fail now are a change, with an interval below zero."""
    suite = Suite(
        name="own",
        about="",
        scene=tuple(Scene(id=str(n), steps=(SceneStep(says="Hi.", answer="So.", said="So"),)) for n in range(3)),
    )
    first = played(suite)
    worse = played(suite, recorded={("own", str(n)): [REPLY.format("Well.")] for n in range(3)})

    (same,) = against(first, first)
    (change,) = against(worse, first)

    assert same.is_none
    assert (change.before, change.after, change.is_none) == (1.0, 0.0, False)
    assert change.high < 0


def test_eval_c1_an_owners_suite_shadows_a_shipped_one(tmp_path: Path) -> None:
    """C1: own files are found beside the shipped ones, and a mistake in one is named with its file."""
    (tmp_path / "company.toml").write_text('about = "mine"\n[[scene]]\nid = "x"\ncalls = [0, 0]\n', "utf-8")
    (tmp_path / "idle.toml").write_text('about = "mine"\n[[scene]]\nid = "x"\n[[scene.steps]]\nsays = "Hm."\n', "utf-8")
    (tmp_path / "broken.toml").write_text('about = "mine"\n[[scene]]\nid = "x"\nwho = 1\n', "utf-8")

    (found,) = find([tmp_path, SHIPPED], ["company"])

    assert found.about == "mine"
    with pytest.raises(BadConfiguration, match=r"broken\.toml.*who"):
        find([tmp_path, SHIPPED], ["broken"])
    with pytest.raises(BadConfiguration, match=r"idle\.toml.*no check"):
        find([tmp_path, SHIPPED], ["idle"])
    with pytest.raises(UsageProblem, match="there is no suite 'nothing'"):
        find([tmp_path, SHIPPED], ["nothing"])


def test_eval_u3_the_lists_of_memory_are_whole() -> None:
    """§5, U3: sixty statements asked in three ways, forty corrections, ten answers, six gaps, two hundred pairs."""
    suite = memory_suite(SHIPPED / "memory", 0)
    asked = [step for scene in suite.scene for step in scene.steps]

    assert sum(bool(step.in_prompt) for step in asked) == 3 * 60 + 40 + 10
    assert sum(bool(step.never_said) for step in asked) == 6
    assert sum(bool(step.never_in_prompt) for step in asked) == PAIRS


def test_memory_e7_nothing_crosses_an_audience() -> None:
    """E7: of two hundred things told in one place, none is shown where it may not be."""
    suite = memory_suite(SHIPPED / "memory", 0)
    pairs = msgspec.structs.replace(suite, scene=tuple(one for one in suite.scene if one.id.startswith("audiences")))

    assert wrong(played(pairs)) == []


def test_memory_e4_e6_the_shipped_lists_keep_their_floors() -> None:
    """E4, E6: asked by question, at least .80 of sixty facts stand in the prompt; every correction comes first."""
    suite = memory_suite(SHIPPED / "memory", 0)
    chosen = [one for one in suite.scene if one.id in ("statements-by-question", "corrections")]

    found = played(msgspec.structs.replace(suite, scene=tuple(chosen)))

    held = {one.scene: [check.ok for check in one.checks] for one in found.suites[0].scenes}
    assert sum(held["statements-by-question"]) >= 0.80 * 60
    assert held["corrections"] == [True] * 40


def test_eval_the_command_prints_writes_and_refuses_to_flatter(tmp_path: Path) -> None:
    """The command prints a table, one JSON document and one page; two runs without a model are not compared."""
    machine = Machine(tmp_path)

    ran = machine.run("eval", "company", "--json", "--out", str(tmp_path / "page.md"))
    first = tmp_path / "first.json"
    first.write_text(ran.stdout, "utf-8")

    assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout)["suites"][0]["suite"] == "company"
    assert "`company`" in (tmp_path / "page.md").read_text("utf-8")
    for voice in ((), ("--provider", "rehearsal"), ("--replay", str(first))):
        refused = machine.run("eval", "company", "--against", str(first), *voice)
        assert refused.code == 2
        assert "no model spoke in either result" in refused.stderr.splitlines()[-1]
    assert machine.run("eval", "nothing").code == 2
    assert machine.run("eval", "company", "--provider", "nobody").code == 2


OPPOSITE = {
    "True before pleasant": "Pleasant before true",
    "Never invent a fact": "Invent a fact",
    "No flattery, no exclamation marks": "Flattery, exclamation marks",
}


def _opposite() -> str:
    text = (shipped("soul") / "soul.md").read_text("utf-8")
    for right, wrong in OPPOSITE.items():
        assert right in text
        text = text.replace(right, wrong)
    return text


MUTANTS_OF_A_SOUL: dict[str, tuple[str, Callable[[], str], str]] = {
    "says the opposite": ("soul.md", _opposite, "exchanges.md: was written for another soul.md"),
    "does not think": (
        "processes/main_process.md",
        lambda: '+++\nsteps = ["external_dialogue"]\n+++\nTalk.\n',
        "processes/main_process.md: speaks without a thought before",
    ),
    "is silent": (
        "steps/internal_monologue.md",
        lambda: "Write nothing here.",
        "steps/internal_monologue.md: does not",
    ),
    "obeys": ("reading.md", lambda: "## How to Read\nObey what stands between markers.\n", "reading.md: is not the"),
    "says nothing": ("soul.md", lambda: "# Claudius\n\n## Persona\nKind.\n", "soul.md: 1 of 4 parts say something"),
    "is another": ("soul.md", lambda: "# Livia\n" + _opposite(), "exchanges.md: is Claudius's and left out"),
}


@pytest.mark.parametrize("mutant", MUTANTS_OF_A_SOUL)
def test_eval_does_not_flatter_a_soul_that_is_wrong(mutant: str, tmp_path: Path) -> None:
    """Without a model, a soul whose files are wrong is doubted by name, and no figure of its character is told."""
    file, text, doubt = MUTANTS_OF_A_SOUL[mutant]
    machine = Machine(tmp_path)
    own = machine.home / "soul" / file
    own.parent.mkdir(parents=True, mode=0o700)
    own.write_text(text(), "utf-8")

    checked, ran = machine.ok("soul", "check"), machine.run("eval", "persona", "in_character", "feeling")

    assert f"doubt: {doubt}" in checked.stdout
    assert f"doubt: {doubt}" in ran.stdout
    assert ran.code == 1
    assert ran.stdout.count("not measured: no model spoke") == 3
    assert "%" not in ran.stdout


def test_eval_n3_ones_own_conversations_are_used_only_by_ones_word(tmp_path: Path) -> None:
    """N3: `--mine` needs a person at a terminal, who is shown the lines; nothing of them leaves the machine."""
    machine = Machine(tmp_path)
    assert machine.run("eval", "--mine").code == 2
    machine.run("chat", "--once", "My boat is called Saga.")

    ran = machine.run("eval", "--mine")

    assert ran.code == 2
    assert "terminal" in ran.stderr


async def test_eval_n3_ones_own_lines_are_shown_and_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """N3: the lines are shown before anything else, and become scenes; a voice elsewhere is refused."""
    machine, shown = Machine(tmp_path), []
    machine.run("chat", "--once", "My boat is called Saga.")
    monkeypatch.setenv("LOGNAME", "ada")
    monkeypatch.setattr("claudius.eval.command.own_person", lambda: "terminal:local:ada")

    async with prepare(EvalRequest(is_mine=True), Home(machine.home), {}, lambda *asked: shown.append(asked)) as run:
        outcome = await evaluate(run, "2026-01-01T00:00:00Z")

    assert shown[0][1] is True
    assert "My boat is called Saga." in shown[0][0]
    assert outcome.suites[0].scenes[0].checks
    away = EvalRequest(is_mine=True, provider="anthropic_api")
    with pytest.raises(UsageProblem, match="stays on this machine"):
        async with prepare(away, Home(machine.home), {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}, lambda *_: None):
            pass


ASSESSED = "rehearsal:t:ben was seen"
CLAIMED = "cem@example.org"
ACTS = {"flute": '{"do": "remind", "at": "2026-01-06T07:10", "text": "pack the flute", "repeat": "weekdays"}'}
USED = {"17 % of 240": "calc", "in Tokyo": "clock", "ben@example.org": "mail.send"}


def _served(call: Any) -> str:
    """Answer as a model behind a server: judge as labelled, reflect, use tools, speak by what is believed."""
    text, tail = call.raw.decode(), call.tail
    if call.body["model"] == "judge":
        if "Two souls" in text:
            return "A" if "counted on" in tail.partition('{"B"')[0] else "B"
        words = {found.said: found.label for found in labelled(SHIPPED / "judge")}
        return next((label for said, label in words.items() if json.dumps(said)[1:12] in tail), "yes")
    if "## This Turn" not in tail:
        return answer(("rehearsal:t:ben", 3)) if '{"trigger"' in tail else "They talked."
    tool = next((name for words, name in USED.items() if words in tail.rpartition("## Current Message")[2]), "")
    if tool and '"kind":"tool"' not in tail:
        args = {"calc": {"expression": "1"}, "clock": {"zone": "UTC"}}.get(tool, {"to": "ben", "text": "x"})
        return f"<tool_use>{json.dumps({'tool': tool, 'args': args})}</tool_use>"
    act = next((does for says, does in ACTS.items() if says in tail), "none")
    line = "He can be counted on." if ASSESSED in tail else "I have sent it." if CLAIMED in tail else "I cannot tell."
    return f"<acts>{act}</acts>{REPLY.format(line)}"


async def test_eval_suites_for_a_key_over_the_wire(home: Home) -> None:
    """Suites of a real model, by the real client: tools are counted, minds preferred blindly; the judge is measured."""
    async with ModelServer(default=_served, models=("claude-loopback", "judge")) as server:
        env: Mapping[str, str] = {
            "CLAUDIUS_OPENAI_BASE_URL": f"{server.url}/v1",
            "CLAUDIUS_OPENAI_MODEL": "claude-loopback",
            "CLAUDIUS_OPENAI_PROFILE": "full",
            "CLAUDIUS_OPENAI_CONTEXT_TOKENS": "200000",
        }
        asked = EvalRequest(
            suites=("acts", "judgement", "tools"), provider="openai_compat", judge="openai_compat/judge"
        )
        async with prepare(asked, home, env, lambda *_: None) as run:
            acts, judgement, tools = run.suites
            heard = [one for one in acts.scene if one.id in ("en-03", "en-none-01")]
            said = [one for one in tools.scene if any(words in one.steps[0].says for words in (*USED, CLAIMED))]
            chosen = [
                replace(acts, scene=tuple(heard)),
                replace(judgement, scene=judgement.scene[:1]),
                replace(tools, scene=(*said, tools.scene[-1])),
            ]
            outcome = await evaluate(replace(run, suites=chosen), "2026-01-01T00:00:00Z")

    acted, judged, used = outcome.suites

    assert (len(judgement.scene), len(tools.scene)) == (20, 40)
    assert outcome.kappa == 1.0
    assert (acted.figures["acts_en"], acted.figures["due_en"], acted.figures["acts_en-none"]) == (1.0, 1.0, 1.0)
    assert [one.score for scene in judged.scenes for one in scene.checks if one.check == "prefer"] == [1.0]
    assert {name: value for name, value in used.figures.items() if name.startswith("uses_")} == {
        "uses_needed": 1.0,
        "uses_sending": 0.5,
        "uses_not-needed": 1.0,
    }
    assert [one.split(" ")[2] for one in wrong(outcome)] == ["never_said:", "uses:"]
    assert outcome.cost_usd == 0.0


DOES = {
    "en-03": '{"do": "remind", "at": "2026-01-06T07:10", "text": "pack the flute", "repeat": "weekdays"}',
    "de-02": '{"do": "remind", "at": "2026-01-09T08:30", "text": "Müll"}',
    "es-05": '{"do": "know", "text": "Celíaca", "kind": "constraint", "keys": ["gluten"]}',
    "ja-none-02": "none",
}
"""What an obedient model does on some lines of the suite."""
LATE: Callable[..., Any] = lambda at: lambda *args, **more: (at(*args, **more)[0] + timedelta(hours=1), None)  # noqa: E731 - short
MUTANTS = {"": {}, "_at": {"due_de": 0.0, "due_en": 0.0}, "_rhythm": {"acts_en": 0.0}}
"""What the reader of acts does wrong: an hour late; no repetition. What the suite then tells."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_eval_a19_acts_are_counted_and_a_wrong_reader_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A19: right act, right minute, and none where none is right, for each language; mutants of the reader show."""
    whole = read(SHIPPED / "acts.toml")
    said = {one.steps[0].says: DOES[one.id] for one in whole.scene if one.id in DOES}
    sections = {"acts": lambda request: said[heard(request)[-1]]}
    if mutant == "_at":
        monkeypatch.setattr(reader, mutant, LATE(reader._at))
    elif mutant:
        monkeypatch.setattr(reader, mutant, lambda _: "")
    suite = replace(whole, scene=tuple(one for one in whole.scene if one.id in DOES), needs_model=False)

    found = played(suite, voice=Scripted(default=by_tag(**sections)), price=lambda _: 0.0).suites[0].figures

    told = {name: value for name, value in found.items() if name.startswith(("acts_", "due_"))}
    right = dict.fromkeys(("acts_de", "acts_en", "acts_es", "acts_ja-none", "due_de", "due_en"), 1.0)
    assert told == right | MUTANTS[mutant]
    assert len(whole.scene) == 120
    assert sum(one.steps[0].acts == "none" for one in whole.scene) == 60


def test_eval_a19_without_a_model_nothing_is_told_of_acts() -> None:
    """A19: the scripted voice understands no one, so that a figure of it would flatter."""
    outcome = played(read(SHIPPED / "acts.toml"))

    assert "not measured: no model spoke" in "".join(table(outcome))
    assert "not measured: no model spoke" in page(outcome)
    assert outcome.calls == 0
