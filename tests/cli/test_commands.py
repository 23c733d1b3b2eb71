"""The commands that read and change: the documented shapes, and one line for each error."""

import json
import os
import pwd
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from claudius.adapters.terminal import own_person
from claudius.cli import MOVED, cli
from claudius.cli.conversations import replay
from claudius.cognition.plan import WORDING
from claudius.cognition.prompt import assembly, snapshot
from claudius.config.load import load, retired
from claudius.config.retired import RETIRED
from claudius.config.schema import SETTINGS
from claudius.errors import BadConfiguration
from claudius.home import Home, shipped
from claudius.memory.sqlite import SqliteStore
from driven import Machine, reply

MAIN = "terminal:local:main:main"
ADA = "terminal:local:ada"


def learned(dialogue: str, text: str, note: str) -> str:
    """Write a reply that replaces the Persona section."""
    return f"""<internal_monologue verb="noticed">hm</internal_monologue>
<external_dialogue verb="noted">{dialogue}</external_dialogue>
<user_model_check>true</user_model_check>
<user_model_update section="Persona">{text}</user_model_update>
<model_change_note>{note}</model_change_note>"""


@pytest.mark.parametrize("old", MOVED)
def test_a_command_that_moved_answers_with_the_new_one(old: str) -> None:
    """What was folded into another command, or left the package, is answered with its new spelling, exit 2."""
    ran = CliRunner().invoke(cli, [*old.split(), "more"])
    behind = CliRunner().invoke(cli, ["tools", "add", "--help", "--", "codex", "--sandbox"])  # a server's own option

    assert (ran.exit_code, behind.exit_code) == (2, 0)
    assert MOVED[old] in ran.output


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, list[dict[str, Any]]]:
    """Return a machine on which ada has said three things, and the three turns."""
    machine = Machine(tmp_path_factory.mktemp("talked"), env={"LOGNAME": "ada", "CLAUDIUS_SOUL_STATE_INTERVAL": "2"})
    replies = [
        learned("Bridges, then.", "- Builds bridges.", "Learned her trade."),
        learned("And boats.", "- Builds bridges.\n- Builds boats.", "Boats too.")
        + "<soul_state_check>true</soul_state_check><soul_state_update>currentTopic: boats</soul_state_update>",
        "Plain words.",
    ]
    turns = []
    for text, said in zip(("I build bridges.", "And boats.", "Well?"), replies, strict=True):
        machine.scripted(said)
        turns.append(machine.ok("chat", "--once", text, "--json").json)
    return machine, turns


Talked = tuple[Machine, list[dict[str, Any]]]


def test_conversations_list_and_show(talked: Talked) -> None:
    """`list` gives each conversation with its audience and process; `show` gives one oldest first, with thoughts."""
    machine, _ = talked

    (row,) = machine.ok("conversations", "list", "--json").json
    shown = machine.ok("conversations", "show", MAIN, "--json").json

    assert {key: row[key] for key in ("conversation", "audience", "process")} == {
        "conversation": MAIN,
        "audience": f"private:{ADA}",
        "process": "main_process",
    }
    assert row["entries"] == len(shown["entries"])
    assert set(shown) >= {"previous_process", "invocation_count", "params", "turns"}
    assert [entry["content"] for entry in shown["entries"] if entry["entry_type"] == "userMessage"] == [
        "I build bridges.",
        "And boats.",
        "Well?",
    ]
    assert set(shown["entries"][0]) >= {"turn", "at", "entry_type", "verb", "person", "content"}


def test_users_show_tells_what_a_person_said_in_plain_words(machine: Machine) -> None:
    """A fact that memory keeps for good can be read: in the text, with its kind and audience in JSON."""
    machine.ok("chat", "--once", "I am allergic to walnuts")

    shown, document = machine.ok("users", "show", ADA).stdout, machine.ok("users", "show", ADA, "--json").json

    assert "- Is allergic to walnuts (f1)" in shown
    (fact,) = document["facts"]
    assert (fact["kind"], fact["text"]) == ("constraint", "Is allergic to walnuts")
    assert fact["audience"] == f"private:{ADA}"


