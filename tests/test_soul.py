"""The soul's files: shadowed one by one, read again when they change, and never lost to a broken edit."""

import os
import re
import shutil
from itertools import count
from pathlib import Path
from typing import get_args

import pytest

from claudius.cognition.processes.shipped import process_problems
from claudius.cognition.steps import STEPS
from claudius.errors import BadSoul
from claudius.home import shipped
from claudius.intent import ApologyKind
from claudius.recollection import MOODS
from claudius.soul import SoulSource, SoulText, check, dossiers, tokens

PERSONALITY = "# Vera\n\n## Persona\nYou are Vera."
STEP = '+++\ntag = "internal_monologue"\nverbs = ["thought"]\n+++\nThink, and say how: $verbs.'
CLOCK = count(1_800_000_000_000_000_000, 1_000_000_000)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return the empty soul directory of a home."""
    directory = tmp_path / "soul"
    directory.mkdir()
    return directory


def write(path: Path, data: str | bytes) -> None:
    """Write a file with a unique time stamp, so that every edit is seen whatever the disk's clock resolution."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    stamp = next(CLOCK)
    os.utime(path, ns=(stamp, stamp))


def source(ours: Path, theirs: Path | None = None) -> SoulSource:
    """Return a source that watches a home over the shipped soul."""
    return SoulSource(ours, theirs or shipped("soul"), STEPS)


def personality(text: SoulText) -> str:
    """Return the personality in force."""
    return text.text("soul.md")


class TestShadowing:
    """Which file is in force."""

    def test_an_empty_home_has_the_shipped_soul(self, ours: Path) -> None:
        """Without files of the owner's, every shipped file is in force, and there is no problem."""
        watched = source(ours)

        text = watched.current()

        assert personality(text).startswith("# Claudius")
        assert watched.problems == ()

    def test_a_file_of_the_home_shadows_the_shipped_one_alone(self, ours: Path) -> None:
        """Shadowing goes file by file: the others stay shipped."""
        write(ours / "soul.md", PERSONALITY)

        text = source(ours).current()

        assert personality(text) == PERSONALITY
        assert text.files["soul.md"].source == ours / "soul.md"
        assert text.files["reading.md"].source == shipped("soul") / "reading.md"

    def test_steps_stand_in_the_order_of_the_registry(self, ours: Path) -> None:
        """The order of `STEPS` is the order in the prompt, whatever the order of the directory."""
        backwards = tuple(reversed(STEPS))

        text = SoulSource(ours, shipped("soul"), backwards).current()

        assert tuple(text.steps)[: len(backwards)] == backwards
        assert all(step.on_demand for step in tuple(text.steps.values())[len(backwards) :])

    def test_a_step_of_the_home_is_read_with_its_head(self, ours: Path) -> None:
        """A shadowing step brings its own verbs, and they are filled into its own text."""
        write(ours / "steps/internal_monologue.md", STEP)

        step = source(ours).current().steps["internal_monologue"]

        assert (step.verbs, step.default_verb) == (("thought",), "thought")
        assert step.instruction == "Think, and say how: thought."


