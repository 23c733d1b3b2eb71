"""The archive: git has every version with its note, as files that a person may edit."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from archiving import Kept
from claudius.intent import ModelVersion
from claudius.memory.archive import changes, worker
from claudius.memory.archive.repository import GitFailed, Repository
from claudius.memory.database import Database
from claudius.memory.erasing import put_portrait_back
from claudius.memory.seen import Derived, ErasedSource
from claudius.perception import SELF, private
from contracts.store.ground import ANA, BEN, NOW, exchange, heard


async def test_every_version_is_a_commit_with_its_note(kept: Kept) -> None:
    """Each version is one commit, oldest first, with its note, text and time, and knows it; none is left.

    Before there is one, git is not begun.
    """
    assert await kept.round() == worker.Round()
    assert not [*kept.home.memory.iterdir()]
    for n in range(3):
        await kept.learn(f"# Ana {n}\n", f"note {n}")
    await kept.store.documents.set_state("currentTopic", "bridges", SELF, NOW + timedelta(days=1))

    done = await kept.round()

    assert done.committed == 4
    assert kept.subjects() == ["note 0", "note 1", "note 2", "soul state: currentTopic, by the owner"]
    assert (
        kept.git("log", "-1", "--format=%aI %cn <%ce>").strip()
        == "2026-01-06T12:00:00+00:00 Claudius <claudius@localhost>"
    )
    path = kept.file().relative_to(kept.home.memory)
    assert [kept.git("show", f"HEAD~{n}:{path}") for n in (3, 2, 1)] == [f"# Ana {n}\n" for n in range(3)]
    rows = kept.store.core.reader.all("person_versions", person=ANA)  # type: ignore[union-attr] - it is open
    assert [row["commit"] for row in rows] == kept.git("log", "--reverse", "--format=%H").split()[:3]
    assert kept.file().read_text() == "# Ana 2\n"
    assert "bridges" in (kept.home.memory / "soul_state.md").read_text()
    assert (await kept.round()).committed == 0
    await kept.is_whole()


async def test_a_turns_version_is_the_souls_own_an_edit_is_the_owners(kept: Kept) -> None:
    """A commit's author is whoever wrote the version: the soul or the owner."""
    await kept.store.start("boot", NOW)
    model = ModelVersion(person=ANA, audience=private(ANA), version=1, markdown="# Ana\n", note="met")
    intent = await exchange(kept.store, heard(), model=model)
    await kept.learn("# Ana, mended\n", "mended")

    await kept.settle()

    assert kept.git("log", "--reverse", "--format=%an").splitlines() == ["Claudius", "owner"]
    assert intent.turn in kept.git("log", "--reverse", "--format=%b")


async def gone(kept: Kept, word: str) -> None:
    """Have a word leave the store's versions, as an erasure does."""

    def write(db: Database) -> None:
        """Change the rows, and say that git may hold what is gone."""
        db.connection.execute("UPDATE user_model SET markdown = replace(markdown, ?, 'it')", (word,))
        db.run("history_moved")

    await kept.store.core.write(write)


def objects(kept: Kept) -> str:
    """Return everything that git holds."""
    return kept.git("cat-file", "--batch-all-objects", "--batch")


async def test_what_only_an_older_version_held_leaves_git_too(kept: Kept) -> None:
    """A section that a later version replaced, and the note of a change, are in no commit after an erasure."""
    await kept.store.start("boot", NOW)
    derived, place = Derived(ErasedSource()), {"person": ANA, "audience": private(ANA)}
    for n, (text, note) in enumerate((("a bee", "a wasp"), ("a heron", "a stork"), ("a dove", "a crow")), 1):
        model = ModelVersion(**place, version=n, markdown=f"## Likes\n{text}\n", note=note)
        intent = await exchange(kept.store, heard(n=n), model=model)
        derived.first |= {intent.turn} if n == 2 else set()
    await kept.settle()
    before, changed = objects(kept), set[str]()

    version = await kept.store.core.write(lambda db: put_portrait_back(db, derived, place, changed))
    await kept.settle()

    assert (version, changed) == (0, {ANA})
    assert "a heron" in before
    assert [word for word in ("a heron", "a stork") if word in objects(kept)] == []


