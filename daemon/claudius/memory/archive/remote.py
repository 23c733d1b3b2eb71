"""The copy of the history in a git repository elsewhere: a one-way mirror.

Network commands run in a repository of their own beside the home's, so that they heed no setting of the latter, and
nothing that comes is kept. Nothing asks for a password, and everything ends in time.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

from claudius.home import write_private
from claudius.memory.archive.repository import GitFailed, Repository

WITHIN_S = 120.0
"""How long one exchange may take."""
FIRST_WAIT_S, LAST_WAIT_S = 2.0, 900.0
BRANCH = "refs/heads/main"
_THEIRS = "refs/heads/theirs"
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


class Remote:
    """One remote. `mirror` blocks, and is called from the archive's thread."""

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
        """The newest commit at the remote; None = it has none."""
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
        """Ask it anew: another process may have pushed."""
        self.is_in_step, self._due_s = False, 0.0

    def failed(self, error: RemoteFailed) -> bool:
        """Note a failure, and wait longer after each. Returns whether it is another one than the last."""
        is_new, self.problem, self.is_in_step = self.problem != str(error), str(error), False
        self._due_s = self._monotonic() + self._wait_s
        self._wait_s = min(LAST_WAIT_S, self._wait_s * 2)
        return is_new

    def mirror(self, repository: Repository, recorded: Container[str]) -> None:
        """Make our newest commit the remote's, whatever was committed there. `recorded`: the commits of our revisions.

        Another soul's history is left alone. Raises: RemoteMoved if it moved meanwhile, RemoteFailed; GitFailed.
        """
        head = repository.head()
        if not self.is_in_step:
            self.base = self.tip(repository)
            if self.base not in (None, head) and not self._is_ours(repository, head, recorded):
                raise RemoteFailed(
                    f"{self.shown}: it holds the history of another soul: empty it, or name another repository"
                )
        if head is None and self.base:  # everything was erased, and the remote is to know it
            repository.begin_empty()
            head = repository.head()
        if head and head != self.base:
            self.push(repository, head)
        self.base, self.is_in_step, self.problem = head, True, None
        self._wait_s = FIRST_WAIT_S

    def _is_ours(self, repository: Repository, head: str | None, recorded: Container[str]) -> bool:
        """Return whether the history there is this soul's: it holds what we pushed last, or a revision of ours."""
        last = self._kept.read_text("utf-8").strip() if self._kept.is_file() else ""
        if self.base == last or self.base in recorded:
            return True
        aside = _set_aside(repository)
        words = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-gc")
        try:
            self._exchange(repository, (*words, "--upload-pack=git-upload-pack"), f"+{BRANCH}:{_THEIRS}", aside)
            theirs = repository.line(_THEIRS, aside)
        finally:
            _leave(repository)
        ours = {one.token for one in repository.line(head) if one.token}
        return any(one.commit in recorded or one.commit == last or one.token in ours for one in theirs)

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
            _leave(repository)
        write_private(self._kept, f"{commit}\n")

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


def _leave(repository: Repository) -> None:
    shutil.rmtree(_place(repository), ignore_errors=True)


def _set_aside(repository: Repository) -> dict[str, str]:
    """Make a repository beside ours, which sees our objects and keeps its own; return the environment that names it."""
    place = _place(repository)
    _leave(repository)
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
