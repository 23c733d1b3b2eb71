"""Find moments by their meaning, where the optional extra `recall` is installed.

`Semantic.run` is a task beside the turns: it gives each message of a person a vector, never within a transaction of a
turn. `Semantic.near` is called by `store.moments.remember` before its own search, and says how near the visible moments
are to what was heard. If the embedder fails, one line is logged, and moments are found by their words alone.
Source: the memory design, F2 to F7.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from claudius.errors import StoreError
from claudius.perception import Perception

NEAR = 0.30
"""The cosine from which a moment is found by its meaning alone."""
MOST = 20
"""Upper limit on moments that are found by their meaning alone."""
AT_ONCE = 8
"""The number of texts that are embedded together, so that a turn waits for a few at most."""
LOOK_S = 2.0
"""How often new moments are looked for."""
LOAD_S = 1.0
"""How long a turn waits for an embedder that is being loaded."""

FAILED = "the embedder failed: moments are found by their words alone"

log = logging.getLogger(__name__)


class Embedder(Protocol):
    """Turns texts into directions: texts of one meaning point one way, in whatever language."""

    name: str
    """Kept with every vector; another name makes them void."""
    dimension: int

    def passages(self, texts: Sequence[str]) -> Any:
        """Return an array of floats with a row a text."""
        ...

    def query(self, text: str) -> Any:
        """Return one row, of unit length."""
        ...


class Near(Struct, frozen=True, kw_only=True):
    """How near in meaning moments are to what was heard."""

    scores: Mapping[int, float]
    """Of every moment that has a vector and may be shown: the nearest 1, what has nothing to do with it 0."""
    nearest: tuple[int, ...]
    """Those that are found by their meaning alone, the nearest first."""


class VectorStore(Protocol):
    """The vectors of moments. `store.moments` of SQLite keeps them."""

    async def vectors(self, perception: Perception, embedder: str) -> Sequence[tuple[int, bytes]]:
        """Return the vectors of every moment that may be shown where a perception was heard, by its id."""
        ...

    async def begin_vectors(self, embedder: str) -> int:
        """Delete the vectors of every other embedder; return the last moment that has one, or 0."""
        ...

    async def without_vector(self, after: int, most: int) -> Sequence[tuple[int, str, str]]:
        """Return id, text and the words of pictures of moments after one, and of those whose words changed."""
        ...

    async def count_vectors(self) -> tuple[int, int]:
        """Return how many moments have a vector, and how many may have one."""
        ...

    async def keep_vectors(self, embedder: str, made: Sequence[tuple[int, str, bytes]]) -> None:
        """Keep vectors by id and text; one whose moment is gone, or says something else now, is left out."""
        ...


class Semantic:
    """The search by meaning of one soul."""

    def __init__(self, store: VectorStore, build: Callable[[], Embedder]) -> None:
        """Search `store`; `build` loads the embedder, in a thread, when it is first needed."""
        self._store, self._build = store, build
        self._loading: asyncio.Task[Embedder] | None = None
        self._model = asyncio.Lock()
        self._last, self._is_begun, self._is_off = 0, False, False

    async def near(self, perception: Perception) -> Near | None:
        """Return how near the visible moments are to what was heard.

        None while the embedder is being loaded, after it failed, and if nothing is near.
        """
        if self._is_off or not perception.text.strip():
            return None
        try:
            embedder = await asyncio.wait_for(asyncio.shield(self._loaded()), LOAD_S)
            rows = await self._store.vectors(perception, embedder.name)
            if not rows:
                return None
            async with self._model:
                return await asyncio.to_thread(compared, embedder, perception.text, rows)
        except TimeoutError:
            return None
        except StoreError:
            raise
        except Exception:  # whatever an embedder raises: the turn has its words
            if not self._is_off:
                log.exception(FAILED)
            self._is_off = True
            return None

    async def run(self) -> None:
        """Give every message a vector, from now on. Raises: StoreError."""
        while not self._is_off:
            await asyncio.sleep(LOOK_S)
            await self.catch_up()

    async def catch_up(self) -> None:
        """Give every message that has no vector one. Raises: StoreError."""
        try:
            while found := await self._store.without_vector(self._last, AT_ONCE):
                embedder = await self._loaded()
                if not self._is_begun:
                    self._is_begun, self._last = True, await self._store.begin_vectors(embedder.name)
                    continue
                texts = [f"{text} {pictures}".strip() for _, text, pictures in found]
                async with self._model:
                    packed = await asyncio.to_thread(packed_by, embedder, texts)
                made = [(id_, text, one) for (id_, text, _), one in zip(found, packed, strict=True)]
                await self._store.keep_vectors(embedder.name, made)
                self._last = max(self._last, *(id_ for id_, _, _ in found))
        except StoreError:
            raise
        except Exception:  # whatever an embedder raises: words alone from now on
            if not self._is_off:
                log.exception(FAILED)
            self._is_off = True

    async def progress(self) -> Mapping[str, Any]:
        """Return for `status` how many messages have a vector: `embedder` (None before it is loaded), `done`, `total`.

        `is_off`: the embedder failed.
        """
        done, total = await self._store.count_vectors()
        is_loaded = self._loading and self._loading.done() and not self._is_off
        name = self._loading.result().name if self._loading and is_loaded else None
        return {"embedder": name, "done": done, "total": total, "is_off": self._is_off}

    def _loaded(self) -> asyncio.Task[Embedder]:
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._build), name="embedder")
        return self._loading


def packed_by(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the vector of each text as signed bytes; its length is lost, its direction stays."""
    import numpy as np  # noqa: PLC0415 - of the extra

    given = np.asarray(embedder.passages(texts), dtype=np.float32)
    top = np.maximum(np.abs(given).max(axis=1, keepdims=True), 1e-9)
    return [row.tobytes() for row in np.rint(given / top * 127).astype(np.int8)]


def compared(embedder: Embedder, text: str, rows: Sequence[tuple[int, bytes]]) -> Near | None:
    """Return how near each of these vectors is to a text; None if none is near."""
    import numpy as np  # noqa: PLC0415 - of the extra

    matrix = np.frombuffer(b"".join([one for _, one in rows]), dtype=np.int8).reshape(len(rows), embedder.dimension)
    directions = matrix.astype(np.float32)
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", directions, directions)), 1e-9)
    cosines = directions @ np.asarray(embedder.query(text), dtype=np.float32) / lengths
    best = float(cosines.max())
    if best < NEAR:
        return None
    first = np.argsort(-cosines)[:MOST].tolist()
    scores = np.maximum(cosines / best, 0.0).tolist()
    return Near(
        scores={id_: score for (id_, _), score in zip(rows, scores, strict=True)},
        nearest=tuple([rows[n][0] for n in first if cosines[n] >= NEAR]),
    )