@pytest.mark.parametrize("again", [False, True], ids=["the same process", "one that comes later"])
async def test_what_is_gone_from_the_store_leaves_git_with_the_next_round(kept: Kept, *, again: bool) -> None:
    """No one has to ask for it, nor wait: whoever archives next finds that the history is of an earlier count."""
    await kept.archived("a quokka\n")
    before = objects(kept)
    await gone(kept, "quokka")
    if again:
        await kept.again()
    await kept.settle()
    await kept.learn("more\n")
    head = kept.git("rev-parse", "HEAD~0")
    await kept.settle()

    assert "quokka" in before
    assert "quokka" not in objects(kept)
    assert kept.git("rev-parse", "HEAD~1").strip() == head.strip()  # and it is written anew once
    await kept.is_whole()


async def test_a_history_that_could_not_be_written_anew_is_tried_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git fails in the middle, and so does the next process: the third one still knows that it is to be done."""
    await kept.archived("a quokka\n")
    await gone(kept, "quokka")
    for fails in ("discard", "publish"):
        with monkeypatch.context() as patched:
            patched.setattr(Repository, fails, failing)
            with pytest.raises(GitFailed):
                await kept.settle()
        await kept.again()
    await kept.settle()

    assert "quokka" not in objects(kept)
    await kept.is_whole()


def failing(*_: object) -> None:
    """Fail as git does."""
    raise GitFailed("git fails")


async def test_a_renamed_person_keeps_the_file(kept: Kept) -> None:
    """With the next version, a new display name moves the folder; the history follows, and the old folder is gone."""
    await kept.store.start("boot", NOW)
    await exchange(kept.store, heard(n=1, name="Ana"))
    await kept.learn("# Ana\nlong enough to be known again\n" * 5, "one")
    await kept.store.documents.set_model(ANA, "shared:slack:T1:ops", "in the channel\n" * 5, "other", "owner", NOW)
    await kept.settle()
    before = kept.file().parent if len(list(kept.home.memory.glob("users/*/*.md"))) == 1 else None
    folders = {path.parent.name for path in kept.home.memory.glob("users/*/*.md")}
    await exchange(kept.store, heard(n=2, name="Anastasia"))
    await kept.learn("# Ana\nlong enough to be known again\n" * 5 + "more\n", "two")

    await kept.settle()

    assert before is None
    (old,) = folders
    (new,) = {path.parent.name for path in kept.home.memory.glob("users/*/*.md")}
    assert (old.rpartition("-")[0], new.rpartition("-")[0]) == ("ana", "anastasia")
    assert old.rpartition("-")[2] == new.rpartition("-")[2]
    assert not (kept.home.memory / "users" / old).exists()
    assert len(list(kept.home.memory.glob("users/*/*.md"))) == 2
    file = next(path for path in kept.home.memory.glob("users/*/private*.md"))
    assert kept.git("log", "--follow", "--format=%s", "--", str(file)).split() == ["two", "one"]
    await kept.is_whole()


async def test_linked_persons_share_a_folder(kept: Kept) -> None:
    """After two ids are linked, the next version moves both portraits into one folder and leaves nothing behind."""
    other = "discord:1:Ana"
    await kept.learn("of Slack\n", person=ANA)
    await kept.archived("of Discord\n", person=other)
    await _met(kept, ANA, other)
    await kept.store.people.link(ANA, other)
    await kept.learn("of Slack, again\n", person=ANA)

    await kept.settle()

    files = {path.read_text(): path.parent.name for path in kept.home.memory.glob("users/*/*.md")}
    assert set(files) == {"of Slack, again\n", "of Discord\n"}
    assert len(set(files.values())) == 1
    assert len(list((kept.home.memory / "users").iterdir())) == 1
    await kept.is_whole()


async def test_portraits_that_became_one_leave_no_file_behind(kept: Kept) -> None:
    """If a link joins two portraits of one audience, one file holds both; the other is removed, also from git."""
    other, audience = "slack:T1:Ana2", "shared:slack:T1:ops"
    await kept.store.documents.set_model(ANA, audience, "## Persona\nMaker.\n", "one", "owner", NOW)
    await kept.store.documents.set_model(other, audience, "## Persona\nDigger.\n", "two", "owner", NOW)
    await kept.settle()
    await _met(kept, ANA, other)
    await kept.store.people.link(ANA, other)

    await kept.settle()

    (file,) = kept.home.memory.glob("users/*/*.md")
    assert "Maker." in file.read_text()
    assert "Digger." in file.read_text()
    assert kept.git("ls-files", "users").split() == [str(file.relative_to(kept.home.memory))]
    await kept.is_whole()


async def _met(kept: Kept, *people: str) -> None:
    await kept.store.start("boot", NOW)
    for person in people:
        await exchange(kept.store, heard(n=1, person=person, at=f"slack:T1:D-{person}", name=""))


async def test_an_edit_in_the_very_moment_of_writing_is_kept(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit made while a round writes stays on disk, and the next round imports it."""
    await kept.archived("one\n", "first")
    await kept.learn("two\n", "second")
    prepare = Repository.prepare_commits

    def while_committing(self: Repository, *args: object) -> object:
        """Write the file by hand, then continue."""
        kept.by_hand(kept.file(), "by hand, just now\n")
        return prepare(self, *args)  # type: ignore[arg-type] - handed on

    with monkeypatch.context() as patched:
        patched.setattr(Repository, "prepare_commits", while_committing)
        await kept.round()
    assert kept.file().read_text() == "by hand, just now\n"
    await kept.settle()

    assert await kept.text() == "by hand, just now\n"
    assert kept.subjects() == ["first", "second", "edited by hand"]
    await kept.is_whole()


