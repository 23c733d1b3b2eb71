"""Document cases: versions that the owner writes by hand, and what is committed to git."""

from datetime import timedelta

from claudius.intent import StateChange
from claudius.memory.documents import Document, KeptFile
from claudius.perception import SELF, private
from contracts.store.ground import ANA, BEN, NOW, Ground, awake, case, exchange, heard


@case("M90", "a portrait written by hand is the next version; the same words make none")
async def _(ground: Ground) -> None:
    audience = private(ANA)
    async with awake(ground) as store:
        assert await store.documents.set_model(ANA, audience, "one", "first", "owner", NOW) == 1
        assert await store.documents.set_model(ANA, audience, "two", "second", "owner", NOW) == 2
        assert await store.documents.set_model(ANA, audience, "two", "again", "owner", NOW) == 2
        assert await store.documents.set_model(ANA, audience, "one", "back", "revert", NOW) == 3
        assert store.documents.document(Document(ANA, audience)) == "one"
        assert store.documents.document(Document(BEN, audience)) is None


@case("M91", "git is told of every version, oldest first, with the whole text after it")
async def _(ground: Ground) -> None:
    audience = private(ANA)
    async with awake(ground) as store:
        await store.documents.set_model(ANA, audience, "one", "first", "owner", NOW)
        await store.documents.set_state("currentTopic", "bridges", SELF, NOW)
        await store.documents.set_model(ANA, audience, "two", "second", "owner", NOW + timedelta(days=1))
        found = store.documents.unarchived(10)
        assert [one.document for one in found] == [Document(ANA, audience), Document(), Document(ANA, audience)]
        assert [(one.version, one.note) for one in found if one.document.person] == [(1, "first"), (2, "second")]
        assert [one.markdown for one in found if one.document.person] == ["one", "two"]
        assert "bridges" in found[1].markdown
        assert [one.author for one in found] == ["owner"] * 3
        assert len({one.id for one in found}) == 3
        assert len(store.documents.unarchived(2)) == 2


@case("M92", "what git holds is not told again; what it lost is")
async def _(ground: Ground) -> None:
    file = KeptFile(document=Document(ANA, private(ANA)), path="users/a/b.md", sha256="0" * 64)
    async with awake(ground) as store:
        await store.documents.set_model(ANA, private(ANA), "one", "first", "owner", NOW)
        await store.documents.set_model(ANA, private(ANA), "two", "second", "owner", NOW)
        first, second = store.documents.unarchived(10)
        await store.documents.archived({first.id: "c1"}, (file,))
        assert [one.id for one in store.documents.unarchived(10)] == [second.id]
        assert list(store.documents.archive_files()) == [file]
        assert list(store.documents.archive_files([ANA])) == [file]
        assert list(store.documents.archive_files([BEN, ""])) == []
        await store.documents.archive_anew()
        assert [one.id for one in store.documents.unarchived(10)] == [first.id, second.id]
        assert list(store.documents.archive_files()) == []


@case("M93", "a turn's changes are told with the turn and its note")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        change = StateChange(key="currentTopic", value="rust", audience=SELF)
        intent = await exchange(store, heard(), state=(change,))
        (found,) = store.documents.unarchived(10)
        assert (found.turn, found.author, found.document, found.name) == (intent.turn, "turn", Document(), "")
        assert "rust" in found.markdown


@case("M94", "the soul's state as a document is the state after that very change")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        for value in ("one", "two"):
            await store.documents.set_state("currentTopic", value, SELF, NOW)
        first, second = store.documents.unarchived(10)
        assert "one" in first.markdown
        assert "two" not in first.markdown
        assert "two" in second.markdown
        assert store.documents.document(Document()) == second.markdown


@case("M95", "a text is known as a document's own: the newest and what git lacks, or, where asked, any version")
async def _(ground: Ground) -> None:
    portrait = Document(ANA, private(ANA))
    file = KeptFile(document=portrait, path="users/a/b.md", sha256="0" * 64)
    async with awake(ground) as store:
        states = []
        for n, topic in enumerate(("topic 0", "topic 1", "", "topic 3")):
            await store.documents.set_model(ANA, private(ANA), f"text {n}", "note", "owner", NOW)
            await store.documents.set_state("currentTopic", topic, SELF, NOW + timedelta(seconds=n))
            states.append(store.documents.document(Document()) or "")
        first, state, *_ = store.documents.unarchived(10)
        await store.documents.archived({first.id: "c1", state.id: "c2"}, (file,))
        for document, texts in ((portrait, [f"text {n}" for n in range(4)]), (Document(), states)):
            lacking = [store.documents.has_written(document, text, ever=False) for text in texts]
            assert lacking == [False, True, True, True]
            assert all(store.documents.has_written(document, text, ever=True) for text in texts)
            assert not store.documents.has_written(document, texts[1] + " ", ever=True)
        assert not store.documents.has_written(Document(BEN, private(BEN)), "text 1", ever=True)


@case("M96", "which commit holds which change is known, and which is the last")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.documents.set_model(ANA, private(ANA), "one", "first", "owner", NOW)
        await store.documents.set_model(BEN, private(BEN), "two", "second", "owner", NOW)
        first, second = store.documents.unarchived(10)
        await store.documents.archived({first.id: "c1", second.id: "c2"}, ())
        assert sorted(map(str, store.documents.known())) == sorted(map(str, (first.document, second.document)))
        assert await store.documents.archived_commits() == {"c1": first.id, "c2": second.id}
        assert store.documents.commit_of(second.id) == store.documents.last_commit() == "c2"
        await store.documents.archive_anew()
        assert store.documents.commit_of(second.id) is store.documents.last_commit() is None
