"""Reads the data records off the prompt of a request, as a model sees them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from claudius.provider import Request

FENCED = re.compile(r"<data-[0-9a-f]+>\n(.*?)\n</data-[0-9a-f]+>", re.DOTALL)


def prompt_of(request: Request) -> str:
    """Return the whole prompt of a request but for its static part."""
    return "\n".join([*(one.content for one in request.history), request.tail])


def records(prompt: str) -> Iterator[Mapping[str, Any]]:
    """Yield the data records of a prompt, in order."""
    for block in FENCED.findall(prompt):
        yield from map(json.loads, block.split("\n"))


def shown_in(request: Request) -> list[Mapping[str, Any]]:
    """Return the records of what the messages of a request show besides their words."""
    return [one for one in records(prompt_of(request)) if one["kind"] == "shown"]
