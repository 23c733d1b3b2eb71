"""What runs and waits, what it cost, and who did what: `claudius status`, `workers`, `usage` and `audit` print it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import claudius
from claudius.config.load import load
from claudius.config.schema import Config
from claudius.failure import failure_of
from claudius.home import Home
from claudius.reports.opened import edit, records
from claudius.reports.session import ask
from claudius.runtime.life import holder

if TYPE_CHECKING:
    from claudius.memory.records import Records
    from claudius.memory.store import Store
    from claudius.soul.source import PushedSoul

EVERY = sys.maxsize
"""As a number of acts: all of them."""
GONE_S = 60.0
"""A worker that has not renewed for so long holds nothing any more."""


class Offer(NamedTuple):
    """Something that is off until its owner wants it."""

    name: str
    sets: str
    """The setting that turns it on."""
    told: str
    """What it is, and what it costs a day."""
    rehearsed: str = ""
    """The setting that names who speaks for it: set to the rehearsal voice, unless the owner chose somebody."""


OFFERS = (
    Offer(
        "kothar",
        "kothar.groq_enabled",
        "Kothar, a daimon who whispers a line of counsel when a talk rests; in rehearsal he needs no model, at no cost",
        "kothar.provider",
    ),
    Offer(
        "writing first",
        "psyche.proactive",
        "Writing first, by day, only to people who said yes: at most one message, so one model call, a person a day",
    ),
    Offer(
        "ism",
        "ism.enabled",
        "Choosing its own steps on a hard problem: up to twelve model calls in such a turn instead of one",
    ),
    Offer(
        "consultation",
        "cortex.consult.enabled",
        "Asking its second mind before it answers where money, passwords or deletion are at stake: one more model call",
    ),
)


def is_on(config: Config, sets: str) -> bool:
    """Return whether a setting of an offer is on; Kothar is, too, if he is asked over HTTP. Pure."""
    return bool(attrgetter(sets)(config)) or (sets.startswith("kothar.") and config.kothar.is_on)


def turned_on(offer: Offer, config: Config) -> dict[str, bool | str]:
    """Return the settings that turn an offer on, in order. Pure."""
    is_chosen = not offer.rehearsed or attrgetter(offer.rehearsed)(config) != attrgetter(offer.rehearsed)(Config())
    return ({} if is_chosen else {offer.rehearsed: "rehearsal"}) | {offer.sets: True}


def offered(config: Config) -> list[dict[str, str]]:
    """Return what is off, what it would cost, and the command that turns it on. Pure."""
    return [
        {
            "name": one.name,
            "what": one.told,
            "command": " && ".join(
                f"claudius config set {key} {str(value).lower()}" for key, value in turned_on(one, config).items()
            ),
        }
        for one in OFFERS
        if not is_on(config, one.sets)
    ]


By = Literal["day", "model", "person", "conversation", "job"]


def status(home: Home) -> dict[str, Any]:
    """Return what is running, who speaks, and what waits."""
    live, config = asyncio.run(ask(home, "status")), load(home, os.environ).config
    document: dict[str, Any] = {
        "running": live is not None,
        "pid": found.pid if live and (found := holder(home)) else None,
        "version": claudius.__version__,
        "home": str(home.root),
        "uptime_s": None,
        "provider": None if live and "provider" in live else _voice(home),
        "adapters": [],
        "brake": None,
        "careful": False,
        "disk": {"accepting": live is not None, "problem": None},
        "recall": None,
        "tools": None,
        "offers": offered(config),
    }
    document |= live or {}
    voice = document["provider"]
    document["provider"] = voice | model_told(home, str(voice["name"]), str(voice["model"]))
    if voice["name"] == "home":
        from claudius.reports.home_model import at_home

        document["provider"]["home"] = at_home(home)
    with records(home) as kept:
        document |= kept.counts(datetime.now(UTC))
        document["last_failure"] = kept.last_failure()
        served = kept.served()
        document["store"] = "postgres" if served else "sqlite"
        document["paused"] = config.runtime.paused or bool(served and served["lanes"]["paused"])
        if served:
            document["server"] = served
            document["workers"] = workers_of(kept)
            document["archive_lag"] = kept.archive_lag()
            document["soul"] = _soul(home, kept.pushed_soul())
    return document


def _soul(home: Home, pushed: PushedSoul | None) -> dict[str, Any] | None:
    """Return the soul that was pushed, and whether this home's own files are not in force for it."""
    from claudius.reports.soul import overruled

    if pushed is None:
        return None
    return {"sha256": pushed.sha256, "host": pushed.host, "at": pushed.at, "overrules": overruled(home)}


