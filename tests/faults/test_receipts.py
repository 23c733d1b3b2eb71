"""What is said of an erasure: once, in plain words, each of them true; also after a crash, and on a full disk."""

import json
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from claudius.home import Home
from claudius.memory.erasure import Erasures
from claudius.runtime.receipts import of, told
from driven import Machine, reply
from failing import limited
from forget_rows import right
from slack_daemon import MENTION, PATIENCE_S, SlackDaemon, slack_daemon

ANA = "slack:T1:U1"
SECRET = "my locker number is seven four one nine"
RECEIPT: dict[str, Any] = {
    "person": ANA,
    "rows": {"audience_member": 1, "conversation_person": 4, "entry": 3, "user_model": 2, "due": 1},
    "derived": {"soul_state": 2, "turn_record": 1},
    "aside": [],
    "portraits": [{"person": "slack:T1:U2", "audience": "shared:slack:T1:C1", "version": 3}],
    "posts": [
        {"conversation": "slack:T1:C1:", "post": "1700000000.000100", "at": "2026-03-02T12:00:00Z", "is_shared": True},
        {"conversation": "slack:T1:D2:", "post": "1700000000.000200", "at": "2026-03-02T12:01:00Z", "is_shared": False},
    ],
    "git": 2,
    "logs": 5,
    "backups": 1,
    "kept": ["backups/mine.db"],
    "verified": True,
    "later": None,
    "left": [],
    "unsearched": [],
    "taken_down": 0,
    "resumed": False,
    "not_ours": ["what people posted themselves stays", "clones of git@inside:soul.git"],
    "beyond": ["what people posted themselves stays", "clones of a copy on another machine"],
    "store": "file",
}


def test_a_receipt_says_how_and_where_and_promises_no_more() -> None:
    """`receipt-method`: what was searched and how, portraits that were put back, posts that stay; no empty promise."""
    wanted = right("receipt-method", "receipt_says", "never")
    words = told(RECEIPT)

    assert wanted["receipt_says"] == [
        "what was searched, how and where",
        "portraits that were put back",
        "posts that stay on the network",
    ]
    assert "I searched all rows of my database, my other files, the log, my copies and the history in git" in words
    assert "1 portrait of others lost" in words
    assert "https://slack.com/archives/C1/p1700000000000100, of 2026-03-02 12:00 UTC" in words
    assert not [phrase for phrase in wanted["never"] if phrase in words]


def test_a_receipt_is_for_people() -> None:
    """`receipt-layman`: counted in plain words; no table is named, whoever reads it."""
    wanted = right("receipt-layman", "never", "words")
    both = told(RECEIPT) + "\n".join(of(RECEIPT))

    assert wanted["words"] == "plain"
    assert not [
        table for table in (*wanted["never"], *RECEIPT["rows"], *RECEIPT["derived"]) if "_" in table and table in both
    ]
    assert "3 of what was said and answered" in both
    assert "5 of where, when and under which names you took part" in both


def test_a_receipt_says_where_posts_stand_and_whose_words_stay() -> None:
    """`receipt-posts`, `plan-about`: each post with its place and time; what others said is theirs."""
    assert right("receipt-posts", "receipt_has") == {"receipt_has": "where they stand"}
    assert right("plan-about", "bens_plan", "receipt_says")["receipt_says"] == "that others' words stay"
    assert "What others said about you in their own words stays" in told(RECEIPT)
    assert "posts of mine" not in told({**RECEIPT, "posts": []}).lower()


def test_a_receipt_names_no_place_of_others_to_the_person() -> None:
    """Where the soul spoke of them in a talk of others is the owner's to see; the person is told how often."""
    assert "D2" not in told(RECEIPT)
    assert "In talks of others: 1 post of mine" in told(RECEIPT)
    where = {"aside": ["postgres://soul@inside/db"], "left": ["/var/lib/soul/.claude/one.jsonl", "copy (damaged)"]}
    words = told({**RECEIPT, **where, "unsearched": ["copy (damaged)"]})
    assert not [one for one in ("inside", "/var/lib", "copy (damaged)") if one in words]
    assert "clones of a copy on another machine" in words
    assert "clones of git@inside:soul.git" in "\n".join(of(RECEIPT))
    assert "archives/D2/p1700000000000200" in "\n".join(of(RECEIPT))


def test_a_receipt_tells_what_helps_with_what_is_left() -> None:
    """What was found may go if it is repeated; what cannot be read does not; a search that was cut off found nothing."""
    found = RECEIPT | {"left": ["logs/x", "backups/replaced-1 (it cannot be read)"]}
    found |= {"unsearched": ["backups/replaced-1 (it cannot be read)"]}
    unread = RECEIPT | {"left": found["unsearched"], "unsearched": found["unsearched"]}
    cut_off = RECEIPT | {"left": ["the search did not come to its end"]}

    assert "STILL FOUND in logs/x: have the owner repeat it." in "\n".join(of(found))
    assert "NOT SEARCHED, because it cannot be read: backups/replaced-1" in "\n".join(of(found))
    assert "STILL FOUND in 1 place: have the owner repeat it." in told(found)
    assert "repeat it" not in told(unread)
    assert "and found none." in told(unread)
    assert "but the search did not come to its end: have the owner repeat it." in told(cut_off)
    assert "FOUND" not in told(cut_off)
    assert "found none" not in told(cut_off)


