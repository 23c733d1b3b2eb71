"""The plugin's hooks, and the record of ensouled sessions, which they keep.

Hooks load no more than `claudius --help` does, wait for nobody, and never block the session.

Source: the daimon design, section 10. Measured with Claude Code 2.1.330: a hook is given one JSON object on stdin; what
it prints for SessionStart and UserPromptSubmit is added to the context; a typed `/ensoul on` reaches UserPromptSubmit.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from claudius.home import DIRECTORY_MODE, Home, shipped, write_private

EVENTS = ("UserPromptSubmit", "SessionStart", "PreCompact", "Stop", "SessionEnd")
ASK_S = 0.1
ANSWER_BYTES = 65_536
TAIL_BYTES = 262_144
CONTEXT_CHARS = 9_000
"""A hook's text arrives complete up to 10,000 characters."""
REMEMBERED_CHARS = 16_000
MARK = "claudius-soul:"
_MARKS = re.compile(rb"claudius-soul:(off|[0-9a-f]{16})")
_COMMAND = re.compile(r"\s*/(?:claudius:)?ensoul(?:\s+(on|off|status))?\s*", re.IGNORECASE)
UNUSED_S = 30 * 86_400.0
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


KNOWN = '"kind":"user_model"'
"""Occurs in a soul's text if it knows the owner already."""
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""The kinds of a transcript's records that name the session, and which field holds the name."""
_TITLE_KINDS = tuple(kind.encode() for kind in TITLES)
TITLE_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session that was ensouled, or for which that was declined."""

    session: str
    project: str = ""
    on: bool = False
    owed: bool = False
    """Its next prompt is given the soul, whatever else was given."""
    prompt: str = ""
    """The last prompt typed, if the soul is to remember."""
    title: str = ""
    """What Claude Code calls it, as its transcript last said."""
    last_at: float = 0.0
    """Seconds since the epoch."""


def is_session(text: object) -> bool:
    """Return whether a text may be a session's id; nothing else becomes part of a path. Pure."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


class Sessions:
    """The sessions of one home: a small file each, because a hook cannot load a database."""

    def __init__(self, home: Home) -> None:
        """Keep the sessions in a directory of their own."""
        self._directory = home.sessions[0]

    def find(self, session: str) -> Session | None:
        """Return a session, or None if it is unknown or its file cannot be read."""
        if not is_session(session):
            return None
        try:
            found = json.loads((self._directory / f"{session}.json").read_text("utf-8"))
            return Session(**found)
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, session: Session) -> None:
        """Store a session atomically. Raises: OSError."""
        if not is_session(session.session):
            return
        self._directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        text = json.dumps(asdict(replace(session, last_at=time.time())))
        write_private(self._directory / f"{session.session}.json", text)

    def every(self) -> Iterator[Session]:
        """Yield every session, most recently used first."""
        found = [one for path in self._directory.glob("*.json") if (one := self.find(path.stem))]
        yield from sorted(found, key=lambda one: -one.last_at)

    def prune(self) -> None:
        """Delete sessions that nobody has used for 30 days."""
        for one in self.every():
            if time.time() - one.last_at > UNUSED_S:
                with suppress(OSError):
                    (self._directory / f"{one.session}.json").unlink()


