"""The documents are true: every command and setting is documented, every reference resolves, every example runs."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import claudius
import commands_page
from claudius.cli import COMMANDS, HELP, MOVED
from claudius.config.load import SECRETS
from claudius.config.retired import RETIRED
from claudius.config.schema import SETTINGS
from driven import Machine, reply
from settings_table import table
from tree import PACKAGE, REPOSITORY, tracked

NAMES = [
    str(path.relative_to(REPOSITORY))
    for path in tracked()
    if path.suffix == ".md"
    and path.parent in (REPOSITORY, REPOSITORY / "docs", REPOSITORY / "docs" / "design", REPOSITORY / "memory")
]
EXAMPLES = [name for name in NAMES if "```console\n" in (REPOSITORY / name).read_text("utf-8")]


def _text(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


def test_every_command_is_documented() -> None:
    """docs/commands.md is what the commands say of themselves."""
    assert commands_page.PAGE.read_text("utf-8") == commands_page.page(), "write it: python tests/commands_page.py"


def test_every_command_helps() -> None:
    """Each command and option has a help text, each number a largest; `claudius --help` lists all without loading any."""
    mute, endless = list[str](), list[str]()
    for typed, command in commands_page.loaded():
        if not (command.help or "").strip():
            mute.append(typed)
        mute += [f"{typed} {p.opts[0]}" for p in command.params if isinstance(p, click.Option) and not p.help]
        numbers = [p for p in command.params if isinstance(p.type, click.types.IntParamType)]
        endless += [f"{typed} {p.name}" for p in numbers if getattr(p.type, "max", None) is None]

    assert not mute, "\n".join(sorted(mute))
    assert not endless, "a store keeps no number that is larger than all"
    assert {typed.split()[1] for typed, _ in commands_page.loaded()} == set(HELP)


def test_everything_that_reads_prints_json() -> None:
    """Every command that reads has a `--json` option."""
    writes = {
        "claudius soul edit", "claudius state set", "claudius config set", "claudius users revert",
        "claudius console", "claudius users link", "claudius backup restore", "claudius daemon run",
        "claudius worker", "claudius workers drain", "claudius daemon install", "claudius daemon uninstall",
        "claudius schedule cancel", "claudius tools remove", "claudius mcp", "claudius pairing approve",
        "claudius pairing revoke", "claudius daimon mute", "claudius tools allow", "claudius tools deny",
        "claudius tools revoke", "claudius ensoul install", "claudius ensoul uninstall", "claudius ensoul on",
        "claudius ensoul off", "claudius ensoul hook", "claudius bridge off", "claudius model get",
        "claudius model use", "claudius model rm",
    }  # fmt: skip
    prints_a_script = {"claudius completion"}

    mute = {
        typed
        for typed, command in commands_page.loaded()
        if not isinstance(command, click.Group) and not any("--json" in param.opts for param in command.params)
    }

    assert mute <= writes | prints_a_script


def test_no_document_names_a_command_that_is_not_there() -> None:
    """Every command that the documents tell people to type exists, with its group."""
    typed = {one for one, _ in commands_page.loaded()}
    groups = {one for one, command in commands_page.loaded() if isinstance(command, click.Group)}
    unknown = []
    for name in NAMES:
        was = MOVED if name == "CHANGELOG.md" else ()  # what a release had at the time
        for group, sub in re.findall(r"(?:`|\$ )claudius ([a-z]+)(?: ([a-z]+)\b)?", _text(name)):
            whole = f"claudius {group}"
            if f"{group} {sub}" in was:
                continue
            if whole not in typed or (whole in groups and sub and f"{whole} {sub}" not in typed):
                unknown.append(f"{name}: {whole} {sub}".rstrip())

    assert not unknown, "\n".join(sorted(unknown))


def test_no_message_sends_a_person_to_a_command_that_is_not_there() -> None:
    """Every command that a text of the product names in backquotes exists."""
    found = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for match in re.finditer(r"`claudius ([a-z]+)", path.read_text("utf-8"))
        if match[1] not in COMMANDS
    ]

    assert not found, "\n".join(sorted(found))


def test_every_setting_is_documented() -> None:
    """docs/configuration.md contains the table of all settings, line by line as the code generates it."""
    text = _text("docs/configuration.md")

    missing = [line for line in table() if line not in text]

    assert missing == [], "print the table with: .venv/bin/python tests/settings_table.py"


def test_no_setting_is_documented_that_is_not_there() -> None:
    """docs/configuration.md has no line about a setting that the code does not define."""
    known = set(table())
    rows = re.findall(r"^\| `[a-z_.]+` \| `.*$", _text("docs/configuration.md"), re.MULTILINE)

    assert [line for line in rows if line not in known] == []


def test_nothing_names_a_setting_that_went() -> None:
    """No document and no text of the product sends a person to a setting of an earlier release."""
    gone = re.compile(rf"\b({'|'.join(map(re.escape, RETIRED))}|kothar\.(host|port|tls))\b")
    texts = [path for path in tracked() if path.suffix in (".py", ".md", ".js", ".toml", ".sql", ".yaml", ".sh")]
    shown = [
        path
        for path in texts
        if not path.is_relative_to(REPOSITORY / "tests") and path.name not in ("CHANGELOG.md", "retired.py")
    ]

    assert [f"{path}: {found[0]}" for path in shown for found in gone.finditer(path.read_text("utf-8"))] == []


def test_a_setting_that_nothing_reads_is_called_so() -> None:
    """A setting without effect is listed in docs/configuration.md under "Not in force yet", and no other setting is."""
    code = "\n".join(
        path.read_text("utf-8") for path in PACKAGE.rglob("*.py") if path != PACKAGE / "config" / "schema.py"
    )
    unread = {key for key in SETTINGS if not re.search(rf"\.{key.rpartition('.')[2]}\b", code)}
    section = _text("docs/configuration.md").partition("## Not in force yet")[2]

    assert {key for key in re.findall(r"`([\w.]+)`", section) if key in SETTINGS} == unread


def test_every_secret_is_documented() -> None:
    """docs/configuration.md names every secret that the program reads."""
    text = _text("docs/configuration.md")

    assert [name for name in SECRETS if f"`{name}`" not in text] == []


LONGEST = {"README.md": 120, "ARCHITECTURE.md": 150, "docs/commands.md": 500}


@pytest.mark.parametrize("name", [one for one in NAMES if one.startswith("docs/") or one in LONGEST])
def test_no_page_is_long(name: str) -> None:
    """README has at most 120 lines, ARCHITECTURE 150, a page that people write 300."""
    assert len(_text(name).splitlines()) <= LONGEST.get(name, 300)


def test_the_changelog_tells_of_this_version() -> None:
    """The newest entry of CHANGELOG.md with a date is this version's, and has at most 40 lines."""
    newest = _text("CHANGELOG.md").split("\n## [Unreleased]")[-1].split("\n## ")[1]

    assert re.match(rf"\[{re.escape(claudius.__version__)}\] - \d{{4}}-\d\d-\d\d\n", newest)
    assert len(newest.strip().splitlines()) <= 40


