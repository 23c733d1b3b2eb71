"""The prompt of every process, kept as a file, so that a change of its wording is a readable diff."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr

from claudius.cognition.plan import EngineSettings, plan
from claudius.cognition.processes import PROCESSES, find
from claudius.cognition.prompt.assembly import build_prompt
from claudius.home import Home
from claudius.perception import SELF, Kind, Origin
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.recollection import StateValue
from lab.sample import NOW, model, perception, person, recollection, soul
from minds import Clock, by_tag, minds, say

KEPT = Path(__file__).with_name("prompts")
STATE = (StateValue(key="emotionalState", value="engaged", audience=SELF, updated_at=NOW),)


def written(request: Request) -> str:
    """Return a turn's own part of a prompt: what it says this turn, and the tail."""
    return "\n".join([*(f"[{one.role}] {one.content}" for one in request.history), "[tail]", request.tail]) + "\n"


def same(name: str, text: str) -> None:
    """Compare with the kept file. `CLAUDIUS_KEEP_PROMPTS=1` rewrites it."""
    file = KEPT / f"{name}.txt"
    if os.environ.get("CLAUDIUS_KEEP_PROMPTS"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8"), "run with CLAUDIUS_KEEP_PROMPTS=1 if the change is intended; read the diff"


@pytest.mark.parametrize("name", [name for name in PROCESSES if name != "problem_solving"])
def test_the_prompt_of_a_declarative_process(name: str, home: Home) -> None:
    """Its tail holds the steps, its own words for them, what is known, and the message."""
    text, settings = soul(home), EngineSettings(soul_state_interval=1)
    found = find(name, text)
    assert found
    known = recollection(state=STATE, speaker=person(model(2), turns_here=0), past=())
    if name == "proactive":
        due = perception(
            "Ask whether it is better now.", kind=Kind.SCHEDULED, origin=Origin.INTERNAL, person="", name="", owes=False,
            extra={"process": "proactive"},
        )  # fmt: skip
        known = recollection(state=STATE, speaker=None, perceptions=(due,), past=())

    prompt = build_prompt(plan(found, known, settings), known, text, settings)

    same(name, f"[tail]\n{prompt.tail}\n")


async def test_the_prompts_of_problem_solving(home: Home) -> None:
    """The kept prompts are those of one turn of the machine: the choosers, a thought, and what is said."""
    choices = iter([["think"], ["respond"]])
    voice = Scripted(
        default=by_tag(action_choice=lambda _: json.dumps({"actions": next(choices), "reasoning": "it helps"}))
    )
    settings = {"CLAUDIUS_ISM_ENABLED": "1", "CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_QUIET": "00:00-00:00"}
    settings["CLAUDIUS_CLOCK_TIMEZONE"] = "UTC"
    async with minds(home, voice, settings=settings, clock=Clock()) as soul_alive:
        await soul_alive.mind.store.people.wish("rehearsal:t:ana", proactive=True, now=soul_alive.mind.clock())
        force_setattr(soul_alive.mind, "nonce", lambda: "0" * 32)
        await soul_alive.mind.store.plans.plan(_plan(soul_alive))
        soul_alive.server.tick()
        await soul_alive.network.until_visible(1)
        await soul_alive.idle()

    same("problem_solving", "\n=== next call ===\n".join(written(one) for one in voice.requests))


def _plan(soul_alive: Any) -> Any:
    from claudius.intent import Schedule  # noqa: PLC0415 - beside its only use

    return Schedule(
        id=1,
        conversation="rehearsal:t:dm-ana:",
        at=soul_alive.mind.clock() - timedelta(seconds=1),
        text="Why does the bridge rust?",
        process="problem_solving",
        audience="private:rehearsal:t:ana",
        person="rehearsal:t:ana",
    )


def test_every_process_has_its_prompt_here() -> None:
    """Every shipped process has a kept prompt, and every kept prompt has its process."""
    assert {file.stem for file in KEPT.glob("*.txt")} == set(PROCESSES)


async def test_the_words_of_an_owner_stand_in_the_prompt_at_once(home: Home) -> None:
    """An edit of a process's text in the home takes effect at the next turn."""
    voice = Scripted(default=by_tag())
    async with minds(home, voice) as soul_alive:
        folder = home.soul / "processes"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "greeting.md").write_text("Mine.\n\n## external_dialogue\nSpeak only in questions.\n", "utf-8")
        force_setattr(soul_alive.mind, "soul", lambda: soul(home))
        await say(soul_alive, "hello")

    assert "external_dialogue: Speak only in questions." in voice.requests[0].tail
    assert "You have not met this person before" not in voice.requests[0].tail