class TestHotReload:
    """An edit takes effect at the next look."""

    def test_nothing_changed_is_the_same_value(self, ours: Path) -> None:
        """While no file changes, `current` returns the very same object."""
        watched = source(ours)

        assert watched.current() is watched.current()

    def test_a_second_edit_within_one_tick_of_the_disk_clock_is_seen(self, ours: Path) -> None:
        """Equal time, size and inode do not hide an edit made right after the last read."""
        path = ours / "soul.md"
        write(path, "version one")
        stamp = path.stat().st_mtime_ns
        watched = SoulSource(ours, shipped("soul"), STEPS, now_ns=lambda: stamp + 1_000_000)
        watched.current()

        path.write_text("version two")
        os.utime(path, ns=(stamp, stamp))

        assert personality(watched.current()) == "version two"

    def test_a_home_is_looked_at_each_time_and_a_release_now_and_then(self, ours: Path, tmp_path: Path) -> None:
        """What an owner edits is in force at once; what a new release brings, when the last look at it is that old."""
        theirs, now_s = tmp_path / "shipped", [100]
        shutil.copytree(shipped("soul"), theirs)
        watched = SoulSource(ours, theirs, STEPS, now_ns=lambda: 10**9 * now_s[0], shipped_s=2.0)
        watched.current()

        write(theirs / "tail.md", (theirs / "tail.md").read_text("utf-8") + "Released.\n")
        write(ours / "soul.md", "edited")
        text = watched.current()
        now_s[0] += 2

        assert (text.text("soul.md"), "Released." in text.text("tail.md")) == ("edited", False)
        assert "Released." in watched.current().text("tail.md")

    def test_new_dossiers_come_and_deleted_ones_go(self, ours: Path) -> None:
        """The owner's reference texts are the files that the directory contains now."""
        watched = source(ours)
        watched.current()

        write(ours / "dossiers/looms.md", "Looms weave.")
        with_it = watched.current()
        (ours / "dossiers/looms.md").unlink()
        without = watched.current()

        assert with_it.text("dossiers/looms.md") == "Looms weave."
        assert "dossiers/looms.md" not in without.files
        assert watched.problems == ()

    def test_editor_droppings_are_not_read(self, ours: Path) -> None:
        """Swap files, backups and hidden files are not read as dossiers."""
        for name in (".looms.md.swp", "looms.md~", ".hidden.md", "#looms.md#"):
            write(ours / "dossiers" / name, "Looms weave.")

        assert not [name for name in source(ours).current().files if name.startswith("dossiers/")]


def test_dollars_need_no_care_in_prose(ours: Path) -> None:
    """Only templates have placeholders; a personality or dossier may contain `$5`."""
    write(ours / "dossiers/prices.md", "It costs $5, or $verbs.")
    watched = source(ours)

    assert watched.current().text("dossiers/prices.md") == "It costs $5, or $verbs."
    assert watched.problems == ()


THOUGHT, TAG = "steps/internal_monologue.md", b'+++\ntag = "internal_monologue"\n'
BROKEN = [
    pytest.param("soul.md", b"", 0, "is empty", id="empty"),
    pytest.param("soul.md", b" \n\t\n", 0, "is empty", id="blank"),
    pytest.param("soul.md", b"# Vera\n\xff\n", 2, "byte 0xff is not UTF-8", id="0xFF"),
    pytest.param("soul.md", "Ve".encode("utf-16"), 1, "is not UTF-8", id="UTF-16"),
    pytest.param("soul.md", b"# Vera\n\0\0\0\0", 2, "holds NUL bytes", id="zeroes after a power cut"),
    pytest.param("soul.md", b"x" * 10_000_000, 0, "10,000,000 bytes", id="10 MB"),
    pytest.param("soul.md", b"+++\na = 1\n", 1, "no end", id="half-written head"),
    pytest.param("soul.md", b"+++\na = 1\nb = \n+++\ntext", 3, "not TOML", id="bad TOML"),
    pytest.param(THOUGHT, b'+++\ntag = "dream"\n+++\nThink.', 1, "'dream'", id="foreign tag"),
    pytest.param(THOUGHT, TAG + b'verb = ["thought"]\n+++\nThink.', 1, "unknown field `verb`", id="unknown key"),
    pytest.param(THOUGHT, TAG + b'value = "number"\n+++\nThink.', 1, "'number'", id="unknown value"),
    pytest.param(THOUGHT, TAG + b'verbs = "thought"\n+++\nThink.', 1, "verbs", id="verbs that are no list"),
    pytest.param(THOUGHT, TAG + b'verbs = ["thought"]\ndefault_verb = "said"\n+++\nThink.', 1, "default_verb 'said'", id="default outside the verbs"),
    pytest.param(THOUGHT, TAG + b"+++\nThink.\n\nFor $cost.", 6, "$cost is not a placeholder", id="unknown placeholder"),
    pytest.param(THOUGHT, TAG + b"+++\nThink for 5$.", 4, "a lone $", id="lone dollar"),
    pytest.param(
        "steps/external_dialogue.md",
        b'+++\ntag = "external_dialogue"\nfallback = "Again."\n[apologies]\nstopped = "So."\n+++\nSpeak.',
        1,
        "apologies.provider_down is missing",
        id="missing apology",
    ),
    pytest.param("summary.md", b"Sum it up.", 0, "$chars is missing", id="missing placeholder"),
    pytest.param("tail.md", b'+++\norder = "Write $steps."\n+++\nNow.', 1, "if_true", id="tail without its words"),
]  # fmt: skip


