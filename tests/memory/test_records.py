"""What commands read: the exact shapes of the public interfaces, while a writer runs."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from claudius.home import Home
from claudius.intent import ModelVersion, StateChange
from claudius.memory.documents import model_path
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.memory.store import Store
from claudius.perception import SELF, private
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, Ground, awake, call, exchange, heard, turn


@pytest.fixture
async def store(home: Home) -> AsyncIterator[Store]:
    """Yield a store that stays open meanwhile."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as opened:
        yield opened


@pytest.fixture
async def records(home: Home, store: Store) -> AsyncIterator[SqliteRecords]:
    """Yield the records of the same home."""
    opened = SqliteRecords(home.database)
    yield opened
    opened.close()


async def test_status_counts(store: Store, records: SqliteRecords) -> None:
    """`status`: pending = all unfinished; also dead items, waiting and failed parts, turns ever and today."""
    await exchange(store, heard(n=1), at=NOW - timedelta(days=1))
    await turn(store, heard(n=2, at=OPS, person=BEN), "one ", "two")
    await store.inbox.accept((heard(n=3), heard(n=4)), NOW)
    given_up = await turn(store, heard(n=1, at="slack:T1:D-x:"), "lost")
    await store.outbox.undeliverable(given_up.utterances[0].key, "is_archived")

    assert records.counts(NOW) == {
        "inbox": {"pending": 3, "dead": 1},
        "outbox": {"pending": 2, "failed": 1},
        "turns": {"total": 3, "today": 2},
    }
    assert {row["what"]: row["reason"] for row in records.dead()} == {"heard": "is_archived", "said": "is_archived"}


async def test_the_inbox_keeps_no_words_of_what_is_settled(home: Home, store: Store) -> None:
    """After settling, the inbox keeps the key but not the text: only working memory has it."""
    await exchange(store, heard("the canary words", n=1))
    await store.inbox.accept((heard("second canary", n=2),), NOW)
    pending = await store.inbox.oldest(DM)
    assert pending is not None
    await store.inbox.withdraw(pending.seq, "deleted")

    opened = SqliteRecords(home.database)
    payloads = [row[0] for row in opened._db.connection.execute("SELECT payload FROM inbox")]
    opened.close()

    assert len(payloads) == 2
    assert not [payload for payload in payloads if "canary" in payload]


async def test_people_are_listed_once_each(store: Store, records: SqliteRecords) -> None:
    """`users list`: everyone with a message or a model; linked ids appear under their canonical id."""
    model = ModelVersion(person=ANA, audience=private(ANA), version=1, markdown="m", note="n")
    await exchange(store, heard(n=1), model=model)
    await exchange(store, heard(n=1, at="discord:1:D-a:", person="discord:1:Ana"))
    await store.documents.set_model("slack:T1:Zoe", "shared:slack:T1:ops", "z", "n", "owner", NOW)
    await store.people.link(ANA, "discord:1:Ana")

    found = {row["person"]: row for row in records.people()}

    assert set(found) == {ANA, "slack:T1:Zoe"}
    row = found[ANA]
    assert {name: row[name] for name in ("person", "name", "network", "audiences", "versions", "updated_at")} == {
        "person": ANA,
        "name": "Ana",
        "network": "slack",
        "audiences": [private(ANA)],
        "versions": 1,
        "updated_at": "2026-01-05T12:01:00.000000Z",
    }
    assert row["linked"] == ["discord:1:Ana"]


