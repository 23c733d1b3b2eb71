"""Have spoken words written down by the server that the owner names: any with `/audio/transcriptions`.

Source: platform.openai.com/docs/api-reference/audio/createTranscription.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from claudius.config.load import Loaded

log = logging.getLogger(__name__)

LISTEN_S = 60.0
MOST_BYTES = 25_000_000
"""The most that such servers take."""
KEY = "CLAUDIUS_TRANSCRIPTION_API_KEY"
Transcribe = Callable[[bytes, str, str], Awaitable[str]]
"""Returns the words of a recording, of which it is given the bytes, the name and the media type. Raises: ValueError."""


def transcriber(loaded: Callable[[], Loaded]) -> Transcribe:
    """Return what writes recordings down, by the settings as they are when it is asked."""

    async def written(content: bytes, name: str, kind: str) -> str:
        import httpx  # noqa: PLC0415 - only where somebody speaks

        settings, key = loaded().config.transcription, loaded().secrets.get(KEY)
        headers = {"Authorization": f"Bearer {key.reveal()}"} if key else {}
        asked = {"model": settings.model, "response_format": "json"}
        asked |= {"language": settings.language} if settings.language else {}
        url = f"{settings.base_url.rstrip('/')}/audio/transcriptions"
        try:
            async with httpx.AsyncClient(timeout=LISTEN_S, follow_redirects=False) as client:
                answer = await client.post(url, headers=headers, data=asked, files={"file": (name, content, kind)})
            answer.raise_for_status()
            text = answer.json()["text"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            log.warning("a recording was not written down", extra={"error": type(error).__name__})
            raise ValueError("it could not be listened to: the transcription server gave no words") from None
        if not isinstance(text, str) or not text.strip():
            raise ValueError("nothing was heard in it")
        return text.strip()

    return written
