"""The budget of a prompt, counted as the bench counts: what a first turn costs, and what a long talk adds to each."""

from pathlib import Path

from anchors.naive import tokens
from p06_tokens import conversed

TURNS = 200
TAIL, FIRST = 450, 2450
TOOLS = 130 + 16
"""What the tools that ship add: to the system text, where a cache keeps it, and to each tail."""


async def test_a_tail_and_a_first_prompt_keep_their_budgets(tmp_path: Path) -> None:
    """A18: over P6's talk of 200 turns a tail without its message averages 450 tokens; the first prompt has 2,450.

    What is said of tools comes on top.
    """
    told = await conversed(tmp_path, TURNS)

    tails = [tokens(call.tail) - tokens(message) for call, message in zip(told.turns, told.messages, strict=True)]
    first = told.turns[0]
    assert sum(tails) / TURNS <= TAIL
    assert tokens(first.system) + tokens(first.tail) <= FIRST + TOOLS, (tokens(first.system), first.tail)