class TestBrokenFiles:
    """A broken edit causes a warning; the soul stays complete."""

    @pytest.mark.parametrize(("name", "data", "line", "detail"), BROKEN)
    def test_a_good_version_stays_in_force(self, ours: Path, name: str, data: bytes, line: int, detail: str) -> None:
        """R20: a broken file is reported; the owner's last good version is in force, else the shipped one."""
        write(ours / name, data)
        watched = source(ours)
        begun, [problem] = watched.current(), watched.problems
        write(ours / name, (shipped("soul") / name).read_text("utf-8") + "\nThe owner's own line.")
        before = watched.current()
        write(ours / name, data)
        after = watched.current()

        assert begun.files[name].source == shipped("soul") / name
        assert (problem.file, problem.line, detail in problem.detail) == (str(ours / name), line, True)
        assert problem.fix
        assert "\n" not in problem.message
        assert after is before
        assert after.text(name).endswith("The owner's own line.")
        assert [one.message for one in watched.problems] == [problem.message]

    @pytest.mark.parametrize("key", ["order", "if_true", "now", "since"])
    def test_a_sentence_that_nothing_can_fill_is_found_at_once(self, ours: Path, key: str) -> None:
        """An unknown placeholder around the steps or in the present is found at the first read, not in a turn."""
        text = (shipped("soul") / "tail.md").read_text("utf-8")
        write(ours / "tail.md", re.sub(rf"(?m)^{key} = .*$", f'{key} = "It is $nothing."', text))
        watched = source(ours)

        watched.current()

        assert [problem.detail for problem in watched.problems] == ["$nothing is not a placeholder here"]

    def test_a_file_that_is_being_written_is_tried_again(self, ours: Path) -> None:
        """Each read tries a half-written file again, and the warning disappears with the fault."""
        write(ours / "soul.md", PERSONALITY)
        watched = source(ours)
        watched.current()
        write(ours / "soul.md", b"")
        watched.current()
        was_told = bool(watched.problems)

        write(ours / "soul.md", "# Vera, finished")

        assert personality(watched.current()) == "# Vera, finished"
        assert was_told
        assert watched.problems == ()

    @pytest.mark.parametrize(("data", "told"), [(None, r"soul\.md: is missing"), (b"\xff", "0xff")])
    def test_a_needed_file_without_a_good_version_is_an_error(
        self, ours: Path, tmp_path: Path, data: bytes | None, told: str
    ) -> None:
        """If even the shipped file is missing or broken, no turn can be thought: the error names file and fault."""
        theirs = tmp_path / "shipped"
        shutil.copytree(shipped("soul"), theirs)
        (theirs / "soul.md").unlink()
        if data is not None:
            (theirs / "soul.md").write_bytes(data)

        with pytest.raises(BadSoul, match=told):
            source(ours, theirs).current()


class TestCheck:
    """`claudius soul check`: everything that the owner can fix."""

    def test_the_shipped_soul_has_no_problem(self, ours: Path) -> None:
        """An untouched home has no problems."""
        assert check(ours, shipped("soul")) == []

    def test_unused_files_are_named(self, ours: Path) -> None:
        """A file that nothing reads is reported, with the names that would be read."""
        for name in ("souls.md", "notes.txt", "steps/dream.md", "dossiers/looms.txt", "soul.md"):
            write(ours / name, '+++\ntag = "dream"\n+++\nDream.')

        found = {Path(problem.file).relative_to(ours).as_posix() for problem in check(ours, shipped("soul"))}

        assert found == {"souls.md", "notes.txt", "steps/dream.md", "dossiers/looms.txt"}

    def test_an_oversized_personality_is_told(self, ours: Path) -> None:
        """A personality beyond its size limit is used all the same, and reported."""
        write(ours / "soul.md", "word " * 1000)

        [problem] = check(ours, shipped("soul"))

        assert "1250 tokens" in problem.detail

    def test_dossiers_beyond_the_budget_are_told(self, ours: Path) -> None:
        """A dossier that does not fit is named; it is not dropped silently."""
        write(ours / "dossiers/a.md", "x" * 2400)
        write(ours / "dossiers/b.md", "x" * 2400)

        [problem] = check(ours, shipped("soul"))

        assert problem.file == str(ours / "dossiers/b.md")


