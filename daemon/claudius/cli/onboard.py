"""`claudius onboard`: ask for what is needed, test each answer, and save it; a wrong answer is asked for again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote_plus
from zoneinfo import available_timezones

import click

from claudius.cli.output import fitted, json_option, print_checks, print_json
from claudius.config.load import TOKENS, Loaded, load, parse_value, read_env_file
from claudius.config.schema import SETTINGS
from claudius.errors import EXIT_FAILED, ClaudiusError, UsageProblem
from claudius.home import Home
from claudius.reports import mind
from claudius.reports.network_checks import Check, ask_discord, ask_slack, gathered, misplaced, servers
from claudius.reports.opened import edit
from claudius.reports.status import OFFERS, is_on, turned_on

WHERE = {
    "SLACK_BOT_TOKEN": "Slack, your app, Install App: xoxb-…",
    "SLACK_APP_TOKEN": "Slack, your app, Basic Information, App-Level Tokens, with connections:write: xapp-…",
    "DISCORD_TOKEN": "Discord, your application, Bot, Reset Token",
    "ANTHROPIC_API_KEY": "console.anthropic.com, API keys: sk-ant-…",
}
SERVER_KEY, OLLAMA = "CLAUDIUS_OPENAI_API_KEY", "http://127.0.0.1:11434/v1"
SLACK_FORM = "https://api.slack.com/apps?new_app=1&manifest_json="
"""Slack's form for a new app, filled in. Source: docs.slack.dev/app-manifests/configuring-apps-with-app-manifests."""
OWN_LOGIN = (
    "A Claude login is for your own use: its terms do not let you offer it to others. For a soul that a team talks to, "
    "take an API key (anthropic_api)."
)
MINDS = (
    "Who is to think? auto: what is found here; anthropic_api: by a key of Anthropic; claude_cli, agent_sdk: by your "
    "Claude login; openai_compat: Ollama, OpenAI or another such server; home: a model on this machine; rehearsal: "
    "nobody, it speaks in written lines."
)
OWN_PART = re.compile(r"[^\W\d]\w*(?:\.\w+)*[.:][^\W\d]\w*")
"""Where a part of the owner's own is imported from."""
OF_TESTS = ("scripted",)
"""Providers that are not offered; a test names them itself."""
OPTIONAL = ("CLAUDIUS_OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
REFUSED = {"slack bot token": "SLACK_BOT_TOKEN", "slack app token": "SLACK_APP_TOKEN", "discord token": "DISCORD_TOKEN"}
"""The token that is typed again if a check fails; after other faults everything is only tested again."""
AGAIN, KEEP, LEAVE_OUT = "again", "keep", "leave out"


@click.command()
@click.option("--yes", is_flag=True, help="Ask nothing: use the flags, the environment and --env-file.")
@click.option("--adapters", default="", help="Networks to set up, with commas: slack, discord, terminal.")
@click.option("--providers", default="", help="Who speaks, with commas, in order: auto, anthropic_api, agent_sdk …")
@click.option(
    "--env-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of NAME=value lines (mode 0600) to take secrets from; never give one on the command line.",
)
@json_option
def onboard(*, yes: bool, adapters: str, providers: str, env_file: Path | None, as_json: bool) -> int:
    """Set the soul up: who speaks, which networks, their tokens; each is tested before it is saved."""
    from claudius.compose import PROVIDERS

    is_asked = not yes and sys.stdin.isatty()
    if not (is_asked or yes):
        raise UsageProblem("there is no terminal to ask at: use --yes, with secrets in the environment or --env-file")
    home = Home.of(os.environ)
    home.create()
    given = read_env_file(env_file) if env_file else {}
    at_hand = {**read_env_file(home.env_file), **os.environ, **given}
    before = load(home, os.environ).config
    reachable = [name for name, tokens in {"terminal": (), **TOKENS}.items() if all(map(at_hand.get, tokens))]
    usual = reachable if "auto" in before.adapters else before.adapters
    names = NamesQuestion("networks", ("terminal", *TOKENS), ",".join(usual))
    networks = names.ask(adapters) if is_asked else names.read(adapters)
    there_too = tuple(name for name in usual if adapters and name not in (*networks, "terminal"))
    setup = Setup(home, given, networks, is_asked=is_asked)
    voices = NamesQuestion(
        "voices", ("auto", *(name for name in PROVIDERS if name not in OF_TESTS)), ",".join(before.providers)
    )
    checks, heard = [], [name for name in networks if name not in TOKENS]
    for part in (*(name for name in networks if name in TOKENS), ""):
        found = setup.network(part) if part else setup.voice(voices, providers)
        checks += found
        heard += [part] if found and part else []  # nothing is found of what is left out
        setup.settings["adapters"] = (*heard, *there_too)
        if is_asked:
            setup.keep()
    ok = all(check.ok for check in checks)
    setup.finish(is_well=ok)
    say = _owner_line(home, networks) if ok else ""
    follows = "claudius daemon start" if ok else "fix what is named above, then run `claudius onboard` again"
    if as_json:
        found_out = {"ok": ok, "checks": [one._asdict() for one in checks], "home": str(home.root), "next": follows}
        print_json(found_out | {"owner": say or None})
        return 0 if ok else EXIT_FAILED
    if not is_asked:
        print_checks(checks)
    if not (ok and is_asked and _installed(home)):
        click.echo(f"next: {follows}")
    if say:
        click.echo(fitted(f"then: be its owner: within an hour, write to it directly: {say}"))
    return 0 if ok else EXIT_FAILED


class NamesQuestion:
    """A question whose answer is names out of a list."""

    def __init__(self, what: str, known: Sequence[str], default: str) -> None:
        self._what, self._known, self.default = what, known, default

    def read(self, given: str) -> tuple[str, ...]:
        """Return the names in an answer. Raises: UsageProblem for one that is unknown."""
        names = tuple(name.strip() for name in (given or self.default).split(",") if name.strip())
        for name in names:
            if name not in (*self._known, *OF_TESTS) and not OWN_PART.fullmatch(name):
                raise UsageProblem(f"there is no {name!r}: the {self._what} are {', '.join(self._known)}")
        return names

    def ask(self, given: str) -> tuple[str, ...]:
        """Return the names that somebody types; asks until they are known."""
        while True:
            typed = given or _ask(f"Which {self._what}, with commas? ({', '.join(self._known)})", self.default)
            try:
                return self.read(typed)
            except UsageProblem as problem:
                _tell(problem.message)
                given = ""


def _tell(text: str) -> None:
    click.echo(fitted(text), err=True)


def _ask(question: str, default: str = "", *, hides: bool = False) -> str:
    """Ask at the terminal; Enter means the default."""
    shown = fitted(f"{question} [{default}]:\xa0" if default else f"{question}:\xa0").replace("\xa0", " ")
    return str(click.prompt(shown, default, hide_input=hides, show_default=False, prompt_suffix="", err=True)).strip()


def _sure(question: str, *, default: bool = False) -> bool:
    shown = fitted(f"{question} [{'Y/n' if default else 'y/N'}]")
    return click.confirm(shown, default=default, show_default=False, err=True)


def _address(default: str) -> str:
    """Ask for a web address until it is one; a bare host is asked by http."""
    while True:
        typed = _ask("Address of the chat-completions server", default)
        url = typed if "://" in typed else f"http://{typed}"
        scheme, host, _ = mind.server_of(url)
        with suppress(ClaudiusError):
            if scheme in ("http", "https") and host and parse_value("openai.base_url", url):
                return url
        _tell(f"{typed!r} is no web address: write it as {OLLAMA}")


class Setup:
    """What is set up so far: tested secrets and settings; what is good is kept at once if somebody answers."""

    def __init__(self, home: Home, given: Mapping[str, str], networks: Sequence[str], *, is_asked: bool) -> None:
        self._home, self._given, self._is_asked = home, given, is_asked
        self._networks = networks
        self._secrets = {name: value for name, value in given.items() if name in OPTIONAL}
        self.settings: dict[str, Sequence[str] | bool] = {"adapters": networks}
        if owners := load(home, os.environ).config.owners:
            self.settings["owners"] = owners

    def network(self, name: str) -> list[Check]:
        """Set a network up; ask again until it works, or somebody decides otherwise. Returns the last checks."""
        if self._is_asked and not all(map(self._known, TOKENS[name])):
            _tell(f"{_guide(name)}\nNot at hand? Ctrl-C leaves; what worked is kept, and `claudius onboard` goes on.")
            if name == "slack" and (sys.platform == "darwin" or os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}):
                webbrowser.open(slack_form())
        while True:
            for token in TOKENS[name]:
                self._ask_for(token)
            if name == "discord":
                self._invite()
                self.settings |= _server(self._loaded(), is_asked=self._is_asked)
            checks = asyncio.run(gathered({"slack": ask_slack, "discord": ask_discord}[name](self._loaded())))
            chosen = self._choice(checks, (AGAIN, KEEP, LEAVE_OUT))
            if chosen != AGAIN:
                break
            self._secrets |= {REFUSED[check.name]: "" for check in checks if check.name in REFUSED and not check.ok}
        if chosen == LEAVE_OUT:
            for token in TOKENS[name]:
                self._secrets.pop(token, None)
            return []
        return checks

    def voice(self, names: NamesQuestion, given: str) -> list[Check]:
        """Choose who speaks, and test it; ask again until it answers, or somebody decides otherwise."""
        if self._is_asked:
            _offer_model(self._home)
            _tell(MINDS)
        while True:
            voices = names.ask(given) if self._is_asked else names.read(given)
            self.settings["providers"], names.default = voices, ",".join(voices)
            self.settings = {k: v for k, v in self.settings.items() if "openai_compat" in voices or k[:7] != "openai."}
            if "anthropic_api" in voices:
                self._ask_for("ANTHROPIC_API_KEY")
            if "openai_compat" in voices and self._is_asked:
                self._ask_server()
            checks = [asyncio.run(_one_word(self._loaded(), self._home))]
            if {"agent_sdk", "claude_cli"} & set(voices) and set(self._networks) - {"terminal"}:
                checks.append(Check("terms", ok=True, detail=OWN_LOGIN))
            if self._choice(checks, (AGAIN, KEEP)) != AGAIN:
                return checks
            self._secrets["ANTHROPIC_API_KEY"] = given = ""
            names.default = "rehearsal" if voices == (mind.AUTO,) else names.default

    def finish(self, *, is_well: bool) -> None:
        """Offer what is off by default if somebody answers, and keep everything; nothing that is unwell unasked."""
        if self._is_asked:
            self.settings |= _owner(self._home, self._loaded()) | _wished(self._loaded())
        if is_well or self._is_asked:
            self.keep()

    def keep(self) -> None:
        """Write secrets to .env, mode 0600, and settings to config.toml; other lines are unchanged."""
        if secrets := {name: value for name, value in self._secrets.items() if value}:
            mind.write_secrets(self._home, secrets)
        for key, chosen in self.settings.items():
            mind.write_setting(self._home, key, chosen if isinstance(chosen, bool | str) else list(chosen))

    def _loaded(self) -> Loaded:
        words = {key: value for key, value in self.settings.items() if not isinstance(value, bool)}
        chosen = {SETTINGS[key].env: one if isinstance(one, str) else ",".join(one) for key, one in words.items()}
        return load(self._home, {**os.environ, **self._secrets, **chosen})

    def _ask_server(self) -> None:
        """Ask where a chat-completions server is, its key and its model."""
        known = self._loaded().config.openai
        url = _address(known.base_url or OLLAMA)
        is_another = bool(known.base_url) and mind.server_of(url) != mind.server_of(known.base_url)
        self.settings["openai.base_url"] = url
        has_key = bool(self._known(SERVER_KEY))
        if is_another and has_key:
            _tell("The key that is known is another server's: this one does not get it.")
        if key := _ask(f"Its key (Enter: {'as before' if has_key and not is_another else 'none'})", hides=True):
            self._secrets[SERVER_KEY] = key
        elif is_another and has_key:
            self._secrets[SERVER_KEY] = ""
            mind.write_secrets(self._home, {SERVER_KEY: ""})
            if os.environ.get(SERVER_KEY):
                _tell(f"{SERVER_KEY} stands in the environment, and would go there: take it out of it.")
        self.settings["openai.model"] = _ask("Which of its models (Enter: its first)", known.model)

    def _known(self, name: str) -> str:
        """Return a secret as typed, or from --env-file, the environment or the home's .env; empty if there is none."""
        if name in self._secrets:
            return self._secrets[name]
        return self._given.get(name) or os.environ.get(name) or read_env_file(self._home.env_file).get(name, "")

    def _ask_for(self, name: str) -> None:
        """Take a secret from where it is known, or ask until what is typed can be one. Raises: UsageProblem."""
        value = self._known(name).strip()
        while self._is_asked and (not value or misplaced(name, value)):
            if value:
                _tell(f"That is no {name}: {misplaced(name, value)}.")
            value = _ask(f"{name} ({WHERE[name]})", hides=True)
        if not value:
            where = WHERE[name]
            raise UsageProblem(f"{name} is missing ({where}): set it in the environment, or in a file for --env-file")
        self._secrets[name] = value

    def _invite(self) -> None:
        """Show how the bot comes into a server, if it is in none, and wait until somebody says that it is."""
        if not self._is_asked or asyncio.run(servers(self._loaded())):
            return
        from claudius.cli.networks import application_in, invite_url

        if application := application_in(self._secrets["DISCORD_TOKEN"]):
            _tell(f"The bot is in no server yet. Open this, and choose one:\n{invite_url(application)}")
            _ask("Enter, once it is there")

    def _choice(self, checks: Sequence[Check], choices: Sequence[str]) -> str:
        """Show checks, and ask what follows if one failed."""
        if not self._is_asked:
            return KEEP
        print_checks(checks)
        if all(check.ok for check in checks):
            return KEEP
        asked = click.prompt("What now?", type=click.Choice(choices), default=AGAIN, err=True)
        return str(asked)


