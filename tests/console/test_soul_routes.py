"""Changing the soul: nothing is written until Save, what it would have said leaves no trace, no edit undoes another."""

import json
import sqlite3
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from claudius.home import shipped
from claudius.reports.soul import KEPT_TEXTS
from driven import ConsoleClient, Machine, reply, serving_console

SHIPPED = (shipped("soul") / "soul.md").read_text("utf-8")
DRAFT = SHIPPED.replace("Two or three sentences in talk", "One word in talk")
BROKEN = "+++\nunended = true\n"


@contextmanager
def entered(machine: Machine, *replies: object) -> Iterator[ConsoleClient]:
    """Run a console whose voice says these replies, and enter it."""
    machine.scripted(*replies)
    with serving_console(machine) as address:
        yield ConsoleClient(address())


def refused(page: ConsoleClient, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return how a post is refused."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        page.post(path, body)
    with caught.value as answer:
        return answer.code, json.load(answer)


def asked(page: ConsoleClient, turns: list[str], files: dict[str, str], tokens: int) -> list[dict[str, Any]]:
    """Ask turns again, and return the rows."""
    return [json.loads(line) for line in page.lines("ask", {"turns": turns, "files": files, "agreed_tokens": tokens})]


def kept(machine: Machine) -> dict[str, Any]:
    """Return every row of the database but the cost of calls, and every soul file."""
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {
            name: database.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - a name of the schema itself
            for name in names
            if name != "step" and not name.startswith("moment_index")
        }
    return rows | {str(path): path.read_bytes() for path in sorted((machine.home / "soul").rglob("*.md"))}


def test_console_w28_a_draft_changes_the_system_part_of_every_kept_turn_and_nothing_else(machine: Machine) -> None:
    """Every kept turn is rebuilt byte for byte; with the draft its system part differs, and nothing is written."""
    with entered(machine) as page:
        before = kept(machine)
        checked = page.post("soul/check", {"files": {"soul.md": DRAFT}})
        rows = page.post("replay", {"turns": [], "files": {"soul.md": DRAFT}})["turns"]
        plain = page.post("replay", {"turns": [rows[0]["turn"]], "files": {}})["turns"]

    assert checked["ok"]
    assert len(rows) > 20
    assert {(row["identical"], *row["changed"]) for row in rows} == {(True, "system")}
    assert [row["changed"] for row in plain] == [[]]
    assert {reason for row in rows for reason in row["chosen"]} == {"process", "person", "mood"}
    assert 0 < sum(bool(row["chosen"]) for row in rows) <= 6
    assert kept(machine) == before


def test_console_w28_a_draft_that_cannot_be_used_is_told_by_its_line(machine: Machine) -> None:
    """The check of drafts names file, line and fix as that of saved texts does; no path of a scratch copy is told."""
    with entered(machine) as page:
        found = page.post("soul/check", {"files": {"soul.md": BROKEN, "dossiers/x.md": "A bridge."}})
        status, told = refused(page, "replay", {"turns": [], "files": {"soul.md": BROKEN}})

    assert [(one["file"], one["line"]) for one in found["problems"]] == [(str(machine.home / "soul" / "soul.md"), 1)]
    assert "draft-" not in json.dumps(found)
    assert (status, told["error"]) == (400, "soul")


def test_console_w29_asking_again_compares_and_leaves_nothing_but_its_cost(machine: Machine) -> None:
    """Said then beside would say now, thought beside thought; the drafts reach the model; every row but the cost stays."""
    with entered(machine, reply("Row 7.", user_model_check="false")) as page:
        before = kept(machine)
        row = page.post("replay", {"turns": [], "files": {"soul.md": DRAFT}})["turns"][-1]
        (found,) = asked(page, [row["turn"]], {"soul.md": DRAFT}, row["tokens"])
        request = json.loads(machine.requests.read_text())

    assert (found["said"], found["would_say"]) == (row["said"], "Row 7.")
    assert found["thought"][0]["content"].startswith("A table and a doubt")
    assert found["would_think"] == [{"step": "internal_monologue", "verb": "thought", "content": "Somebody speaks."}]
    assert (found["would_rung"], found["error"]) == ("complete", None)
    assert "One word in talk" in request["system"]
    assert request["purpose"] == "replay"
    assert kept(machine) == before
    jobs = {one["job"]: one["calls"] for one in machine.ok("usage", "--by", "job", "--json").json["rows"]}
    assert jobs["replay"] == 1


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        ("<internal_monologue>The answer is no, and I keep it to myself for now.</internal_monologue>", "fixed"),
        ("<external_dialogue>internal_monologue: they must not", "fixed"),
        ("Plain words.", "plain"),
    ],
)
def test_console_w29_the_same_parser_ladder_and_gate_judge_the_reply(machine: Machine, text: str, rung: str) -> None:
    """A reply that a turn could not speak is not shown as speech: it climbs the same ladder, without a second call."""
    with entered(machine, text) as page:
        turn = page.post("replay", {"turns": [], "files": {}})["turns"][-1]["turn"]
        (found,) = asked(page, [turn], {}, 100_000)

    assert found["would_rung"] == rung
    assert "keep it to myself" not in found["would_say"]
    assert len(machine.requests.read_text().splitlines()) == 1


