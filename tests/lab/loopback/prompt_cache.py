"""A model server's prompt cache: what a request reads from it and writes to it, by Anthropic's rules and by OpenAI's.

Source: platform.claude.com/docs/en/build-with-claude/prompt-caching (order tools, system, messages; at most 4
breakpoints; 20 blocks of look-back; a longer ttl first; a shortest cacheable prefix that is not reported), and
platform.openai.com/docs/guides/prompt-caching (automatic, from 1,024 tokens, in steps of 128).
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LOOK_BACK = 20
BREAKPOINTS = 4
TTL_S = {"5m": 300.0, "1h": 3600.0}


class BadCacheControl(ValueError):
    """A 400: the request's breakpoints break a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The input tokens of one call, by where they came from."""

    input_tokens: int
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0


@dataclass(frozen=True, slots=True)
class _Block:
    chain: str
    """Hash of everything up to and with this block, breakpoints aside."""
    tokens: int
    ttl: str
    """`5m` or `1h` where a breakpoint stands here, else empty."""


def tokens(text: str) -> int:
    """Count as this server does: one token for each 4 characters, at least one. Pure."""
    return max(1, len(text) // 4)


@dataclass(slots=True)
class PromptCache:
    """The entries of one account. `minimum` is the shortest cacheable prefix in tokens."""

    minimum: int = 1024
    clock: Callable[[], float] = time.monotonic
    _entries: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Chain hash → until when (seconds of the clock), ttl."""
    _prefixes: list[list[str]] = field(default_factory=list)

    def count(self, body: Mapping[str, Any]) -> Counted:
        """Account for an Anthropic request. Raises: BadCacheControl."""
        blocks = list(_blocks(body))
        marked = [number for number, block in enumerate(blocks) if block.ttl]
        _check(blocks, marked)
        hit = self._longest(blocks, marked)
        read = sum(block.tokens for block in blocks[: hit + 1])
        wrote = {"5m": 0, "1h": 0}
        done = hit
        for number in marked:
            if number <= hit or sum(block.tokens for block in blocks[: number + 1]) < self.minimum:
                continue
            wrote[blocks[number].ttl] += sum(block.tokens for block in blocks[done + 1 : number + 1])
            self._keep(blocks[number])
            done = number
        return Counted(
            input_tokens=sum(block.tokens for block in blocks[done + 1 :]),
            read=read,
            write_5m=wrote["5m"],
            write_1h=wrote["1h"],
        )

    def _longest(self, blocks: list[_Block], marked: list[int]) -> int:
        now = self.clock()
        for mark in reversed(marked):
            for number in range(mark, max(-1, mark - LOOK_BACK), -1):
                until, _ = self._entries.get(blocks[number].chain, (0.0, ""))
                if until > now:
                    self._refresh(blocks[: number + 1], now)
                    return number
        return -1

    def _refresh(self, used: list[_Block], now: float) -> None:
        """Let what was read live on, and each entry before it that the request marks: its content is used too."""
        for block in used:
            until, ttl = self._entries.get(block.chain, (0.0, ""))
            if until > now and (block.ttl or block is used[-1]):
                self._entries[block.chain] = (now + TTL_S[ttl], ttl)

    def _keep(self, block: _Block) -> None:
        self._entries[block.chain] = (self.clock() + TTL_S[block.ttl], block.ttl)

    def count_prefix(self, messages: list[Any]) -> tuple[int, int]:
        """Account for a chat-completions request: all tokens, and how many of them were cached."""
        chain = [json.dumps(message, sort_keys=True) for message in messages]
        common = max((_common(chain, known) for known in self._prefixes), default=0)
        self._prefixes.append(chain)
        shared = sum(tokens(text) for text in chain[:common])
        return sum(tokens(text) for text in chain), shared // 128 * 128 if shared >= self.minimum else 0


def _blocks(body: Mapping[str, Any]) -> Iterator[_Block]:
    chain = hashlib.sha256(str(body.get("model")).encode())
    found = list(_walk(body))
    for number, (role, block) in enumerate(found):
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        text = json.dumps([role, bare], sort_keys=True, ensure_ascii=False)
        chain.update(text.encode("utf-8", "surrogatepass"))
        control = block.get("cache_control") or (body.get("cache_control") if number == len(found) - 1 else None)
        ttl = str(control.get("ttl") or "5m") if control else ""
        yield _Block(chain.hexdigest(), tokens(str(bare.get("text", text))), ttl)


def _walk(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in body.get("tools") or ():
        yield "tool", tool
    for block in _content(body.get("system") or []):
        yield "system", block
    for message in body.get("messages") or ():
        for block in _content(message.get("content") or []):
            yield str(message.get("role")), block


def _content(content: Any) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _check(blocks: list[_Block], marked: list[int]) -> None:
    if len(marked) > BREAKPOINTS:
        raise BadCacheControl(f"A maximum of {BREAKPOINTS} blocks with cache_control may be provided.")
    ttls = [blocks[number].ttl for number in marked]
    if any(ttl not in TTL_S for ttl in ttls):
        raise BadCacheControl("cache_control.ttl: Input should be '5m' or '1h'")
    if "5m" in ttls and "1h" in ttls[ttls.index("5m") :]:
        raise BadCacheControl("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def _common(one: list[str], other: list[str]) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
