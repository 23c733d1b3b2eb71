"""`claudius seed`: fill a new home with default files, and list this machine's Claude Code skills in skills.md.

The skills are the user's own and those of installed plugins, by name and purpose.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import click
import msgspec
from msgspec import Struct

from claudius.config.load import SECRETS, toml
from claudius.config.schema import SETTINGS, Config
from claudius.config.tables import SettingsTable
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home, shipped, write_private
from claudius.soul import SoulFile, SoulSource

HEAD_CHARS = 16_384
"""How much of a skill's file is read: its front matter is at the top."""
WHAT_CHARS = 120

_UNSAFE = re.compile(r"[<>`\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_KEY = re.compile(r"(name|description):[ \t]*(.*)")


class Skill(Struct, frozen=True):
    """One skill, as described in its front matter."""

    name: str
    what: str


def skills(claude: Path) -> list[Skill]:
    """Find every skill below a Claude configuration directory, by name; the user's own override the plugins'."""
    found: dict[str, Skill] = {}
    for directory in (claude, *_plugins(claude)):
        for file in sorted(directory.glob("skills/*/SKILL.md")):
            if skill := read_skill(file):
                found.setdefault(skill.name.casefold(), skill)
    return [found[name] for name in sorted(found)]


def read_skill(file: Path) -> Skill | None:
    """Read a skill's front matter; None if it has none or cannot be read."""
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as opened:
            lines = opened.read(HEAD_CHARS).splitlines()
    except OSError:
        return None
    if not lines or lines[0].strip() != "---":
        return None
    values = dict(_front_matter(lines[1:]))
    name = _line(values.get("name") or file.parent.name, 60)
    return Skill(name, _line(values.get("description", ""), WHAT_CHARS)) if name else None


def _front_matter(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield `name` and `description`; folded, indented and quoted values become one line."""
    key, parts = "", list[str]()
    for line in lines:
        match = _KEY.match(line)
        is_more = line[:1] in (" ", "\t") or not line.strip()
        if key and not is_more:
            yield key, _unquoted(" ".join(parts))
            key = ""
        if line.strip() == "---":
            return
        if match:
            key, parts = match[1], [re.sub(r"^[>|][+-]?\d?$", "", match[2].strip())]
        elif key:
            parts.append(line.strip())


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _line(text: str, chars: int) -> str:
    line = " ".join(_UNSAFE.sub(" ", text).split())
    return line if len(line) <= chars else line[: chars - 1].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"


def _plugins(claude: Path) -> Iterator[Path]:
    """Yield the directories of the plugins that are installed and not switched off."""
    plugins = _json(claude / "plugins" / "installed_plugins.json").get("plugins")
    enabled = _json(claude / "settings.json").get("enabledPlugins")
    switches = enabled if isinstance(enabled, Mapping) else {}
    for name, places in sorted(plugins.items()) if isinstance(plugins, Mapping) else ():
        for place in places if isinstance(places, list) else [places]:
            path = place.get("installPath") if isinstance(place, Mapping) else None
            if isinstance(path, str) and switches.get(name) is not False:
                yield Path(path)


def _json(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


SKILLS = "skills.md"
SKILLS_SHOWN = 30
"""The most skills listed. Each is a line of every prompt; 30 lines are about 1,000 tokens."""

SECRET_USES: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "the Anthropic API, the quickest voice",
    "CLAUDE_CODE_OAUTH_TOKEN": "Claude Code without a browser, from `claude setup-token`",
    "CLAUDIUS_OPENAI_API_KEY": "any chat-completions server that wants a key",
    "GROQ_API_KEY": "Groq, for whispers",
    "SLACK_BOT_TOKEN": "Slack, xoxb-…",
    "SLACK_APP_TOKEN": "Slack's Socket Mode, xapp-…",
    "DISCORD_TOKEN": "the Discord bot",
    "CLAUDIUS_KOTHAR_AUTH_TOKEN": "what Kothar is shown, and shows us",
    "CLAUDIUS_HTTP_TOKEN": "what others show at http.listen",
}


@click.command(hidden=True)
@click.option("--claude-dir", type=click.Path(path_type=Path), default=None, help="Where Claude Code keeps its skills.")
@click.option("--greet", is_flag=True, help="Only print the soul's greeting, if nobody has ever spoken to it.")
def seed(claude_dir: Path | None, *, greet: bool) -> None:
    """Fill a new home: soul.md, skills.md, config.toml, .env. What is there already stays as it is."""
    home = Home.of(os.environ)
    home.create()
    if greet:
        from claudius.cli.chat import greeted, is_new

        if is_new(home):
            click.echo(greeted(home))
        return
    (home.soul / "dossiers").mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    _put(home.soul / "soul.md", (shipped("soul") / "soul.md").read_text("utf-8"))
    _put(home.config, config_text())
    _put(home.env_file, env_text())
    claude = claude_dir or Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()
    _put_skills(home, skills(claude))


def config_text() -> str:
    """Return config.toml with every setting as a comment: its meaning, environment name and default."""
    lines = [
        "# The settings of this Claudius. Each line shows a default: take the # away to change it, or let",
        "# `claudius config set KEY VALUE` do it. `claudius config check` tells whether it can be used.",
        "# The environment wins over this file; secrets stand in .env, never here.",
    ]
    for item in msgspec.structs.fields(Config):
        if isinstance(item.type, type) and issubclass(item.type, SettingsTable):
            lines += _section_lines(item.name, item.type)
        elif item.name in SETTINGS:
            lines += ["", *_setting_lines(item.name)]
    return "\n".join(lines) + "\n"


def env_text() -> str:
    """Return .env with every secret's name as a comment."""
    lines = [
        "# The secrets of this Claudius: take the # away and put yours in. Only you may read this file (mode 0600).",
        "# The environment wins over it.",
    ]
    for name in SECRETS:
        lines += ["", f"# {SECRET_USES[name]}" if name in SECRET_USES else "#", f"#{name}="]
    return "\n".join(lines) + "\n"


def skills_text(found: list[Skill]) -> str:
    """Return the skills manifest, in the wording of the shipped skills.md."""
    file = _shipped_skills()
    if not found:
        return file.text + "\n"
    words = file.head
    lines = [
        Template(words["skill"]).substitute(name=skill.name, what=skill.what or "…") for skill in found[:SKILLS_SHOWN]
    ]
    if rest := len(found) - len(lines):
        lines.append(Template(words["more"]).substitute(count=rest))
    return "\n".join([words["found"].strip(), *lines]) + "\n"


def _section_lines(name: str, section: type[SettingsTable]) -> Iterator[str]:
    """Yield the lines for a table of config.toml; nested tables come after its own settings."""
    yield ""
    yield f"# {(section.__doc__ or '').splitlines()[0]}"
    yield f"[{name}]"
    inner: list[tuple[str, type[SettingsTable]]] = []
    for key in msgspec.structs.fields(section):
        if isinstance(key.type, type) and issubclass(key.type, SettingsTable):
            inner.append((f"{name}.{key.name}", key.type))
        elif f"{name}.{key.name}" in SETTINGS:  # a table of what the owner named has no lines
            yield from _setting_lines(f"{name}.{key.name}")
    for below, table in inner:
        yield from _section_lines(below, table)


def _setting_lines(key: str) -> Iterator[str]:
    setting = SETTINGS[key]
    yield f"# {setting.description} ({setting.env})"
    name = key.rpartition(".")[2]
    yield f"#{name} = {toml(setting.default)}" if setting.default is not None else f'# {name} = ["…"], if it is set'


def _shipped_skills() -> SoulFile:
    return SoulSource(shipped("soul"), shipped("soul"), ()).current().files[SKILLS]


def _put_skills(home: Home, found: list[Skill]) -> None:
    path, opening = home.soul / SKILLS, _shipped_skills().head["found"].strip().splitlines()[1]
    text = skills_text(found)
    kept = path.read_text("utf-8", "replace") if path.is_file() else None
    is_ours = kept is not None and (opening in kept or kept == skills_text([]))
    if kept is not None and not is_ours:
        click.echo(f"kept   {path} (your own words)")
    elif kept == text:
        click.echo(f"kept   {path} ({len(found)} skills)")
    else:
        write_private(path, text)
        click.echo(f"wrote  {path} ({len(found)} Claude Code skills)")


def _put(path: Path, text: str) -> None:
    if path.exists():
        private = path.stat().st_mode & 0o077
        if private:
            path.chmod(FILE_MODE)
        click.echo(f"kept   {path}{' (made private)' if private else ''}")
        return
    write_private(path, text)
    click.echo(f"wrote  {path}")