def test_console_w29_tokens_are_agreed_to_and_the_budget_holds(machine: Machine) -> None:
    """Fewer tokens than the estimate: 409 with the estimate, no call; so with a budget that is nearly spent; 24 at most."""
    with entered(machine) as page:
        rows = page.post("replay", {"turns": [], "files": {}})["turns"]
        turn, tokens = rows[0]["turn"], rows[0]["tokens"]
        short = refused(page, "ask", {"turns": [turn], "files": {}, "agreed_tokens": tokens - 1})
        many = refused(page, "ask", {"turns": [turn] * 25, "files": {}, "agreed_tokens": 10**9})
        none = refused(page, "ask", {"turns": [], "files": {}, "agreed_tokens": 10**9})
        machine.ok("config", "set", "budget.daily_usd", "1")
        with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as database:
            database.execute("UPDATE step SET cost_usd = 1.0, at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')")
            database.commit()
        spent = refused(page, "ask", {"turns": [turn], "files": {}, "agreed_tokens": tokens})

    assert (short[0], short[1]["tokens"]) == (409, tokens)
    assert (many[0], none[0], spent[0]) == (400, 400, 503)
    assert not machine.requests.exists()


def test_console_w29_a_voice_that_fails_is_told_in_its_row(machine: Machine) -> None:
    """What failed stands in the row of its turn; the others are asked all the same."""
    with entered(machine, {"error": "BadRequest", "message": "no"}, reply("Yes.")) as page:
        turns = [row["turn"] for row in page.post("replay", {"turns": [], "files": {}})["turns"][-2:]]
        first, second = asked(page, turns, {}, 100_000)

    assert first["would_say"] is None
    assert first["error"]["detail"]
    assert (second["would_say"], second["error"]) == ("Yes.", None)


def test_replay_ask_needs_a_terminal_or_the_figure(machine: Machine) -> None:
    """`replay --ask` exits 2 elsewhere without `--agree`, or with too little; with enough it adds said and would_say."""
    machine.scripted(reply("Row 7."))
    turn = machine.ok("conversations", "show", "rehearsal:t:dm-rhea:", "--before", "now", "--json").json["entries"][0]
    draft = machine.root / "soul.md"
    draft.write_text(DRAFT)
    asking = ("replay", turn["turn"], "--soul", str(draft), "--ask")

    assert machine.run(*asking).code == 2
    assert machine.run(*asking, "--agree", "5").code == 2
    found = machine.ok(*asking, "--agree", "100000", "--json").json
    assert (found["would_say"], found["identical"]) == ("Row 7.", False)
    assert found["said"]
    with machine.terminal(*asking) as terminal:
        terminal.until("go on?")
        terminal.type("y")
        assert "now, said: Row 7." in terminal.rest()
    with machine.terminal(*asking) as terminal:
        terminal.until("go on?")
        terminal.type("n")
        assert "Row 7." not in terminal.rest()


