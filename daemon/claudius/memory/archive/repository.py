"""The git repository of the memory directory: a few commands, isolated from the user's git configuration and hooks."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from claudius.home import FILE_MODE
from claudius.memory.archive.changes import (
    REF,
    TRAILER,
    ArchivedRevision,
    HistoryCommit,
    RevisionCommit,
    fast_import,
    read_log,
    read_marks,
)
from claudius.memory.documents import OUR_PATHS, SOUL_STATE, USERS, is_ours, short_id

LIMIT_S = 30.0
LOG_AT_MOST = 2000
HISTORY = "claudius-history"
"""A file of ours beside git's."""
_SHIELD = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.fsync": "none",
    "core.pager": "cat",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
    "safe.directory": "*",
    "credential.helper": "",
    "transfer.fsckObjects": "true",
    "fetch.unpackLimit": "1",
    "user.name": "Claudius",
    "user.email": "claudius@localhost",
}

_MEANINGS = (
    (r"\.lock': File exists", "another process works in it"),
    (r"no space left|disk quota", "there is no space left"),
    (r"could not resolve host|name or service not known|temporary failure in name", "its host was not found"),
    (r"host key verification|certificate", "it does not prove who it is"),
    (r"connection refused|timed out|no route|could not connect|failed to connect|hung up", "it cannot be reached"),
    (r"declined|\[rejected\]|remote rejected|protected branch|stale info", "it refuses what was sent"),
    (r"authentication|could not read (?:username|password)|permission|access denied|error: 40[13]", "access is denied"),
    (r"does not appear to be a git|repository .*not found|does not exist|error: 404", "there is no such repository"),
    (
        r"not a git repository|bad (?:object|tree|signature)|corrupt|invalid object|missing|unable to read",
        "it is damaged",
    ),
)
"""What git complains of, and our words for it: the text of git, or of a hook at a remote, may quote a portrait."""

log = logging.getLogger(__name__)


class GitFailed(Exception):
    """A git command failed. Its message is in our own words."""


class GitSlow(GitFailed):
    """A git command exceeded its time limit and was killed."""


class GitBusy(GitFailed):
    """Another process is working in the repository."""


class Broken(GitFailed):
    """The repository cannot be read."""


