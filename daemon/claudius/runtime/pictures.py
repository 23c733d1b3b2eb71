"""Pictures as a model may see them: small, of one format, without what a file may carry beside its pixels."""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec

from claudius.provider import Image

LONGEST_PX = 1568
"""What is longer is made smaller by the model's server anyway. Source: docs.claude.com, "Vision"."""
MOST_PIXELS = 50_000_000
"""A picture of more is not decoded: a small file may unfold to anything."""
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MOST_BYTES = 4_000_000
QUALITIES = (85, 60, 30)


def can_see() -> bool:
    """Tell whether pictures can be decoded here at all."""
    return find_spec("PIL") is not None


def picture(content: bytes) -> Image:
    """Decode a picture and write it anew. Raises: ValueError where it is none, or too large. Takes its time."""
    import PIL.Image  # noqa: PLC0415 - only where somebody shows a picture
    import PIL.ImageOps  # noqa: PLC0415 - as above

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library's own warning of a large picture: the bound is ours
            opened = PIL.Image.open(io.BytesIO(content), formats=FORMATS)
            if opened.width * opened.height > MOST_PIXELS:
                raise ValueError("too many pixels")
            upright = PIL.ImageOps.exif_transpose(opened).convert("RGBA")
    except (OSError, SyntaxError, EOFError, PIL.Image.DecompressionBombError) as error:
        raise ValueError(f"not a picture: {type(error).__name__}") from error
    upright.thumbnail((LONGEST_PX, LONGEST_PX))
    flat = PIL.Image.new("RGB", upright.size, "white")
    flat.paste(upright, mask=upright.getchannel("A"))
    for quality in QUALITIES:
        written = io.BytesIO()
        flat.save(written, "JPEG", quality=quality)
        if written.tell() <= MOST_BYTES:
            return Image("image/jpeg", written.getvalue())
    raise ValueError("too large, however it is written")
