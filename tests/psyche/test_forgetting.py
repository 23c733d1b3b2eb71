"""Erasure in the psyche: moments, facts, subjects, appraisals, and the line before other people's words."""

from pathlib import Path

from msgspec import json as msgspec_json

from claudius.home import shipped
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.schema import create_database, load_migrations
from claudius.perception import private
from claudius.psyche_types import Arc, Edge
from claudius.runtime.sweeping import sweep

ANA, BEN = "slack:T1:U1", "slack:T1:U2"
SECRET = "zanzibar"


async def test_s31_what_was_lived_with_a_person_goes_with_them(tmp_path: Path) -> None:
    """S31: no psyche table or index keeps anything of theirs, without a VACUUM; other people's data stays."""
    path = tmp_path / "kept.db"
    create_database(path, load_migrations(shipped("memory") / "schema"))
    store = SqliteStore(path)
    await store.open()
    db = store.core.writer._database
    for person, word in ((ANA, SECRET), (BEN, "bridge")):
        row = {"turn": f"t{person}", "at_s": 1, "person": person, "name": "", "conversation": "slack:T1:C1:"}
        more = {"position": "", "importance": 50, "is_own": 0, "audience": private(person)}
        db.run("moment_keep", **row, text=word, pictures="", **more)
        fact = {"short": 1, "person": person, "kind": "taste", "text": word, "keys": "", "about": "", "turn": "t"}
        db.run("fact_keep", **fact, audience=private(person), since=None, until=None, stated_s=1.0)
        edge = msgspec_json.encode(Edge(person=person, at_s=0.0)).decode()
        db.run("psyche_edge_moved", person=person, edge=edge, at="2026-01-05T12:00:00.000000Z")
    arcs = [
        Arc(arc="hers", label=SECRET, stems=(SECRET,), at_s=0.0, persons=(ANA,), sources=("shared:slack:T1:C1",)),
        Arc(
            arc="both",
            label="bridges",
            stems=("bridge",),
            at_s=0.0,
            persons=(ANA, BEN),
            sources=("shared:slack:T1:C1",),
        ),
    ]
    for arc in arcs:
        db.run("psyche_arc_kept", arc=arc.arc, body=msgspec_json.encode(arc).decode())
    for person in (ANA, BEN):
        took = {"person": person, "kind": "joy", "strength": "clear", "at_s": 1.0, "turn": "t"}
        db.run("appraisal_kept", **took, audience=private(person))
    db.run("psyche_arc_kept", arc="torn", body=f'{{"label":"{SECRET}')  # a row that the disk damaged holds nothing up

    probes = await store.erasure.probes([ANA])
    receipt = await store.erasure.erase([ANA])
    await sweep(store, path, probes)
    assert await store.erasure.overwrite() == ()
    left = {
        table: db.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names of our own schema
        for table in ("psyche_edge", "moment", "fact", "psyche_arc", "appraisal")
    }
    words = [row[0] for row in db.connection.execute("SELECT term FROM moment_stem")]
    await store.close(clean=False)

    assert set(left.values()) == {1}
    assert words == ["bridg:2"]
    assert receipt.rows["moment"] == 1
    assert receipt.rows["appraisal"] == 1
    assert SECRET.encode() not in path.read_bytes()
    assert ANA.encode() not in path.read_bytes()