class Repository:
    """One repository. Every method blocks; all are called from one thread. Raises: GitFailed, OSError."""

    def __init__(self, root: Path) -> None:
        """Set the working directory; its repository lies in `.git` below it."""
        self.root = root
        self.git_dir = root / ".git"
        self._running: subprocess.Popen[bytes] | None = None
        self.is_interrupted = False
        """Whether every command is refused."""

    @staticmethod
    def is_possible() -> bool:
        """Return whether git is installed."""
        return shutil.which("git") is not None

    def prepare(self, began_s: float) -> None:
        """Create the repository if missing, clear locks older than `began_s`, and check every object.

        Raises: Broken if it cannot be read.
        """
        if not self.git_dir.exists():
            self._git("init", "--quiet", "--initial-branch=main", "--template=")
        self.clear_locks(before_s=began_s)
        try:
            self._git("fsck", "--no-dangling", "--no-progress", "--no-reflogs")
        except GitBusy:
            raise
        except GitSlow:
            log.warning("the archive is too large to be checked in %s s", LIMIT_S)
        except GitFailed as error:
            raise Broken(str(error)) from error

    def clear_locks(self, *, before_s: float = float("inf"), after_s: float = 0.0) -> None:
        """Delete lock files last touched in this span of wall-clock time, in seconds."""
        for lock in self.git_dir.rglob("*.lock"):
            with suppress(FileNotFoundError):
                if after_s <= lock.lstat().st_mtime < before_s:
                    log.warning("a stale lock of git was removed: %s", lock.name)
                    lock.unlink()

    def head(self) -> str | None:
        """Return the commit that is checked out; None before the first."""
        try:
            return self._git("rev-parse", "--quiet", "--verify", "HEAD^{commit}").strip() or None
        except GitBusy:
            raise
        except GitFailed:
            return None

    def is_detached(self) -> bool:
        """Return whether a commit is checked out instead of a branch."""
        try:
            return not self._git("symbolic-ref", "--quiet", "HEAD").strip()
        except GitFailed:
            return True

    def known(self) -> dict[str, ArchivedRevision]:
        """Return the newest revisions that the history already holds, by token."""
        if self.head() is None:
            return {}
        form = f"--format=%x00%H %(trailers:key={TRAILER},valueonly,separator=%x20)"
        changed = ("--name-status", "--no-renames")  # a filter of states would leave out commits without a change
        return read_log(self._git("log", f"--max-count={LOG_AT_MOST}", form, *changed, "HEAD", "--"))

    def line(self, commit: str | None, also: Mapping[str, str] = MappingProxyType({})) -> list[HistoryCommit]:
        """Return a commit and all before it, newest first; none before the first commit."""
        if commit is None:
            return []
        form = f"--format=%H %(trailers:key={TRAILER},valueonly,separator=%x20)"
        lines = self.run(("log", form, commit, "--"), also=also).decode("utf-8", "replace").splitlines()
        return [HistoryCommit(*one.split(" ", 1)) for one in lines]

    def holds(self, path: str, content: bytes) -> bool:
        """Return whether a file is as it is committed here."""
        try:
            return self.run(("show", f"HEAD:{path}")) == content
        except GitFailed:
            return False

    def begin_empty(self) -> None:
        """Make a first commit without any file, for a history of which nothing is kept."""
        tree = self._git("hash-object", "-t", "tree", "-w", "--stdin").strip()
        self.publish(self._git("commit-tree", tree, given=b"Nothing is kept\n").strip(), None)

    def drop(self) -> None:
        """Delete the whole history."""
        shutil.rmtree(self.git_dir, ignore_errors=True)

    def prepare_commits(self, changes: Sequence[RevisionCommit], parent: str | None) -> dict[int, str]:
        """Create one commit for each change on top of `parent`, oldest first, touching our paths alone.

        Returns revision to commit. The commits stay invisible until `publish`.
        """
        with tempfile.TemporaryDirectory(prefix="claudius-") as aside:
            marks = Path(aside) / "marks"
            stream = fast_import(changes, parent)
            self._git("fast-import", "--quiet", "--force", "--done", f"--export-marks={marks}", given=stream)
            made = read_marks(marks.read_text("utf-8"))
            return {change.revision: made[change.revision] for change in changes}

    def publish(self, newest: str, parent: str | None) -> None:
        """Move the checked-out branch from `parent` to `newest`. Raises: GitBusy if another process moved it."""
        moved = f"update HEAD {newest} {parent or '0' * 40}\ndelete {REF}\n"
        try:
            self._git("update-ref", "-m", "claudius", "--stdin", given=moved.encode())
        except GitSlow:
            raise
        except GitFailed as error:
            raise GitBusy(str(error)) from error

    def align_index(self) -> None:
        """Give the index what is checked out of our own files, so that they do not look staged or reverted.

        Not by `git reset`, which runs the filters that a repository names.
        """
        if self.head() is None:
            return
        try:
            committed = self.run(("ls-tree", "-rz", "HEAD", "--", SOUL_STATE, USERS)).split(b"\0")
            ours = [one for one in committed if is_ours(one.partition(b"\t")[2].decode("utf-8", "replace"))]
            gone = [
                b"0 %b\t%b" % (b"0" * 40, path)
                for path in self.run(("ls-files", "-z", "--", *OUR_PATHS)).split(b"\0")[:-1]
            ]
            self._git("update-index", "-z", "--index-info", given=b"".join([one + b"\0" for one in (*gone, *ours)]))
        except (GitBusy, GitSlow):
            raise
        except GitFailed:
            log.warning("the index of the archive could not be read: it is rebuilt from what is checked out")
            (self.git_dir / "index").unlink(missing_ok=True)
            self._git("read-tree", "HEAD")

    def tidy(self) -> None:
        """Pack loose objects if there are many."""
        self._git("-c", "gc.auto=2000", "gc", "--auto", "--quiet")

    def set_aside(self, backups: Path, stamp: str) -> Path:
        """Move the repository away, as a bundle if its history can be read; return its new path."""
        backups.mkdir(mode=0o700, parents=True, exist_ok=True)
        bundle = backups / f"memory-{stamp}.bundle"
        try:
            self._git("bundle", "create", "--quiet", str(bundle), "--all")
            bundle.chmod(0o600)
        except (GitFailed, OSError):
            bundle.unlink(missing_ok=True)
        kept = backups / f"memory-{stamp}.git"
        self.git_dir.rename(kept)
        if bundle.exists():
            shutil.rmtree(kept, ignore_errors=True)
            return bundle
        return kept

    def discard(self, persons: Sequence[str]) -> None:
        """Delete the whole history, these persons' folders and the state file, so that they are written anew."""
        (self.root / SOUL_STATE).unlink(missing_ok=True)
        for person in persons:
            for folder in (self.root / USERS).glob(f"*-{short_id(person)}"):
                shutil.rmtree(folder)
        self.drop()

    @property
    def history(self) -> int:
        """The store's `history` of which this repository holds nothing that is gone; 0 if it does not say."""
        try:
            return int((self.git_dir / HISTORY).read_text("ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def begin_history(self, number: int) -> None:
        """Record of which `history` this repository is, before anything is written."""
        kept = self.git_dir / HISTORY
        kept.touch(FILE_MODE)
        kept.write_text(f"{number}\n", "ascii")

    def searched(self) -> dict[str, Any] | None:
        """Return the environment in which a search lists every object, reachable or not; None without a repository."""
        if not self.git_dir.exists():
            return None
        return {"env": {"PATH": os.environ.get("PATH", os.defpath), **self._environment()}}

    def _git(self, *args: str, given: bytes = b"") -> str:
        return self.run(args, given=given).decode("utf-8", "replace")

    def run(
        self,
        args: Sequence[str],
        *,
        given: bytes = b"",
        also: Mapping[str, str] = MappingProxyType({}),
        within_s: float = 0.0,
    ) -> bytes:
        """Run one git command, with `also` in its environment, for `LIMIT_S` at most unless `within_s` says otherwise.

        Returns what it prints. Raises: GitFailed, OSError.
        """
        if self.is_interrupted:
            raise GitFailed(f"git {args[0]}: interrupted")
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        from git import Git  # noqa: PLC0415 - a third of a second, and only where something is archived

        settings = [part for key, value in _SHIELD.items() for part in ("-c", f"{key}={value}")]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(given)
            stdin.seek(0)
            running = Git(str(self.root)).execute(
                ["git", *settings, *args],
                istream=stdin,
                as_process=True,
                env={**self._environment(), **also},
                start_new_session=True,
                umask=0o077,
            )
            assert running.proc is not None  # noqa: S101 - GitPython's type knows finished ones too
            began_s = time.time()
            self._running = running.proc
            try:
                return _finish(running.proc, args[0], within_s or LIMIT_S)
            except GitSlow:
                if "GIT_DIR" not in also:  # ours: with anyone else's, the command would have failed
                    self.clear_locks(after_s=began_s)
                raise
            finally:
                self._running = None

    def interrupt(self) -> None:
        """Kill the git command that runs now, and refuse further ones; called from another thread."""
        self.is_interrupted = True
        if running := self._running:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)

    def _environment(self) -> dict[str, str]:
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.root),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_COUNT": "0",
            "GIT_CONFIG_PARAMETERS": "",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "false",
            "GIT_TRACE": "0",
            "LC_ALL": "C",
        }


def _finish(process: subprocess.Popen[bytes], command: str, within_s: float) -> bytes:
    try:
        out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise GitSlow(f"git {command} took longer than {within_s:g} s") from error
    if process.returncode == 0:
        return out
    said = " ".join(err.decode("utf-8", "replace").split())
    failed = GitBusy if ".lock': File exists" in said else GitFailed
    words = next((f"{ours}, " for pattern, ours in _MEANINGS if re.search(pattern, said, re.IGNORECASE)), "")
    raise failed(f"git {command}: {words}exit {process.returncode}")