def test_users_list_show_and_log(talked: Talked) -> None:
    """`show` gives a person's model with its file, version and commit; `log` gives its versions, newest first."""
    machine, turns = talked

    (row,) = machine.ok("users", "list", "--json").json
    (model,) = machine.ok("users", "show", ADA, "--json").json["models"]
    log = machine.ok("users", "log", ADA, "--json").json

    assert (row["person"], row["network"], row["versions"]) == (ADA, "terminal", 2)
    assert "Builds boats." in model["markdown"]
    assert model["version"] == 2
    assert Path(model["file"]).read_text() == model["markdown"]
    assert [(one["version"], one["note"], one["turn"]) for one in log] == [
        (2, "Boats too.", turns[1]["turn"]),
        (1, "Learned her trade.", turns[0]["turn"]),
    ]
    assert log[0]["commit"] == model["commit"]
    assert len(log[1]["commit"]) == 40


def test_users_diff_and_blame(talked: Talked) -> None:
    """A diff shows what one version changed; each line is traced to the version, turn and note that added it."""
    machine, turns = talked

    blame = {row["line"]: row for row in machine.ok("users", "log", ADA, "--blame", "--json").json}

    assert blame["- Builds bridges."]["turn"] == turns[0]["turn"]
    assert blame["- Builds boats."]["note"] == "Boats too."
    assert "+- Builds boats." in machine.ok("users", "log", ADA, "1", "2", "--diff").stdout.splitlines()


def test_state_show(talked: Talked) -> None:
    """Each key is shown with its newest value, audience and time."""
    machine, _ = talked

    state = machine.ok("state", "show", "--json").json

    assert state["currentTopic"]["value"] == "boats"
    assert set(state["currentTopic"]) == {"value", "audience", "updated_at"}


def test_why_lays_a_turn_open(talked: Talked) -> None:
    """`why` shows perception, gates, prompt, response, thoughts, changes, utterance and delivery."""
    machine, turns = talked

    why = machine.ok("why", turns[1]["turn"], "--json").json

    assert set(why) >= {
        "turn", "at", "conversation", "person", "perception", "attention", "process", "steps", "prompt", "response",
        "thoughts", "changes", "utterance", "provider", "model", "usage", "delivery",
    }  # fmt: skip
    assert why["perception"]["text"] == "And boats."
    assert why["utterance"] == "And boats."
    assert why["prompt"]["tail"].startswith("## This Turn")
    assert [one["role"] for one in why["prompt"]["history"]] == ["user", "assistant"]
    assert why["changes"]["user_model"]["version"] == 2
    assert why["changes"]["soul_state"] == {"currentTopic": "boats"}
    assert why["delivery"][0]["state"] == "sent"
    assert {thought["step"] for thought in why["thoughts"]} >= {"internal_monologue", "external_dialogue"}


def test_replay_is_identical_and_shows_another_soul(talked: Talked, tmp_path: Path) -> None:
    """A turn's prompt is rebuilt byte for byte. With another soul the difference is shown."""
    machine, turns = talked
    other = tmp_path / "other.md"
    other.write_text("You are Beata.")

    same = [machine.ok("replay", turn["turn"], "--json").json for turn in turns]
    changed = machine.ok("replay", turns[2]["turn"], "--soul", str(other), "--json").json

    assert all(one["identical"] and one["prompt_sha256"] == one["replayed_prompt_sha256"] for one in same)
    assert not changed["identical"]
    assert "+You are Beata." in changed["diff"]


@pytest.mark.parametrize(("form", "identical", "code"), [(WORDING + 1, None, 0), (WORDING, False, 1)])
def test_replay_tells_an_earlier_form_from_a_fault(
    talked: Talked, monkeypatch: pytest.MonkeyPatch, form: int, identical: object, code: int
) -> None:
    """Where the code words a prompt otherwise, a turn of an earlier form is not called broken; one of this form is."""
    machine, turns = talked
    monkeypatch.setenv("CLAUDIUS_HOME", str(machine.home))
    monkeypatch.setattr(assembly, "personality", lambda _: "## Temperament\nYou are someone else.")
    monkeypatch.setattr(snapshot, "RENDERED", form)

    ran = CliRunner().invoke(replay, [turns[0]["turn"], "--json"], standalone_mode=False)

    assert json.loads(ran.output)["identical"] is identical
    assert ran.return_value == code


def test_usage_counts_turns_and_tokens(talked: Talked) -> None:
    """There are rows by day, model, person, conversation and job, a total, and the day's budget."""
    machine, _ = talked

    for by in ("day", "model", "person", "conversation", "job"):
        document = machine.ok("usage", "--by", by, "--json").json
        assert len(document["rows"]) == 1, by
        assert document["total"]["turns"] == 3
        assert set(document["total"]) >= {"input_tokens", "cache_read_tokens", "output_tokens", "cost_usd"}
        assert set(document["budget"]) == {"limit_usd", "spent_usd", "stage"}