@pytest.mark.parametrize("asked", [ANA, "Ana", "ANA", "discord:1:A", "ana on discord"])
async def test_a_person_is_found_by_id_linked_id_or_name(
    home: Home, store: Store, records: SqliteRecords, asked: str
) -> None:
    """`users show`: id, linked id and name all find the same person, with the newest model per audience."""
    for version in (1, 2):
        model = ModelVersion(person=ANA, audience=private(ANA), version=version, markdown=f"v{version}", note="n")
        await exchange(store, heard(n=version), model=model)
    await exchange(store, heard(n=1, at="discord:1:D-a:", person="discord:1:A", name="ana on discord"))
    await store.people.link(ANA, "discord:1:A")

    found = records.person(asked)

    assert found is not None
    assert (found.person, found.name, found.ids) == (ANA, "Ana", ("discord:1:A",))
    (shown,) = found.models
    assert (shown.audience, shown.markdown, shown.version, shown.commit) == (private(ANA), "v2", 2, None)
    assert shown.file == str(home.memory / model_path(ANA, "Ana", private(ANA)))
    assert [row["version"] for row in records.versions(asked)] == [1, 2]


async def test_a_name_that_two_bear_names_nobody(store: Store, records: SqliteRecords) -> None:
    """A name that two people share finds neither, and an unknown name finds no one."""
    await exchange(store, heard(n=1, person="slack:T1:s1", name="Sam"))
    await exchange(store, heard(n=1, at=OPS, person="slack:T1:s2", name="Sam"))

    assert records.person("Sam") is None
    assert records.person("nobody") is None
    assert list(records.versions("nobody")) == []


async def test_every_version_is_listed_with_its_note(store: Store, records: SqliteRecords) -> None:
    """`users log`: version, at, note, commit, turn, oldest first; suspect versions are marked."""
    model = ModelVersion(person=ANA, audience=private(ANA), version=1, markdown="m", note="Met.", suspect=True)
    intent = await exchange(store, heard(n=1), model=model)
    await store.documents.set_model(ANA, private(ANA), "by hand", "Mended.", "owner", NOW)
    first, _ = store.documents.unarchived(2)
    await store.documents.archived({first.id: "c0ffee"}, ())

    rows = records.versions(ANA)

    assert [(row["version"], row["note"], row["commit"], row["turn"]) for row in rows] == [
        (1, "Met.", "c0ffee", intent.turn),
        (2, "Mended.", None, None),
    ]
    assert [row["suspect"] for row in rows] == [True, False]
    assert [row["author"] for row in rows] == ["turn", "owner"]
    assert records.archive_lag() == 1


@pytest.mark.parametrize("by", ["day", "model", "person", "conversation", "job"])
async def test_usage_is_counted_by_each_thing(store: Store, records: SqliteRecords, by: str) -> None:
    """`usage --by`: one row per counted thing, and a total that is their sum."""
    await exchange(store, heard(n=1), calls=(call(0, cost_usd=0.25), call(1, purpose="repair")))
    await exchange(store, heard(n=2, at=OPS, person=BEN), calls=(call(0, cost_usd=0.5),))

    found = records.usage(by)  # type: ignore[arg-type] - parametrised

    names = ("turns", "input_tokens", "cache_read_tokens", "output_tokens", "cost_usd")
    assert all({by, *names} <= set(row) for row in found["rows"])
    assert {name: found["total"][name] for name in names} == {
        "turns": 2,
        "input_tokens": 30,
        "cache_read_tokens": 60,
        "output_tokens": 12,
        "cost_usd": 0.75,
    }
    assert sum(row["input_tokens"] for row in found["rows"]) == 30
    assert len(found["rows"]) == {"day": 1, "model": 1, "person": 2, "conversation": 2, "job": 2}[by]


async def test_records_see_only_what_is_committed(store: Store, records: SqliteRecords) -> None:
    """A reader sees a turn completely or not at all, and delays no one."""
    for n in range(5):
        await exchange(store, heard(n=n), state=(StateChange(key="currentTopic", value=str(n), audience=SELF),))
        found = records.conversation(DM)
        assert found is not None
        assert (found["turns"], len(found["entries"])) == (n + 1, 3 * (n + 1))
        assert records.state()["currentTopic"]["value"] == str(n)


@pytest.fixture(autouse=True)
def sound(home: Home) -> Iterator[None]:
    """Check after each test that the file is sound."""
    yield
    opened = SqliteRecords(home.database)
    assert list(opened.integrity()) == []
    opened.close()