def test_the_readme_begins_with_the_way_in() -> None:
    """README's first shell block leads from `git clone` to the first reply with `./setup.sh` alone."""
    first = re.search(r"^```(?:sh|bash|shell|console)\n(.*?)^```", _text("README.md"), re.MULTILINE | re.DOTALL)

    assert first
    lines = [line.removeprefix("$ ").strip() for line in first[1].splitlines()]
    assert lines[0].startswith("git clone ")
    assert "./setup.sh" in lines
    assert all(line.startswith(("git clone ", "cd ", "./setup.sh", "claudius chat")) for line in lines)
    assert not re.search(r"\b(pip|uv|venv|export|source)\b", first[1])


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """Each relative link and picture of a document points to a file of the tree, each `#anchor` to a heading of it."""
    here = (REPOSITORY / name).parent
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", _text(name)):
        link = target[0] or target[1]
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        path = (here / file) if file else REPOSITORY / name
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            broken.append(link)

    assert not broken, "\n".join(sorted(broken))


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_architecture_names_what_is_there() -> None:
    """Each file and each `function()` that ARCHITECTURE.md names exists; a table's first column is not checked."""
    code = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    pointed = [
        cell
        for line in _text("ARCHITECTURE.md").splitlines()
        for cell in line.split("|")[2 if line.startswith("|") else 0 :]
    ]
    spans = [span for cell in pointed for span in re.findall(r"`([^`]+)`", cell)]

    paths = [
        span for span in spans if re.fullmatch(r"[\w./*-]+(?:\.(?:py|md|sql|toml|sh)|/)", span) and "N" not in span
    ]
    gone = [
        path
        for path in paths
        if not any(list(root.glob(path.strip("/"))) for root in (REPOSITORY, PACKAGE)[: 1 if path[0] == "/" else 2])
    ]
    undefined = [
        span for span in spans if span.endswith("()") and not re.search(rf"def {re.escape(span[:-2])}\b", code)
    ]

    assert paths
    assert gone == []
    assert undefined == []


