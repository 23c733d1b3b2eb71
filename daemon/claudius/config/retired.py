"""The settings of earlier versions, read for one release: what holds in their place, and who still gives one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from claudius.config.schema import DAIMON_PREFIX, KOTHAR, Config, env_name
from claudius.errors import BadConfiguration

RETIRED = {
    "alerts.apologies_per_hour": "now always 10",
    "alerts.deaf_s": "now always 120",
    "anthropic.cache_ttl": "now always 5m",
    "claude.pool": "now always 4",
    "cortex.consult.timeout_seconds": "now always 20",
    "cortex.max_context_tokens": "now always 2500",
    "cortex.max_directives": "now always 2",
    "history.summary_chars": "now always 1500",
    "ism.max_calls": "now always 12",
    "ism.max_seconds": "now always 120",
    "ism.max_tokens": "now always 20000",
    "kothar.jitter": "now always 0.2",
    "kothar.llm_timeout_s": "now always 10",
    "kothar.max_tokens": "now always 150",
    "kothar.monologue_chars": "now always 200",
    "kothar.timeout_s": "now always 5",
    "kothar.ttl_hours": "now always 24",
    "memory.remembered_tokens": "now always 600",
    "pipeline.repairs": "now always 1",
    "psyche.episode_threshold": "every message that says something is kept",
    "psyche.max_arcs": "now always 12",
    "psyche.top_k": "memory.remembered says how many moments are shown",
    "psyche.weights": "now always 0.5, 0.15, 0.15, 0.15, 0.1",
    "psyche.window_ambient_s": "now always 300",
    "psyche.window_proactive_s": "now always 21600",
    "psyche.window_thread_s": "now always 60",
    "reply.post_chars": "now always 3000",
    "runtime.attempts": "now always 3",
    "runtime.reconcile_hours": "now always 24",
    "schedule.grace_hours": "now always 24",
    "soul.dossier_tokens": "now always 1000",
    "store.look_s": "now always 1",
    "subprocess.max_seconds": "now always 300",
    "terminal.wait_s": "now always 60",
    "turn.max_hops": "now always 10",
    "upgrade.index_url": "no package index is asked",
    "user_model.max_bytes": "now always 8192",
    "user_model.shrink_floor": "now always 0.6",
    "worker.renew_s": "now always a third of worker.lease_s, 20 at most",
}
"""Settings of earlier versions, each with what holds now: a file that names one is warned of, not refused.

A daimon's stand under `kothar`. They are read for one release.
"""
WORDS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)
"""What a switch may be in the environment, in small letters."""
OLD_PLACE = {"host": "127.0.0.1", "port": "3033", "tls": "0"}
"""Where a daimon listens, as earlier versions wrote it, with the defaults of then."""
_DEEPEST = 4
"""The maximum depth of nested tables; every setting is shallower."""


def named(tree: dict[str, Any], file: str, envs: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Return a line for each setting of an earlier version in a file's tree, which loses it, and in environments."""
    found = [(file, f"{name}.sandbox", "it still goes before `command`: write it there") for name in _boxed(tree)]
    found += [(file, key, why(key)) for key in leave_out(tree)]
    known = {env_name(key): now for key, now in RETIRED.items()}
    tuned = "|".join(name.removeprefix("CLAUDIUS_KOTHAR_") for name in known if name.startswith("CLAUDIUS_KOTHAR_"))
    for source, values in envs.items():
        for name in sorted(values):
            now = known.get(re.sub(rf"^{DAIMON_PREFIX}.+?_(?=({tuned})$)", "CLAUDIUS_KOTHAR_", name))
            found += [(source, name, now)] if now else []
    return tuple(f"{place}: {key} is no longer a setting ({now}): take it out" for place, key, now in found)


def leave_out(tree: dict[str, Any]) -> list[str]:
    """Drop settings without effect and return their keys; what bounds a server goes before its command."""
    dropped = []
    for one in _boxed(tree).values():
        bounds, own = one.pop("sandbox"), one.get("command", [])
        one["command"] = [*bounds, *own] if own and isinstance(own, list) else own
    for key in [*keys(tree)]:
        if why(key):
            table, _, name = key.rpartition(".")
            _table(tree, table).pop(name, None)
            dropped.append(key)
    psyche = _table(tree, "psyche")
    if "psyche.weights" in dropped and isinstance(psyche.get("threshold"), float):
        psyche["threshold"] = min(psyche["threshold"], 0.34)  # higher ones were for weights of one's own
    for table in {key.partition(".")[0] for key in RETIRED} - {*Config.__struct_fields__}:
        if tree.get(table) == {}:
            del tree[table]
    return dropped


def why(key: str) -> str:
    """Return what holds now in place of a setting of an earlier version; empty for any other key. Pure."""
    table, _, name = key.rpartition(".")
    return RETIRED.get(f"kothar.{name}" if table.startswith("daimons.") else key, "")


def read_old_places(tree: dict[str, Any], *envs: Mapping[str, str]) -> None:
    """Write where a daimon listens as a URL, if an earlier version's host, port or tls says it and no URL does.

    Raises: BadConfiguration, above all where a misspelt `tls` would send a token in clear.
    """
    found: dict[str, dict[str, str]] = {}
    for name in (KOTHAR, *(f"daimons.{one}" for one in _table(tree, "daimons"))):
        table = _table(tree, name)
        found[name] = {key: str(table.pop(key)) for key in OLD_PLACE if key in table}
    for env in envs:
        for name, value in env.items():
            if value and (match := re.fullmatch(r"CLAUDIUS_(KOTHAR|DAIMON_\w+)_(HOST|PORT|TLS)", name)):
                table_name = match[1].lower().replace("daimon_", "daimons.", 1)
                found.setdefault(table_name, {})[match[2].lower()] = value
    for name, given in found.items():
        if given and "url" not in _table(tree, name):
            host, port, tls = (one.strip() for one in (OLD_PLACE | given).values())
            if (is_safe := WORDS.get(tls.lower())) is None or not (port.isdecimal() and 0 < int(port) < 65_536):
                raise BadConfiguration("host, port and tls", name, "cannot be read", f"write {name}.url in their place")
            host = host.strip("[]")
            at: Any = tree
            for part in name.split("."):
                at = at.setdefault(part, {}) if isinstance(at, dict) else None
            if isinstance(at, dict):
                at["url"] = f"http{'s' * is_safe}://{f'[{host}]' if ':' in host else host}:{port}"


def _boxed(tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each server with a `sandbox`, as earlier versions wrote what bounds its command, by its key. Pure."""
    found = {f"tools.servers.{name}": one for name, one in _table(tree, "tools.servers").items()}
    return {key: one for key, one in found.items() if isinstance(one, dict) and isinstance(one.get("sandbox"), list)}


def _table(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table by its dotted name; an empty one if it is not there. Pure."""
    for part in name.split("."):
        found = tree.get(part)
        tree = found if isinstance(found, dict) else {}
    return tree


def keys(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the key of each value of a tree of tables. Pure."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and prefix.count(".") < _DEEPEST:
            yield from keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name
