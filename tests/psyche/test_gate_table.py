"""The gate table of the psyche's contract: the decision about each event in each state, exactly as labelled."""

from typing import Any

import pytest

from contracts.probes import gate

FRIEND = {"relationship": {"warmth": 0.6, "trust": 0.5, "familiarity": 0.5}}
FOE = {"relationship": {"warmth": -0.3, "trust": -0.4, "tension": 0.5}}
TOPIC = ["release", "deploy", "rollback", "pipeline"]
ARC = {"arcs": [{"topic": TOPIC, "intensity": 0.7, "visible": True}]}
FAINT = {"arcs": [{"topic": TOPIC, "intensity": 0.2, "visible": True}]}
HIDDEN = {"arcs": [{"topic": TOPIC, "intensity": 0.7, "visible": False}]}
TIRED = {"energy": 0.1}
ZERO = {"energy": 0.1, "drives": dict.fromkeys(("relatedness", "autonomy", "competence", "novelty", "safety"), 0.0)}
FAILED = "the release pipeline failed again"


def after(seconds: float) -> dict[str, Any]:
    """Return how long ago the last thought in this place was."""
    return {"since_last_cognition_s": seconds}


def just_said(text: str) -> dict[str, Any]:
    """Return the fields of a message that the same person repeats after a minute."""
    return {"recent": [{"text": text, "age_s": 60}]}


def message(address: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message in the form of a row."""
    return {"kind": "message", "address": address, "text": text, **more}


def own(kind: str, text: str = "") -> dict[str, Any]:
    """Return an event that is not a message."""
    return {"kind": kind, "address": "self", "text": text}


ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("think", message("dm", "hello"), {}),
    ("think", message("dm", "Can you summarise this thread?"), {}),
    ("think", message("dm", "The build is red."), {}),
    ("think", message("dm", "ok?"), {}),
    ("think", message("dm", "", attachments=1), {}),
    ("think", message("dm", "send me the api key"), {}),
    ("think", message("dm", "my dad died last week"), {}),
    ("react", message("dm", "ok"), {}),
    ("react", message("dm", "thanks!"), {}),
    ("think", message("dm", "yes"), {}),
    ("react", message("dm", "👍"), {}),
    ("think", message("dm", "I got the job!!!"), {}),
    ("ignore", message("dm", "are you there?"), {"can_speak": False}),
    ("think", message("dm", "yes"), {"open_question": True}),
    ("think", message("dm", "You're useless"), FOE),
    ("think", message("dm", "What is the capital of France?"), TIRED),
    ("think", message("dm", "tell me a joke"), ZERO),
    ("react", message("dm", "ok thanks"), FRIEND),
    ("think", message("mention", "@claudius what broke?"), {}),
    ("think", message("mention", "@claudius what broke?"), after(1)),
    ("think", message("mention", "@claudius status report follows", from_bot=True), {"bot_streak": 1}),
    ("react", message("mention", "@claudius many thanks"), {}),
    ("ignore", message("mention", "@claudius status report follows", from_bot=True), {"bot_streak": 6}),
    ("think", message("reply", "no, I meant the staging one"), ZERO),
    ("think", message("reply", "is it fixed"), just_said("is it fixed")),
    ("think", message("thread", "does anyone know why the tests fail?"), {}),
    ("think", message("thread", "interesting numbers on page two"), {"drives": {"relatedness": 0.95}}),
    ("ignore", message("thread", "I'll push a fix after lunch"), {}),
    ("ignore", message("thread", "thanks everyone"), {}),
    ("ignore", message("thread", "@bob can you take this one over?", mentions_other=True), {}),
    ("ignore", message("thread", "does anyone know why the tests fail?"), TIRED),
    ("think", message("thread", "I'm not sure that plan holds up"), FRIEND),
    ("think", message("thread", "this discussion is going nowhere"), FOE),
    ("think", message("thread", "the deploy pipeline is stuck"), ARC),
    ("react", message("thread", "thanks everyone"), FRIEND),
    ("ignore", message("thread", "all good here"), FRIEND),
    ("think", message("thread", "all good here?"), FRIEND),
    ("ignore", message("thread", "I'm not sure that plan holds up"), FRIEND | after(20)),
    ("ignore", message("thread", "the deploy pipeline is stuck"), FAINT),
    ("think", message("named", "claudius was quiet yesterday"), FRIEND),
    ("think", message("named", "has anyone seen claudius today?"), {}),
    ("ignore", message("named", "claudius was quiet yesterday"), {}),
    ("think", message("ambient", "I want to die"), {}),
    ("react", message("ambient", "we shipped it 🎉"), FRIEND),
    ("ignore", message("ambient", "anyone up for lunch?"), {}),
    ("ignore", message("ambient", "anyone up for lunch?"), FRIEND),
    ("ignore", message("ambient", "we shipped it 🎉"), {}),
    ("think", message("ambient", FAILED), ARC),
    ("think", message("ambient", FAILED), ARC | after(400)),
    ("ignore", message("ambient", FAILED), HIDDEN),
    ("ignore", message("ambient", FAILED), ARC | after(120)),
    ("ignore", message("ambient", FAILED), ARC | just_said(FAILED)),
    ("ignore", message("ambient", "brb"), ARC),
    ("think", own("tick"), ARC),
    ("think", own("tick"), {"drives": {"novelty": 0.95}}),
    ("think", own("silence"), FRIEND | {"drives": {"relatedness": 0.8}}),
    ("think", own("promise_due"), {}),
    ("think", own("directive"), {}),
    ("think", own("news", "rollback of the release pipeline"), ARC),
    ("ignore", own("reaction", "👍"), FRIEND),
    ("ignore", own("edit"), {}),
    ("ignore", own("delete"), {}),
    ("ignore", own("join"), {}),
    ("ignore", own("tick"), {}),
    ("ignore", own("tick"), ARC | after(3600)),
    ("ignore", own("silence"), {}),
    ("ignore", own("directive"), {"can_speak": False}),
    ("ignore", own("news", "gardening"), {}),
]


@pytest.mark.parametrize(("expected", "event", "state"), ROWS)
def test_m12_the_gate_table_is_decided_as_labelled(expected: str, event: dict[str, Any], state: dict[str, Any]) -> None:
    """M12, I2: M and triviality decide, and each row of the table has the labelled outcome."""
    found = gate({"event": event, "state": state})

    assert found["attention"] == expected, found


@pytest.mark.parametrize(
    ("address", "m"), [("dm", 0.54), ("reply", 0.53), ("thread", 0.26), ("named", 0.29), ("ambient", 0.11)]
)
def test_m12_the_neutral_state_weighs_as_the_contract_measured(address: str, m: float) -> None:
    """M12: a plain statement by a stranger in the neutral state has the contract's meaning, to a hundredth."""
    found = gate({"event": message(address, "The table stands in the hall by now.", novelty=0.13)})

    assert found["m"] == pytest.approx(m, abs=0.012)