def test_status_of_a_sleeping_home(talked: Talked) -> None:
    """Without a process the counts are still shown, and that it is paused; the exit code reports that nothing runs."""
    machine, _ = talked

    ran = machine.run("status", "--json")
    paused = machine.run("status", env={"CLAUDIUS_RUNTIME_PAUSED": "true"})

    assert ran.code == 1
    assert (ran.json["running"], ran.json["pid"]) == (False, None)
    assert (ran.json["turns"]["total"], ran.json["paused"]) == (3, False)
    assert "paused: nobody but the terminal" in paused.stdout
    assert set(ran.json) >= {"version", "home", "uptime_s", "provider", "adapters", "inbox", "outbox"}
    assert set(ran.json["provider"]) >= {"profile", "resting_until", "last_error", "bytes_per_turn", "disk_days_left"}


@pytest.mark.slow
def test_every_reading_command_speaks_to_a_person_too(talked: Talked) -> None:
    """Without --json each prints plain lines, no Python, and exits 0."""
    machine, turns = talked
    turn = turns[0]["turn"]
    for args in (
        ("conversations", "list"),
        ("conversations", "show", MAIN),
        ("users", "list"),
        ("users", "show", ADA),
        ("users", "log", ADA),
        ("users", "log", ADA, "--blame"),
        ("state", "show"),
        ("state", "show", "--all"),
        ("usage",),
        ("why", turn),
        ("replay", turn),
        ("config", "show"),
        ("config", "check"),
        ("soul", "show"),
        ("soul", "check"),
        ("doctor",),
    ):
        ran = machine.ok(*args)
        assert ran.stdout.strip(), args
        assert "Traceback" not in ran.shown


REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("why", "nosuchturn"), 1, "nosuchturn"),
    (("replay", "nosuchturn"), 1, "nosuchturn"),
    (("conversations", "show", "nowhere"), 1, "nowhere"),
    (("users", "show", "nobody"), 1, "nobody"),
    (("users", "show", ""), 1, "nobody is known as ''"),
    (("users", "revert", ADA, "99"), 2, "99"),
    (("users", "link", ADA, "nobody"), 1, "nobody"),
    (("users", "link", "slack:T1:U1", "discord:@me:1"), 1, "nobody is known as 'slack:T1:U1'"),
    (("config", "get", "memory.windwo"), 78, "memory.window"),
    (("config", "set", "memory.window", "many"), 78, "memory.window"),
    (("config", "set", "memory.window", "-5"), 78, "found '-5'"),
    (("config", "set", "ANTHROPIC_API_KEY", "sk-1"), 78, "is a secret"),
    (("config", "set", "providers", "nonsense"), 78, "providers"),
    (("config", "set", "store.url", "mysql://tom:secret-word@host/soul"), 78, "store.url"),
    (("state", "set", "emotionalState", "furious"), 2, "is not a mood"),
    (("soul", "show", "nothing.md"), 2, "nothing.md"),
    *[(("soul", "edit", file), 2, "is not a soul file") for file in ("nope.md", "../soul.md", "/etc/passwd", "steps/../../x.md", "steps/x.txt")],
    (("chat", "--once", "hello", "--as", ""), 2, "--as needs a name"),
    (("chat", "--once", "  "), 2, "claudius: "),
    (("chat", "--json"), 2, "claudius: "),
    (("chat", "--once", "x", "--conversation", "a\nb"), 2, "claudius: "),
    (("chat", "--once", "x", "--as", "y" * 65), 2, "claudius: "),
    (("replay", "nosuchturn", "--soul", "/bin/sh"), 2, "not UTF-8"),
    (("worker",), 78, "store.url"),
    *[((*args, "\udcff"), code, "") for args, code in ((("why",), 2), (("conversations", "show"), 2), (("users", "show"), 2), (("config", "set", "log.level"), 2))],
]  # fmt: skip
"""What is wrong, or not there, or not even text; the exit code, and what the one line says."""


