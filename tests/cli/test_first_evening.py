"""The rows of `cases/newcomer.json` in a real terminal, at two widths: each answer is right, and no word of it breaks."""

import re
from pathlib import Path

import pytest

from case_rows import Row, rows
from drawn import Drawn, drawn
from driven import Machine
from first_evening import is_right

SECTIONS = {
    "a greeting without a login name": "I am Claudius",
    "shows her": "Mara",
    "that it is forgotten, then that it knows none": "othing",
    "that it is cancelled; it is": "✖ p1",
    "the cat Pixel": "cat called Pixel",
    "plans it": "⏰",
}
"""What is shown, where the terminal's answer begins otherwise than the voice's line."""


def answered(shown: Drawn, line: str) -> str:
    """Type a line, and return its whole answer as one line of words."""
    before = len(shown.lines) - 1
    shown.say(line)
    echo = re.compile(r"\s+".join(map(re.escape, f"you › {line}".split())))

    def new() -> str:
        text = " ".join("\n".join(shown.lines[before:]).split())
        typed = echo.match(text)
        is_whole = typed and shown.lines[-2:] == ["", "you ›"] and "… " not in shown.lines[-3][:2]
        return text[typed.end() :].removesuffix("you ›").strip() if typed and is_whole else ""

    shown.until(new)
    return new()


def tried(machine: Machine, row: Row, columns: int) -> str:
    """Say the lines of a row as somebody of its own; return the last answer."""
    answer, is_welcome = "", row.input["says"][0].startswith("(")
    machine = Machine(machine.root / "new", machine.env) if is_welcome else machine  # nobody was there before
    who = () if is_welcome else ("--as", row.id, "--conversation", row.id)
    with drawn(machine, "chat", *who, columns=columns) as shown:
        shown.until_asked()
        for line in row.input["says"]:
            if line.startswith("$ "):
                answer = machine.ok(*line.split()[2:]).stdout
            else:
                answer = " ".join(shown.text.split()) if line.startswith("(") else answered(shown, line)
    return answer


@pytest.mark.parametrize("columns", [80, pytest.param(120, marks=pytest.mark.slow)])
def test_the_first_evening_in_a_terminal(columns: int, tmp_path: Path) -> None:
    """Every row without a model, by keys on a screen: what is asked for stands there as the voice wrote it."""
    machine = Machine(tmp_path, {"CLAUDIUS_CLOCK_TIMEZONE": "UTC", "LOGNAME": "root"})
    wrong: list[str] = []
    with machine.daemon():
        machine.ok("chat", "--once", "Hello!")
        for row in [one.values[0] for one in rows("newcomer", "rehearsal") if one.values[0].id != "ten"]:
            answer = tried(machine, row, columns)
            musts = [SECTIONS.get(must, "") for must in row.right.get("must", ())]
            is_shown = all(musts) and musts and all(must in answer for must in musts)
            account = "root" if row.input["says"][-1].startswith(("$", "(")) else row.id
            never = [one for one in row.right.get("never", ()) if re.search(one.replace("root", account), answer)]
            if never or not (is_shown or is_right(row, answer)):
                wrong.append(f"{row.id}: {row.input['says']}\n  {answer}")

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("row", rows("newcomer", "any", only="help-terminal"))
def test_help_is_eight_rows_of_a_terminal(row: Row, machine: Machine) -> None:
    """`help`, `!help` and `/help` show the same eight rows; whoever is no owner is shown nothing of an owner's."""
    row.knows_only("must", "never")
    with machine.daemon():
        for others in ((), ("--as", "bo")):
            told: list[list[str]] = []
            with drawn(machine, "chat", *others) as shown:
                shown.until_asked()
                for line in row.input["says"]:
                    before = len(shown.lines)
                    shown.say(line)
                    shown.until_shown("Here: /thoughts", len(told) + 1)
                    shown.until_asked()
                    told.append(shown.lines[before:-1])
            assert [len(one) for one in told] == [8 - len(others) // 2] * 3, told
            assert told[0] == told[1] == told[2]
            assert ("Owners:" in "\n".join(told[0])) == (not others)
            assert not [one for one in row.right["never"] if re.search(one, "\n".join(told[0]))]
    once = {machine.ok("chat", "--once", line).stdout for line in row.input["says"]}

    assert len(once) == 1


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "row", [*rows("newcomer", "onboard", only="attach-path"), *rows("newcomer", "model", only="untagged")]
)
def test_what_is_said_once_and_where_the_key_belongs(row: Row, columns: int, tmp_path: Path) -> None:
    """The hint how to attach a model names this home; a model that writes no section at all is heard, once."""
    row.knows_only("must", "never")
    elsewhere = tmp_path / "elsewhere"
    machine = Machine(tmp_path, {name: str(elsewhere) for name in row.input.get("env", ())})
    (line,) = row.input["says"]
    if "model_says" in row.input:
        machine.scripted(row.input["model_says"])
    with drawn(machine, "chat", columns=columns) as shown:
        shown.until_asked()
        answer = answered(shown, line)

    words = {"the real path": str(elsewhere / ".env"), "its words, once": row.input.get("model_says", "")}
    assert [answer.replace(" ", "").count(words[must].replace(" ", "")) for must in row.right["must"]] == [1]
    assert not [one for one in row.right.get("never", ()) if re.search(one, answer)]
