"""The oracle: the rules that must hold after a soul has drained, whatever was killed and whenever.

`judge(world, home)` looks at the network's own record and at the home, as rules O1 to O11 of the reliability design
say, and returns the broken ones in words. Nothing of the runtime is trusted: rows, files and git are read directly.
"""

import json
import sqlite3
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from urllib.parse import quote

from claudius.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """One thing that a person said to the network."""

    key: str
    """Its dedupe key: `slack:T1:C1:1700000000.000100`."""
    conversation: str
    """The conversation to which its answer belongs."""
    position: str
    is_owed: bool = True
    may_be_unheard: bool = False
    """It was withdrawn, or said at a time when no sweep could find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """One message of the soul that became visible, in the order of the network."""

    conversation: str
    text: str
    key: str
    """The idempotency key of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a network knows: what people posted, and which messages of the soul were visible, oldest first."""

    posted: Sequence[Posted]
    visible: Sequence[Visible]
    by_hand: Sequence[str] = ()
    """The texts that people wrote into portrait files by hand, one for each time."""
    head: Mapping[str, str] | None = None
    """The files of the archive's newest commit, if the test keeps no git; None = ask git."""


class _Kept:
    """The home's database, read directly."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._db.row_factory = sqlite3.Row

    def rows(self, sql: str) -> list[sqlite3.Row]:
        return self._db.execute(sql).fetchall()


def judge(world: World, home: Home) -> list[str]:
    """Return every broken rule, as `O1: …`; empty if all hold. Call it once the daemon has stopped or is idle."""
    with closing(sqlite3.connect(f"file:{quote(str(home.database))}?mode=ro", uri=True)) as db:
        kept = _Kept(db)
        rules: list[Callable[[World, _Kept, Home], Iterator[str]]] = [
            _answered_once, _settled_by_words, _in_order, _parts_whole, _nothing_unasked, _memory_is_true, _sound,
            _archived, _by_hand, _nothing_left,
        ]  # fmt: skip
        return [broken for rule in rules for broken in rule(world, kept, home)]


def _said(world: World, kept: _Kept) -> dict[str, list[tuple[Visible, sqlite3.Row | None]]]:
    """Return what became visible, with its outbox row, by the turn that said it (by its own key if no turn did)."""
    parts = {row["key"]: row for row in kept.rows("SELECT * FROM outbox")}
    by_turn: dict[str, list[tuple[Visible, sqlite3.Row | None]]] = defaultdict(list)
    for seen in world.visible:
        row = parts.get(seen.key)
        by_turn[row["turn"] if row else f"unknown {seen.key}"].append((seen, row))
    return by_turn


def _answers(said: Mapping[str, Sequence[tuple[Visible, sqlite3.Row | None]]]) -> dict[str, list[str]]:
    """Return the turns that visibly answered each perception, by its key."""
    found: dict[str, list[str]] = defaultdict(list)
    for turn, parts in said.items():
        for key in json.loads(parts[0][1]["answers"]) if parts[0][1] else ():
            found[key].append(turn)
    return found


def _answered_once(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del home
    said = _said(world, kept)
    answers = _answers(said)
    for posted in world.posted:
        turns = answers.get(posted.key, [])
        if posted.is_owed and not turns and not posted.may_be_unheard:
            yield f"O1: {posted.key} was never answered"
        if len(turns) > 1:
            yield f"O1: {posted.key} was answered by {len(turns)} turns"
        for turn in turns:
            places = {seen.conversation for seen, _ in said[turn]}
            if places != {posted.conversation}:
                yield f"O2: {posted.key} was said in {posted.conversation}, and answered in {', '.join(sorted(places))}"


def _settled_by_words(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    """Report what was owed and settled in silence: no turn answered it, and it was not withdrawn."""
    del world, home
    spoke = {row["turn"] for row in kept.rows("SELECT turn FROM outbox")}
    answered = {
        row["value"]
        for row in kept.rows("SELECT j.value FROM outbox o, json_each(o.answers) j WHERE json_valid(o.answers)")
    }
    for row in kept.rows("SELECT key, turn, reason, payload FROM inbox WHERE state = 'settled' AND owes = 1"):
        is_said = row["turn"] in spoke or row["key"] in answered
        # an erasure takes the words back; a bot is never told of an error
        if not is_said and row["reason"] not in ("withdrawn", "erased") and '"is_bot":true' not in row["payload"]:
            yield f"O1: {row['key']} was owed an answer, and was settled without a word ({row['reason']})"


def _in_order(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del home
    heard = {row["key"]: row for row in kept.rows("SELECT key, position, heard_at, taken_at, conversation FROM inbox")}
    turns = {row["key"]: row for row in kept.rows("SELECT key, answers, at FROM outbox WHERE part = 0")}
    by_place: dict[str, list[tuple[sqlite3.Row, str]]] = defaultdict(list)
    for turn in [turns[seen.key] for seen in world.visible if seen.key in turns]:
        if row := heard.get(json.loads(turn["answers"])[-1]):  # it is taken down as taken after it is read
            by_place[row["conversation"]].append((row, min(turn["at"], row["taken_at"] or row["heard_at"])))
    for place, rows in by_place.items():
        for (before, began_at), (after, _) in pairwise(rows):
            if after["position"] < before["position"] and after["heard_at"] < began_at:
                yield f"O3: in {place}, {after['key']} was answered after {before['key']}"


def _parts_whole(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del home
    parts = {row["key"]: row for row in kept.rows("SELECT key, turn, part, parts, state FROM outbox")}
    by_place: dict[str, list[sqlite3.Row]] = defaultdict(list)
    for seen in world.visible:
        if seen.key in parts:
            by_place[seen.conversation].append(parts[seen.key])
    for place, rows in by_place.items():
        for turn, group in groupby(rows, key=lambda row: str(row["turn"])):
            shown = list(group)
            numbers, due = [row["part"] for row in shown], shown[0]["parts"]
            if numbers != list(range(due)) and not _gave_up(kept, turn):
                yield f"O4: in {place}, turn {turn} showed parts {numbers} of {due}"


def _gave_up(kept: _Kept, turn: str) -> bool:
    return any(row["turn"] == turn for row in kept.rows("SELECT turn FROM outbox WHERE state = 'dead'"))


def _nothing_unasked(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del home
    known = {posted.key for posted in world.posted}
    for turn, parts in _said(world, kept).items():
        row = parts[0][1]
        if row is None:
            yield f"O5: {parts[0][0].text[:60]!r} was said by no turn ({turn})"
        elif row["kind"] in ("reply", "apology") and not set(json.loads(row["answers"])) & known:
            yield f"O5: turn {turn} answered what nobody said"


def _memory_is_true(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del home
    said = _said(world, kept)
    entries: dict[str, list[str]] = defaultdict(list)
    for row in kept.rows(
        "SELECT t.turn, e.content FROM entry e JOIN turn t ON t.conversation = e.conversation AND t.number = e.number "
        "WHERE e.entry_type = 'externalDialog' AND e.unsaid = 0"
    ):
        entries[row["turn"]].append(row["content"])
    for turn, parts in said.items():
        if all(row and not row["body"] for _, row in parts):
            continue  # its words were taken back with the message that it was written from
        if len(entries[turn]) != 1:
            yield f"O6: turn {turn} was heard, and memory holds {len(entries[turn])} utterances of it"
        elif _squeezed("".join(str(row["body"]) for _, row in parts if row)) != _squeezed(entries[turn][0]):
            yield f"O6: turn {turn} said something else than memory holds"
    for turn in set(entries) - set(said):
        yield f"O6: memory claims that turn {turn} was said, and nobody saw it"


def _squeezed(text: str) -> str:
    """Keep only what splitting into parts preserves: letters, but not the fences that it closes and reopens."""
    return "".join(line for line in text.split() if not line.startswith("```"))


def _sound(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del world, home
    found = [row[0] for row in kept.rows("PRAGMA integrity_check")]
    if found != ["ok"]:
        yield f"O7: {found[0]}"
    if kept.rows("PRAGMA foreign_key_check"):
        yield "O7: a row refers to one that is not there"


def _archived(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    for row in kept.rows(
        "SELECT f.path, m.markdown FROM user_model m JOIN archive_file f ON f.person = m.person "
        "AND f.audience = m.audience WHERE m.newest = 1"
    ):
        path, file = row["path"], home.memory / row["path"]
        blob = world.head.get(path) if world.head is not None else _git(home.memory, "show", f"HEAD:{path}")
        if not file.is_file() or file.read_text("utf-8") != row["markdown"] or blob != row["markdown"]:
            yield f"O8: {path}: the row, the file and git differ"
    for (behind,) in kept.rows("SELECT count(*) FROM revision WHERE git_commit IS NULL"):
        if behind:
            yield f"O8: git lacks {behind} changes"
    if (home.memory / ".git").is_dir() and _git(home.memory, "fsck", "--no-progress") is None:
        yield "O8: git fsck finds damage"


def _by_hand(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del home
    written = Counter(world.by_hand)
    for row in kept.rows(
        "SELECT r.note, m.person, m.markdown FROM revision r LEFT JOIN user_model m ON m.revision = r.id "
        "WHERE r.author = 'owner' ORDER BY r.id"
    ):
        written[row["markdown"]] -= 1
        if written[row["markdown"]] < 0:
            yield f"O11: {row['person'] or 'the state'} has a version by the owner ({row['note']}) that no hand wrote"


def _git(where: Path, *words: str) -> str | None:
    ran = subprocess.run(["git", "-C", str(where), *words], capture_output=True, timeout=60, check=False)
    return ran.stdout.decode("utf-8", "replace") if ran.returncode == 0 else None


def _nothing_left(world: World, kept: _Kept, home: Home) -> Iterator[str]:
    del world, home
    for table, ends in (("inbox", ("settled", "dead")), ("outbox", ("sent", "dead"))):
        for row in kept.rows(f"SELECT key, state, reason FROM {table}"):  # noqa: S608 - one of the two names above
            if row["state"] not in ends:
                yield f"O10: {table} {row['key']} is left {row['state']}"
            elif row["state"] == "dead" and not row["reason"]:
                yield f"O10: {table} {row['key']} was given up without a reason"
