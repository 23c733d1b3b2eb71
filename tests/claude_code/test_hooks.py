"""The plugin's hooks, rows 14 and 15 of daimons: what a session is given and when, and that nothing blocks it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from claudius.claude_code.context import Ensouled, conversation_of
from claudius.claude_code.hooks import CONTEXT_CHARS, EVENTS, Hook, Session, Sessions, cut, is_session, mark, spool_of
from claudius.home import Home
from claudius.perception import SELF, private
from claudius.providers.scripted import Scripted
from claudius.testing.alive import OWNER, Alive, alive
from driven import CLAUDIUS, Machine

ID = "6a0a612e-d380-4604-a7ee-f58bde425ad4"
HEAVY = ("sqlite3", "msgspec", "aiohttp", "httpx", "git", "anthropic", "slack_bolt", "discord", "asyncio")


def hook(home: Home, event: str, env: dict[str, str] | None = None, session: str = ID, **given: Any) -> str:
    """Call a hook. Returns the context that it adds."""
    printed = Hook(home, env or {}).run(event, {"session_id": session, "cwd": "/x/bridge", **given})
    if not printed:
        return ""
    told = json.loads(printed)["hookSpecificOutput"]
    assert told["hookEventName"] == event
    assert len(told["additionalContext"]) <= CONTEXT_CHARS
    return str(told["additionalContext"])


def say(home: Home, text: str, **more: Any) -> str:
    """Build the input for a typed line."""
    return hook(home, "UserPromptSubmit", prompt=text, **more)


def test_d14_a_session_is_given_the_soul_and_loses_it(home: Home) -> None:
    """14: /ensoul adds it; start, resume, compaction and the first prompt after that add it again; off removes it."""
    before = say(home, "hello")
    given = say(home, "/ensoul")
    plain = say(home, "hello")
    resumed = hook(home, "SessionStart", source="resume")
    hook(home, "PreCompact")
    compacted = hook(home, "SessionStart", source="compact")
    owed = say(home, "go on")
    again = say(home, "go on")
    off = say(home, "/claudius:ensoul off")
    after = [
        say(home, "hello"),
        hook(home, "SessionStart", source="resume"),
        hook(home, "SessionStart", source="compact"),
    ]

    assert (before, plain, again, after) == ("", "", "", ["", "", ""])
    assert all(
        "claudius-soul:" in one and "Claudius, Artifex Maximus" in one for one in (given, resumed, compacted, owed)
    )
    assert off.startswith("claudius-soul:off")


def test_d14_a_resume_under_a_new_id_finds_its_mark(home: Home, tmp_path: Path) -> None:
    """14: the last mark near the end of the transcript decides whether the soul is present or has left."""
    transcript = tmp_path / "t.jsonl"
    found = []
    for n, marks in enumerate(
        (["claudius-soul:0123456789abcdef"], [], ["claudius-soul:0123456789abcdef", "claudius-soul:off"])
    ):
        transcript.write_text("x" * 300_000 + "".join(f'{{"text": "{one}"}}\n' for one in marks))
        found.append(
            bool(hook(home, "SessionStart", session=f"new-{n}", source="resume", transcript_path=str(transcript)))
        )

    assert found == [True, False, False]
    assert [one.session for one in Sessions(home).every() if one.on] == ["new-0"]


def test_a_cleared_session_starts_without_the_soul_unless_it_is_always_there(home: Home) -> None:
    """/clear ends it. With `ensoul.default = "always"` every session starts with it, unless it was turned off there."""
    say(home, "/ensoul on")
    cleared, after = hook(home, "SessionStart", source="clear"), say(home, "hello")
    always = {"CLAUDIUS_ENSOUL_DEFAULT": "always"}
    started = hook(home, "SessionStart", env=always, session="other", source="startup")
    say(home, "/ensoul off", session="third")
    off = hook(home, "SessionStart", env=always, session="third", source="resume")
    home.config.write_text('[ensoul]\ndefault = "always"\n')
    by_file = hook(home, "SessionStart", session="fourth", source="clear")

    assert (cleared, after, off) == ("", "", "")
    assert started
    assert by_file


def test_status_says_what_is_so(home: Home) -> None:
    """`/ensoul status` says on or off, and changes nothing."""
    off = say(home, "/ensoul status")
    say(home, "/ensoul")
    on = say(home, "/ensoul status")

    assert ("status: off" in off, "status: on" in on) == (True, True)


def test_a_session_that_is_switched_from_outside_hears_of_it_at_its_next_prompt(home: Home) -> None:
    """`claudius ensoul on|off --session ID`: the next prompt adds the soul, or the line that it has left, once."""
    sessions = Sessions(home)
    sessions.keep(Session(session=ID, on=True, owed=True))
    on = [bool(say(home, "a")), bool(say(home, "b"))]
    sessions.keep(Session(session=ID, on=False, owed=True))
    off = [say(home, "c"), say(home, "d")]

    assert on == [True, False]
    assert off[0].startswith("claudius-soul:off")
    assert off[1] == ""


@pytest.mark.parametrize("session", ["", "../x", "a/b", "x" * 65, "a b", "ü", "a\n", None, 7])
def test_an_invalid_session_id_is_never_used(home: Home, session: Any) -> None:
    """Only `[0-9A-Za-z-]{1,64}` becomes part of a path."""
    assert not is_session(session)
    for event in EVENTS:
        assert Hook(home, {}).run(event, {"session_id": session, "prompt": "/ensoul", "source": "startup"}) == ""
    assert not (home.root / "claude-code").exists()


BAD = {
    "garbage": b"\xff\xfe{",
    "nothing": b"",
    "a list": b"[1]",
    "no session": b"{}",
    "a deep one": b"[" * 100_000,
    "numbers": b'{"session_id": 7, "prompt": 7, "source": 7}',
    "odd": json.dumps({"session_id": ID, "prompt": ["x"], "cwd": 7, "transcript_path": 7, "source": {}}).encode(),
}


def test_d15_invalid_input_is_ignored_silently(machine: Machine) -> None:
    """15: whatever stdin holds, the hook exits 0, prints nothing and leaves nothing behind."""
    for what, given in BAD.items():
        ran = subprocess.run([str(CLAUDIUS), "ensoul", "hook", "SessionStart"], input=given, env=machine.environment(), capture_output=True, check=False)  # fmt: skip

        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b""), what


@pytest.mark.parametrize("broken", ["unreadable", "a file", "bad settings", "a socket that never answers"])
def test_d15_a_broken_home_does_not_block_a_session(machine: Machine, broken: str) -> None:
    """15: dead daemon, unreadable home or broken settings: exit 0 within two seconds, at worst without the soul."""
    env = machine.environment({"HOME": str(machine.user)})
    if broken == "a file":
        machine.home.write_text("x")
    else:
        machine.home.mkdir(mode=0o700)
    if broken == "bad settings":
        (machine.home / "config.toml").write_text("[nonsense")
    if broken == "unreadable":
        (machine.home / "claude-code").mkdir()
        (machine.home / "claude-code" / "sessions").write_text("not a directory")
    listener = _mute(machine.home) if broken.startswith("a socket") else None
    given = json.dumps({"session_id": ID, "prompt": "/ensoul", "cwd": "/x"}).encode()
    ran = subprocess.run([str(CLAUDIUS), "ensoul", "hook", "UserPromptSubmit"], input=given, env=env, capture_output=True, check=False, timeout=20)  # fmt: skip
    if listener:
        listener.close()

    assert (ran.returncode, ran.stderr) == (0, b"")
    assert bool(ran.stdout) == broken.startswith("a socket")


def _mute(home: Path) -> Any:
    import socket  # noqa: PLC0415 - beside its only use

    (home / "run").mkdir()
    one = socket.socket(socket.AF_UNIX)
    one.bind(str(home / "run" / "claudius.sock"))
    one.listen(1)
    return one


def test_d15_a_hook_loads_nothing_heavy(machine: Machine) -> None:
    """15: a hook loads what `claudius --help` loads and itself: no database, client library or event loop."""
    script = "import sys; from claudius.cli import main; sys.argv = ['claudius', 'ensoul', 'hook', 'UserPromptSubmit']; main()"
    given = json.dumps({"session_id": ID, "prompt": "/ensoul", "cwd": "/x"}).encode()
    ran = subprocess.run([sys.executable, "-X", "importtime", "-c", script], input=given, env=machine.environment(), capture_output=True, check=False)  # fmt: skip

    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in ran.stderr.decode().splitlines() if "|" in line
    }
    assert b"claudius-soul:" in ran.stdout
    assert imported & set(HEAVY) == set()


def test_what_is_remembered_waits_for_a_soul_that_sleeps(home: Home) -> None:
    """Only with `ensoul.remember`, and only in an ensouled session, prompt and answer are spooled without a daemon."""
    remember = {"CLAUDIUS_ENSOUL_REMEMBER": "1"}
    say(home, "/ensoul")
    for env, session in (({}, ID), (remember, "stranger"), (remember, ID)):
        say(home, "Why does it rust?", env=env, session=session)
        hook(home, "Stop", env=env, session=session, last_assistant_message="Salt.")
    found = [json.loads(path.read_text()) for path in spool_of(home).glob("*.json")]

    assert [(one["session"], one["prompt"], one["answer"]) for one in found] == [(ID, "Why does it rust?", "Salt.")]
    assert "rust" not in "".join(path.read_text() for path in (home.root / "claude-code" / "sessions").glob("*"))
    for path in (home.root / "claude-code").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_text_is_cut_at_the_end_of_a_section() -> None:
    """A text that is too long loses whole sections."""
    text = "# S\n\n## A\nx\n\n## B\n" + "y" * 100

    assert cut(text, 60) == "# S\n\n## A\nx"
    assert cut(text, 1000) == text
    assert mark("a") != mark("b")


async def _served(soul: Alive, **settings: Any) -> Ensouled:
    return Ensouled(soul.mind, soul.home, lambda: OWNER)


async def test_what_a_session_is_given_is_the_owners_own(home: Home) -> None:
    """It gets soul, state, the owner's portrait and an unused intuition, and nothing of anybody else."""
    async with alive(home, Scripted(), settings={"CLAUDIUS_KOTHAR_ENABLED": "1"}) as soul:
        store, now = soul.mind.store, soul.mind.clock()
        for person in ("owner", "ana"):
            await soul.network.hear(f"I am {person}.", person=person)
        await soul.until_said(2)
        for who, text in ((OWNER, "# Owner\n\nBuilds bridges."), ("rehearsal:t:ana", "# Ana\n\nCANARY of Ana.")):
            await store.documents.set_model(who, private(who), text, "by hand", "owner", now)
        await store.documents.set_state("currentTopic", "rust", private(OWNER), now)
        await store.documents.set_state("currentTask", "CANARY task", private("rehearsal:t:ana"), now)
        await soul.services._daimons.get()._mind.store.whispers.keep_whisper(_whisper(now))
        text = await (await _served(soul)).text()
        again = await (await _served(soul)).text()

    assert text.startswith("claudius-soul:")
    assert len(text) <= CONTEXT_CHARS
    for piece in ("Claudius, Artifex Maximus", "Builds bridges.", "rust", "They wait."):
        assert piece in text, piece
    assert "CANARY" not in text
    assert "They wait." in again