@pytest.mark.parametrize(("args", "code", "says"), REFUSED)
def test_what_cannot_be_done_is_one_line(talked: Talked, args: tuple[str, ...], code: int, says: str) -> None:
    """One line on stderr says what to do, shows no secret, and nothing is written: no setting, no soul file."""
    machine, _ = talked
    before = _own(machine)

    ran = machine.run(*args, env={"EDITOR": "touch"})

    assert (ran.code, len(ran.stderr.strip().splitlines())) == (code, 1), ran.shown
    assert says in ran.stderr
    assert "secret-word" not in ran.shown
    assert _own(machine) == before


def _own(machine: Machine) -> dict[Path, bytes]:
    """Return what the owner may write by hand."""
    own = [machine.home / "config.toml", *(machine.home / "soul").rglob("*")]
    return {path: path.read_bytes() for path in own if path.is_file()}


@pytest.mark.slow
def test_revert_makes_an_earlier_version_the_newest(tmp_path: Path) -> None:
    """After a revert the old text is the new version, and the next prompt shows it."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    for text, note in (("- Builds bridges.", "one"), ("- Builds bridges.\n- Is a liar.", "two")):
        machine.scripted(learned("Yes.", text, note))
        machine.ok("chat", "--once", "go on then")
    machine.ok("users", "revert", ADA, "1")
    machine.scripted(reply("Yes."))
    machine.ok("chat", "--once", "and now?")

    (model,) = machine.ok("users", "show", ADA, "--json").json["models"]
    log = machine.ok("users", "log", ADA, "--json").json
    request = json.loads(machine.requests.read_text().splitlines()[-1])

    assert model["version"] == 3
    assert "liar" not in model["markdown"]
    assert log[0]["author"] == "revert"
    assert '"version":3' in request["tail"]
    assert "liar" not in request["tail"]


def test_state_set_is_in_the_next_prompt(tmp_path: Path) -> None:
    """The owner can set the state by hand, and a mood applies to everyone."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted()
    machine.ok("state", "set", "emotionalState", "sardonic")
    machine.ok("chat", "--once", "hello", "--as", "ben")

    assert '"emotionalState":"sardonic"' in machine.requests.read_text().replace('\\"', '"')


def test_config_set_keeps_comments_and_other_lines(machine: Machine) -> None:
    """Setting one key changes one line of config.toml."""
    machine.home.mkdir(mode=0o700)
    file = machine.home / "config.toml"
    file.write_text("# mine\n[memory]\n# how many\nwindow = 7\nttl_hours = 3\n")
    machine.ok("config", "set", "memory.window", "9")
    machine.ok("config", "set", "budget.daily_usd", "2.5")
    machine.ok("config", "set", "owners", "slack:T1:U1, slack:T1:U2")

    window = machine.ok("config", "get", "memory.window", "--json").json
    assert window == {"key": "memory.window", "value": 9, "source": "config.toml"}
    assert machine.ok("config", "get", "owners", "--json").json["value"] == ["slack:T1:U1", "slack:T1:U2"]
    text = file.read_text()
    assert "# how many\nwindow = 9\nttl_hours = 3" in text
    assert text.startswith(("owners", "# mine"))


@pytest.mark.parametrize("where", ["environment", ".env"])
def test_config_set_says_where_the_environment_wins(tmp_path: Path, where: str) -> None:
    """A variable that overrides config.toml is named, because the new value has no effect while it is set."""
    name = "CLAUDIUS_MEMORY_WINDOW"
    machine = Machine(tmp_path, env={name: "5"} if where == "environment" else {})
    machine.home.mkdir(mode=0o700)
    if where == ".env":
        (machine.home / ".env").write_text(f"{name}=5\n")
        (machine.home / ".env").chmod(0o600)
    won = machine.ok("config", "set", "memory.window", "9").stdout
    other = machine.ok("config", "set", "memory.ttl_hours", "9").stdout

    assert name in won
    assert where in won
    assert "has no effect" in won
    assert len(won.strip().splitlines()) == 1
    assert "has no effect" not in other
    assert machine.ok("config", "get", "memory.window").stdout.strip() == "5"


def test_config_set_names_the_variable_of_another_name(tmp_path: Path) -> None:
    """If a setting has an established environment variable, its name is reported."""
    machine = Machine(tmp_path, env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})
    won = machine.ok("config", "set", "anthropic.base_url", "http://127.0.0.1:2").stdout

    assert "ANTHROPIC_BASE_URL" in won


