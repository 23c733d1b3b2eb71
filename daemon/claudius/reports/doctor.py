"""The document of `claudius doctor`: problems with the setup, each with its fix."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from claudius.cognition.steps import STEPS
from claudius.cognition.timing import FAILS
from claudius.config.load import TOKENS, Loaded, blot, held, load, perceive_tokens, retired
from claudius.config.schema import Config, daimon_modes
from claudius.errors import BadConfiguration, ClaudiusError, ProviderError, StoreAway, StoreError, UsageProblem
from claudius.failure import failure_of
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home, shipped
from claudius.memory.opening import place_of
from claudius.memory.sqlite.schema import VACUUM_TAKES
from claudius.reports.network_checks import Check, exchanged_tokens, networks, own_servers
from claudius.reports.opened import records
from claudius.reports.session import ask
from claudius.reports.status import model_told, model_words, slot_words, waiting_for_git
from claudius.runtime.health import backup_failure, growth

OF_THE_STORE = ("given_up", "disk", "backup")
"""Problems that are checked in the store itself, whether or not a process runs."""

SERVER = "server"
"""The check that fails where the store's server cannot be asked."""


def checks(home: Home, *, live: bool = False, security: bool = False) -> list[Check]:
    """Return what was checked; `live` asks networks and model too, `security` checks only who may read and do what."""
    rooms: list[Callable[[Home], Iterator[Check]]] = [_modes, _home, _access]
    if not security:
        rooms += [_configuration, _soul, _store, _server, _clock, _daemon, _git, _voice]
        rooms += [networks, _live, _tools_live] if live else [_tools]
    secrets = held(os.environ)
    each = (
        check._replace(detail=blot(check.detail, secrets), fix=blot(check.fix, secrets))
        for room in rooms
        for check in _held(room, home)
    )
    found = list(dict.fromkeys(each))  # one broken setting can fail several checks with the same result
    is_away = any(one.name == SERVER for one in found)
    failing = {one.name for one in found if not one.ok}
    return [
        one
        for one in found
        if not (one.ok and one.name in failing)  # one verdict for one subject
        and not (is_away and one.name == "store")  # what a process there says of it
    ]


def doctor(found: Sequence[Check]) -> dict[str, Any]:
    """Return checks as one document. Pure."""
    return {"ok": all(check.ok for check in found), "checks": [check._asdict() for check in found]}


def _held(room: Callable[[Home], Iterator[Check]], home: Home) -> Iterator[Check]:
    try:
        yield from room(home)
    except BadConfiguration as error:
        yield Check("configuration", ok=False, detail=error.message.removesuffix(f"; {error.fix}"), fix=error.fix)
    except StoreError as error:  # each room says the same
        fix = error.fix if isinstance(error, StoreAway) else ""
        name = SERVER if place_of(home).is_postgres else "database"
        yield Check(name, ok=False, detail=error.message.removesuffix(f"; {fix}"), fix=fix)
    except ClaudiusError as error:
        yield Check(room.__name__.strip("_"), ok=False, detail=error.message)


def _home(home: Home) -> Iterator[Check]:
    if not home.root.is_dir():
        yield Check("home", ok=False, detail=f"{home.root} does not exist", fix="run ./setup.sh, or `claudius chat`")
        return
    home.create()
    free_mb = shutil.disk_usage(home.root).free // 2**20
    reserve = load(home, os.environ).config.storage.reserve_mb
    yield Check("home", ok=True, detail=str(home.root))
    yield Check(
        "disk",
        ok=free_mb >= reserve,
        detail=f"{free_mb} MB free",
        fix=f"free some space: below {reserve} MB nothing is accepted",
    )


def _modes(home: Home) -> Iterator[Check]:
    """Check that every path in the home is private; fix the permissions of any that are not, and report it."""
    if not home.root.is_dir():
        return
    wide = [path for path in _paths(home.root) if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    for path in wide:
        path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE | (path.stat().st_mode & 0o100))
    many = "1 path was" if len(wide) == 1 else f"{len(wide)} paths were"
    detail = f"{many} readable by others, and made private" if wide else "only you can read the home"
    yield Check("modes", ok=True, detail=detail)


