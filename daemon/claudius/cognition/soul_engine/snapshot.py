"""A turn kept so that its prompt can be rebuilt byte for byte: the recollection, the plan, and the texts by hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.soul_engine.assembly import build_prompt
from claudius.cognition.soul_engine.in_mind import Drawn, Scene, redraw
from claudius.cognition.soul_engine.planning import EngineSettings, Plan
from claudius.cognition.soul_engine.render import fixed
from claudius.memory.personal import ERASED
from claudius.prompt import Prompt
from claudius.recollection import PastTurn, Recollection
from claudius.soul import SoulFile, SoulText, StepText


class Snapshot(Struct, frozen=True, kw_only=True):
    """What a prompt was built from. `past` and the soul stand apart, by their sha256, because turns share them."""

    recollection: Recollection
    plan: Plan
    settings: EngineSettings
    past: tuple[str, ...]
    soul: str
    drawn: Drawn | None = None
    """The memory that the first call was asked with, where a process made it; None = as it was recalled."""


class _KeptSoul(Struct, frozen=True, kw_only=True):
    files: Mapping[str, tuple[str, str, Mapping[str, Any]]]
    steps: tuple[StepText, ...]
    sha256: str


class Erased(LookupError):
    """A text that the snapshot refers to was erased."""


def _soul_blob(soul: SoulText) -> tuple[str, bytes]:
    if "blob" not in soul.derived:
        kept = _KeptSoul(
            files={name: (file.text, file.sha256, file.head) for name, file in soul.files.items()},
            steps=tuple(soul.steps.values()),
            sha256=soul.sha256,
        )
        body = msgspec.json.encode(kept)
        soul.derived["blob"] = sha256(body).hexdigest(), body
    key, body = soul.derived["blob"]
    return key, body


def freeze(
    recollection: Recollection, plan: Plan, settings: EngineSettings, soul: SoulText, drawn: Drawn | None = None
) -> tuple[bytes, dict[str, bytes]]:
    """Return the snapshot of a turn and the texts that it refers to. Pure."""
    past = {one.sha256: one.body for one in map(fixed, recollection.past)}
    soul_key, soul_body = _soul_blob(soul)
    snapshot = Snapshot(
        recollection=replace(recollection, past=(), expired=(), psyche=None, task=""),
        plan=plan,
        settings=settings,
        past=tuple(past),
        soul=soul_key,
        drawn=drawn,
    )
    return msgspec.json.encode(snapshot, enc_hook=dict), past | {soul_key: soul_body}


def thaw(snapshot: bytes, blob: Callable[[str], bytes | None]) -> tuple[Recollection, Plan, EngineSettings, SoulText]:
    """Rebuild what a turn knew. Raises: Erased where a text is gone, msgspec.DecodeError where it is not a snapshot."""
    if snapshot == ERASED:
        raise Erased("the snapshot")
    return _thawed(msgspec.json.decode(snapshot, type=Snapshot), blob)


def _thawed(kept: Snapshot, blob: Callable[[str], bytes | None]) -> tuple[Recollection, Plan, EngineSettings, SoulText]:

    def text(key: str) -> bytes:
        found = blob(key)
        if found is None:
            raise Erased(key)
        return found

    past = tuple(msgspec.json.decode(text(key), type=PastTurn) for key in kept.past)
    soul = msgspec.json.decode(text(kept.soul), type=_KeptSoul)
    return (
        replace(kept.recollection, past=past),
        kept.plan,
        kept.settings,
        SoulText(
            files={name: SoulFile(name, body, Path(), sha, head) for name, (body, sha, head) in soul.files.items()},
            steps={step.name: step for step in soul.steps},
            sha256=soul.sha256,
        ),
    )


def rebuild(snapshot: bytes, blob: Callable[[str], bytes | None], soul: SoulText | None = None) -> Prompt:
    """Rebuild a turn's prompt from its snapshot, with another soul where one is given. Raises: Erased."""
    if snapshot == ERASED:
        raise Erased("the snapshot")
    kept = msgspec.json.decode(snapshot, type=Snapshot)
    recollection, plan, settings, own = _thawed(kept, blob)
    if kept.drawn:
        return redraw(Scene.of(recollection, plan, soul or own, settings), kept.drawn)
    return build_prompt(plan, recollection, soul or own, settings)


def with_soul(soul: SoulText, text: str) -> SoulText:
    """Return the soul with another `soul.md`. Pure."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").strip() + "\n"
    file = replace(soul.files["soul.md"], text=plain, sha256=sha256(text.encode()).hexdigest(), head={})
    return replace(soul, files={**soul.files, "soul.md": file})