def _whisper(now: Any) -> Any:
    from datetime import timedelta  # noqa: PLC0415 - beside its only use

    from claudius.memory.whispers import Whisper  # noqa: PLC0415 - likewise

    return Whisper(
        daimon="kothar",
        text="They wait.",
        transport="offer",
        sources=(SELF,),
        at=now,
        expires_at=now + timedelta(hours=1),
    )


@pytest.mark.parametrize("remember", [True, False])
async def test_what_was_done_in_a_session_is_an_interaction_in_the_owners_audience(
    home: Home, *, remember: bool
) -> None:
    """With `ensoul.remember` a prompt and its answer are kept once, without a thought about them.

    Otherwise nothing is.
    """
    voice, wall = Scripted(), {"CLAUDIUS_ENSOUL_REMEMBER": "1"} if remember else {}
    told = {
        "id": "1", "session": ID, "project": "/x/my bridge", "prompt": "Why does it rust?", "answer": "Salt.",
        "at": 1.7e9,
    }  # fmt: skip
    async with alive(home, voice, settings=wall) as soul:
        served = await _served(soul)
        served._wake = soul.server.wake
        kept = [await served._keep(told) for _ in range(2)]
        await soul.idle()
        said = AsyncMock()
        await served._recalled(said, {"words": "rusting salt"})
        found = soul.records().conversation(conversation_of("/x/my bridge", ID))
        outbox = soul.records().counts(soul.mind.clock())["outbox"]

    assert kept == [remember, remember]
    lines = said.send.call_args[0][0]["text"].splitlines()
    assert {line[10:] for line in lines} == ({" you: Why does it rust?", " I: Salt."} if remember else set())
    assert voice.requests == []
    assert outbox == {"pending": 0, "failed": 0}
    if remember:
        assert found
        assert found["audience"] == private(OWNER)
        assert [(one["entry_type"], one["content"]) for one in found["entries"]] == [
            ("userMessage", "Why does it rust?"), ("externalDialog", "Salt."),
        ]  # fmt: skip
    else:
        assert found is None


