"""Find what is wrong with a database server that several processes share, and with those processes."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from claudius.config.load import OF_A_MACHINE, Loaded, common, load, networks_on
from claudius.errors import StoreError
from claudius.home import Home, shipped
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.memory.opening import MISSING, place_of
from claudius.reports.network_checks import Check
from claudius.reports.opened import records
from claudius.reports.status import workers_of
from claudius.runtime.life import fingerprints, is_held
from claudius.soul.source import FIX, OVERRULED

if TYPE_CHECKING:
    from claudius.memory.postgres.session import Made

SKEW_S = 60.0
"""How far clocks may be apart: order and dates of what is said come from them."""
PAUSES = 3
"""A lease lasts longer than this many of the longest pauses that were seen."""
UNSAFE_OFF = ("fsync", "synchronous_commit", "full_page_writes")
BEGINS_S = 30.0
"""A process that is up for longer has taken what nobody else has."""
NOTICE_S = 2.0
"""How long a notice may take from one connection to another."""


def server(home: Home) -> Iterator[Check]:
    """Check the server, the way to it, and the processes that share it. Raises: StoreError."""
    loaded, place = load(home, os.environ), place_of(home)
    from claudius.memory.postgres.session import connected, is_unused

    with connected(place) as made:
        is_unused(made, place.shown)
        yield from _of_moves(made, place)
        yield from _of_settings(made, loaded)
        yield from _of_text(made)
        yield _of_copies(made)
        skew_s = time.time() - float(_one(made, "SELECT extract(epoch FROM clock_timestamp())::float8"))
    yield Check(
        "clock of the server",
        ok=abs(skew_s) <= SKEW_S,
        detail=f"{abs(skew_s):.0f} s {'behind' if skew_s > 0 else 'ahead of'} this machine's",
        fix="let both machines set their clocks by NTP",
    )
    yield _session(place)
    yield _notices(place)
    yield from _of_workers(home, loaded)
    yield from _of_tokens(home, loaded, place)


def _one(made: Made, sql: str) -> Any:
    from claudius.memory.postgres.session import value_of

    return value_of(made, sql)


def _of_moves(made: Made, place: StorePlace) -> Iterator[Check]:
    """Report a server at which nothing can start."""
    from claudius.memory.postgres.session import closed_by

    closed = closed_by(made)
    if closed:
        yield Check("move", ok=False, detail=f"nothing can start: {closed.why()}", fix=closed.fix(place.url))


def _of_settings(made: Made, loaded: Loaded) -> Iterator[Check]:
    lost = "a crash of the server loses what was acknowledged"
    unsafe = [name for name in UNSAFE_OFF if _one(made, f"SHOW {name}") == "off"]
    fix = "turn it on in postgresql.conf, and for this role and database (ALTER ROLE … RESET)"
    detail = f"{', '.join(unsafe)} off: {lost}" if unsafe else "it keeps what it has acknowledged"
    yield Check("durability", ok=not unsafe, detail=detail, fix=fix)
    level = _one(made, "SHOW default_transaction_isolation")
    fix = "remove default_transaction_isolation from this role, database or server"
    yield Check("isolation", ok=level == "read committed", detail=f"transactions are {level}", fix=fix)
    if loaded.config.store.failover:
        standby = _one(made, "SELECT max(sync_state) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
        detail = f"a standby follows ({standby})" if standby else "no standby follows synchronously"
        fix = "set synchronous_standby_names; grant pg_monitor to this role, so that it may see standbys"
        yield Check("standby", ok=standby is not None, detail=detail, fix=fix)


def _of_text(made: Made) -> Iterator[Check]:
    odd = _one(made, _COLLATED)
    detail = f"{odd} columns of text do not sort by their bytes" if odd else "text sorts by its bytes"
    yield Check("collation", ok=not odd, detail=detail, fix="move the soul into a schema that Claudius makes itself")


def _of_copies(made: Made) -> Check:
    """Look whether copies can be made and put back, before one is needed."""
    from claudius.memory.postgres.moving import LACKS, grant

    if not _one(made, "SELECT has_database_privilege(current_database(), 'CREATE')"):
        return Check("copies", ok=False, detail=LACKS, fix=grant(made))
    return Check("copies", ok=True, detail="they can be made and put back")


def _session(place: StorePlace) -> Check:
    """Look whether the settings of a session stay from one transaction to the next."""
    from claudius.memory.postgres.session import connected

    with connected(place) as made:
        made.commit()
        made.autocommit = True
        made.execute("SET statement_timeout = '54321ms'")
        is_kept = _one(made, "SHOW statement_timeout") == "54321ms"
    detail = "the settings of a session stay" if is_kept else "the settings of a session do not stay"
    fix = "a pooler in transaction mode stands between: store.url must name the server, or a pooler in session mode"
    return Check("way to the server", ok=is_kept, detail=detail, fix=fix)


def _notices(place: StorePlace) -> Check:
    """Send a notice as a process does, and look whether it arrives where a process listens."""
    from claudius.memory.postgres.leases import CHANNEL
    from claudius.memory.postgres.session import connected

    url, look_s = place.notices_url, LeaseTimes().look_s
    if not url:
        detail = f"none are wanted (store.listen_url is empty): each process looks every {look_s:g} s"
        return Check("notices", ok=True, detail=detail)
    with connected(StorePlace(url, place.password)) as ear:
        ear.commit()
        ear.autocommit = True
        ear.execute(f'LISTEN "{_one(ear, CHANNEL)}_{os.getpid()}"'.encode())
        with connected(place) as mouth:
            mouth.execute("SELECT pg_notify(%s, '')", (f"{_one(mouth, CHANNEL)}_{os.getpid()}",))
        is_heard = bool(list(ear.notifies(timeout=NOTICE_S, stop_after=1)))
    missed = f"they do not arrive: a process finds what another heard after {look_s:g} s"
    fix = "store.listen_url must name the same database and schema as store.url, past any pooler in transaction mode"
    return Check("notices", ok=is_heard, detail="they arrive" if is_heard else missed, fix=fix)


def _of_workers(home: Home, loaded: Loaded) -> Iterator[Check]:
    with records(home) as kept:
        at_work = [one for one in workers_of(kept) if one["state"] == "at work"]
    for one in at_work:
        if abs(one["skew_s"]) > SKEW_S:
            detail = f"{_named(one)}: its clock is {one['skew_s']:+.0f} s from the server's"
            yield Check("clocks", ok=False, detail=detail, fix="let that machine set its clock by NTP")
    ours = common(loaded)
    others = [one for one in at_work if one["configuration"] not in ("", ours)]
    for one in others:
        detail = f"{_named(one)} runs with other settings than this home's"
        fix = (
            f"make config.toml the same (but {', '.join(sorted(OF_A_MACHINE))}); the process shows it within "
            "a third of worker.lease_s, or, for what is read only at its start, once it is restarted"
        )
        fix += "; `/claudius owner` writes `owners` on the machine that heard it alone"
        yield Check("configurations", ok=False, detail=detail, fix=fix)
    if at_work and not others:
        many = "1 process has" if len(at_work) == 1 else f"{len(at_work)} processes have"
        yield Check("configurations", ok=True, detail=f"{many} the settings of this home")
    yield from _of_listeners(loaded, at_work)
    yield from _of_souls(home, at_work)
    longest = max(at_work, key=lambda one: one["pause_s"], default=None)
    if longest:
        lease_s = loaded.config.worker.lease_s
        yield Check(
            "leases",
            ok=lease_s > PAUSES * longest["pause_s"],
            detail=f"{lease_s:.0f} s; the longest pause was {longest['pause_s']:.1f} s ({_named(longest)})",
            fix=f"raise worker.lease_s above {PAUSES * longest['pause_s']:.0f}, or give that machine more time",
        )


def _of_listeners(loaded: Loaded, at_work: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Check that somebody listens to each network whose tokens are here, once a process had the time to begin."""
    held = [place for one in at_work for place in one["holds"]]
    if not any(one["up_s"] > BEGINS_S for one in at_work):
        return
    for network in networks_on(loaded):
        is_heard = any(place.startswith(f"listen/{network}/") for place in held)
        detail = "a process listens" if is_heard else "no process at work listens: nothing that is said arrives"
        fix = f"`claudius daemon start`, or `claudius worker --roles lanes,listen/{network}`"
        yield Check(f"{network} listeners", ok=is_heard, detail=detail, fix=fix)


