"""Two tabs and a reconnect, over a real daemon and the real console: each word is told once, and nothing stays open."""

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp

from driven import TIMEOUT_S, ConsoleClient, Machine, reply, serving_console

OWN = "terminal:local:main:"
WORDS = ("It", " holds,", " as", " measured.")
LAST = "Good night."
TALKS = 12
ENDS_S = 20.0
"""How long a closed stream may take to be noticed on a busy machine."""


class Tab:
    """One tab, without a browser: it follows what happens, and acknowledges each speech that it has drawn."""

    def __init__(self, client: aiohttp.ClientSession, conversation: str, after: int | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self._client, self._conversation = client, conversation
        self._grew = asyncio.Condition()
        self._task = asyncio.create_task(self._follow(after), name="a tab")

    async def _follow(self, after: int | None) -> None:
        asked = {"conversation": self._conversation} | ({} if after is None else {"after": after})
        async with self._client.post("/api/live", json=asked) as stream:
            async for line in stream.content:
                event = json.loads(line)
                if event["kind"] == "speech":
                    shown = {"conversation": event["conversation"], "key": event["key"]}
                    async with self._client.post("/api/shown", json=shown):
                        pass
                async with self._grew:
                    self.events.append(event)
                    self._grew.notify_all()

    def reconnect(self) -> None:
        """Lose the stream, and take it up again after the last event that came, as the page does."""
        self._task.cancel()
        after = max((one["n"] for one in self.events), default=None)
        self._task = asyncio.create_task(self._follow(after), name="a tab, again")

    async def until(self, kind: str, text: str = "") -> None:
        """Wait until an event of a kind, with a text if one is named, has come."""
        async with asyncio.timeout(TIMEOUT_S), self._grew:
            await self._grew.wait_for(
                lambda: any(
                    one["kind"] == kind and text in (one.get("text"), one.get("body"), "") for one in self.events
                )
            )

    async def close(self) -> None:
        """Close the tab."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def told(self, kind: str) -> Counter[str]:
        """Return how often each text of a kind was told."""
        return Counter(one["text"] or one["body"] for one in self.events if one["kind"] == kind)


def sockets(pid: int) -> int:
    """Return how many sockets a process has open."""
    found = 0
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += str(one.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue
    return found


async def talk(client: aiohttp.ClientSession, number: int) -> list[str]:
    """Talk with two tabs that open at once, every other one of which reconnects; return what was not told once."""
    conversation = f"{OWN}talk-{number}"
    tabs = [Tab(client, conversation) for _ in range(2)]
    if number % 2:
        await tabs[0].until("beat")
        tabs[0].reconnect()
    await asyncio.gather(*(tab.until("beat") for tab in tabs))
    wrong = []
    for words, end in (("Does it hold?", "".join(WORDS)), ("Good night.", LAST)):
        said = {"id": f"{number}: {words}", "conversation": conversation, "text": words}
        presses = 1 if number else 2  # pressed again before the first was answered
        answers = await asyncio.gather(*(client.post("/api/say", json=said) for _ in range(presses)))
        wrong += [f"talk {number}: {answer.status}" for answer in answers if answer.status != 202]
        await asyncio.gather(*(tab.until("speech", end) for tab in tabs))
    once = Counter(WORDS)
    wrong += [
        f"talk {number}, tab {n}: {told}"
        for n, tab in enumerate(tabs)
        for told, right in (
            (Counter({word: count for word, count in tab.told("speak.delta").items() if word in once}), once),
            (Counter({"": tab.told("speech")["".join(WORDS)]}), Counter({"": 1})),
        )
        if told != right
    ]
    await asyncio.gather(*(tab.close() for tab in tabs))
    return wrong


async def test_console_w10_two_tabs_and_a_reconnect_are_told_each_word_once(machine: Machine) -> None:
    """page-twice: in twelve talks each word of a reply comes once to each tab; when the tabs are closed, no socket is left."""
    begun, ended = reply("\0").split("\0")
    both = [{"deltas": ["<acts>none</acts>\n", begun, *WORDS, ended], "gap_s": 0.02}, reply(LAST)]
    machine.scripted(*both * TALKS)
    with machine.daemon() as daemon, serving_console(machine) as console:
        mine = ConsoleClient(console())
        async with aiohttp.ClientSession(mine.base, headers=mine.headers) as client:
            listening = Tab(client, "", 0)
            await listening.until("changed", "awake")
            await listening.close()
            before = {pid: sockets(pid) for pid in (daemon, console.pid)}
            wrong = [line for number in range(TALKS) for line in await talk(client, number)]
        give_up_at = time.monotonic() + ENDS_S
        while (more := {pid: sockets(pid) - before[pid] for pid in before}) and time.monotonic() < give_up_at:
            if max(more.values()) <= 0:  # the client's own connection stood when they were counted before
                break
            await asyncio.sleep(0.05)

    assert wrong == []
    assert max(more.values()) <= 0, more
