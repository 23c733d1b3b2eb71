"""What setup.sh writes into a new home, and the Claude Code skills that it finds."""

import json
import re
import stat
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from claudius.cli.seed import SKILLS_SHOWN, Skill, config_text, env_text, seed, skills, skills_text
from claudius.config.load import SECRETS, load, shown
from claudius.config.schema import SETTINGS
from claudius.home import Home, shipped
from claudius.soul import check


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home that does not exist yet, and a Claude without skills."""
    monkeypatch.setenv("CLAUDIUS_HOME", str(tmp_path / "fresh"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Home(tmp_path / "fresh")


def run() -> str:
    """Seed the home. Returns the output."""
    result = CliRunner().invoke(seed, [], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def skill(directory: Path, front_matter: str) -> None:
    """Write one skill."""
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\n{front_matter}\n---\n# Body\nname: not this\n", "utf-8")


class TestTheHome:
    """A new home that is ready to be edited."""

    def test_a_new_home_is_whole_and_private(self, fresh: Home) -> None:
        """The personality, the settings and the file for secrets exist, and no one else can read them."""
        run()

        assert (fresh.soul / "soul.md").read_bytes() == (shipped("soul") / "soul.md").read_bytes()
        for file in (fresh.soul / "soul.md", fresh.config, fresh.env_file):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(fresh.root.stat().st_mode) == 0o700

    def test_a_new_home_can_be_used_as_it_is(self, fresh: Home) -> None:
        """Nothing that is seeded is a problem in the configuration or the soul, and nothing changes a default."""
        run()

        loaded = load(fresh, {})

        assert set(loaded.sources.values()) == {"default"}
        assert loaded.secrets == {}
        assert check(fresh.soul, shipped("soul")) == []

    def test_existing_files_stay(self, fresh: Home) -> None:
        """A second run changes no file of the owner's."""
        run()
        for file in (fresh.soul / "soul.md", fresh.config, fresh.env_file):
            file.write_text("# mine\n", "utf-8")

        said = run()

        assert said.count("kept") == 4
        for file in (fresh.soul / "soul.md", fresh.config, fresh.env_file):
            assert file.read_text("utf-8") == "# mine\n"

    def test_open_secrets_are_closed(self, fresh: Home) -> None:
        """A .env that others could read is made private, and this is reported."""
        run()
        fresh.env_file.chmod(0o644)

        assert "made private" in run()
        assert stat.S_IMODE(fresh.env_file.stat().st_mode) == 0o600


class TestTheTexts:
    """Settings and secrets are comments that a person can follow."""

    def test_every_setting_stands_there_with_its_default(self, fresh: Home) -> None:
        """With every # removed the file is the default configuration, key by key."""
        fresh.create()
        fresh.config.write_text(re.sub(r"(?m)^#(?=[a-z])", "", config_text()), "utf-8")

        loaded = load(fresh, {})

        unset = {key for key, setting in SETTINGS.items() if setting.default is None}
        assert {key for key, source in loaded.sources.items() if source != "config.toml"} == unset
        for key, setting in SETTINGS.items():
            default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
            assert shown(loaded, key) == default

    def test_the_shipped_settings_file_sets_nothing(self) -> None:
        """Only table headings are not comments, including those of nested tables."""
        uncommented = [line for line in config_text().splitlines() if line and not line.startswith("#")]

        assert all(line.startswith("[") and line.endswith("]") for line in uncommented)
        assert "[cortex.consult]" in uncommented
        assert tomllib.loads(config_text())

    def test_every_secret_is_named_and_none_is_set(self) -> None:
        """Each name has a commented line."""
        for name in SECRETS:
            assert f"\n#{name}=\n" in env_text()


