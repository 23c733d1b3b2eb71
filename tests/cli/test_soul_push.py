"""`claudius soul push`: one machine's soul files are in force on every machine, from the next turn on."""

from pathlib import Path

import pytest

from driven import Machine

MINE, THEIRS = "# Personality\n\nYou love walnut trees.\n", "# Personality\n\nYou love lighthouses.\n"


@pytest.fixture
def machines(tmp_path: Path, postgres_url: str) -> tuple[Machine, Machine]:
    """Return two machines whose homes share a store."""
    made = Machine(tmp_path / "one"), Machine(tmp_path / "two")
    for machine in made:
        (machine.home / "soul").mkdir(parents=True, mode=0o700)
        machine.home.chmod(0o700)
        shared = f'[store]\nurl = "{postgres_url}"\n'  # a renewal is too late to bring what the next turn must have
        (machine.home / "config.toml").write_text(shared)
    return made


def newest(machine: Machine) -> str:
    """Return the newest turn."""
    return str(machine.run("why", "--json").json["turn"])


def thought_with(machine: Machine, turn: str, text: str) -> bool:
    """Return whether a turn's prompt was built with this text as its personality."""
    file = machine.root / "soul.md"
    file.write_text(text)
    return bool(machine.ok("replay", turn, "--soul", str(file), "--json").json["identical"])


@pytest.mark.slow
def test_scale_a_pushed_soul_is_in_force_everywhere(machines: tuple[Machine, Machine]) -> None:
    """A living process on another machine thinks with it from its next turn on; turns of before keep theirs."""
    one, two = machines
    (one.home / "soul" / "soul.md").write_text(MINE)
    (two.home / "soul" / "soul.md").write_text(THEIRS)
    with one.daemon():
        one.ok("chat", "--once", "Good morning.")
        before = newest(one)
        told = two.ok("soul", "push", "--json").json
        one.ok("chat", "--once", "Good evening.")
        after = newest(one)
        status = one.run("status", "--json").json
        shown = one.ok("status").stdout
        doctor = one.run("doctor", "--json").json
        workers = one.run("workers", "--json").json
        said = one.ok("soul", "show", "soul.md").stdout

    assert thought_with(one, before, MINE)
    assert thought_with(one, after, THEIRS)
    assert not thought_with(one, after, MINE)
    assert told["changed"] == ["soul.md"]
    assert status["soul"]["overrules"] is True
    assert "claudius soul push" in shown
    assert any(one["name"] == "soul" and not one["ok"] and "soul push" in one["fix"] for one in doctor["checks"])
    assert workers[0]["soul"]
    assert "lighthouses" in said
    assert "claudius soul push" in (one.home / "logs" / "claudius.log").read_text()
    acts = [(act["act"], act["target"]) for act in one.run("audit", "--json").json]
    assert acts.count(("soul", "soul.md")) == 1


@pytest.mark.slow
def test_scale_who_pushes_own_files_has_them_in_force(machines: tuple[Machine, Machine]) -> None:
    """The last push counts; a home without files of its own has nothing to be overruled; an empty push is the release's."""
    one, two = machines
    (one.home / "soul" / "soul.md").write_text(MINE)
    one.ok("soul", "push")
    quiet = two.run("status", "--json").json["soul"]["overrules"]
    two.ok("chat", "--once", "Good morning.")
    first = newest(two)
    two.ok("soul", "push")
    two.ok("chat", "--once", "Good evening.")

    assert quiet is False
    assert thought_with(two, first, MINE)
    assert not thought_with(two, newest(two), MINE)
    assert one.run("status", "--json").json["soul"]["overrules"] is True


def test_scale_what_cannot_be_used_is_not_pushed(machines: tuple[Machine, Machine]) -> None:
    """A broken file is refused with its name; what was in force before stays."""
    one, _ = machines
    (one.home / "soul" / "steps").mkdir()
    (one.home / "soul" / "steps" / "internal_monologue.md").write_bytes(b"\xff\xfe")

    ran = one.run("soul", "push")

    assert ran.code == 1
    assert "internal_monologue.md" in ran.stderr
    assert one.run("status", "--json").json["soul"] is None


def test_on_a_file_there_is_nobody_to_push_to(tmp_path: Path) -> None:
    """With SQLite the home's files are the soul: one line says so."""
    ran = Machine(tmp_path).run("soul", "push")

    assert ran.code == 2
    assert "its files are the soul" in ran.stderr


@pytest.mark.slow
def test_scale_a_pushed_soul_comes_along_to_a_file(machines: tuple[Machine, Machine], postgres_url: str) -> None:
    """What was pushed elsewhere is the home's own after `migrate sqlite`, and one push away after the move back."""
    one, two = machines
    (one.home / "soul" / "soul.md").write_text(MINE)
    (one.home / "soul" / "dossiers").mkdir(mode=0o700)
    (one.home / "soul" / "dossiers" / "trees.md").write_text("# Trees\n\nOaks grow slowly.\n")
    (two.home / "soul" / "soul.md").write_text(THEIRS)
    two.ok("soul", "push")
    one.ok("chat", "--once", "Good morning.")
    shown = one.ok("soul", "show", "--json").json

    tried = one.ok("migrate", "sqlite", "--dry-run", "--json").json
    still = (one.home / "soul" / "soul.md").read_text()
    moved = one.ok("migrate", "sqlite", "--json").json
    one.ok("chat", "--once", "Good evening.")
    here = newest(one)
    kept = one.ok("soul", "show", "--json").json
    earlier = [path.read_text() for path in (one.home / "state" / "soul" / "history" / "soul.md").iterdir()]
    one.ok("migrate", postgres_url)
    again = one.ok("soul", "push", "--json").json

    assert (tried["soul"], still) == ([], MINE)
    assert moved["soul"] == ["dossiers/trees.md", "soul.md"]
    assert {name: file["sha256"] for name, file in kept.items()} == {
        name: file["sha256"] for name, file in shown.items()
    }
    assert thought_with(one, here, THEIRS)
    assert earlier == [MINE]
    assert again["files"] == ["soul.md"]