def test_a_soul_file_of_the_home_is_named_where_it_shadows_a_shipped_one(machine: Machine) -> None:
    """`soul check` and `doctor` name both files, without calling it a problem. Without shadowing nothing is named."""
    plain = machine.ok("soul", "check")
    soul = machine.home / "soul"
    (soul / "dossiers").mkdir(parents=True, mode=0o700)
    (soul / "soul.md").write_text((shipped("soul") / "soul.md").read_text())
    (soul / "dossiers" / "ours.md").write_text("Ours.\n")

    checked, told = machine.ok("soul", "check", "--json").json, machine.ok("soul", "check").stdout
    named = [one for one in machine.run("doctor", "--json").json["checks"] if one["name"] == "soul"]

    mine, theirs = str(soul / "soul.md"), str(shipped("soul") / "soul.md")
    assert "instead of" not in plain.stdout
    assert checked["ok"]
    assert checked["shadows"] == [{"file": mine, "shadowed": theirs}]
    assert [line for line in told.splitlines() if mine in line and theirs in line]
    assert [one["ok"] for one in named if mine in one["detail"] and theirs in one["detail"]] == [True]
    assert "ours.md" not in told


def test_config_show_names_each_source(tmp_path: Path) -> None:
    """The order is environment, .env, config.toml, default. Secrets are shown only as set or unset."""
    machine = Machine(tmp_path, env={"CLAUDIUS_MEMORY_WINDOW": "5"})
    machine.home.mkdir(mode=0o700)
    (machine.home / "config.toml").write_text("[memory]\nwindow = 7\nttl_hours = 3\n[history]\nbudget_tokens = 9\n")
    env_file = machine.home / ".env"
    env_file.write_text("CLAUDIUS_MEMORY_WINDOW=6\nCLAUDIUS_MEMORY_TTL_HOURS=4\nANTHROPIC_API_KEY=sk-ant-123456789\n")
    env_file.chmod(0o600)

    shown = machine.ok("config", "show", "--json").json

    assert shown["memory.window"] == {"value": 5, "source": "environment"}
    assert shown["memory.ttl_hours"] == {"value": 4.0, "source": ".env"}
    assert shown["history.budget_tokens"] == {"value": 9, "source": "config.toml"}
    assert shown["memory.moments"]["source"] == "default"
    assert shown["ANTHROPIC_API_KEY"]["value"] == "set"
    assert "sk-ant" not in json.dumps(shown)


@pytest.mark.parametrize("key", RETIRED)
def test_a_setting_that_went_is_accepted_and_named(home: Home, key: str) -> None:
    """One of an earlier release, in the file or the environment, changes nothing and gets one line with what holds now."""
    table, _, name = key.rpartition(".")
    tables, prefixes = [table], [f"CLAUDIUS_{table.replace('.', '_').upper()}"]
    if table == "kothar":
        tables, prefixes = [table, "daimons.urania"], [*prefixes, "CLAUDIUS_DAIMON_URANIA"]
    env = {f"{prefix}_{name.upper()}": "7" for prefix in prefixes}
    home.create()
    home.config.write_text("".join(f"[{one}]\n{name} = 7\n" for one in tables))

    lines = retired(home, env)

    assert key not in SETTINGS
    assert load(home, env).config == load(home, {}, "[daimons.urania]\n" if table == "kothar" else "").config
    assert len(lines) == 2 * len(tables)
    assert all(f"is no longer a setting ({RETIRED[key]})" in line for line in lines)


def test_settings_that_went_are_named_once_by_check_and_doctor(machine: Machine) -> None:
    """`config check` and `doctor` print the line, and neither fails for it; what bounded a server's command bounds it."""
    machine.ok("chat", "--once", "hello")
    old = '[turn]\nmax_hops = 3\n[tools.servers.a]\nsandbox = ["bwrap", "--ro"]\ncommand = ["srv"]\n'
    (machine.home / "config.toml").write_text(old)

    checked, found = machine.ok("config", "check"), machine.run("doctor")

    assert load(Home(machine.home), {}).config.tools.servers["a"].command == ("bwrap", "--ro", "srv")
    lines = ("turn.max_hops is no longer a setting (now always 10)", "tools.servers.a.sandbox is no longer a setting")
    assert [ran.shown.count(one) for ran in (checked, found) for one in lines] == [1] * 4


