"""Take terminal turns in this process and print the package modules that each entered. Run by `p15_house.py`.

A turn is said by the real `claudius chat --once` in its own process; this process is the soul that hears it. A
profile hook in every thread records each function of the package on its first call. One turn before them warms the
caches; of two, only what both enter counts, because a slow machine adds what a wait brings.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import claudius
from claudius.compose import compose
from claudius.home import Home

PACKAGE = str(Path(claudius.__file__).parent) + "/"
INLINE = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Names that are not counted, because newer versions of Python make no function of them."""
BY_TIME = ("watch", "pages", "archive", "clock")
"""Tasks that run by the clock and not by turns. They are stopped, or a slow machine would count them too."""
HELLO = "Hello, my name is Ada."
PLAIN = ("The bread came out of the oven at noon.", "The train went out of the station at six.")

entered: list[dict[CodeType, None]] = []
is_noting = False


def note(frame: FrameType, event: str, _: Any) -> None:
    """Record the code object of a call, in the order of first calls."""
    if is_noting and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
        entered[-1][frame.f_code] = None


async def take(home: Home) -> None:
    """Wake the soul, let it answer, and record two turns more."""
    global is_noting  # noqa: PLW0603 - a profile hook has no other way to be told
    composed = await compose(home)
    await composed.start()
    try:
        await say(HELLO)
        beside = [task for task in asyncio.all_tasks() if task.get_name() in BY_TIME]
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        for text in PLAIN:
            entered.append({})
            is_noting = True
            await say(text)
            is_noting = False
    finally:
        await composed.stop()


async def say(text: str) -> None:
    """Say one line as a user does. Raises: AssertionError if no reply comes."""
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "claudius", "chat", "--once", text, stdout=asyncio.subprocess.PIPE
    )
    reply, _ = await client.communicate()
    assert client.returncode == 0, "no reply came"
    assert reply.strip(), "the reply was empty"


def main() -> None:
    """Print the modules entered, in order of first entry, and how many functions were called."""
    threading.setprofile(note)
    sys.setprofile(note)
    asyncio.run(take(Home.of(os.environ)))
    sys.setprofile(None)
    first, second = entered
    functions = [code for code in first if code in second and code.co_name not in INLINE]
    modules = list(dict.fromkeys(code.co_filename.removeprefix(PACKAGE) for code in functions))
    print(json.dumps({"modules": modules, "functions": len(functions)}))


if __name__ == "__main__":
    main()
