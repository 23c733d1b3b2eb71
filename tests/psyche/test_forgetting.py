"""Erasure in the psyche: moments, facts, subjects, intentions, and the line before other people's words."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import json as msgspec_json

from claudius.home import shipped
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.schema import create_database, load_migrations
from claudius.perception import private
from claudius.psyche_types import Arc, Edge, Intention
from claudius.runtime.sweeping import sweep

ANA, BEN = "slack:T1:U1", "slack:T1:U2"
SECRET = "zanzibar"


def aim(name: str, person: str, target: str) -> Intention:
    """Return an intention."""
    return Intention(
        intention=name,
        type="support",
        target=target,
        horizon="long",
        description=f"help with {SECRET}" if ANA in (person, target) else "help",
        at_s=0.0,
        born_s=0.0,
        priority=0.5,
        sources=(private(person),),
        person=person,
    )


async def test_s31_what_was_lived_with_a_person_goes_with_them(tmp_path: Path) -> None:
    """S31: no psyche table or index keeps anything of theirs, without a VACUUM; other people's data stays."""
    path = tmp_path / "kept.db"
    create_database(path, load_migrations(shipped("memory") / "schema"))
    store = SqliteStore(path)
    await store.open()
    db = store.core.writer._database
    for person, word in ((ANA, SECRET), (BEN, "bridge")):
        sources = json.dumps([private(person)])
        row = {"turn": f"t{person}", "at_s": 1, "person": person, "name": "", "conversation": "slack:T1:C1:"}
        more = {"position": "", "importance": 50, "is_own": 0, "audience": private(person)}
        db.run("moment_keep", **row, text=word, pictures="", **more)
        fact = {"person": person, "key": "loves", "value": word, "sources": sources, "turn": "t", "stated_s": 1.0}
        db.run("fact_keep", **fact, is_single=0)
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
    for one in (aim("a", ANA, ""), aim("b", BEN, ANA), aim("c", BEN, BEN)):
        db.run("psyche_intention_kept", intention=one.intention, body=msgspec_json.encode(one).decode())
    db.run("psyche_arc_kept", arc="torn", body=f'{{"label":"{SECRET}')  # a row that the disk damaged holds nothing up
    db.run("psyche_intention_kept", intention="torn", body=f'{{"target":"{ANA}')

    probes = await store.erasure.probes([ANA])
    receipt = await store.erasure.erase([ANA])
    await sweep(store, path, probes)
    assert await store.erasure.overwrite() == ()
    left = {
        table: db.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names of our own schema
        for table in ("psyche_edge", "moment", "fact", "psyche_arc", "psyche_intention")
    }
    words = [row[0] for row in db.connection.execute("SELECT term FROM moment_stem")]
    await store.close(clean=False)

    assert set(left.values()) == {1}
    assert words == ["bridg:2"]
    assert receipt.rows["moment"] == 1
    assert receipt.rows["psyche_intention"] == 3
    assert SECRET.encode() not in path.read_bytes()
    assert ANA.encode() not in path.read_bytes()