@pytest.mark.parametrize(
    ("text", "env", "url"),
    [
        ("", {}, "http://127.0.0.1:3033"),
        ("[kothar]\nport = 4\n", {}, "http://127.0.0.1:4"),
        ('[kothar]\nhost = "::1"\ntls = true\n', {}, "https://[::1]:3033"),
        ('[kothar]\nhost = "a.example"\n', {"CLAUDIUS_KOTHAR_PORT": "5"}, "http://a.example:5"),
        ('[kothar]\nport = 4\nurl = "http://b.example"\n', {}, "http://b.example"),
        ("[kothar]\nport = 4\n", {"CLAUDIUS_KOTHAR_URL": "http://c.example"}, "http://c.example"),
        ('[kothar]\nhost = " [::1] "\n', {"CLAUDIUS_KOTHAR_TLS": " Yes "}, "https://[::1]:3033"),
    ],
)
def test_where_a_daimon_listens_is_read_as_earlier_releases_wrote_it(
    home: Home, text: str, env: dict[str, str], url: str
) -> None:
    """Host, port and tls make the URL that is not given, of Kothar and of any other daimon."""
    home.create()
    home.config.write_text(text + text.replace("kothar", "daimons.urania"))

    config = load(home, env | {name.replace("KOTHAR", "DAIMON_URANIA"): value for name, value in env.items()}).config

    assert config.kothar.url == url
    assert [one.url for one in config.daimons.values()] == [url] * len(config.daimons)


@pytest.mark.parametrize("bad", ['tls = "maybe"', "port = 99999", 'url = "http://me:pw@h"', 'url = "http://h?to=x"'])
def test_a_place_that_cannot_be_one_is_refused(home: Home, bad: str) -> None:
    """A daimon's token is never sent in clear, or elsewhere, because a word was misspelt."""
    home.create()
    home.config.write_text(f"[kothar]\n{bad}\n")
    with pytest.raises(BadConfiguration):
        load(home, {})


