"""Everything that can go wrong, as one tree. A message is in our own words: none quotes what the other side wrote.

ClaudiusError                      one line for a person: what is wrong, where, what to do
├── UsageProblem                   exit 2: the command was misused
├── TryAgain                       exit 75: temporary; a later try may succeed
│   └── AlreadyRunning             another process holds the home's lock
├── BadConfiguration               exit 78: config.toml, .env or an environment variable
├── BadHome                        exit 78: the home is foreign, read-only, or too full
├── BadSoul                        a soul file that cannot be read; the last good one is kept
├── StoreError                     exit 78 unless said otherwise
│   ├── StoreCorrupt               not a database, damaged, or not ours
│   ├── StoreTooNew                written by a later version
│   ├── StoreMoved                 the soul is being moved, or has moved away
│   ├── StoreFull                  exit 75: no space at a write; nothing was accepted
│   ├── StoreAway                  exit 75: the database server cannot be reached; nothing was accepted
│   │   └── StoreRefused           exit 78: nor will it be until its owner corrects the settings, or the server
│   ├── StoreReadOnly              the database, its log or its directory may not be written
│   └── StaleTurn                  exit 1: the conversation moved on since it was recalled; run the turn again
├── RowInvalid                     one of our own rows does not decode; the rest of the database is sound
├── ProviderError                  a model call that gave no reply
│   ├── RateLimited                429 with Retry-After                       retryable
│   ├── Overloaded                 529, 500-504, an error event in a stream   retryable
│   ├── Unreachable                refused, reset, no name                    retryable
│   ├── TimedOut                   first byte, idle or total                  retryable
│   ├── Crashed                    a model subprocess died                    retryable
│   ├── Cut                        the stream ended before its end            retryable before the first delta
│   ├── SessionGone                a resumed session does not exist any more  retryable
│   ├── AuthFailed                 401, 403                                   never
│   ├── SpendLimit                 429 without Retry-After, credit balance    never
│   ├── BadRequest                 400, 404 model                             never
│   ├── TooLong                    413, context overflow                      rebuilt once with half the history
│   ├── RefusedReply               the provider refused to answer             ladder: fixed line
│   └── Unavailable                exit 78: not installed, no key, too old    never
├── OverBudget                     a cap was reached before the call
├── Unreadable                     a step's value could not be read, even after it was asked for again
├── ProcessError                   a mental process returned something invalid, or looped
├── ToolError                      a tool that gave no result
│   ├── ToolUnknown                there is none of that name here
│   ├── ToolRefused                it was not allowed
│   ├── ToolFailed                 it said so itself
│   ├── ToolTimedOut               it gave no answer that can be read, or none in time
│   └── ToolLost                   a ConnectionError: what did it died before it answered
├── AdapterRefused                 exit 78: a network refused us: a bad token, a missing intent
└── DeliveryError                  an utterance that was not (provably) delivered
    ├── DeliveryRefused            definite and permanent, with the network's code
    ├── DeliveryLater              definite, try again after some seconds
    └── DeliveryUnknown            it may be visible: check before sending again
"""

from __future__ import annotations

from collections.abc import Iterable

from claudius.foreign import NOTHING, Foreign

LONGEST_REST_S, LONGEST_DELAY_S = 86_400.0, 3_600.0
"""The longest waits that a model and a network may ask for; after that we try again anyway."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TRY_AGAIN = 75
EXIT_CONFIG = 78


def wait_s(asked_s: float, most_s: float) -> float:
    """Return the wait that a server asked for, in [0, `most_s`] seconds; NaN is no wait. Pure."""
    return min(max(asked_s, 0.0), most_s) if asked_s == asked_s else 0.0  # noqa: PLR0124 - NaN alone is not itself


def near(word: str, known: Iterable[str]) -> str:
    """Return which known names a misspelt one resembles, as the end of a sentence; empty if none does. Pure."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where something is misspelt

    found = get_close_matches(word, list(known), n=2)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


class ClaudiusError(Exception):
    """Something went wrong."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])

    @property
    def message(self) -> str:
        """The one line that a person reads."""
        return str(self.args[0])


class UsageProblem(ClaudiusError):
    """This command cannot be used that way."""

    exit_code = EXIT_USAGE


class TryAgain(ClaudiusError):
    """Not now; try again in a moment."""

    exit_code = EXIT_TRY_AGAIN


class AlreadyRunning(TryAgain):
    """Another Claudius holds this home."""

    def __init__(self, pid: int | None, home: str) -> None:
        """Name the process (None if the lock file names none) and the home that it holds."""
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"{home} is in use by {who}: stop it first, or talk to it with `claudius chat`")
        self.pid = pid


class BadConfiguration(ClaudiusError):
    """The configuration cannot be used."""

    exit_code = EXIT_CONFIG

    def __init__(self, file: str, key: str, detail: str, fix: str) -> None:
        """State the file, the key in it (may be empty), what is wrong, and the remedy."""
        where = f"{file}: {key}" if key else file
        super().__init__(f"{where}: {detail}; {fix}")
        self.file, self.key, self.detail, self.fix = file, key, detail, fix


class BadHome(ClaudiusError):
    """The home directory cannot be used."""

    exit_code = EXIT_CONFIG


class BadSoul(ClaudiusError):
    """A soul file cannot be read."""

    def __init__(self, file: str, line: int, detail: str, fix: str) -> None:
        """State the file, the line (0 = the whole file), what is wrong, and the remedy."""
        super().__init__(f"{file}{f':{line}' if line else ''}: {detail}; {fix}")
        self.file, self.line, self.detail, self.fix = file, line, detail, fix


class StoreError(ClaudiusError):
    """The database cannot be used."""

    exit_code = EXIT_CONFIG


class StoreCorrupt(StoreError):
    """The database is damaged or not Claudius's own."""


