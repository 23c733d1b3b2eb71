"""Who a person is to the soul, at the terminal: one document by every way, exported with their data, forgotten with them."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from case_rows import rows
from driven import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine without a model, whose account is that of a container."""
    return Machine(tmp_path, env={"LOGNAME": "root", "TZ": "Etc/UTC"})


def test_every_way_shows_one_document(machine: Machine) -> None:
    """`users show`, `!whoami`, `ensoul status --me` and the rehearsal voice differ in their first line alone."""
    (row,) = rows("newcomer", "any", only="users-show")
    assert row.values[0].right == {"must": ["the same document as whoami and Home"]}
    machine.ok("config", "set", "clock.timezone", "Asia/Tokyo")
    machine.ok("chat", "--once", "My name is Annabel, I am vegan.")
    machine.ok("chat", "--once", "Remind me in 3 hours to water the fern.")
    ways = [("users", "show", "annabel"), ("chat", "--once", "!whoami"), ("ensoul", "status", "--me")]
    documents = [machine.ok(*way).stdout.strip().splitlines()[1:] for way in ways]
    said = machine.ok("chat", "--once", "What do you know about me?").stdout
    asked = machine.ok("users", "show", "Annabel", "--json").json

    assert documents[0] == documents[1] == documents[2]
    for line in ("- called Annabel (f1)", "- Is vegan (f2)", "Planned (Asia/Tokyo):", "water the fern"):
        assert any(line in one for one in documents[0]), line
        assert line in said
    assert {(one["kind"], one["text"]) for one in asked["facts"]} == {("name", "Annabel"), ("constraint", "Is vegan")}
    assert [one["what"] for one in asked["plans"]] == ["water the fern"]
    assert (asked["name"], asked["moments"], asked["mood"]) == ("Annabel", 3, "")


def test_what_was_ended_is_no_part_of_it(machine: Machine) -> None:
    """A fact that was taken back, and the statement that took it back, are not shown as what holds."""
    machine.ok("chat", "--once", "I live in Leeds, and I'm vegan.")
    machine.ok("chat", "--once", "I'm not vegan any more.")
    facts = machine.ok("users", "show", "root", "--json").json["facts"]

    assert [(one["kind"], one["text"]) for one in facts] == [("home", "Lives in Leeds")]


DEEDS = (
    ("Remind me in 3 hours to water the fern.", r"⏰ .*· water the fern · p1"),
    ("Remind me every Monday at 9 to call Ines.", r"⏰ .* 9:00 .* ↻ Mon · call Ines · p2"),
    ("What reminders do I have?", r"p1: .*water the fern\n- p2: .*call Ines"),
    ("Move the fern to tomorrow at 10:15.", r"⏰ .*10:15 .*· p1"),
    ("Cancel the reminder about the fern.", r"\n\n✖ p1"),
    ("Hey, I'm Tom. I live in Leeds and I'm allergic to walnuts.", "(?s)Tom.*walnuts.*Leeds"),
    ("I moved to Porto last week.", r"\n\n✎ f2"),
    ("Where do I live?", "Porto"),
    ("What must I not eat?", "walnuts"),
    ("No, I'm not allergic any more.", r"\n\n✎ f3"),
    ("What must I not eat?", "of nothing"),
    ("I hate coriander.", "coriander"),
    ("Forget that I hate coriander.", r"\n\n✎ f5"),
    ("What do I hate?", "[Nn]othing"),
)
"""What is said in one conversation, and what the answer holds."""


def test_without_a_model_the_books_are_kept_too(machine: Machine) -> None:
    """A12: remind, list, move, cancel, a name, what is known, moved, no longer so and forgotten."""
    shown = [machine.ok("chat", "--once", line).stdout for line, _ in DEEDS]
    document = machine.ok("users", "show", "Tom", "--json").json

    told = zip(DEEDS, shown, strict=True)
    assert [(line, said) for (line, holds), said in told if not re.search(holds, said)] == []
    assert [one["text"] for one in document["facts"]] == ["Lives in Porto", "Tom"]
    assert [one["what"] for one in document["plans"]] == ["call Ines"]


def test_a_name_finds_its_person_in_every_command(machine: Machine) -> None:
    """The told name in any letters, the id and the account find the same person, who is listed by the told name."""
    machine.ok("chat", "--once", "Hey, I'm Mara.")
    machine.ok("chat", "--once", "Hello.", "--as", "ben")
    assert {one["name"] for one in machine.ok("users", "list", "--json").json} == {"Mara", "ben"}
    for name in ("Mara", "terminal:local:root", "root", "mara"):
        found = [machine.ok("users", *words, name, "--json").json for words in (["show"], ["export"])]
        peer = machine.ok("ledger", "show", name, "--json").json
        machine.ok("users", "log", name)
        linked = machine.ok("users", "link", name, "ben").stdout
        machine.ok("users", "unlink", name)

        assert {one["person"] for one in found} == {"terminal:local:root"}, name
        assert (peer["peer"], peer["name"]) == ("terminal:local:root", "Mara"), name
        assert "terminal:local:as-ben and terminal:local:root are one person" in linked, name
    receipt = machine.ok("users", "forget", "mara", "--yes", "--json").json

    assert receipt["person"] == "terminal:local:root"