def test_a_backup_is_verified_and_can_be_restored(tmp_path: Path) -> None:
    """A copy is verified before it counts as a backup; a restore sets aside what was there, and has a log, too."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted()
    machine.ok("chat", "--once", "before")
    made = machine.ok("backup", "create", "--json").json
    machine.ok("chat", "--once", "after")

    checked = machine.ok("backup", "verify", made["path"], "--json").json
    refused = machine.run("backup", "restore", made["path"])
    machine.ok("backup", "restore", made["path"], "--yes")
    shown = machine.ok("conversations", "show", MAIN, "--json").json

    assert made["verified"]
    assert checked["ok"]
    assert refused.code == 2
    assert [entry["content"] for entry in shown["entries"] if entry["entry_type"] == "userMessage"] == ["before"]
    assert machine.ok("chat", "--once", "and on", "--json").json["reply"]
    assert (machine.home / "state" / "claudius.db").read_bytes()[18:20] == b"\x02\x02"  # in WAL mode


def test_a_backup_whose_bytes_changed_is_not_restored(tmp_path: Path) -> None:
    """SQLite may read changed bytes without complaint, but their sha256 differs. A missing sha256 is reported."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted()
    machine.ok("chat", "--once", "before")
    copy = tmp_path / "copy.db"
    machine.ok("backup", "create", str(copy))
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE entry SET content = 'You owe me money.'")

    checked = machine.run("backup", "verify", str(copy))
    refused = machine.run("backup", "restore", str(copy), "--yes")
    copy.with_name("copy.db.sha256").unlink()
    without = machine.ok("backup", "verify", str(copy))

    assert (checked.code, refused.code) == (1, 1)
    assert "not usable: sha256" in checked.stdout
    assert "not usable" in refused.stderr
    assert "there is no sha256 file beside it" in without.stdout
    assert "there is no sha256 file beside it" in machine.ok("backup", "restore", str(copy), "--yes").stdout


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["zero", "garbage", "truncated", "newer"])
def test_r18_a_damaged_database_is_never_replaced_by_an_empty_one(tmp_path: Path, damage: str) -> None:
    """R18: one line names the newest verified backup and the command that restores it, with exit 78; then it works."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted()
    machine.ok("chat", "--once", "before")
    made = machine.ok("backup", "create", "--json").json
    database = machine.home / "state" / "claudius.db"
    for suffix in ("-wal", "-shm"):
        database.with_name(f"claudius.db{suffix}").unlink(missing_ok=True)
    whole = database.read_bytes()
    match damage:
        case "zero":
            database.write_bytes(b"")
        case "garbage":
            database.write_bytes(b"\xa5" * len(whole))
        case "truncated":
            database.write_bytes(whole[: len(whole) // 2])
        case _:
            database.write_bytes(whole[:60] + (10_000).to_bytes(4, "big") + whole[64:])

    ran = machine.run("chat", "--once", "hello")

    assert ran.code == 78
    assert len(ran.stderr.strip().splitlines()) == 1
    if damage != "newer":
        assert made["path"] in ran.stderr
    machine.ok("backup", "restore", made["path"], "--yes")
    assert machine.ok("chat", "--once", "hello again").stdout


WRONG = {
    "CLAUDIUS_LOG_LEVEL": ("loud", "one of DEBUG, ERROR, INFO, WARNING"),
    "CLAUDIUS_PROVIDERS": ("nonsense", "it is one of anthropic_api"),
    "CLAUDIUS_ADAPTERS": ("irq", "it is one of terminal"),
    "CLAUDIUS_CLOCK_TIMEZONE": ("Mars/Base", "Europe/Rome"),
    "CLAUDIUS_ISM_MAX_LOOPS": ("many", "choices in one turn"),
    "CLAUDIUS_ACCESS_MUTED": ('["slack:T1:U2 until tomorrow"]', "ID until INSTANT"),
}


def test_a_wrong_value_in_the_environment_is_named_with_its_remedy(machine: Machine) -> None:
    """`config check` names the place, the wrong word there, and the remedy."""
    for name, (value, remedy) in WRONG.items():
        checked = machine.run("config", "check", "--json", env={name: value})

        (problem,) = checked.json["problems"]
        assert (checked.code, problem["file"], problem["key"]) == (78, "environment", name)
        assert remedy in problem["fix"]


def test_doctor_names_a_program_without_a_token(machine: Machine) -> None:
    """A table `perceive.NAME` without its token wakes nothing; with it, nothing is said."""
    machine.ok("config", "set", "log.level", "INFO")
    (machine.home / "config.toml").write_text("[perceive.ci]\n[perceive.bell]\n[perceive.cron-job]\n")

    asked = machine.run("doctor", "--json", env={"CLAUDIUS_PERCEIVE_TOKEN_BELL": "b" * 40})

    found = {one["name"]: one["fix"] for one in asked.json["checks"] if "token" in one["detail"]}
    assert found.keys() == {"perceive.ci", "perceive.cron-job"}
    assert "CRON-JOB" not in found["perceive.cron-job"], "a line of .env that cannot be read: no command runs with it"


def test_doctor_tells_once_what_is_wrong_with_the_settings(machine: Machine) -> None:
    """Many checks need the settings, but a misspelt key is one line with its remedy."""
    machine.ok("config", "set", "log.level", "INFO")
    (machine.home / "config.toml").write_text("[pipeline]\nmax_tokenz = 5\n")

    asked = machine.run("doctor", "--json")

    assert asked.code == 1
    assert [(one["name"], one["fix"]) for one in asked.json["checks"] if not one["ok"]] == [
        ("configuration", "did you mean pipeline.max_tokens?")
    ]


@pytest.mark.parametrize(
    ("text", "env", "key"),
    [
        ('[openai]\nbase_url = "ftp://here"', {}, "openai.base_url"),
        ('[discord]\ngateway_url = "http://here"', {}, "discord.gateway_url"),
        ('[clock]\ntimezone = "Mars/Base"', {}, "clock.timezone"),
        ("", {"CLAUDIUS_CLOCK_TIMEZONE": "Mars/Base"}, "CLAUDIUS_CLOCK_TIMEZONE"),
        ("", {"CLAUDIUS_OPENAI_BASE_URL": "http://my server"}, "CLAUDIUS_OPENAI_BASE_URL"),
        ("a = " + "[" * 5000 + "]" * 5000, {}, ""),
        (".".join("a" * 5000) + " = 1", {}, "a.a.a.a.a"),
        (
            "[perceive.ci]\n[perceive.CI]",
            {},
            "perceive.CI",
        ),  # one variable for both tokens: either is taken for the other
        ("[daimons.ci]\n[daimons.CI]", {}, "daimons.CI"),
        ("[cortex]\nbelief_ttl_minutes = inf", {}, "cortex.belief_ttl_minutes"),
        ("[memory]\nrecords_days = 999_999_999", {}, "memory.records_days"),
        ("", {"CLAUDIUS_BUDGET_DAILY_USD": "inf"}, "CLAUDIUS_BUDGET_DAILY_USD"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_setting_that_cannot_be_used_is_one_line(text: str, env: dict[str, str], key: str, home: Home) -> None:
    """For addresses, zones and nested tables: one line with file or variable, key and remedy; it never takes effect."""
    home.create()
    home.config.write_text(text)

    with pytest.raises(BadConfiguration) as refused:
        load(home, env)

    assert refused.value.key == key
    assert refused.value.fix
    assert "regex" not in refused.value.message


def test_json_is_utf_8_wherever_it_is_printed(talked: Talked) -> None:
    """A locale with fewer letters changes no JSON document and loses no plain text."""
    machine, _ = talked
    narrow = {"PYTHONIOENCODING": "latin-1"}

    shown = machine.ok("soul", "show", "soul.md", "--json")

    assert machine.ok("soul", "show", "soul.md", "--json", env=narrow).json == shown.json
    assert machine.ok("soul", "show", "soul.md", env=narrow).stdout.startswith("\\u2500")


@pytest.mark.parametrize(("name", "value"), [("HOME", "~no-such-user/claudius"), ("CLOCK", "9999-12-31T23:59:59Z")])
def test_a_home_or_clock_that_cannot_be_is_one_line(tmp_path: Path, name: str, value: str) -> None:
    """`~nobody` names no directory; after the last instant comes none. The command says so, and what to set."""
    refused = Machine(tmp_path).run("chat", "--once", "hello", env={f"CLAUDIUS_{name}": value})

    assert refused.code == 78
    assert f"CLAUDIUS_{name}" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's arbitrary user is in no list of users, and can still be a person."""
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    assert own_person() == f"terminal:local:uid-{os.geteuid()}"