def test_a_receipt_counts_texts_not_rows_and_names_deleted_posts() -> None:
    """One turn is many rows and one turn; a post that was deleted on its network is told of, too."""
    derived = {"turn": 1, "turn_record": 1, "entry": 3, "outbox": 1, "step": 1, "soul_state": 2, "belief": 1}
    words = told(RECEIPT | {"derived": derived, "taken_down": 2})

    assert "all that I thought and said in 1 turn of talk with others and 3 notes of my own" in words
    assert "On the network I deleted 2 posts of mine" in words
    assert "On the network I deleted" not in told(RECEIPT)


def test_a_receipt_of_an_earlier_release_is_still_told() -> None:
    """A process that is upgraded between an erasure's end and its receipt gives that receipt."""
    known = {key: what for key, what in RECEIPT.items() if key not in ("unsearched", "taken_down", "resumed", "beyond")}

    assert told(known).startswith("You are forgotten.")


def test_a_receipt_verifies_nothing_before_the_files_are_written_anew() -> None:
    """The hour is named until then; afterwards that it was done."""
    server = RECEIPT | {"store": "server", "verified": False, "later": "2026-03-02T21:00:00Z"}

    for receipt, files in ((server, "server's data files"), (server | {"store": "file"}, "My database file")):
        words, done = told(receipt), told(receipt | {"later": None})
        assert files in words
        assert (
            "from 2026-03-02 21:00 UTC on. Until then my note of this keeps your id, and I call nothing verified; then I tell you."
            in words
        )
        assert "then my log says so" in "\n".join(of(receipt))
        assert "what was deleted no more" in done
        assert "verified" not in done


def test_a_line_that_the_disk_takes_only_in_part_is_not_there(home: Home) -> None:
    """`receipt-disk`: a short write in the erasure's own record is undone, so nothing was begun and nothing is torn."""
    ledger, now = Erasures(home.state), datetime(2026, 3, 2, tzinfo=UTC)
    ledger.begin(["x:t:ben"], now, "owner")
    ledger.done([*ledger.hashes(["x:t:ben"])], now)
    before = ledger.ledger.read_bytes()

    with limited(len(before) + 20), pytest.raises(OSError, match="File too large"):
        ledger.begin(["x:t:tom"], now, "owner")

    assert ledger.ledger.read_bytes() == before
    assert not ledger.unfinished()


def test_on_a_full_disk_nothing_is_begun(machine: Machine) -> None:
    """`receipt-disk`: an erasure without room for its record is refused in one plain line, and changes nothing."""
    wanted = right("receipt-disk", "begins", "says")
    machine.scripted(reply("I keep it."))
    machine.ok("chat", "--once", f"Hello, {SECRET}", "--as", "ana")
    with machine.daemon() as pid:
        with limited(64, pid):
            refused = machine.run("users", "forget", "terminal:local:as-ana", "--yes")
        known = machine.run("users", "export", "terminal:local:as-ana")
        begun = bool(Erasures(machine.home / "state").erased_at())

    assert (refused.code, wanted["says"] in refused.stderr) == (1, True), refused.shown
    assert begun is wanted["begins"]
    assert SECRET in known.stdout
    assert not list((machine.home / "state").glob("erasing-*.json"))


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[SlackDaemon]:
    """Yield a daemon on Slack, to which Ana has told a secret."""
    async with slack_daemon(tmp_path / "machine", CLAUDIUS_PROVIDERS="rehearsal") as made:
        await made.start()
        await made.slack.say("C1", "U1", f"{MENTION} {SECRET}")
        await made.drained(heard=1)
        await made.stop()
        yield made


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
@pytest.mark.parametrize("fsync", [3, 4, 5, 6], ids=["recorded", "noted", "erased", "ended"])
async def test_whoever_asked_in_chat_gets_the_receipt_once_whatever_is_killed(daemon: SlackDaemon, fsync: int) -> None:
    """`receipt-crash`: killed at a durable write between the order and its end, the next start ends it and tells."""
    wanted = right("receipt-crash", "done_after_start", "receipt")
    ledger = Erasures(daemon.home.state)
    daemon.before = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync")
    daemon.before += ("-e", f"inject=fsync:signal=KILL:when={fsync}")
    await daemon.start()
    await daemon.slack.slash("C1", "U1", "/claudius", "forget me")
    await daemon.slack.until_called("response_url", 1, within_s=PATIENCE_S)
    await daemon.slack.slash("C1", "U1", "/claudius", "forget me yes")
    await daemon.until(lambda: daemon.process and daemon.process.returncode is not None, what="it is killed")
    await daemon.ended()
    daemon.before = ()
    await daemon.start()
    await daemon.slack.until_called("response_url", 2, within_s=PATIENCE_S)
    await daemon.until(lambda: not ledger.unfinished() and not ledger.kept(), what="the erasure has ended")
    await daemon.stop()
    said = [one.text for one in await daemon.slack.trace() if one.kind == "response"]

    assert ledger.unfinished() is not wanted["done_after_start"]
    assert wanted["receipt"] == "once"
    assert sum(one.startswith("You are forgotten.") for one in said) == 1
    assert not [path for path in daemon.home.root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert json.dumps(said).count(SECRET) == 0