def _voice(home: Home) -> dict[str, Any]:
    from claudius.providers.chain import NO_MODEL, NO_VOICE, choose

    name = choose(load(home, os.environ), home)[0]
    error = failure_of(NO_MODEL).told if name == NO_VOICE else None
    unknown = dict.fromkeys(("resting_until", "bytes_per_turn", "disk_days_left"))
    return {"name": name, "model": "", "last_error": error, **unknown}


def model_told(home: Home, name: str, model: str = "") -> dict[str, Any]:
    """Return how a provider's model is asked: `profile`, `form`, `context_tokens`, `slots` if known, and `why`.

    Of a model at home it is what `state/local_models.json` holds, so that its server is not asked. `form` is how a
    reply gets its sections: tags, grammar, json, or words alone; None = its server was not asked yet.
    """
    if name not in ("openai_compat", "home"):
        return {"profile": "full", "form": "tags", "context_tokens": None, "slots": None, "why": []}
    from claudius.providers.home import known_at_home
    from claudius.providers.local_server import ECHOES
    from claudius.providers.openai_compat import known_limits

    loaded = load(home, os.environ)
    limits, facts = (known_at_home if name == "home" else known_limits)(loaded, home, model)
    is_known = facts.is_learned or limits.profile == "full"
    form = limits.form if is_known else None
    context_tokens, slots = facts.context_tokens or None, limits.slots or None
    why = []
    if limits.profile == "plain" and loaded.config.openai.profile == "auto" and facts.echoes >= ECHOES:
        why.append("it only repeated what it heard, so it is spoken to plainly (`openai.profile` full ends that)")
    if limits.profile == "plain" and loaded.config.tools.enabled and not loaded.config.tools.small:
        why.append("no tools: a model that is spoken to plainly seldom asks for one right (`tools.small` gives them)")
    return {"profile": limits.profile, "form": form, "context_tokens": context_tokens, "slots": slots, "why": why}


def slot_words(told: Mapping[str, Any]) -> str:
    """Return in words what is different with this model: its server's calls, its tools, what it did. Pure."""
    is_alone = told.get("slots") == 1
    alone = ["one call at a time, so the second mind waits while anybody is answered"] if is_alone else []
    return "".join([f"; {one}" for one in [*alone, *told.get("why", ())]])


def model_words(told: Mapping[str, Any]) -> str:
    """Return in words how a model at home is asked; empty for the full profile. Pure."""
    if told["profile"] == "full":
        return ""
    form = {None: "its server not asked yet", "words": "its words alone", "tags": "its form in tags"}.get(
        told["form"], f"its form held by a {told['form']}"
    )
    size = f", {told['context_tokens']:,} tokens" if told["context_tokens"] else ""
    return f" (profile {told['profile']}, {form}{size})".replace("a json", "a JSON schema")


def waiting_for_git(versions: int) -> str:
    """Say how many versions of portraits and state git does not hold yet. Pure."""
    return "1 version waits for git" if versions == 1 else f"{versions} versions wait for git"


def usage(home: Home, by: By) -> dict[str, Any]:
    """Return tokens and dollars by day, model, person, conversation or job, and the budgets: the tightest, and each."""
    from claudius.cognition.mind import caps, day_start, tightest

    budget = load(home, os.environ).config.budget
    today = day_start(datetime.now(UTC))
    with records(home) as kept:
        found: dict[str, Any] = dict(kept.usage(by))
        held = caps(budget, kept.spent_since(today), kept.spent_since(today.replace(day=1)))
    rows = [
        {"name": one.name, "limit_usd": one.limit_usd or None, "spent_usd": one.spent_usd, "stage": one.stage.value}
        for one in held
    ]
    found["budget"] = {name: value for name, value in rows[held.index(tightest(held))].items() if name != "name"}
    found["caps"] = rows
    return found


def backups(home: Home) -> list[dict[str, Any]]:
    """Return the verified copies of the database in the home, newest first: `{"path", "at", "bytes"}`."""
    from claudius.memory.sqlite.backups import copies_in, made_at

    found = copies_in(home.backups)
    return [{"path": str(path), "at": made_at(path), "bytes": path.stat().st_size} for path in reversed(found)]


def drain(home: Home, name: str) -> bool:
    """Have a process end its turns and leave. Returns False if none of this name is at work. Raises: StoreError."""

    async def asked(store: Store) -> bool:
        return await store.leases.drain(name)

    return edit(home, asked)


def workers_of(kept: Records) -> list[dict[str, Any]]:
    """Return the processes that take turns of one store, oldest first. Raises: StoreError."""
    found = kept.workers()
    states = ["ended" if one["clean"] else "gone" if one["seen_s"] > GONE_S else "at work" for one in found]
    return [{**one, "state": state} for one, state in zip(found, states, strict=True)]
