"""P12: the parser and the fence: MB/s, hostile replies of unclosed tags, and what one ordinary message costs.

The caps that stop a hostile reply early in the daemon are lifted here, so that every character is really read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from msgspec.structs import replace

import script
from claudius.cognition.reply.parser import Limits, Parser
from claudius.prompt import data_line, fence
from command import Bench, alone
from figures import Beside, Figure, bound
from sides import alternate, peer_python, side

HERE = Path(__file__).resolve().parent
TAGS = ("<internal_monologue>", "<external_dialogue>")
"""Unclosed tags: the first is mere text of a private section to us; each of the second is scanned, the slowest case."""
FEW, QUICK_FEW, MANY, QUICK_MANY = 8000, 2000, 800_000, 50_000
MEGABYTE = 1_000_000
MESSAGE_CHARS = 360
NONCE = "0123456789abcdef0123456789abcdef"
LIFTED = Limits(reply=2**30, dialogue=2**30, section=2**30)
ANCESTOR = bound("P12.claudicle")
LINEAR = bound("P12.linear")

Timed = dict[str, Callable[[], float]]


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate all parts. Both sides of a ratio are in the same rounds."""
    few, many = (QUICK_FEW, QUICK_MANY) if bench.is_quick else (FEW, MANY)
    message, reply, whole = script.prose(MESSAGE_CHARS, 1), _reply(MESSAGE_CHARS), _reply(MEGABYTE)
    line = {"kind": "message", "who": "p123456", "from": "Tom", "text": message}
    sides: Timed = {
        "parse": lambda: _took_s(lambda: parse(whole)),
        "fence": lambda: _took_s(lambda: fence(data_line({"kind": "message", "text": whole}), NONCE)),
        "message": lambda: _took_s(lambda: fence(data_line(line), NONCE), times=2000),
        "reply": lambda: _took_s(lambda: parse(reply), times=2000),
        "many": lambda: _took_s(lambda: parse(TAGS[-1] * many)),
        "half": lambda: _took_s(lambda: parse(TAGS[-1] * (many // 2))),
    }
    for tag in TAGS:
        sides[tag] = partial(_took_s, partial(parse, tag * few), times=5)
    with ExitStack() as stack:
        ancestor = bench.peer("claudicle", ANCESTOR, lambda path: _begin(bench, stack, path, sides, few))
        found = alternate(bench.rounds, sides)
    size = len(whole.encode()) / 1e6
    both = zip(found["parse"], found["fence"], strict=True)
    yield Figure(
        id="P12",
        name="parser + fence, a 1 MB reply",
        unit="MB/s",
        samples=[size / (parse_s + fence_s) for parse_s, fence_s in both],
        note=f"parser {size / median(found['parse']):.3g} MB/s, fence {size / median(found['fence']):.3g} MB/s",
    )
    for tag in TAGS:
        yield _unclosed(tag, few, found, ancestor)
    yield Figure(
        id="P12",
        name=f"parser, t(2n)/t(n), {many:,} unclosed {TAGS[-1]}",
        unit="s",
        samples=found["many"],
        beside=(Beside(name=f"ourselves, {many // 2:,}", bound=LINEAR, samples=found["half"]),),
    )
    yield Figure(
        id="P12",
        name=f"fence, a message of {MESSAGE_CHARS} characters",
        unit="µs",
        samples=[1e6 * took_s for took_s in found["message"]],
        note=f"and to parse a reply of that length: {1e6 * median(found['reply']):.1f} µs",
    )


def _unclosed(tag: str, few: int, found: Mapping[str, list[float]], ancestor: Beside) -> Figure:
    if not ancestor.reason:
        ancestor = replace(ancestor, samples=[few / took_s for took_s in found[f"ancestor {tag}"]])
    return Figure(
        id="P12",
        name=f"parser, {few:,} unclosed {tag}",
        unit="tags/s",
        samples=[few / took_s for took_s in found[tag]],
        beside=(ancestor,),
        note=f"{1000 * median(found[tag]):.2f} ms",
    )


def parse(text: str) -> None:
    """Read one whole reply."""
    parser = Parser(limits=LIFTED)
    parser.feed(text)
    parsed = parser.finish()
    assert len(parsed.raw) == len(text), "part of the reply was not read"


def _reply(chars: int) -> str:
    """Return a reply of about that length in the usual form, three quarters of it dialogue."""
    thought, said = script.prose(max(8, chars // 4 - 60), 1), script.prose(max(8, chars * 3 // 4 - 60), 2)
    return f"<internal_monologue>{thought}</internal_monologue>\n<external_dialogue>{said}</external_dialogue>"


def _took_s(work: Callable[[], object], times: int = 1) -> float:
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


def _begin(bench: Bench, stack: ExitStack, path: Path, sides: Timed, few: int) -> Beside:
    driver = stack.enter_context(side(HERE / "anchors" / "claudicle.py", bench.home("claudicle"), peer_python(path)))
    version = driver.ask("begin", path=str(path), rows=0)
    for tag in TAGS:
        sides[f"ancestor {tag}"] = partial(driver.ask, "parse", tag=tag, count=few)
    return Beside(name="claudicle", bound=ANCESTOR, version=version)


if __name__ == "__main__":
    alone(__file__)