def _paths(root: Path) -> Iterator[Path]:
    yield root
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(directory) / name
            if not path.is_symlink():
                yield path


def _access(home: Home) -> Iterator[Check]:
    """Check the lists of who is heard: report one that admits everybody, or nobody."""
    loaded = load(home, os.environ)
    config = loaded.config
    lists = {
        "bots.allow": config.bots.allow,
        "discord.guilds": config.discord.guilds,
        "slack.channels": config.slack.channels,
        "discord.channels": config.discord.channels,
    }
    for key, allowed in lists.items():
        if "*" in allowed:
            what = "hears every channel" if key.endswith("channels") else "lets everybody in"
            yield Check("access", ok=False, detail=f"{key} {what}", fix="name them one by one")
    for owner in config.owners:
        if owner.count(":") != 2 or (owner.startswith("discord:") and not owner.startswith("discord:@me:")):
            fix = "write network:workspace:user, e.g. slack:T1:U1 or discord:@me:1; `claudius users list` shows ids"
            yield Check("access", ok=False, detail=f"owners: {owner!r} is not a person's id", fix=fix)
    yield from _access_rules(config)
    if loaded.secret("DISCORD_TOKEN") and not loaded.config.discord.guilds:
        fix = "set it to the id of your server; docs/discord.md says where to find it"
        yield Check("access", ok=False, detail="discord.guilds is empty: nobody is heard on Discord", fix=fix)


def _access_rules(config: Config) -> Iterator[Check]:
    """Report a list of `access` that lets nobody in, or leaves an owner out."""
    from claudius.runtime.access import is_let_in

    access = config.access
    lists = {
        "slack_people": access.slack_people,
        "slack_channels": access.slack_channels,
        "discord_roles": access.discord_roles,
    }
    for key, allowed in lists.items():
        if allowed == ():
            fix = "name ids, or delete the line"
            yield Check("access", ok=False, detail=f"access.{key} is empty: nobody is heard by it", fix=fix)
    for owner in config.owners:
        ids = (owner, owner.rpartition(":")[2])
        if owner.startswith("slack:") and not is_let_in(ids, access.slack_people, access.slack_people_denied):
            detail = f"access.slack_people or its denials leave out the owner {owner}"
            yield Check("access", ok=False, detail=detail, fix="the rules hold for owners, too: add the id")


def _configuration(home: Home) -> Iterator[Check]:
    from claudius.compose import check_names

    loaded = load(home, os.environ)
    check_names(loaded, home)
    for network, tokens in TOKENS.items():
        is_wanted = not {"auto", network}.isdisjoint(loaded.config.adapters)
        missing = [name for name in tokens if not loaded.secret(name)]
        if is_wanted and missing and len(missing) < len(tokens):  # with one of its tokens it hears nothing
            detail = f"{missing[0]} is not set, so nothing is heard there"
            fix = f"put it into .env; docs/{network}.md says where to find it"
            yield Check(network, ok=False, detail=detail, fix=fix)
    for name in [name for name, token in perceive_tokens(loaded).items() if not token]:
        fix = f"put CLAUDIUS_PERCEIVE_TOKEN_{name.upper()}=… into .env"
        if not name.replace("_", "").isalnum():  # .env would not be read with such a line in it
            fix = "call it [perceive.NAME] with a NAME of letters, digits and _, then set its token in .env"
        yield Check(f"perceive.{name}", ok=False, detail="it has no token, so it can wake nothing", fix=fix)
    yield from exchanged_tokens(loaded)
    yield from own_servers(loaded)
    yield from (Check("retired", ok=True, detail=line) for line in retired(home, os.environ))
    changed = sum(source != "default" for source in loaded.sources.values())
    yield Check("configuration", ok=True, detail=f"{changed or 'no'} setting{'' if changed == 1 else 's'} of your own")


