"""The loopback's prompt cache, compared with the rules that Anthropic documents."""

from typing import Any

import pytest

from lab.loopback.prompt_cache import Counted, PromptCache


def block(text: str, ttl: str | None = None) -> dict[str, Any]:
    """Return a block of text; with a ttl it ends with a breakpoint."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else {}
    return {"type": "text", "text": text, **mark}


def body(*blocks: dict[str, Any], system: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """Return a request with one user message of these blocks."""
    return {"model": "m", "system": system or [], "messages": [{"role": "user", "content": list(blocks)}], **more}


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return the cache's clock."""
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> PromptCache:
    """Return an empty cache with a minimum of ten tokens."""
    return PromptCache(minimum=10, clock=clock)


LONG, MORE, TAIL = "a" * 80, "b" * 40, "c" * 20


MARKED, AUTOMATIC = body(block(LONG, "5m")), body(block(LONG)) | {"cache_control": {"type": "ephemeral"}}
FILLING = [block(f"filling {number}") for number in range(19)]
SECOND = {
    "nothing is cached without a breakpoint": (body(block(LONG)), body(block(LONG)), Counted(input_tokens=20)),
    "what was written is read, the rest is input": (body(block(LONG, "5m"), block(TAIL)), body(block(LONG, "5m"), block("d" * 40)), Counted(input_tokens=10, read=20)),
    "the mark is no part of the prefix": (MARKED, body(block(LONG), block(MORE, "5m")), Counted(input_tokens=0, read=20, write_5m=10)),
    "it looks back 20 blocks": (MARKED, body(block(LONG), *FILLING[:18], block(MORE, "5m")), 20),
    "and no further": (MARKED, body(block(LONG), *FILLING, block(MORE, "5m")), 0),
    "a changed byte before it voids it": (body(block(LONG, "5m"), system=[block("soul")]), body(block(LONG, "5m"), system=[block("soil")]), 0),
    "another model": (MARKED, MARKED | {"model": "other"}, 0),
    "another tool": (MARKED, MARKED | {"tools": [{"name": "t"}]}, 0),
    "a short prefix is not cached": (body(block("a" * 36, "5m")), body(block("a" * 36, "5m")), Counted(input_tokens=9)),
    "writes are counted by their ttl": (
        body(block(TAIL)),
        body(block(MORE, "5m"), block(TAIL), system=[block(LONG, "1h")]),
        Counted(input_tokens=5, write_1h=20, write_5m=10),
    ),
    "a whole request's mark is that of its last block": (AUTOMATIC, AUTOMATIC, 20),
}  # fmt: skip
"""A request, the next one, and what of that is counted; a number alone is what is read."""


@pytest.mark.parametrize("rule", SECOND)
def test_what_a_second_request_costs(rule: str, cache: PromptCache) -> None:
    """Source: platform.claude.com/docs/en/build-with-claude/prompt-caching."""
    first, second, counted = SECOND[rule]
    cache.count(first)

    found = cache.count(second)

    assert counted in (found, found.read)


@pytest.mark.parametrize(("ttl", "later", "read"), [("5m", 299, 20), ("5m", 301, 0), ("1h", 3599, 20), ("1h", 3601, 0)])
def test_an_entry_lives_as_long_as_its_ttl(ttl: str, later: float, read: int, cache: PromptCache, clock: Clock) -> None:
    """An entry lives for five minutes or an hour, and each read extends that."""
    cache.count(body(block(LONG, ttl)))
    clock.now = later

    assert cache.count(body(block(LONG, ttl))).read == read
    clock.now += 299
    assert cache.count(body(block(LONG, ttl))).read == 20
