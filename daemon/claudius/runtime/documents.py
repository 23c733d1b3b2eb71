"""Read the text of a document, in a process of its own: what a hostile file makes of time and memory ends with it.

    python -m claudius.runtime.documents pdf|docx < FILE > TEXT

It needs the extra `documents`. Source: pypdf.readthedocs.io; python-docx.readthedocs.io.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec

READ_S = 20.0
MOST_CHARS = 400_000
"""Enough for the head and the tail that are shown."""
MOST_BYTES_OF_MEMORY = 1 << 30
LIBRARIES = {"pdf": "pypdf", "docx": "docx"}
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def document_kind(content: bytes, kind: str) -> str:
    """Return which reader a file needs, by its first bytes and its media type; empty if it is no document. Pure."""
    if content.startswith(b"%PDF-"):
        return "pdf"
    return "docx" if content.startswith(b"PK") and (kind == DOCX or b"word/document.xml" in content) else ""


async def document_text(content: bytes, reader: str) -> str:
    """Return a document's text. Raises: ValueError if it cannot be read."""
    if find_spec(LIBRARIES[reader]) is None:
        raise ValueError("documents cannot be read here: the extra `documents` is not installed")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", __name__, reader,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(READ_S):
            written, _ = await child.communicate(content)
    except TimeoutError:
        raise ValueError("it took too long to read") from None
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    if child.returncode:
        raise ValueError("it is damaged, or locked with a password")
    text = written.decode().strip()
    if not text:
        raise ValueError("it holds no text, only pictures perhaps")
    return text


def _pages(content: bytes) -> Iterator[str]:
    import pypdf  # noqa: PLC0415 - in the process of its own alone

    for page in pypdf.PdfReader(io.BytesIO(content)).pages:
        yield page.extract_text()


def _paragraphs(content: bytes) -> Iterator[str]:
    import docx  # noqa: PLC0415 - as above
    from docx.table import Table  # noqa: PLC0415 - as above

    for block in docx.Document(io.BytesIO(content)).iter_inner_content():
        if isinstance(block, Table):
            yield from ("\t".join(cell.text for cell in row.cells) for row in block.rows)
        else:
            yield block.text


def main() -> None:
    """Read one document from stdin and write its text."""
    import resource  # noqa: PLC0415 - in the process of its own alone

    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES_OF_MEMORY, MOST_BYTES_OF_MEMORY))
    content, left = sys.stdin.buffer.read(), MOST_CHARS
    for part in (_pages if sys.argv[1] == "pdf" else _paragraphs)(content):
        text = part[:left] + "\n"
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        left -= len(text)
        if left <= 0:
            break


if __name__ == "__main__":
    main()