async def test_git_is_tidied_now_and_then(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many commits git packs its objects; a reader sees no difference."""
    monkeypatch.setattr(worker, "TIDY_AFTER", 2)
    for n in range(5):
        await kept.learn(f"{n}\n", str(n))
        await kept.round()

    assert kept.subjects() == [str(n) for n in range(5)]
    await kept.is_whole()


async def test_an_edit_by_hand_is_a_new_version(kept: Kept) -> None:
    """A person's edit of a file is imported, as the owner's version, before the archive writes anything."""
    await kept.archived("one\n", "first")
    kept.by_hand(kept.file(), "mended by hand\n")

    done = await kept.round()

    assert (done.imported, done.committed) == (1, 1)
    assert await kept.text() == "mended by hand\n"
    assert kept.subjects() == ["first", "edited by hand"]
    assert kept.git("log", "-1", "--format=%an").strip() == "owner"
    await kept.is_whole()


async def test_an_edit_by_hand_wins_over_a_version_that_was_on_its_way(kept: Kept) -> None:
    """The soul's pending version stays in the history, and the edit by hand is the newest version; neither is lost."""
    await kept.archived("one\n", "first")
    await kept.learn("two, of the soul\n", "second")
    kept.by_hand(kept.file(), "three, of the hand\n")

    await kept.settle()

    assert await kept.text() == "three, of the hand\n"
    assert kept.subjects() == ["first", "second", "edited by hand"]
    await kept.is_whole()


async def test_a_file_that_is_being_written_is_left_for_the_next_round(kept: Kept) -> None:
    """A file touched less than 2 s ago is neither imported nor overwritten; other files are archived meanwhile."""
    await kept.learn("one\n")
    await kept.archived("of Ben\n", person=BEN)
    await kept.learn("two\n", "second")
    await kept.learn("of Ben, more\n", "more of Ben", person=BEN)
    kept.by_hand(kept.file(ANA), "half a senten", age_s=0.0)

    done = await kept.round()

    assert done.held_back == (str(kept.file(ANA).relative_to(kept.home.memory)),)
    assert kept.file(ANA).read_text() == "half a senten"
    assert kept.file(BEN).read_text() == "of Ben, more\n"
    kept.by_hand(kept.file(ANA), "half a sentence, and the rest\n")
    await kept.settle()
    assert await kept.text() == "half a sentence, and the rest\n"
    await kept.is_whole()


async def test_a_file_that_is_no_text_is_left_alone(kept: Kept) -> None:
    """A file that cannot be read as text is neither imported nor overwritten, since a person put it there."""
    await kept.archived("one\n")
    kept.by_hand(kept.file(), b"\xff\xfe\x00")
    await kept.learn("two\n")

    done = await kept.round()

    assert done.held_back
    assert kept.file().read_bytes() == b"\xff\xfe\x00"
    assert await kept.text() == "two\n"


async def test_the_souls_state_can_be_edited_by_hand(kept: Kept) -> None:
    """A changed line of soul_state.md is the owner's value for that key; the file is then written in our own form."""
    await kept.store.documents.set_state("currentTopic", "bridges", SELF, NOW)
    await kept.settle()
    path = kept.home.memory / "soul_state.md"
    kept.by_hand(path, path.read_text().replace("bridges", "rust").replace("# Soul state", "# My soul"))

    await kept.settle()

    assert "currentTopic: rust" in path.read_text()
    assert "rust" in (
        kept.store.documents.document(next(iter(kept.store.documents.archive_files([""]))).document) or ""
    )
    await kept.is_whole()


async def test_a_file_that_was_deleted_comes_back(kept: Kept) -> None:
    """A deleted file is written again: deleting it erases no one (`users forget` does)."""
    await kept.archived("one\n")
    path = kept.file()
    path.unlink()

    await kept.round()

    assert path.read_text() == "one\n"
    await kept.is_whole()


async def test_files_of_others_are_left_alone(kept: Kept) -> None:
    """A person's staged, changed and untracked files stay exactly as they are; our commits contain only our paths."""
    await kept.archived("one\n")
    for name in ("tracked", "staged", "untracked"):
        (kept.home.memory / f"{name}.txt").write_text(name)
    kept.git("add", "tracked.txt")
    kept.git("-c", "user.name=me", "-c", "user.email=me@x", "commit", "--quiet", "-m", "mine")
    (kept.home.memory / "tracked.txt").write_text("changed")
    kept.git("add", "staged.txt")
    await kept.learn("two\n", "ours")

    await kept.settle()

    assert kept.git("status", "--porcelain").splitlines() == ["A  staged.txt", " M tracked.txt", "?? untracked.txt"]
    assert len(kept.git("show", "--name-only", "--format=", "HEAD").split()) == 1
    assert kept.subjects() == ["note", "mine", "ours"]


async def test_many_versions_go_in_rounds(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round commits a bounded batch; later rounds commit the rest, in order."""
    monkeypatch.setattr(worker, "BATCH", 4)
    for n in range(10):
        await kept.learn(f"text {n}\n", f"{n}")

    done = [(await kept.round()).committed for _ in range(4)]

    assert done == [4, 4, 2, 0]
    assert kept.subjects() == [str(n) for n in range(10)]
    await kept.is_whole()


async def test_a_history_that_is_built_anew_looks_at_each_portrait_a_few_times(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work of rebuilding the history after an erasure grows with the number of people, not with its square."""
    people, asked = 40, Counter[str]()
    for n in range(people):
        await kept.archived(f"# Person {n}\n", person=f"slack:T1:U{n}")
    real = changes.model_path
    monkeypatch.setattr(changes, "model_path", lambda person, *more: asked.update([person]) or real(person, *more))

    async with kept.archive.halted() as build_anew:
        await build_anew(["slack:T1:U0"])

    assert len(asked) == people
    assert max(asked.values()) <= 10
    await kept.is_whole()


async def test_a_worker_archives_what_it_is_woken_for(kept: Kept) -> None:
    """`run` sleeps until it is woken, then archives; it ends when it is cancelled."""
    task = asyncio.create_task(kept.archive.run())
    await kept.learn("one\n")
    kept.archive.wake()

    async with asyncio.timeout(20):
        await kept.until_archived()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert kept.archive.problem is None
    assert kept.file().read_text() == "one\n"