def test_a_name_that_another_has_as_account_finds_nobody(machine: Machine) -> None:
    """A person who says that they are called like another's account is not shown, nor erased, in that one's place."""
    machine.ok("chat", "--once", "Hello.")
    machine.ok("chat", "--once", "My name is root.", "--as", "ben")
    refused = machine.run("users", "show", "root")

    assert refused.code != 0
    assert "terminal:local:as-ben" in refused.stderr
    assert "terminal:local:root" in refused.stderr


TELLS = '{"do": "know", "kind": "name", "text": "Tom"}'


def test_a_model_is_given_the_name_that_was_told(machine: Machine) -> None:
    """In a prompt the speaker has no name until they tell one; then every message of theirs bears it."""
    for line, acts in (("Hello.", "none"), ("I'm Tom.", TELLS), ("The kiln is hot.", "none")):
        machine.scripted(f"<acts>{acts}</acts><external_dialogue>So it is.</external_dialogue>")
        machine.ok("chat", "--once", line)
    turns = [
        one["turn"] for one in machine.ok("conversations", "show", "terminal:local:main:main", "--json").json["entries"]
    ]
    tails = [machine.ok("why", turn, "--json").json["prompt"]["tail"] for turn in dict.fromkeys(turns)]
    heard = [json.loads(one) for tail in tails for one in tail.splitlines() if one.startswith('{"kind":"message"')]

    assert [one.get("from") for one in heard] == [None, None, "Tom"]
    assert [tail for tail in tails if "root" in tail] == []


def test_what_one_process_has_listed_another_deletes(machine: Machine) -> None:
    """Each `chat --once` is a process of its own, and the list and the question of one hold for the next."""
    machine.ok("chat", "--once", "I hate coriander.")
    listed = machine.ok("chat", "--once", "!forget coriander").stdout
    chosen = machine.ok("chat", "--once", "!forget 1 2").stdout
    left = machine.ok("chat", "--once", "!forget coriander").stdout
    machine.ok("chat", "--once", "!forget me")
    forgotten = machine.ok("chat", "--once", "!forget me yes").stdout

    assert "coriander" in listed
    assert "Gone for good" in chosen
    assert "I keep nothing of yours" in left
    assert "You are forgotten" in forgotten


TOLD, PLAN = "I am allergic to walnuts", "I am going to bake a walnut cake tonight"


def test_memory_w2_what_must_not_be_eaten_is_known_here_and_elsewhere_and_promised_for_good(tmp_path: Path) -> None:
    """W2: the voice without a model answers with the constraint where it is named, in any conversation."""
    machine = Machine(tmp_path)
    told = machine.ok("chat", "--once", TOLD).stdout
    machine.ok("chat", "--once", "I take insulin twice a day")

    here = machine.ok("chat", "--once", "Are walnuts good for me?").stdout
    elsewhere = machine.ok("chat", "--conversation", "kitchen", "--once", "Are walnuts good for me?").stdout

    assert "walnuts" in told
    assert "as long as this talk" not in told
    assert "walnuts" in here
    assert "walnuts" in elsewhere


def test_memory_k5_what_is_told_is_recalled_exported_and_forgotten_by_commands(tmp_path: Path) -> None:
    """W1, K5: the voice without a model says the allergy elsewhere; export holds moment and fact, forget leaves none."""
    machine = Machine(tmp_path)
    machine.run("chat", "--once", TOLD)
    person = json.loads(machine.run("users", "list", "--json").stdout)[0]["person"]

    elsewhere = machine.run("chat", "--conversation", "kitchen", "--once", PLAN).stdout
    exported = json.loads(machine.run("users", "export", person, "--json").stdout)
    forgotten = machine.run("users", "forget", person, "--yes")
    again = machine.run("chat", "--conversation", "cellar", "--once", PLAN).stdout

    assert "allergic to walnuts" in elsewhere
    assert [one["text"] for one in exported["moments"] if not one["is_own"]] == [TOLD, PLAN]
    assert [(one["kind"], one["text"]) for one in exported["facts"]] == [("constraint", "Is allergic to walnuts")]
    assert forgotten.code == 0, forgotten.shown
    assert "allergic" not in again
    with closing(sqlite3.connect(next(tmp_path.rglob("claudius.db")))) as db:
        assert db.execute("SELECT count(*) FROM fact").fetchone() == (0,)
        assert [text for (text,) in db.execute("SELECT text FROM moment WHERE is_own = 0")] == [PLAN]
        assert not [term for (term,) in db.execute("SELECT term FROM moment_stem") if term.startswith("allerg")]
