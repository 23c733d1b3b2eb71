"""What the running process writes into the audit log: acts of people in chat, and settings and texts changed by hand.

An act is recorded before it is done: a crash in between may leave one that was not done, never one that is missing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from claudius.cognition.mind import Mind
from claudius.config.schema import SETTINGS, Config
from claudius.memory.audit import Act, AuditEntry
from claudius.perception import Perception, Place, given_in
from claudius.runtime.commands.words import is_direct
from claudius.soul import SoulText

log = logging.getLogger(__name__)

LOOK_S = 10.0
DIGEST_CHARS = 16
_DEFAULTS = {key: setting.default for key, setting in SETTINGS.items()}


async def note(mind: Mind, perception: Perception, act: Act, target: str = "") -> None:
    """Record what a person is about to do by a command. Raises: StoreError; then it must not be done."""
    entry = AuditEntry(who=perception.person, act=act, target=target, origin=origin_of(perception))
    await mind.store.audit.note(entry, mind.clock())


def origin_of(perception: Perception) -> str:
    """Return where a command was given: its channel, or of a direct conversation only the workspace. Pure."""
    where = given_in(perception)
    place = Place.of(where)
    return f"{place.network}:{place.workspace}" if is_direct(where, perception) else place.of_channel


async def watch(mind: Mind, own_texts: Path, secrets: Mapping[str, str]) -> None:
    """Compare settings and soul files with those last recorded, now and whenever they change. Raises: StoreError.

    `own_texts`: the home's soul directory; texts of the release are nobody's edit. `secrets`: a hash of each, by name.
    """
    seen: tuple[Config, SoulText] | None = None
    while True:
        config, soul = mind.config(), mind.soul()
        if seen is None or seen[0] is not config or seen[1] is not soul:
            changed = await mind.store.audit.compare(digests(config, soul, own_texts, secrets), mind.clock())
            if changed:
                log.warning("changed by hand", extra={"names": list(changed)})
            seen = config, soul
        await asyncio.sleep(LOOK_S)


def digests(config: Config, soul: SoulText, own_texts: Path, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return a digest of each setting that has no default value, each secret, and each soul file of the home. Pure."""
    values = dict(_flat(msgspec.to_builtins(config)))
    settings = {key: value for key, value in values.items() if value != msgspec.to_builtins(_DEFAULTS.get(key))}
    texts = {name: file.sha256 for name, file in soul.files.items() if file.source.is_relative_to(own_texts)}
    return {
        **{f"setting {key}": _digest(value) for key, value in settings.items()},
        **{f"setting {name}": value for name, value in secrets.items()},
        **{f"soul {name}": value[:DIGEST_CHARS] for name, value in texts.items()},
    }


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:DIGEST_CHARS]
