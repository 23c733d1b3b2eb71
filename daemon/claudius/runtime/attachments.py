"""Attached files: fetched when a turn runs, shown to the model or read in that one turn, and not stored."""

from __future__ import annotations

import asyncio
import io
import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.message import Message
from importlib.util import find_spec
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.errors import DeliveryError
from claudius.foreign import unquoted
from claudius.perception import MessageExtra, Perception
from claudius.prompt import datamark, valid
from claudius.provider import Image
from claudius.runtime.adapter import Adapter
from claudius.runtime.documents import document_kind, document_text
from claudius.shown import ReadFile

log = logging.getLogger(__name__)

MOST_FILES = 4
MOST_BYTES = 10_000_000
MOST_TEXT = 100_000
"""The most that is shown of the texts of a turn together, in characters; of a longer one its head and its tail."""
LEAST_TEXT = 500
TAIL_SHARE = 4
FETCH_S = 30.0
"""How long one file may take to arrive."""
UNHEARD = "it cannot be listened to here, and has no transcript"
IS_CUT = "only the beginning of what is spoken is known"
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/heic", "image/heif"})
FILMS = ("audio/", "video/", "font/")
CODE = "video/mp2t"
"""By their ending, files of TypeScript are taken for films."""
HEADS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif"}
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
LISTEN_S = 60.0
"""How long a server may take to write one recording down, however slowly it answers."""
LONGEST_RECORDING = 25_000_000
"""The most that such servers take."""
TRANSCRIPTION_KEY = "CLAUDIUS_TRANSCRIPTION_API_KEY"
Transcribe = Callable[[bytes, str, str], Awaitable[str]]
"""Returns the words of a recording, of which it is given the bytes, the name and the media type. Raises: ValueError."""