def _offer_model(home: Home) -> None:
    """Offer a model that thinks on this machine, where none is attached."""
    from claudius.cli.model import fetch, offered

    one = offered(home)
    if one and _sure(f"No model is attached. To think on this machine: {one.told}. Get it?"):
        try:
            fetch(home, one.name)
        except ClaudiusError as error:
            _tell(error.message)


def slack_form() -> str:
    """Return the address of Slack's form for a new app with the manifest in it. Pure."""
    from claudius.cli.networks import slack_manifest

    asked = {name: part for name, part in slack_manifest().items() if name != "_metadata"}
    return SLACK_FORM + quote_plus(json.dumps(asked, separators=(",", ":")), safe=":,/@")


def _guide(network: str) -> str:
    """Return how the tokens of a network are got. Pure."""
    if network == "discord":
        return (
            "Discord: open https://discord.com/developers/applications, New Application; there under Bot switch on "
            "MESSAGE CONTENT INTENT, then Reset Token. docs/discord.md has every step."
        )
    return (
        "Slack: open this link; it is Slack's form for a new app, filled in:\n"
        f"{slack_form()}\n"
        "Install App: the bot token. App-Level Tokens, connections:write: the other."
    )


def _server(loaded: Loaded, *, is_asked: bool) -> dict[str, Sequence[str]]:
    """Find the server whose members are heard: the configured one, else the one that the bot is in."""
    if loaded.config.discord.guilds:
        return {"discord.guilds": loaded.config.discord.guilds}
    there = asyncio.run(servers(loaded))
    if len(there) == 1 and (not is_asked or _sure(f"Hear the members of {next(iter(there.values()))}?", default=True)):
        return {"discord.guilds": tuple(there)}
    listed = ", ".join(f"{guild} ({name})" for guild, name in there.items())
    while is_asked and there:
        named = _ask(f"Whose members are heard? Ids, with commas: {listed}")
        chosen = tuple(one.strip() for one in named.split(",") if one.strip())
        if set(chosen) <= there.keys():
            return {"discord.guilds": chosen} if chosen else {}
        _tell(f"The bot is not in {', '.join(set(chosen) - there.keys())}.")
    return {}