class TestSkills:
    """The skills manifest."""

    def test_own_skills_and_installed_plugins_are_found(self, tmp_path: Path) -> None:
        """Name and description come from the front matter. A plugin counts if it is installed and not switched off."""
        skill(tmp_path / "skills/loom", "name: loom\ndescription: Weaves bytes.")
        skill(tmp_path / "cache/dye/skills/dye", 'name: "dye"\ndescription: >-\n  Colours\n  what is woven.')
        skill(tmp_path / "cache/off/skills/off", "name: off\ndescription: Switched off.")
        skill(tmp_path / "plugins/marketplaces/m/skills/other", "name: other\ndescription: Not installed.")
        installed = {
            "dye@m": [{"installPath": str(tmp_path / "cache/dye")}],
            "off@m": [{"installPath": str(tmp_path / "cache/off")}],
            "odd@m": "what is this",
        }
        (tmp_path / "plugins/installed_plugins.json").write_text(json.dumps({"version": 2, "plugins": installed}))
        (tmp_path / "settings.json").write_text(json.dumps({"enabledPlugins": {"dye@m": True, "off@m": False}}))

        assert skills(tmp_path) == [Skill("dye", "Colours what is woven."), Skill("loom", "Weaves bytes.")]

    def test_an_own_skill_wins_over_a_plugins(self, tmp_path: Path) -> None:
        """Each name has one line."""
        skill(tmp_path / "skills/loom", "name: Loom\ndescription: Mine.")
        skill(tmp_path / "cache/skills/loom", "name: loom\ndescription: Theirs.")
        (tmp_path / "plugins").mkdir()
        (tmp_path / "plugins/installed_plugins.json").write_text(
            json.dumps({"plugins": {"p@m": {"installPath": str(tmp_path / "cache")}}})
        )

        assert skills(tmp_path) == [Skill("Loom", "Mine.")]

    @pytest.mark.parametrize("broken", ["", "no front matter", "---\n", "---\nnot: closed\nname: x"])
    def test_broken_skill_files_are_tolerated(self, tmp_path: Path, broken: str) -> None:
        """A skill without readable front matter is left out or named after its directory, and nothing is raised."""
        (tmp_path / "skills/loom").mkdir(parents=True)
        (tmp_path / "skills/loom/SKILL.md").write_text(broken, "utf-8")
        (tmp_path / "plugins").mkdir()
        (tmp_path / "plugins/installed_plugins.json").write_text("{not json", "utf-8")

        assert len(skills(tmp_path)) <= 1

    def test_a_skills_words_are_one_harmless_line(self, tmp_path: Path) -> None:
        """A description cannot bring tags, line breaks or length into the system prompt."""
        skill(tmp_path / "skills/loom", "name: loom\ndescription: a <b>\u202e `x`\n  " + "long " * 100)

        [found] = skills(tmp_path)

        assert found.what.startswith("a b x long")
        assert len(found.what) <= 120

    def test_skills_are_written_into_the_home(self, fresh: Home, tmp_path: Path) -> None:
        """The skills found replace the shipped manifest, and each run updates it."""
        skill(tmp_path / "claude/skills/loom", "name: loom\ndescription: Costs $5.")
        run()
        first = (fresh.soul / "skills.md").read_text("utf-8")
        skill(tmp_path / "claude/skills/dye", "name: dye\ndescription: Colours.")

        run()

        assert first.startswith("## Available Skills\n")
        assert first.endswith("\n- loom: Costs $5.\n")
        assert "- dye: Colours.\n- loom: Costs $5.\n" in (fresh.soul / "skills.md").read_text("utf-8")

    def test_without_skills_the_manifest_says_that_there_are_none(self, fresh: Home) -> None:
        """The home's manifest says so, and is rewritten when skills appear."""
        run()

        assert "None are installed" in (fresh.soul / "skills.md").read_text("utf-8")

    def test_an_owners_own_manifest_stays(self, fresh: Home, tmp_path: Path) -> None:
        """Text that setup did not write is not overwritten."""
        fresh.create()
        (fresh.soul / "skills.md").write_text("I can juggle.", "utf-8")
        skill(tmp_path / "claude/skills/loom", "name: loom\ndescription: Weaves.")

        said = run()

        assert "your own words" in said
        assert (fresh.soul / "skills.md").read_text("utf-8") == "I can juggle."

    def test_a_long_list_is_cut_and_counted(self) -> None:
        """Every line costs tokens in every prompt, so there are at most thirty."""
        text = skills_text([Skill(f"skill-{number}", "Does.") for number in range(40)])

        assert text.count("\n- skill-") == SKILLS_SHOWN
        assert text.endswith("- and 10 more\n")