class Hook:
    """One call of the plugin."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        """Serve the sessions of `home`."""
        self._home, self._sessions = home, Sessions(home)
        table: Any = {}
        if home.config.is_file():  # read directly: the full reader takes too long to load
            import tomllib  # noqa: PLC0415 - only where a session is ensouled

            table = tomllib.loads(home.config.read_text("utf-8-sig")).get("ensoul", {})
        remember = env.get("CLAUDIUS_ENSOUL_REMEMBER") or str(table.get("remember", False))
        default = env.get("CLAUDIUS_ENSOUL_DEFAULT") or str(table.get("default", "ask"))
        self._remembers = remember.strip().lower() in ("1", "true", "yes", "on")
        self._is_always = default.strip() == "always"

    def run(self, event: str, given: Mapping[str, Any]) -> str:
        """Handle an event. Returns what is to be printed; empty = nothing. Raises: OSError, ValueError."""
        session = given.get("session_id")
        if event not in EVENTS or not isinstance(session, str) or not is_session(session):
            return ""
        cwd = given.get("cwd")
        known = self._sessions.find(session) or Session(
            session=session, project=cwd if isinstance(cwd, str) else "", on=self._is_always
        )
        does = {
            "UserPromptSubmit": self._prompt,
            "SessionStart": self._start,
            "PreCompact": self._compact,
            "Stop": self._stop,
            "SessionEnd": self._end,
        }[event]
        if known.on and event in ("Stop", "SessionEnd") and (title := _title(given.get("transcript_path"))):
            known = replace(known, title=title)
            self._sessions.keep(known)
        text = does(known, given)[:CONTEXT_CHARS]
        more = {"hookEventName": event, "additionalContext": text}
        return json.dumps({"hookSpecificOutput": more}) if text else ""

    def _prompt(self, known: Session, given: Mapping[str, Any]) -> str:
        typed = given.get("prompt")
        typed = typed if isinstance(typed, str) else ""
        command = _COMMAND.fullmatch(typed)
        if command:
            return self._commanded(known, (command[1] or "on").lower())
        if not known.on:
            if known.owed:  # switched off from outside: say so once
                self._sessions.keep(replace(known, owed=False))
                return self._off()
            return ""
        if known.owed or self._remembers:
            prompt = typed[:REMEMBERED_CHARS] if self._remembers else ""
            self._sessions.keep(replace(known, owed=False, prompt=prompt))
        return self._soul() if known.owed else ""

    def _commanded(self, known: Session, word: str) -> str:
        if word == "status":
            state = "on" if known.on else "off"
            return f"claudius-soul: status: {state}\nsession {known.session}, project {known.project or '-'}"
        is_first = next(iter(self._sessions.every()), None) is None
        self._sessions.keep(replace(known, on=word == "on", owed=False, prompt=""))
        if word != "on":
            return self._off()
        soul = self._soul()
        if not is_first or KNOWN in soul:
            return soul
        interview = self._file("interview.md").strip()
        return f"{soul[: CONTEXT_CHARS - len(interview) - 2]}\n\n{interview}"

    def _start(self, known: Session, given: Mapping[str, Any]) -> str:
        source = given.get("source")
        if source == "clear" and not self._is_always:
            if known.on:
                self._sessions.keep(replace(known, on=False, owed=False))
            return ""
        if source == "resume" and self._sessions.find(known.session) is None:
            known = replace(known, on=known.on or self._was_ensouled(given.get("transcript_path")))
        if not known.on:
            return ""
        self._sessions.keep(replace(known, owed=known.owed or source == "compact"))
        return self._soul()

    def _compact(self, known: Session, _: Mapping[str, Any]) -> str:
        if known.on:
            self._sessions.keep(replace(known, owed=True))
        return ""

    def _stop(self, known: Session, given: Mapping[str, Any]) -> str:
        answer = given.get("last_assistant_message")
        if not (known.on and self._remembers and known.prompt and isinstance(answer, str) and answer.strip()):
            return ""
        told = {
            "id": str(uuid.uuid4()),
            "session": known.session,
            "project": known.project,
            "prompt": known.prompt,
            "answer": answer[:REMEMBERED_CHARS],
            "at": time.time(),
        }
        self._sessions.keep(replace(known, prompt=""))
        if (self._ask("remember", told=told) or {}).get("event") != "remembered":  # left for the daemon's next start
            directory = spool_of(self._home)
            directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            write_private(directory / f"{told['id']}.json", json.dumps(told))
        return ""

    def _end(self, known: Session, _: Mapping[str, Any]) -> str:
        if self._sessions.find(known.session):
            self._sessions.keep(replace(known, prompt=""))
        self._sessions.prune()
        if self._ask("bridge", do="off", session=known.session) is None:
            self._home.end_loan(known.session)
        return ""

    def _soul(self) -> str:
        """Return the soul's text for a session, from the running soul, or else from its files."""
        text = (self._ask("ensouled") or {}).get("text")
        if isinstance(text, str) and text.startswith(MARK):
            return text[:CONTEXT_CHARS]
        soul = self._file("soul.md")
        return f"{mark(soul)}\n{self._file('ensoul.md').strip()}\n\n{cut(soul, CONTEXT_CHARS - 1500)}"

    def _off(self) -> str:
        return f"{MARK}off\n{self._file('unsoul.md').strip()}"

    def _file(self, name: str) -> str:
        places = (root / name for root in (self._home.soul, shipped("soul")))
        return next((path.read_text("utf-8-sig") for path in places if path.is_file()), "")

    def _was_ensouled(self, transcript: object) -> bool:
        """Return whether the last of our marks in the end of a transcript says that the soul is on."""
        marks = _MARKS.findall(_tail(transcript))
        return bool(marks) and marks[-1] != b"off"

    def _ask(self, op: str, **more: Any) -> dict[str, Any] | None:
        """Ask the running soul one thing. Returns None if none answers at once."""
        until = time.monotonic() + ASK_S
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            one.settimeout(ASK_S)
            try:
                one.connect(str(self._home.socket))
                one.sendall(json.dumps({"op": op, **more}).encode() + b"\n")
                found = b""
                while not found.endswith(b"\n") and len(found) < ANSWER_BYTES and time.monotonic() < until:
                    piece = one.recv(65_536)
                    if not piece:
                        break
                    found += piece
                answer = json.loads(found)
            except (OSError, ValueError):
                return None
        return answer if isinstance(answer, dict) else None


def _tail(transcript: object) -> bytes:
    """Return the end of a session's transcript; empty if there is none."""
    if not isinstance(transcript, str) or not transcript.endswith(".jsonl") or not Path(transcript).is_file():
        return b""
    with Path(transcript).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return file.read(TAIL_BYTES)


def _title(transcript: object) -> str:
    """Return the last title in a transcript: one that its user gave goes before one that Claude Code made."""
    found: dict[str, str] = {}
    for line in _tail(transcript).splitlines():
        if not any(kind in line for kind in _TITLE_KINDS):
            continue
        try:
            record = json.loads(line)
        except ValueError:
            continue
        for kind, key in TITLES.items():
            if isinstance(record, dict) and record.get("type") == kind and isinstance(record.get(key), str):
                found[kind] = " ".join(record[key].split())[:TITLE_CHARS]
    return next((found[kind] for kind in TITLES if found.get(kind)), "")


def spool_of(home: Home) -> Path:
    """Return the directory where hooks leave what a soul that is not running is to remember. Pure."""
    return home.sessions[1]


def mark(soul: str) -> str:
    """Return the mark of a soul's text. Pure."""
    return MARK + hashlib.sha256(soul.encode("utf-8", "replace")).hexdigest()[:16]


def cut(text: str, limit: int) -> str:
    """Cut a text at the end of a section. Pure."""
    if len(text) <= limit:
        return text.strip()
    return text[: max(text.rfind("\n## ", 0, limit), 0) or limit].strip()