def test_console_w30_one_of_two_saves_wins_and_the_other_is_shown_both_texts(machine: Machine) -> None:
    """Ten saves over the same text at once: one is kept, nine get 409 with what it says now. Mode 0600, and kept."""
    with entered(machine) as page:
        was = page.get("soul/soul.md")["sha256"]

        def save(n: int) -> object:
            try:
                return page.post("soul/soul.md", {"text": f"{SHIPPED}\n{n}\n", "was_sha256": was})
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.load(error)["now"]["text"]

        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(save, range(10)))
        found = page.get("soul/soul.md")

    own = machine.home / "soul" / "soul.md"
    assert sum(isinstance(one, dict) for one in answers) == 1
    assert {one for one in answers if not isinstance(one, dict)} == {(409, own.read_text())}
    assert own.stat().st_mode & 0o777 == 0o600
    assert [one["text"] for one in found["history"]] == [SHIPPED]
    assert machine.ok("soul", "history", "soul.md", "--json").json == found


def test_console_w30_a_text_that_cannot_be_used_is_not_saved(machine: Machine) -> None:
    """Save passes the check or nothing: the file, and what is kept of it, stay."""
    with entered(machine) as page:
        was = page.get("soul/soul.md")["sha256"]
        broken = refused(page, "soul/soul.md", {"text": BROKEN, "was_sha256": was})
        long = refused(page, "soul/soul.md", {"text": "long " * 4000, "was_sha256": was})
        page.post(f"soul/{quote('dossiers/bridges.md', '')}", {"text": "Three spans.\n", "was_sha256": _nothing()})

    assert (broken[0], long[0]) == (400, 400)
    assert "tokens long" in long[1]["detail"]
    assert sorted(path.name for path in (machine.home / "soul").rglob("*.md")) == ["bridges.md"]


def test_console_w30_the_last_20_texts_stay(machine: Machine) -> None:
    """Of 22 texts, one saved by command, the 20 before the last are kept, newest first, private to their owner."""
    with entered(machine) as page:
        machine.ok("soul", "edit", env={"EDITOR": "sed -i '$ a line 0'"})
        for n in range(1, KEPT_TEXTS + 2):
            was = page.get("soul/soul.md")
            page.post("soul/soul.md", {"text": f"{was['text']}line {n}\n", "was_sha256": was["sha256"]})
        found = page.get("soul/soul.md")
    files = [*(machine.home / "state" / "soul" / "history" / "soul.md").iterdir()]

    assert len(found["history"]) == len(files) == KEPT_TEXTS
    assert found["history"][0]["text"].endswith(f"line {KEPT_TEXTS}\n")
    assert found["history"][-1]["text"].endswith("line 1\n")
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_console_w25_only_soul_files_are_written(machine: Machine) -> None:
    """Names beside those of `soul show` get nothing: ways up, other places, NUL, hidden files; no draft of them either."""
    names = ("../config.md", "steps/../../x.md", "/etc/x.md", "soul.md\0", ".env", "steps/.x.md", "x/y.md", "a" * 250)
    before = {path for path in machine.home.rglob("*") if path.suffix == ".md"}
    with entered(machine) as page:
        body = {"text": "x", "was_sha256": _nothing()}
        written = {refused(page, f"soul/{quote(name, '')}", body)[0] for name in names}
        drafted = {refused(page, "soul/check", {"files": {name: "x"}})[0] for name in names}

    assert (written, drafted) == ({404}, {404})
    assert {path for path in machine.home.rglob("*") if path.suffix == ".md"} == before


def test_console_w25_a_link_out_of_the_soul_is_not_followed(machine: Machine, tmp_path: Path) -> None:
    """A soul file that is a link to elsewhere is not written through."""
    outside = tmp_path / "outside.md"
    outside.write_text("Mine.\n")
    (machine.home / "soul" / "dossiers").mkdir()
    (machine.home / "soul" / "dossiers" / "link.md").symlink_to(outside)
    with entered(machine) as page:
        status, _ = refused(page, f"soul/{quote('dossiers/link.md', '')}", {"text": "x", "was_sha256": _nothing()})

    assert status == 404
    assert outside.read_text() == "Mine.\n"


def _nothing() -> str:
    """Return the hash of a file that is not there."""
    return "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