def _clock(home: Home) -> Iterator[Check]:
    """Check the scheduler: report jobs that keep failing and daimons that are paused."""
    config = load(home, os.environ).config
    with records(home) as kept:
        failing = [row for row in kept.jobs() if row["failures"] >= FAILS]
        resting = [row for row in kept.daimons() if row["rests_until"] and row["daimon"] in daimon_modes(config)]
    for row in failing:
        detail = f"{row['job']}: {row['outcome']}, {row['failures']} times in a row"
        yield Check("clock", ok=False, detail=detail, fix="`claudius daemon logs` says why")
    for row in resting:
        why = row["reason"].rpartition(" [")[0]
        fix = "correct its token in .env, or its host and port"
        yield Check("daimons", ok=False, detail=f"{row['daimon']} is paused: {why}", fix=fix)
    if not failing:
        yield Check("clock", ok=True, detail="no job keeps failing")


def _soul(home: Home) -> Iterator[Check]:
    from claudius.reports.soul import problems_of
    from claudius.soul import SoulSource, shadowed

    problems = problems_of(home)
    for problem in problems:
        yield Check(
            "soul",
            ok=False,
            detail=f"{problem.file}{f':{problem.line}' if problem.line else ''}: {problem.detail}",
            fix=problem.fix,
        )
    if not problems:
        files = SoulSource(home.soul, shipped("soul"), steps=STEPS).current().files
        yield Check("soul", ok=True, detail=f"{len(files)} files")
    for own, other in shadowed(home.soul, shipped("soul")):
        yield Check("soul", ok=True, detail=f"{own} is read instead of {other}: edits of that one change nothing")


def _store(home: Home) -> Iterator[Check]:
    with records(home) as kept:
        problems = kept.integrity()
        yield Check(
            "database",
            ok=not problems,
            detail="; ".join(problems) or "sound",
            fix="restore the newest backup: claudius backup restore PATH --yes",
        )
        for table, key in kept.invalid():
            fix = "restore a backup, or repair the row while nothing is running; until then its turns get an apology"
            yield Check("row", ok=False, detail=f"{table} {key} cannot be read", fix=fix)
        for row in kept.dead():
            detail = f"{row['what']} {row['key']}: {row['reason']}"
            yield Check("given up", ok=False, detail=detail, fix="see `claudius why`")
        verdicts = [row["alignment"] for row in kept.reflections(2)]
        if verdicts == ["drift", "drift"]:
            yield Check(
                "soul alignment",
                ok=False,
                detail="the cortex found twice in a row that the soul drifts from its own text",
                fix="read `claudius cortex history`, then soul.md; nothing edits the soul but you",
            )
        yield _size(home, kept.size())
        backup = backup_failure(kept, home)
        fix = "free some space or correct the path, then run `claudius backup create`"
        yield Check(
            "backup", ok=not backup, detail=f"the last backup failed: {backup}" if backup else "none failed", fix=fix
        )
        lag = kept.archive_lag()
    yield Check("archive", ok=True, detail=waiting_for_git(lag) if lag else "git holds every version")


def _server(home: Home) -> Iterator[Check]:
    """Check a database server that several processes share, and those processes."""
    if place_of(home).is_postgres:
        from claudius.reports.server_checks import server

        yield from server(home)


def _size(home: Home, size: Mapping[str, Any]) -> Check:
    """Report how much a turn adds to the disk, and how long the disk will last."""
    turns, is_old = size["turns"], not size["gives_back"]
    if not turns:
        return Check("size", ok=True, detail="nothing is kept yet")
    a_turn, left = growth(size, shutil.disk_usage(home.root).free if size["days"] else 0)  # a server has its own disk
    detail = f"{(a_turn or 0.0) / 1000:.1f} kB a turn ({size['bytes'] / 1e6:.1f} MB, {turns} turns)"
    if left is not None:
        lasts = f"{left} days" if left < 1000 else f"{left // 365} years"
        detail += f"; at {turns / size['days']:.0f} turns a day the disk is full in {lasts}"
        if left < load(home, os.environ).config.alerts.disk_days:
            fix = "free some space, or lower memory.records_days"
            return Check("size", ok=False, detail=detail, fix=fix)
    if is_old:
        detail += "; its free pages cannot be returned to the disk yet"
        fix = f"free {VACUUM_TAKES * size['bytes'] / 1e6:.0f} MB, then restart the daemon: it rewrites the file once"
        return Check("size", ok=False, detail=detail, fix=fix)
    return Check("size", ok=True, detail=detail)