def test_a_person_without_a_model_has_an_empty_history(talked: Talked) -> None:
    """For a known person without a model, `users log` prints empty lists, not an error."""
    machine, _ = talked
    machine.scripted(reply("Hello."))
    person = machine.ok("chat", "--once", "hi", "--as", "bo", "--conversation", "bo", "--json").json["person"]

    assert machine.ok("users", "log", person, "--json").json == []
    assert machine.ok("users", "log", person, "--blame", "--json").json == []


async def test_why_and_replay_report_an_expired_record(tmp_path: Path) -> None:
    """Past `memory.records_days` the prompt is null and dated, while speaker and words stay.

    `replay` says so in one line.
    """
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted(reply("Bridges, then."))
    turn = machine.ok("chat", "--once", "I build bridges.", "--json").json["turn"]
    store = SqliteStore(Home(machine.home).database)
    await store.open()
    now = datetime.now(UTC) + timedelta(days=400)
    assert await store.turns.expire_records(now - timedelta(days=365), now, 10) == 1
    await store.close(clean=True)

    told = machine.ok("why", turn, "--json").json
    in_words = machine.ok("why", turn).stdout
    replayed = machine.run("replay", turn)

    assert told["prompt"] is None
    assert told["expired_at"].startswith(f"{now:%Y-%m-%d}")
    assert (told["thoughts"], told["attention"], told["response"]) == ([], {}, "")
    assert (told["utterance"], told["perception"]["text"]) == ("Bridges, then.", "I build bridges.")
    assert f"its record was deleted on {now:%Y-%m-%d} (memory.records_days)" in in_words
    assert replayed.code == 1
    assert replayed.stderr.splitlines() == [
        f"claudius: turn {turn}: what its prompt was built from was deleted on {now:%Y-%m-%d} (memory.records_days)"
    ]


def test_doctor_tells_what_a_turn_weighs(talked: Talked) -> None:
    """It reports the bytes a turn takes and, after one day of data, the days until the disk is full."""
    machine, _ = talked

    checks = machine.run("doctor", "--json").json["checks"]

    (size,) = [one for one in checks if one["name"] == "size"]
    assert size["ok"]
    assert re.fullmatch(r"\d+\.\d kB a turn \(\d+\.\d MB, \d+ turns\)", size["detail"])


def test_help_is_a_command_too(machine: Machine) -> None:
    """`claudius help [COMMAND]` prints what `--help` does; of an unknown one it says that there is none."""
    assert machine.ok("help").stdout == machine.ok("--help").stdout
    assert machine.ok("help", "users", "show").stdout == machine.ok("users", "show", "--help").stdout
    assert machine.run("help", "nope").code == 2
