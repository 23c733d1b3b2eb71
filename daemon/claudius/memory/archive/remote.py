"""The copy of the history in a git repository elsewhere: what is there, and how ours gets there.

Network commands run in a repository of their own beside the home's, so that they heed no setting of the latter, and
nothing that comes is kept until it was looked at. Nothing asks for a password, and everything ends in time.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from claudius.home import write_private
from claudius.memory.archive.changes import HistoryCommit
from claudius.memory.archive.repository import GitFailed, Repository

WITHIN_S = 120.0
"""How long one exchange may take."""
FIRST_WAIT_S, LAST_WAIT_S = 2.0, 900.0
LOOK_EVERY_S = 300.0
"""How often a remote in step is asked whether somebody else has committed there."""
BRANCH = "refs/heads/main"
_THEIRS, _HAVE = "refs/heads/theirs", "refs/heads/have"
_NOBODY_ASKS = {
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_SSH": "",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15",
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_HTTP_LOW_SPEED_LIMIT": "1",
    "GIT_HTTP_LOW_SPEED_TIME": "30",
}


class RemoteFailed(GitFailed):
    """The remote could not be reached, or refused us."""


class RemoteMoved(RemoteFailed):
    """Somebody else has pushed meanwhile."""


class Theirs(Struct, frozen=True):
    """The history at the remote."""

    tip: str
    line: tuple[HistoryCommit, ...]
    """Newest first."""


class Remote:
    """One remote. `tip`, `push` and what is fetched block, and are called from the archive's thread."""

    def __init__(
        self, url: str, kept: Path, *, token: str = "", monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Copy to `url`: https, ssh, or a path. `token` is shown to an https server, never to anybody else.

        `kept` is the file that remembers which commit we pushed last.
        """
        self._url, self._kept, self._token, self._monotonic = url, kept, token, monotonic
        self.shown = re.sub(r"//[^/@]*@", "//", url)
        """The URL without anybody's name."""
        self.base: str | None = None
        """The commit at the remote that ours begin from; None = it has none."""
        self.is_in_step = False
        """Whether `base` is known."""
        self.problem: str | None = None
        """Why the last exchange failed, in one line; None if it succeeded."""
        self._wait_s, self._due_s = FIRST_WAIT_S, 0.0

    @property
    def waits_s(self) -> float:
        """For how many seconds there is nothing to ask it."""
        return max(0.0, self._due_s - self._monotonic())

    def begin(self) -> None:
        """Ask it anew: others may have pushed."""
        self.is_in_step, self._due_s = False, 0.0

    def has(self, commit: str | None) -> None:
        """Note that the remote has this commit, and that ours begin from there."""
        self.base, self.is_in_step, self.problem = commit, True, None
        self._wait_s, self._due_s = FIRST_WAIT_S, self._monotonic() + LOOK_EVERY_S

    def failed(self, error: RemoteFailed) -> bool:
        """Note a failure, and wait longer after each. Returns whether it is another one than the last."""
        is_new, self.problem, self.is_in_step = self.problem != str(error), str(error), False
        self._due_s = self._monotonic() + self._wait_s
        self._wait_s = min(LAST_WAIT_S, self._wait_s * 2)
        return is_new

    def is_ours(self, theirs: Theirs, recorded: Container[str], tokens: Container[str]) -> bool:
        """Return whether a history that does not fit is this soul's, and not another's.

        It is if it has a commit that is recorded or that we pushed last, or if one of our `tokens` is in it.
        """
        last = self._kept.read_text("utf-8").strip() if self._kept.is_file() else ""
        return any(one.commit in recorded or one.commit == last or one.token in tokens for one in theirs.line)

    def fetch(self, repository: Repository, have: str | None) -> Theirs | None:
        """Fetch the remote's history beside ours; None if it has none. `keep` or `leave` it then. Raises: GitFailed."""
        tip = self.tip(repository)
        if tip is None:
            return None
        aside = _set_aside(repository)
        if have:
            repository.run(("update-ref", _HAVE, have), also=aside)
        words = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-gc")
        self._exchange(repository, (*words, "--upload-pack=git-upload-pack"), f"+{BRANCH}:{_THEIRS}", aside)
        found = repository.run(("rev-parse", _THEIRS), also=aside).decode().strip()
        return Theirs(found, tuple(repository.line(found, aside)))

    def keep(self, repository: Repository) -> None:
        """Take what was fetched over into our objects."""
        packs = repository.git_dir / "objects" / "pack"
        packs.mkdir(exist_ok=True)
        for pack in sorted((_place(repository) / "objects" / "pack").glob("pack-*"), reverse=True):  # its index last
            pack.rename(packs / pack.name)
        self.leave(repository)

    def leave(self, repository: Repository) -> None:
        """Delete what was fetched."""
        shutil.rmtree(_place(repository), ignore_errors=True)

    def tip(self, repository: Repository) -> str | None:
        """Ask for the remote's newest commit; None if it has none. Raises: RemoteFailed."""
        words = ("ls-remote", "--quiet", "--upload-pack=git-upload-pack")
        said = self._exchange(repository, words, BRANCH, {"GIT_DIR": str(_place(repository))})
        return next((line.split()[0] for line in said.splitlines() if line.endswith(BRANCH)), None)

    def push(self, repository: Repository, commit: str) -> None:
        """Make a commit of ours the remote's newest, if its newest is still `base`.

        Raises: RemoteMoved if it is not; RemoteFailed.
        """
        aside = _set_aside(repository)
        lease = f"--force-with-lease={BRANCH}:{self.base or ''}"
        words = ("push", "--quiet", "--no-verify", "--receive-pack=git-receive-pack", lease)
        try:
            self._exchange(repository, words, f"{commit}:{BRANCH}", aside)
        except RemoteFailed as error:
            tip = self.tip(repository)
            if tip != commit:  # else the answer alone was lost
                moved = f"{self.shown} has moved on to {(tip or 'nothing')[:12]}"
                raise (error if tip == self.base else RemoteMoved(moved)) from error
        finally:
            self.leave(repository)
        write_private(self._kept, f"{commit}\n")
        self.has(commit)

    def _exchange(self, repository: Repository, words: Sequence[str], ref: str, aside: Mapping[str, str]) -> str:
        trusted = os.environ.get("SSL_CERT_FILE")  # git reads a variable of its own
        also = _NOBODY_ASKS | dict(aside) | self._shown_token() | ({"GIT_SSL_CAINFO": trusted} if trusted else {})
        try:
            return repository.run((*words, "--", self._url, ref), also=also, within_s=WITHIN_S).decode()
        except GitFailed as error:
            raise RemoteFailed(str(error)) from None

    def _shown_token(self) -> dict[str, str]:
        """Return the environment that shows the token to the server: no command line and no file holds it."""
        if not self._token or not self._url.startswith("https://"):
            return {}
        user = re.match(r"https://([^/@]+)@", self._url)
        pair = base64.b64encode(f"{user[1] if user else 'git'}:{self._token}".encode()).decode()
        settings = {"http.extraHeader": f"Authorization: Basic {pair}", "http.followRedirects": "false"}
        named = {f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(settings)}
        valued = {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(settings.values())}
        return {"GIT_CONFIG_COUNT": str(len(settings))} | named | valued


def _place(repository: Repository) -> Path:
    return repository.git_dir / "incoming"


def _set_aside(repository: Repository) -> dict[str, str]:
    """Make a repository beside ours, which sees our objects and keeps its own; return the environment that names it."""
    place = _place(repository)
    shutil.rmtree(place, ignore_errors=True)
    for inner in ("objects/pack", "refs"):
        (place / inner).mkdir(parents=True)
    write_private(place / "HEAD", "ref: refs/heads/none\n")
    write_private(place / "config", "[core]\n\trepositoryformatversion = 0\n")
    return {
        "GIT_DIR": str(place),
        "GIT_INDEX_FILE": str(place / "index"),
        "GIT_OBJECT_DIRECTORY": str(place / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repository.git_dir / "objects"),
    }