def _owner(home: Home, loaded: Loaded) -> dict[str, bool | str]:
    """Ask who the owner is, and where their clock stands, unless they said their name already."""
    from claudius.adapters.terminal import NAME_CHARS, own_person

    person, now = own_person(), datetime.now(UTC)
    if edit(home, lambda store: store.people.known_of(person, now)).name:
        return {}
    if name := _ask("What may it call you? (Enter: nothing)"):
        edit(home, lambda store: store.facts.told(person, name[:NAME_CHARS], "onboard", now, kind="name"))
    while zone := _ask("Your time zone, like Europe/Lisbon (Enter: this machine's)", loaded.config.clock.timezone):
        if zone in available_timezones():
            return {"clock.timezone": zone}
        _tell(f"There is no time zone {zone!r}: continent, slash, city.")
    return {}


def _wished(loaded: Loaded) -> dict[str, bool | str]:
    """Offer, once, what is off by default, each in a sentence with its cost. A no is kept, so nobody is asked again."""
    found: dict[str, bool | str] = {}
    for offer in OFFERS:
        if loaded.sources[offer.sets] == "default" and not is_on(loaded.config, offer.sets):
            found |= turned_on(offer, loaded.config) if _sure(f"{offer.told}. Turn it on?") else {offer.sets: False}
    return found


