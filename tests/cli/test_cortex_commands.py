"""`claudius cortex` and `claudius ledger`, run as real commands in a process of their own."""

import json
import re
from pathlib import Path

import pytest

from claudius.cli.ledger import bar
from driven import Machine, reply
from reflecting import answer

ADA = "terminal:local:ada"
REFLECTION = answer(
    (ADA, 3), beliefs=[{"key": "ada-builds", "value": "Ada builds bridges.", "rationale": "Said so.", "peer_id": ADA}]
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return the machine of a soul that has heard two messages and reflected once."""
    made = Machine(tmp_path_factory.mktemp("machine"))
    made.env["CLAUDIUS_CORTEX_ENABLED"] = "1"
    made.scripted(reply("first"))
    made.ok("chat", "--once", "I build bridges.")
    made.scripted(reply("second"))
    made.ok("chat", "--once", "One rusts.")
    made.scripted(REFLECTION)
    made.ok("cortex", "reflect", "--json")
    return made


def test_fr_cx_08_ledger_peers(machine: Machine) -> None:
    """FR-CX-08: all peers, with counts, dates, information and the newest assessment, in the documented shape."""
    (found,) = machine.ok("ledger", "peers", "--json").json

    assert {
        "peer", "name", "interactions", "first_at", "last_at", "info_score", "trust", "rationale", "assessed_at",
    } <= set(found)  # fmt: skip
    assert (found["peer"], found["interactions"], found["info_score"], found["trust"]) == (ADA, 2, 1, 3)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", found["first_at"])
    assert "trust +3" in machine.ok("ledger", "peers").stdout


def test_fr_cx_08_ledger_show(machine: Machine) -> None:
    """FR-CX-08: one peer by id or name, with assessments and timeline."""
    found = machine.ok("ledger", "show", ADA, "--json").json
    shown = machine.ok("ledger", "show", "ada").stdout

    assert [one["trust"] for one in found["assessments"]] == [3]
    assert [(one["direction"], one["preview"]) for one in found["timeline"]] == [
        ("in", "I build bridges."),
        ("out", "first"),
        ("in", "One rusts."),
        ("out", "second"),
    ]
    assert "│███" in shown
    assert machine.run("ledger", "show", "nobody").code == 1


def test_fr_cx_08_cortex_beliefs_and_history(machine: Machine) -> None:
    """FR-CX-08: beliefs with their decay and their evidence; cycles newest first."""
    found = machine.ok("cortex", "beliefs", "--json").json
    (belief,) = found["beliefs"]
    (record,) = machine.ok("cortex", "history", "--json").json

    assert {
        "key", "value", "rationale", "peer", "created_at", "expires_at", "source_cycle", "sources", "evidence",
    } <= set(belief)  # fmt: skip
    assert (belief["key"], belief["peer"], belief["source_cycle"]) == ("ada-builds", ADA, 1)
    timeline = machine.ok("ledger", "show", ADA, "--json").json["timeline"]
    assert set(belief["evidence"]) <= {one["id"] for one in timeline}
    assert belief["evidence"]
    assert {
        "cycle", "at", "trigger", "duration_s", "assessments", "beliefs", "directives", "summary", "outcome",
        "beliefs_added", "beliefs_reaffirmed", "beliefs_expired",
    } <= set(record)  # fmt: skip
    assert (record["trigger"], record["assessments"], record["beliefs"], record["outcome"]) == ("manual", 1, 1, "done")
    assert found["last_reflection_at"] == record["at"]
    assert machine.ok("cortex", "beliefs").stdout.startswith("last reflection: ")
    assert machine.ok("cortex", "history", "-n", "1").stdout.startswith("1  ")


def test_the_owner_can_edit_beliefs(machine: Machine) -> None:
    """A belief is pinned, disputed and deleted by its key. An unknown key is reported with exit 1."""
    assert machine.ok("cortex", "belief", "ada-builds", "--pin").stdout == "ada-builds is pinned\n"
    assert machine.ok("cortex", "beliefs", "--json").json["beliefs"][0]["expires_at"] is None
    assert machine.ok("cortex", "belief", "ada-builds", "--dispute", "--json").json == {
        "key": "ada-builds",
        "state": "disputed",
    }
    machine.scripted(reply("third"))
    machine.ok("chat", "--once", "What do you believe?")
    last = json.loads(machine.requests.read_text().splitlines()[-1])
    assert "## Cortex Beliefs" not in last["tail"]
    assert machine.ok("cortex", "belief", "ada-builds", "--delete").stdout == "ada-builds is deleted\n"
    assert machine.run("cortex", "belief", "ada-builds", "--pin").code == 1
    assert machine.ok("cortex", "beliefs", "--json").json["beliefs"] == []


def test_without_a_real_model_it_says_so(tmp_path: Path) -> None:
    """With the rehearsal model the cortex is off: `reflect` says so in one line, and reading commands show nothing."""
    machine = Machine(tmp_path)
    machine.ok("chat", "--once", "Hello.")

    ran = machine.run("cortex", "reflect")

    assert ran.code == 1
    assert ran.stderr == "claudius: the cortex is off: it needs a real model, or cortex.enabled = true\n"
    assert machine.ok("cortex", "beliefs", "--json").json == {"last_reflection_at": None, "beliefs": []}
    assert machine.ok("cortex", "history", "--json").json == []
    assert machine.ok("cortex", "beliefs").stdout == "it has not reflected yet\n"


def test_drift_twice_running_is_a_warning(tmp_path: Path) -> None:
    """Soul alignment: two cycles in a row that find drift are shown by `doctor`, and nothing edits the soul."""
    machine = Machine(tmp_path)
    machine.env["CLAUDIUS_CORTEX_ENABLED"] = "1"
    machine.scripted(reply("first"))
    machine.ok("chat", "--once", "Hello.")
    drift = answer(alignment={"verdict": "drift", "evidence": "Three flippant answers."})
    checks = []
    for _ in range(2):
        machine.scripted(drift)
        machine.ok("cortex", "reflect")
        checks.append({one["name"] for one in machine.run("doctor", "--json").json["checks"] if not one["ok"]})

    assert "soul alignment" not in checks[0]
    assert "soul alignment" in checks[1]
    assert machine.ok("cortex", "beliefs", "--json").json["beliefs"][0]["key"] == "self-alignment"


def test_a_bar_reads_from_minus_ten_to_ten() -> None:
    """The middle of the bar means that nothing is known."""
    assert bar(3) == "··········│███·······  +3"
    assert bar(-2) == "········██│··········  -2"
    assert bar(0) == "··········│··········  +0"