async def test_what_was_spooled_is_taken_up_at_the_next_start(home: Home) -> None:
    """A damaged file is dropped, a good one is kept, and then the spool is empty."""
    spool = spool_of(home)
    spool.mkdir(parents=True)
    told = {"id": "1", "session": ID, "project": "/x", "prompt": "Why?", "answer": "Salt.", "at": 1.7e9}
    (spool / "a.json").write_text(json.dumps(told))
    (spool / "b.json").write_text("{")
    async with alive(home, Scripted(), settings={"CLAUDIUS_ENSOUL_REMEMBER": "1"}) as soul:
        await (await _served(soul)).start(soul.server.wake)
        await soul.idle()
        found = soul.records().conversation(conversation_of("/x", ID))

    assert found
    assert not any(spool.iterdir())


def test_the_first_session_ever_is_interviewed_and_no_later_one(home: Home) -> None:
    """The first `/ensoul` of a home asks for three things, within the limit; a second session, or the same, is not asked."""
    first = say(home, "/ensoul")
    again = say(home, "/ensoul")
    other = say(home, "/ensoul", session="another-session")

    assert "what you should call them" in first
    assert len(first) <= CONTEXT_CHARS
    assert "what you should call them" not in again + other


def test_a_session_bears_the_title_that_its_transcript_gives_it(home: Home, tmp_path: Path) -> None:
    """The user's own title goes before the one that was made, the latest before the earlier; a broken line is passed over."""
    transcript = tmp_path / "t.jsonl"
    lines = [
        {"type": "ai-title", "aiTitle": "An old bridge"},
        {"type": "ai-title", "aiTitle": "Rust on  the\nbridge"},
        {"type": "user", "customTitle": "not a title"},
    ]
    transcript.write_text("".join(json.dumps(one) + "\n" for one in lines) + '{"type": "custom-title", "customT\n')
    say(home, "/ensoul")
    hook(home, "Stop", transcript_path=str(transcript))
    made = Sessions(home).find(ID)
    transcript.write_text(json.dumps({"type": "custom-title", "customTitle": "The bridge"}) + "\n")
    hook(home, "SessionEnd", transcript_path=str(transcript))
    own = Sessions(home).find(ID)
    hook(home, "Stop", session="never-ensouled", transcript_path=str(transcript))

    assert made is not None
    assert own is not None
    assert (made.title, own.title) == ("Rust on the bridge", "The bridge")
    assert Sessions(home).find("never-ensouled") is None
