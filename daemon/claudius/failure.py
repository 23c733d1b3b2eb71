"""Say in words what made a turn fail, and what to do about it: one `Failure` for every error that a turn can raise.

The lanes make one for each failed turn; the terminal, `status`, `stream` and `why` show it to the owner. Nobody else is
told more than the apology. What the other side wrote, or an exception says, is in the turn's record alone: in `why`.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.decoding import decoder
from claudius.errors import (
    AuthFailed,
    BadRequest,
    ClaudiusError,
    Crashed,
    Cut,
    OverBudget,
    Overloaded,
    ProcessError,
    ProviderError,
    RateLimited,
    RefusedReply,
    RowInvalid,
    SpendLimit,
    TimedOut,
    TooLong,
    Unavailable,
    Unreachable,
    Unreadable,
)
from claudius.foreign import NOTHING, Foreign, unquoted

DETAIL_CHARS = 300
SHORT_S = 60.0
"""A wait up to this long is not told."""
OWN = Path(__file__).parent
_PYTHON = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_PACKAGES = ("site-packages", "dist-packages")
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LOG = "`claudius why` has its words, `claudius daemon logs` the traceback"


class Failure(Struct, frozen=True, kw_only=True):
    """Why a turn failed."""

    kind: str
    """The error's name, such as `unreachable` or `auth_failed`."""
    detail: str
    """What is wrong, in one line."""
    fix: str
    """What to do about it, in one line."""
    said: Foreign = NOTHING
    """What the other side wrote of it."""
    is_retried: bool = False
    """An answer is still sought, without anybody's doing: it is told as a wait."""
    again_min: int = 0
    """In how many minutes the model is asked again, which rests until then unless an owner writes; 0 = it does not."""

    @property
    def line(self) -> str:
        """The whole in one line."""
        return f"{self.detail}: {self.fix}" if self.fix else self.detail

    @property
    def told(self) -> dict[str, str]:
        """The form in which anybody may be told it: `kind`, `detail` and `fix`."""
        return {"kind": self.kind, "detail": self.detail, "fix": self.fix}

    @property
    def kept(self) -> str:
        """The form in which a row of the turn keeps it: JSON."""
        return msgspec.json.encode(self.record).decode("utf-8", "replace")

    @property
    def record(self) -> KeptFailure:
        """The form in which the turn's record keeps it."""
        return KeptFailure(kind=self.kind, detail=self.detail, fix=self.fix, said=self.said.words())

    def without(self, hide: Callable[[str], str]) -> Failure:
        """Return it with what must not be shown hidden in its texts."""
        said = Foreign(hide(self.said.words()))
        return replace(self, detail=hide(self.detail), fix=hide(self.fix), said=said)


class KeptFailure(Struct, frozen=True, kw_only=True):
    """A failure in the record of its turn, which only those may read who may read the turn."""

    kind: str
    detail: str = field(default="", name="told")
    fix: str
    said: str = field(default="", name="detail")
    """What the other side wrote. An older record holds all in this one text, so that it is taken for theirs."""

    @classmethod
    def read(cls, kept: str | None) -> KeptFailure | None:
        """Read what `Failure.kept` wrote; None for any other reason that a row may hold. Pure."""
        try:
            return decoder(cls).decode(kept or "")
        except (msgspec.MsgspecError, UnicodeError):
            return None

    @property
    def failure(self) -> Failure:
        """The failure, of which anybody may be told what `Failure.told` holds."""
        return Failure(
            kind=self.kind, detail=self.detail or self.kind.replace("_", " "), fix=self.fix, said=Foreign(self.said)
        )

    @property
    def document(self) -> dict[str, str]:
        """What `claudius why` shows: `said` is what the other side wrote."""
        return self.failure.told | {"said": self.said}


class _Names(Struct, frozen=True):
    """What an owner sets for one provider."""

    key: str
    url: str
    model: str


_NAMES: Mapping[str, _Names] = {
    "openai_compat": _Names(
        "CLAUDIUS_OPENAI_API_KEY in .env: the next message takes it", "openai.base_url", "openai.model"
    ),
    "anthropic_api": _Names(
        "ANTHROPIC_API_KEY in .env: the next message takes it", "ANTHROPIC_BASE_URL", "anthropic.model"
    ),
    "agent_sdk": _Names(
        "the login, with `claude auth login`, then `claudius daemon restart`", "ANTHROPIC_BASE_URL", "claude.model"
    ),
    "claude_cli": _Names(
        "the login, with `claude auth login`, then `claudius daemon restart`", "ANTHROPIC_BASE_URL", "claude.model"
    ),
}
NOBODY = "none"
"""The provider of an error where no model was found: it is nobody's."""
_ANY = _Names("its key in .env, then `claudius daemon restart`", "its address", "its model")