def _of_souls(home: Home, at_work: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Check that all processes think with one soul, and that this home's is in force if it has one."""
    from claudius.reports.soul import overruled, pushed

    if overruled(home):
        yield Check("soul", ok=False, detail=OVERRULED, fix=FIX)
    found = pushed(home)
    if found:
        detail = f"{found.sha256[:12]} was pushed from {found.host} at {found.at:%Y-%m-%d %H:%M} UTC"
        yield Check("soul", ok=True, detail=detail)
    told = [one for one in at_work if one["soul"]]
    others = [one for one in told[1:] if (one["soul"], one["version"]) != (told[0]["soul"], told[0]["version"])]
    for one in others:
        detail = f"{_named(one)} thinks with another soul than {_named(told[0])}"
        fix = "run `claudius soul push` in the home whose soul it is to be; all hear of it within worker.lease_s / 3"
        yield Check("souls", ok=False, detail=detail, fix=fix)
    if told and not others:
        yield Check("souls", ok=True, detail=f"all think with {told[0]['soul']}")


def _of_tokens(home: Home, loaded: Loaded, place: StorePlace) -> Iterator[Check]:
    """Report another home of this machine that runs with one of our tokens, and keeps what it hears elsewhere."""
    ours = set(fingerprints({name: one for name, one in loaded.secrets.items() if name.endswith("_TOKEN")}).items())
    for path in sorted(home.root.parent.iterdir()):
        other = Home(path)
        if path == home.root or not other.lock.exists() or not is_held(other):
            continue
        theirs: Mapping[str, str] = {}
        with suppress(OSError, ValueError, AttributeError):
            theirs = json.loads(other.lock.read_text()).get("tokens", {})
        shared = sorted(name for name, _ in ours & set(theirs.items()))
        if shared and place_of(other).url != place.url:
            detail = f"{path} runs with the same {shared[0]}, and another store: each message is answered by either"
            yield Check("homes", ok=False, detail=detail, fix="stop one of them, or give it a token of its own")


def _named(one: Mapping[str, Any]) -> str:
    here = " (this machine)" if one["host"] == socket.gethostname() else ""
    return f"process {one['pid']} on {one['host']}{here}"


_COLLATED = """SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    AND a.atttypid = 'text'::regtype AND a.attcollation <> 'pg_catalog."C"'::regcollation"""


def closed(home: Home) -> str:
    """Return why nobody can take turns at the server, and what to do; empty if they can, or the store is a file.

    Raises: StoreError.
    """
    place = place_of(home)
    if not place.is_postgres:
        return ""
    from claudius.memory.postgres.session import closed_at

    found = closed_at(place)
    return found.line(place.shown, place.url) if found else ""


def schema_at(place: StorePlace) -> tuple[int | None, int, int]:
    """Return the schema of a server's store, the oldest that may write to it, and the one we know. Raises: StoreError.

    The schema is None if there is no store.
    """
    try:
        from claudius.memory.postgres.schema import known, released
    except ImportError as error:
        raise StoreError(MISSING) from error
    schema, oldest = released(place)
    return schema, oldest, known(shipped("memory"))