class StoreTooNew(StoreError):
    """The database was written by a later version of Claudius."""


class StoreMoved(StoreError):
    """The soul is being moved, or has moved to another store."""

    exit_code = EXIT_TRY_AGAIN


class StoreFull(StoreError):
    """There is no space left to write to."""

    exit_code = EXIT_TRY_AGAIN


class StoreAway(StoreError):
    """The database server cannot be reached."""

    exit_code = EXIT_TRY_AGAIN

    def __init__(self, message: str | None = None, fix: str = "") -> None:
        super().__init__(f"{message}; {fix}" if message and fix else message)
        self.fix = fix


class StoreRefused(StoreAway):
    """The database server does not let us in.

    A process that is at work waits for it as for one that is away; one that starts ends.
    """

    exit_code = EXIT_CONFIG


class StoreReadOnly(StoreError):
    """The database may not be written."""


class StaleTurn(StoreError):
    """The conversation moved on while this turn was thought."""

    exit_code = EXIT_FAILED


class RowInvalid(ClaudiusError):
    """A row of the database cannot be read."""

    def __init__(self, table: str, row: str, detail: str) -> None:
        """Name the table, the row by its primary key, and what is wrong with it, without quoting the row."""
        super().__init__(f"{table} {row} cannot be read: {detail}")
        self.table, self.row = table, row


class ProviderError(ClaudiusError):
    """The model gave no reply."""

    retryable = False

    def __init__(
        self,
        message: str | None = None,
        *,
        provider: str = "",
        after_s: float | None = None,
        fix: str = "",
        said: Foreign = NOTHING,
    ) -> None:
        """Name the provider; `after_s` is the Retry-After that it asked for, in seconds; kept within a day.

        `fix` is the remedy, where the provider knows a better one than the kind of error tells. `said` is what the
        model's server wrote: no part of the message.
        """
        super().__init__(message)
        self.said = said
        self.provider, self.after_s = provider, None if after_s is None else wait_s(after_s, LONGEST_REST_S)
        self.fix = fix


class RateLimited(ProviderError):
    """The model asks us to wait."""

    retryable = True


class Overloaded(ProviderError):
    """The model is overloaded."""

    retryable = True


class Unreachable(ProviderError):
    """The model cannot be reached."""

    retryable = True


class TimedOut(ProviderError):
    """The model did not answer in time."""

    retryable = True


class Crashed(ProviderError):
    """The model's process ended unexpectedly."""

    retryable = True


class Cut(ProviderError):
    """The model's reply broke off."""

    retryable = True


class SessionGone(ProviderError):
    """The model's session does not exist any more."""

    retryable = True


class AuthFailed(ProviderError):
    """The model refused our credentials."""


class SpendLimit(ProviderError):
    """The model account's spending limit is reached."""


class BadRequest(ProviderError):
    """The model rejected the request."""


class TooLong(ProviderError):
    """The prompt is too long for the model."""


class RefusedReply(ProviderError):
    """The model declined to answer."""


class Unavailable(ProviderError):
    """This provider cannot be used here."""

    exit_code = EXIT_CONFIG


class OverBudget(ClaudiusError):
    """The spending cap is reached."""


class NamedError(ClaudiusError):
    """A named part failed."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name, self.detail = name, detail


class Unreadable(NamedError):
    """A step's value could not be read."""


class ProcessError(NamedError):
    """A mental process returned something invalid."""


class ToolError(NamedError):
    """A tool gave no result."""

    def __init__(self, name: str, detail: str, said: Foreign = NOTHING) -> None:
        """Name the tool or its server, and what is wrong; `said` is what it wrote itself."""
        super().__init__(name, detail)
        self.said = said


class ToolUnknown(ToolError):
    """There is no such tool here."""


class ToolRefused(ToolError):
    """The call was not allowed."""


class ToolFailed(ToolError):
    """The tool said that it failed."""


class ToolTimedOut(ToolError):
    """The tool did not answer in time."""


class ToolLost(ToolError, ConnectionError):
    """The process that did it died."""


class AdapterRefused(ClaudiusError):
    """A network refused the connection."""

    exit_code = EXIT_CONFIG

    def __init__(self, network: str, setting: str, detail: str, fix: str) -> None:
        super().__init__(f"{network}: {setting}: {detail}: {fix}")
        self.network, self.setting, self.detail, self.fix = network, setting, detail, fix


class DeliveryError(ClaudiusError):
    """The utterance was not delivered."""


class DeliveryRefused(DeliveryError):
    """The network refused the utterance for good."""

    def __init__(self, code: str) -> None:
        """Keep the network's own code, such as `is_archived`."""
        super().__init__(f"the network refused it: {code}")
        self.code = code


class DeliveryLater(DeliveryError):
    """The utterance can be delivered later."""

    def __init__(self, after_s: float | None = None) -> None:
        """Keep `after_s` within an hour; None = when the adapter reports that it can deliver again."""
        after_s = None if after_s is None else wait_s(after_s, LONGEST_DELAY_S)
        super().__init__(f"to be delivered {'when heard again' if after_s is None else f'in {after_s:g} s'}")
        self.after_s = after_s


class DeliveryUnknown(DeliveryError):
    """The utterance may or may not be visible."""