def _owner_line(home: Home, networks: Sequence[str]) -> str:
    """Return what somebody writes to become the owner; empty if each network has an owner already."""
    from claudius.runtime.access import OwnerCode

    owned = {one.partition(":")[0] for one in load(home, os.environ).config.owners}
    if set(networks) <= {"terminal", *owned}:
        return ""
    return f"!owner {OwnerCode(home).make(datetime.now(UTC))}"


async def _one_word(loaded: Loaded, home: Home) -> Check:
    """Test the voice; one that cannot even be built is a failed check."""
    from claudius.reports.doctor import one_word

    try:
        return await one_word(loaded, home)
    except ClaudiusError as error:
        return Check("model", ok=False, detail=error.message, fix="choose another voice, or install what is missing")


def _installed(home: Home) -> bool:
    """Offer to have the system start the daemon from now on. Returns whether it does."""
    from claudius.cli.daemon import serve
    from claudius.cli.daemon_unit import unit_of

    if not shutil.which("launchctl" if sys.platform == "darwin" else "systemctl"):
        return False
    if not _sure("Have the system start it now, at every login and after a crash?", default=True):
        return False
    try:
        unit = unit_of(home, os.environ)
        serve(home, unit)
    except ClaudiusError as error:
        _tell(f"That did not work: {error.message}")
        return False
    click.echo(fitted(f"{unit.path} is written and {unit.name} is started; `claudius status` shows its state"))
    return True