def _daemon(home: Home) -> Iterator[Check]:
    """Check whether a running process hears what it should, and has disk space for it."""
    live = asyncio.run(ask(home, "status"))
    if live is None:
        return
    yield Check(
        "crashes",
        ok=not live["brake"],
        detail=(live["brake"] or {}).get("message", "it does not crash again and again"),
        fix=_SEE,
    )
    for adapter in live.get("adapters") or ():
        if adapter["hears"]:
            yield Check(adapter["name"], ok=True, detail="connected")
    for problem in live.get("health", {}).get("problems", ()):
        if problem["kind"] not in OF_THE_STORE:
            yield Check(problem["subject"] or problem["kind"], ok=False, detail=problem["detail"], fix=problem["fix"])
    if live.get("health", {}).get("ok"):
        yield Check("health", ok=True, detail="it hears, thinks and keeps")


_SEE = "`claudius daemon logs` says why"


def _git(_: Home) -> Iterator[Check]:
    found = shutil.which("git")
    yield Check(
        "git",
        ok=found is not None,
        detail=found or "not installed",
        fix="install git: until then models have no history",
    )


def _voice(home: Home) -> Iterator[Check]:
    from claudius.providers.chain import NO_MODEL, NO_VOICE, choose

    loaded = load(home, os.environ)
    names = choose(loaded, home)
    is_rehearsal = names[0] == "rehearsal"
    if names[0] == NO_VOICE:
        yield Check("voice", ok=False, detail=NO_MODEL.message, fix=NO_MODEL.fix)
        return
    yield Check(
        "voice",
        ok=True,
        detail=", ".join(names)
        + model_words(told := model_told(home, names[0]))
        + slot_words(told)
        + (": no model is attached; `claudius model list` shows some for this machine" if is_rehearsal else ""),
    )
    if names[0] == "home":
        from claudius.reports.home_model import at_home, speed_words

        here = at_home(home) or {}
        yield Check("home", ok=True, detail=f"{here.get('model')}: {speed_words(here.get('tokens_per_s'))}")


def _tools(home: Home, *, live: bool = False) -> Iterator[Check]:
    if load(home, os.environ).config.tools.servers:
        from claudius.reports import tools

        yield from tools.doctor(home, live=live)


def _tools_live(home: Home) -> Iterator[Check]:
    return _tools(home, live=True)


def _live(home: Home) -> Iterator[Check]:
    from claudius.providers.chain import choose

    loaded = load(home, os.environ)
    found = asyncio.run(one_word(loaded, home))
    yield found
    if found.ok and choose(loaded, home)[0] == "home":
        from claudius.reports.home_model import measured, speed_words

        yield Check("speed", ok=True, detail=speed_words(asyncio.run(measured(home))))


async def one_word(loaded: Loaded, home: Home) -> Check:
    """Ask the configured provider for a one-word reply."""
    from claudius.compose import provider
    from claudius.provider import Done, Request

    voice = provider(loaded, home)
    try:
        request = Request(
            system="Answer with one word.", history=(), tail="Are you there?", max_tokens=16, purpose="doctor"
        )
        async for event in voice.complete(request):
            if isinstance(event, Done):
                how = model_words(model_told(home, event.provider, event.model))
                return Check("model", ok=True, detail=f"{event.provider} {event.model} answered{how}")
    except ClaudiusError as error:
        if isinstance(error, ProviderError):
            error.after_s = None  # a check is not made again by itself
        failure = failure_of(error)
        return Check("model", ok=False, detail=failure.detail, fix=failure.fix)
    finally:
        await voice.aclose()
    raise UsageProblem("the provider ended without a reply")