_FIXES: tuple[tuple[type[ProviderError], str], ...] = (
    (Unreachable, "start that server, or correct {url}"),
    (AuthFailed, "correct {key}"),
    (SpendLimit, "top up the account, or name another provider in `providers`"),
    (RateLimited, "nothing to do, Claudius asks again by itself; a second name in `providers` would answer meanwhile"),
    (Overloaded, "nothing to do, Claudius asks again by itself; if it lasts, look at the server's own log"),
    (TimedOut, "raise model.first_byte_s, or choose a quicker model in {model}"),
    (Cut, "look at the server's own log: a model that runs out of memory ends like this"),
    (Crashed, "look at `claudius daemon logs`"),
    (TooLong, "lower history.budget_tokens, or choose a model with a larger context in {model}"),
    (RefusedReply, "say it in other words, or choose another model in {model}"),
    (BadRequest, "check {model} and {url}"),
    (Unavailable, "`claudius doctor` says what is missing"),
)


def failure_of(error: BaseException) -> Failure:
    """Return what an error means for the owner. Pure, but for reading where it was raised."""
    kind = _WORD_START.sub("_", type(error).__name__).lower()
    match error:
        case ProviderError():
            names = _NAMES.get(error.provider, _ANY)
            found = next((fix for of, fix in _FIXES if isinstance(error, of)), "`claudius doctor --live` says more")
            fix = error.fix or found.format(key=names.key, url=names.url, model=names.model)
            detail = error.message if error.provider in ("", NOBODY) else f"{error.provider}: {error.message}"
            again_min = ceil((error.after_s or 0.0) / 60) if (error.after_s or 0.0) > SHORT_S else 0
            told = f"{fix}; asked again in {again_min} min, and at once when you write" if again_min else fix
            return replace(_failure(kind, detail, told, error.said), again_min=again_min)
        case OverBudget():
            return _failure(kind, error.message, "raise budget.daily_usd or budget.person_per_minute, or wait")
        case RowInvalid():
            return _failure(kind, error.message, "`claudius doctor` names the damaged rows")
        case Unreadable() | ProcessError():
            return _failure(kind, error.message, f"correct the process or its text; {_LOG}")
        case ClaudiusError():
            return _failure(kind, error.message, "")
        case _:
            where, is_own = _raised_in(error)
            fix = (
                f"report it, it is a fault of Claudius; {_LOG}" if is_own else f"correct that line and restart; {_LOG}"
            )
            detail = f"{unquoted(error)}{f' in {where}' if where else ''}"
            return _failure("raised", detail, fix, Foreign(_quoted(error)))


def of_a_part(error: BaseException) -> str:
    """Return what the owner's own part raised while it was loaded or built: before it has met anybody's words."""
    where, _ = _raised_in(error)
    return _flat(f"{_quoted(error)}{f' in {where}' if where else ''}")


def unspeakable(flags: Sequence[str], provider: str) -> Failure:
    """Return what it means that nothing in a model's reply could be said, even after it was asked again. Pure."""
    model = _NAMES.get(provider, _ANY).model
    if "empty" in flags and "structured" not in flags:
        detail, fix = "the model's reply was empty", f"look at the model server's own log, and check {model}"
    else:
        detail = "nothing in the model's reply could be said aloud"
        fix = f"`claudius why` shows the reply; if it happens often, choose a larger model in {model}"
    return _failure("no_words", f"{provider}: {detail}", fix)


def _failure(kind: str, detail: str, fix: str, said: Foreign = NOTHING) -> Failure:
    return Failure(kind=kind, detail=_flat(detail), fix=fix, said=Foreign(_flat(said.words())))


def _flat(text: str) -> str:
    flat = " ".join(text.encode("utf-8", "replace").decode().split())
    return flat if len(flat) <= DETAIL_CHARS else f"{flat[: DETAIL_CHARS - 1]}…"


def _quoted(error: BaseException) -> str:
    """Return an exception as its author wrote it, such as `ValueError('no desk')`."""
    try:
        return repr(error)
    except Exception:  # noqa: BLE001 - the repr is the owner's code too
        return type(error).__name__


def _raised_in(error: BaseException) -> tuple[str, bool]:
    """Return the file and line to look at, and whether it is Claudius's own.

    The deepest line of the owner's code counts, because a library or Claudius often only notices what the owner wrote.
    """
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(path, line) for path, line in frames if _is_owners(path)]
    found = own or frames
    if not found:
        return "", False
    path, line = found[-1]
    return f"{_short(path)}:{line}", not own


def _is_owners(path: Path) -> bool:
    real = path.resolve()
    if not real.is_file() or real.is_relative_to(OWN):
        return False
    return not any(real.is_relative_to(place) for place in _PYTHON) and not set(_PACKAGES) & set(real.parts)


def _short(path: Path) -> str:
    """Return a path as its module is named: below the directory from which Python imports it."""
    roots = [Path(root or ".").resolve() for root in sys.path]
    real = path.resolve()
    inside = [real.relative_to(root) for root in roots if root.is_dir() and real.is_relative_to(root)]
    return str(min(inside, key=lambda one: len(one.parts), default=real))