def test_the_list_of_attacks_is_the_list_of_tests() -> None:
    """SECURITY.md marks exactly the numbered attacks that the suite makes."""
    tests = "\n".join(path.read_text("utf-8") for path in (REPOSITORY / "tests").rglob("test_*.py"))
    made = {int(number) for number in re.findall(r"def test_s(\d\d)_", tests)}
    named = {
        int(number) for number in re.findall(r"^\| S(\d+) \|.*\| in the suite \|$", _text("SECURITY.md"), re.MULTILINE)
    }

    assert named == made


def test_the_picture_is_true(machine: Machine) -> None:
    """The replies in docs/conversation.svg are those that the rehearsal provider gives in an empty home."""
    picture = html.unescape(_text("docs/conversation.svg"))
    lines = re.findall(r'<text class="(\w+)"[^>]*>(?:you › )?(.*?) *(?:<tspan.*)?</text>', picture)

    heard = ""
    where: tuple[str, ...] = ()
    for who, words in lines:
        match who:
            case "shell":
                where = tuple(words.removeprefix("$ claudius chat").split())
            case "you":
                heard = " ".join(machine.ok("chat", "--once", words, *where).stdout.split())
            case "soul":
                assert words in heard, f"{words!r} is not in: {heard}"


def test_the_picture_of_a_turn_is_true(tmp_path: Path) -> None:
    """The thought, the mood and the explanation in docs/turn.svg are what the commands print for that reply."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    lines = re.findall(r'<text class="(\w+)"[^>]*>(?:you › )?(.*?) *</text>', html.unescape(_text("docs/turn.svg")))
    words = {kind: [text for one, text in lines if one == kind] for kind in ("thought", "soul", "you")}
    (landing,) = [text.partition(": ")[2] for text in words["soul"] if text.startswith("appraisal: ")]
    thought = " ".join(words["thought"]).partition(": ")[2]
    machine.scripted(reply(words["soul"][0], internal_monologue=thought, appraisal=landing))

    shown = ""
    for kind, text in lines:
        match kind:
            case "shell" if text != "$ claudius chat":
                shown = " ".join(machine.ok(*text.split()[2:]).stdout.split())
            case "you":
                shown = machine.ok("chat", "--once", text).stdout
            case "soul" | "thought":
                assert " ".join(text.split()) in shown, f"{text!r} is not in: {shown}"


def test_what_was_learned_in_the_picture_is_never_quoted_as_what_was_said(machine: Machine) -> None:
    """Facts recalled from another conversation are not presented as what the speaker said in this one."""
    for words in ("Hello. My name is Ada.", "I work on a footbridge in Porto."):
        machine.ok("chat", "--once", words)

    asked = machine.ok("chat", "--once", "How do rivers freeze?", "--conversation", "sunday").stdout
    told = machine.ok("chat", "--once", "What did I say?", "--conversation", "sunday").stdout

    assert "“How do rivers freeze?”" in told
    assert "Ada" not in asked + told
    assert "Porto" not in asked + told


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, machine: Machine) -> None:
    """Each `console` block is run, in order, in one empty home without a model; its output must match what is shown.

    `…` in the shown lines stands for anything. A command must succeed unless `|| true` says that it need not.
    """
    try:
        for command, shown in _typed(_text(name)):
            ran = machine.run("-euo", "pipefail", "-c", command, command="bash")

            assert ran.code == 0, f"$ {command}\n{ran.shown}"
            if shown:
                assert re.fullmatch(_pattern(shown), ran.shown.strip(), re.DOTALL), f"$ {command}\n{ran.shown}"
    finally:  # a soul that goes on holds the ports that the page names
        for home in (machine.user / "souls").glob("*"):
            machine.run("--home", str(home), "daemon", "stop")


def _typed(text: str) -> Iterator[tuple[str, str]]:
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown.strip()


def _pattern(shown: str) -> str:
    return ".*?".join(re.escape(piece) for piece in shown.split("…"))


def test_there_are_examples() -> None:
    """The documents contain examples that are run: the parser still finds them."""
    assert {"docs/tour.md", "docs/memory.md"} <= set(EXAMPLES)