class _Reading(Struct):
    """The files of one turn while they are read."""

    adapter: Adapter
    sees: bool
    transcribe: Transcribe | None
    images: list[Image] = field(default_factory=list)
    text_chars: int = 0

    async def read(self, perception: Perception) -> Perception:
        extra = perception.extra
        if not isinstance(extra, MessageExtra) or not extra.files:
            return perception
        files = [await self._transcribed(file) for file in extra.files[:MOST_FILES]] + [*extra.files[MOST_FILES:]]
        since = [f"🎙 {file['spoken']}" for file in files if file.get("spoken") and file not in extra.files]
        read = [await self._one(file, number) for number, file in enumerate(files)]
        text = valid("\n".join((*since, perception.text)))
        return replace(perception, text=text, extra=replace(extra, files=tuple(files), read=tuple(read)))

    async def _transcribed(self, file: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a clip with its transcript, if the network still writes it, or another server does."""
        if plain_type(str(file.get("type") or "")).startswith("audio/") and not file.get("spoken"):
            file = await self._told(file)
            return file if file.get("spoken") else await self._written(file)
        return await self._told(file)

    async def _written(self, file: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.transcribe is None:
            return file
        try:
            async with asyncio.timeout(FETCH_S):
                fetched = await self.adapter.fetch(file, LONGEST_RECORDING)
            return {**file, "spoken": await self.transcribe(fetched.content, fetched.name, fetched.media_type)}
        except ValueError as error:
            return {**file, "unread": str(error)}
        except (DeliveryError, OSError, TimeoutError) as error:
            log.info("a recording was not fetched", extra={"error": unquoted(error)})
            return {**file, "unread": "it could not be fetched"}

    async def _told(self, file: Mapping[str, Any]) -> Mapping[str, Any]:
        if not file.get("is_awaited"):
            return file
        try:
            async with asyncio.timeout(FETCH_S):
                return await self.adapter.transcribed(file)
        except (DeliveryError, OSError, TimeoutError) as error:
            log.info("a clip was not transcribed", extra={"error": unquoted(error)})
            return file

    async def _one(self, file: Mapping[str, Any], number: int) -> ReadFile:
        name, kind, told = str(file.get("name") or ""), str(file.get("type") or ""), file.get("bytes")
        size = told if isinstance(told, int) else 0  # whoever does not say it is held to what arrives
        image: int | None = None
        text: tuple[str | None, int | None, str | None] = (None, None, None)
        unread: str | None = str(file.get("unread") or "") or None
        if unread:
            return ReadFile(name=valid(name), type=valid(kind), unread=unread)
        if file.get("spoken"):  # it stands in the message
            return ReadFile(name=valid(name), type=valid(kind), unread=IS_CUT if file.get("is_cut") else None)
        try:
            most = self._most(kind, size, number) if kind else MOST_BYTES
            async with asyncio.timeout(FETCH_S):
                fetched = await self.adapter.fetch(file, most)
            name, whole_kind = fetched.name, fetched.media_type
            kind = picture_type(fetched.content) or plain_type(whole_kind)
            self._most(kind, len(fetched.content), number)
            if kind in PICTURES:
                self.images.append(await asyncio.to_thread(picture, fetched.content))
                image = len(self.images)
            else:
                reader = document_kind(fetched.content, kind)
                whole = await document_text(fetched.content, reader) if reader else decoded(fetched.content, whole_kind)
                text = self._shown(whole)
        except ValueError as error:
            unread = str(error)
        except (DeliveryError, OSError, TimeoutError) as error:
            log.info("a file was not fetched", extra={"type": kind, "error": unquoted(error)})
            unread = "it could not be fetched"
        head, cut, end = text
        return ReadFile(name=valid(name), type=valid(kind), image=image, text=head, cut=cut, end=end, unread=unread)

    def _most(self, kind: str, size: int, number: int) -> int:
        """Return the most bytes that are read of such a file. Raises: ValueError if it is not read at all."""
        if number >= MOST_FILES:
            raise ValueError("there were too many")
        kind = plain_type(kind)
        if kind.startswith("audio/"):
            raise ValueError(UNHEARD)
        if kind.startswith(FILMS) and kind != CODE:
            raise ValueError("of no kind that can be read")
        if kind in PICTURES and not self.sees:
            raise ValueError("pictures cannot be seen here")
        if size > MOST_BYTES:
            raise ValueError("too large")
        return MOST_BYTES

    def _shown(self, text: str) -> tuple[str, int | None, str | None]:
        """Return what is shown of a text: all of it, or its head, how much lies between, and its tail.

        Raises: ValueError if the texts of the turn have used up the room.
        """
        room = MOST_TEXT - self.text_chars
        if room < LEAST_TEXT:
            raise ValueError("too large")
        self.text_chars += min(len(text), room)
        if len(text) <= room:
            return datamark(text), None, None
        tail = room // TAIL_SHARE
        return datamark(text[: room - tail]), len(text) - room, datamark(text[-tail:])


def plain_type(kind: str) -> str:
    """Return a media type without its parameters. Pure."""
    return kind.partition(";")[0].strip().lower()


def picture_type(content: bytes) -> str:
    """Return the media type of a picture by its first bytes, whatever its name says; empty if it is none. Pure."""
    is_webp = content.startswith(b"RIFF") and content[8:12] == b"WEBP"  # "Convert WEBP …" is a text
    is_heic = content[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1")
    kind = next((one for head, one in HEADS.items() if content.startswith(head)), "")
    return "image/webp" if is_webp else "image/heic" if is_heic else kind


def decoded(content: bytes, kind: str) -> str:
    """Decode a text by its content: as UTF-8 if it is that, else in the charset that its type declares. Pure.

    ASCII alone may be either. Raises: ValueError if it is none, or empty.
    """
    if not content:
        raise ValueError("it is empty")
    declared = Message()
    declared["Content-Type"] = kind
    named = declared.get_content_charset("utf-8")
    named = "utf-8" if "puny" in named or "idna" in named else named  # forms of names: hours for a long text
    mark = next((one for mark, one in MARKS.items() if content.startswith(mark)), "")
    for charset in (mark,) if mark else (named, "utf-8") if content.isascii() else ("utf-8", named):
        with suppress(UnicodeError, LookupError):
            if "\0" not in (text := content.decode(charset)):
                return text
    raise ValueError("no text: it is not UTF-8, and declares no other charset that fits")


class Attachments:
    """Reads the files attached on one network, for one turn each time."""

    def __init__(self, adapter: Adapter, transcribe: Transcribe | None = None, *, sees: bool) -> None:
        """Fetch through `adapter`; `transcribe` writes recordings down; `sees`: the model accepts pictures."""
        self._adapter, self._transcribe, self._sees = adapter, transcribe, sees

    async def read(self, perceptions: tuple[Perception, ...]) -> tuple[tuple[Perception, ...], tuple[Image, ...]]:
        """Return the perceptions with what was read, and the pictures for the model."""
        reading = _Reading(self._adapter, self._sees and find_spec("PIL") is not None, self._transcribe)
        return tuple([await reading.read(one) for one in perceptions]), tuple(reading.images)

    def without_pictures(self, perceptions: tuple[Perception, ...]) -> tuple[Perception, ...]:
        """Return the perceptions in the form for a model that accepts no pictures."""
        return tuple(map(_blind, perceptions))


def _blind(perception: Perception) -> Perception:
    extra = perception.extra
    if not isinstance(extra, MessageExtra):
        return perception
    read = (
        one if one.image is None else replace(one, image=None, unread="pictures cannot be seen here")
        for one in extra.read
    )
    return replace(perception, extra=replace(extra, read=tuple(read)))


LONGEST_PX = 1568
"""The model's server scales down anything longer. Source: docs.claude.com, "Vision"."""
MOST_PIXELS = 50_000_000
"""A larger picture is not decoded: a small file may decompress to any size."""
PICTURE_BYTES = 4_000_000
"""A picture is written with the first of these JPEG qualities that brings it under this size."""
QUALITIES = (85, 60, 30)


def picture(content: bytes) -> Image:
    """Decode a picture and re-encode it; slow, blocking. Raises: ValueError if it is no picture or too large."""
    import PIL.Image  # noqa: PLC0415 - only where somebody shows a picture
    import PIL.ImageOps  # noqa: PLC0415 - as above

    formats = ["PNG", "JPEG", "GIF", "WEBP"]
    if find_spec("pillow_heif"):
        import pillow_heif  # noqa: PLC0415 - as above

        pillow_heif.register_heif_opener()
        formats.append("HEIF")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library warns of large pictures; our own limit applies
            opened = PIL.Image.open(io.BytesIO(content), formats=formats)
            if opened.width * opened.height > MOST_PIXELS:
                raise ValueError("too many pixels")
            upright = PIL.ImageOps.exif_transpose(opened).convert("RGBA")
    except (OSError, SyntaxError, EOFError, PIL.Image.DecompressionBombError) as error:
        raise ValueError("not a picture, or damaged") from error
    upright.thumbnail((LONGEST_PX, LONGEST_PX))
    flat = PIL.Image.new("RGB", upright.size, "white")
    flat.paste(upright, mask=upright.getchannel("A"))
    for quality in QUALITIES:
        written = io.BytesIO()
        flat.save(written, "JPEG", quality=quality)
        if written.tell() <= PICTURE_BYTES:
            return Image("image/jpeg", written.getvalue())
    raise ValueError("too large, however it is written")


def transcriber(loaded: Callable[[], Loaded]) -> Transcribe:
    """Return what has recordings written down by the server that the settings, as they then are, name.

    Source: platform.openai.com/docs/api-reference/audio/createTranscription.
    """

    async def written(content: bytes, name: str, kind: str) -> str:
        import httpx  # noqa: PLC0415 - only where somebody speaks

        settings, key = loaded().config.transcription, loaded().secrets.get(TRANSCRIPTION_KEY)
        headers = {"Authorization": f"Bearer {key.reveal()}"} if key else {}
        asked = {"model": settings.model, "response_format": "json"}
        asked |= {"language": settings.language} if settings.language else {}
        url = f"{settings.base_url.rstrip('/')}/audio/transcriptions"
        try:
            async with asyncio.timeout(LISTEN_S), httpx.AsyncClient(timeout=LISTEN_S) as client:
                answer = await client.post(url, headers=headers, data=asked, files={"file": (name, content, kind)})
            answer.raise_for_status()
            text = answer.json()["text"]
        except (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError) as error:
            log.warning("a recording was not written down", extra={"error": type(error).__name__})
            raise ValueError("it could not be listened to: the transcription server gave no words") from None
        if not isinstance(text, str) or not text.strip():
            raise ValueError("nothing was heard in it")
        return text.strip()

    return written