def test_dossiers_come_in_name_order_while_they_fit(ours: Path) -> None:
    """One that is too long is left out, and a later one may still fit."""
    for name, size in (("c", 40), ("a", 40), ("b", 4000)):
        write(ours / f"dossiers/{name}.md", "x" * size)

    included, left_out = dossiers(source(ours).current(), 25)

    assert [file.name for file in included] == ["dossiers/a.md", "dossiers/c.md"]
    assert [file.name for file in left_out] == ["dossiers/b.md"]


class TestTheShippedSoul:
    """The texts that every new user meets."""

    @pytest.fixture
    def text(self, ours: Path) -> SoulText:
        """Return the shipped soul."""
        return source(ours).current()

    def test_the_texts_of_every_turn_keep_their_size(self, text: SoulText) -> None:
        """At most 900 tokens (characters / 4): the personality, and all steps that one turn may ask for together."""
        assert tokens(personality(text)) <= 900
        assert sum(tokens(step.instruction) for step in text.steps.values() if not step.on_demand) <= 900

    def test_the_personality_has_its_four_parts(self, text: SoulText) -> None:
        """It has Persona, Speaking Style, Values and Emotional Spectrum."""
        for heading in ("Persona", "Speaking Style", "Values", "Emotional Spectrum"):
            assert f"\n## {heading}\n" in personality(text)

    @pytest.mark.parametrize("mood", MOODS)
    def test_every_mood_has_verbs_that_may_be_spoken(self, text: SoulText, mood: str) -> None:
        """Each of the five moods names three verbs from the dialogue's list."""
        [line] = [line for line in personality(text).splitlines() if line.startswith(f"- {mood} (")]
        verbs = line.removeprefix(f"- {mood} (").partition(")")[0].split(", ")

        assert len(verbs) == 3
        assert set(verbs) <= set(text.steps["external_dialogue"].verbs)

    def test_every_step_shows_its_tag(self, text: SoulText) -> None:
        """The instruction of each step shows its tag, without a list of verbs."""
        for step in text.steps.values():
            assert step.on_demand or f"<{step.name}" in step.instruction
            assert f"</{step.name}>" not in step.instruction.replace(f"<{step.name}></{step.name}>", "")
            assert "verb=" not in step.instruction

    def test_every_apology_has_its_line(self, text: SoulText) -> None:
        """Each kind of apology has a line, in character, without the id of its turn."""
        step = text.steps["external_dialogue"]

        assert set(step.apologies) == set(get_args(ApologyKind))
        for kind in step.apologies:
            assert "abc234" not in step.apology(kind, "abc234")
            assert "$" not in step.apology(kind, "abc234")

    def test_nobody_shouts(self, text: SoulText) -> None:
        """No word of the prompt is in capitals for emphasis."""
        loud = {"NEVER", "ALWAYS", "MUST", "IMPORTANT", "DO", "NOT", "CRITICAL", "UNTRUSTED"}

        for file in text.files.values():
            assert not loud & set(file.text.split())

    def test_a_process_without_a_head_is_told(self, ours: Path) -> None:
        """An owner's process begins with our front matter; a file with another kind of front matter is reported."""
        write(ours / "processes/stargazing.md", "---\nsteps: external_dialogue\n---\nSpeak of the stars.")
        write(ours / "processes/greeting.md", "## external_dialogue\nSay hello, no more.")

        [problem] = process_problems(source(ours).current())

        assert problem.file == str(ours / "processes/stargazing.md")
        assert "+++" in problem.fix
