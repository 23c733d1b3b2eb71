"""Slack and a model on loopback, and their users, in their own process: the load beside a daemon.

Every time is taken here, by one clock: when an event's envelope leaves, when it is acknowledged, when the request has
reached the model, when the model's last byte has left, when the post has arrived.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Coroutine, Iterable
from typing import Any

from aiohttp import web

import script
from lab.loopback.model import Call, ModelServer, Reply
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN
from sides import serve

AT_ONCE = 32
LIMIT_S = 120.0
PIECE_CHARS = 80
"""A reply comes in a dozen pieces, because a model that finished at once would leave no time to read them."""
_NUMBER = re.compile(r"#(\d+)#")


class Model(ModelServer):
    """A model that answers with the reply of the message's number, and records when its last byte left."""

    def __init__(self) -> None:
        """Create a model that answers at once."""
        super().__init__(default=self._words)
        self.delay_s = 0.0
        self.let = asyncio.Event()
        self.let.set()
        self.ended: dict[int, float] = {}
        """By a message's number."""
        self.came: dict[int, float] = {}

    def _words(self, call: Call) -> Reply:
        text = script.plain_reply(_number(call)) if _is_turn(call) else "They talk about a door."
        pieces = tuple(text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))
        return Reply(deltas=pieces, delay_s=self.delay_s)

    async def _route(self, request: web.Request, call: Call) -> web.StreamResponse:
        is_turn = _is_turn(call)
        if is_turn:
            self.came[_number(call)] = call.at
        await self.let.wait()
        response = await super()._route(request, call)
        if is_turn:
            self.ended[_number(call)] = time.monotonic()
        return response


def _is_turn(call: Call) -> bool:
    return "## This Turn" in call.tail


def _number(call: Call) -> int:
    return int(_NUMBER.findall(call.tail)[-1])


class Town:
    """Answers the bench's requests; the servers run in their own thread meanwhile."""

    def __init__(self) -> None:
        """Create it without servers."""
        self._loop = asyncio.new_event_loop()
        self._slack: SlackServer
        self._model: Model
        self._rooms: list[str] = []
        self._said: dict[int, tuple[str, str]] = {}
        """Room and ts of each message, by its number."""

    def open(self, people: int) -> dict[str, str]:
        """Start both servers. Returns the environment that a daemon needs."""
        script.ready()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return self._do(self._open(people))

    def talk(self, numbers: list[int]) -> None:
        """Have message n said in a DM for each number, some at once. Returns when each was answered."""
        self._do(self._talk(numbers))

    def timed(self, numbers: list[int], delay_s: float = 0.0) -> list[float]:
        """Do so one after the other. Returns the daemon's own milliseconds of each turn: before and after the model."""
        return self._do(self._timed(numbers, delay_s))

    def hung(self, numbers: list[int]) -> list[float]:
        """Do so with a model that does not answer. Returns the milliseconds from each event to its ack."""
        return self._do(self._hung(numbers))

    def burst(self, numbers: list[int], delay_s: float) -> dict[str, float]:
        """Have all said at once, with a model that takes `delay_s`. Returns when the first, half and all were answered.

        Seconds from the first event; `ack_s`: the slowest acknowledgement of an event.
        """
        return self._do(self._burst(numbers, delay_s))

    def end(self) -> int:
        """Judge, and stop both. Returns how many messages were answered: each once, in its place, with its words."""
        posts = [one for one in self._slack.service.journal.trace if one.by == "app" and one.kind == "post"]
        found = sorted(
            (one.channel, one.text.partition("\n\n")[0]) for one in posts
        )  # a first reply says more after it
        assert found == sorted((room, script.spoken(number)) for number, (room, _) in self._said.items())
        self._do(self._close())
        return len(found)

    async def _open(self, people: int) -> dict[str, str]:
        self._slack, self._model = SlackServer(), Model()
        self._slack.service.journal.now = time.monotonic
        await self._slack.__aenter__()
        await self._model.__aenter__()
        for number in range(people):
            await self._slack.world.add_user(f"U{number}", f"u{number}")
            self._rooms.append(await self._slack.world.open_dm(f"U{number}"))
        return {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "CLAUDIUS_SLACK_API_URL": self._slack.base_url,
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_BASE_URL": self._model.url,
            "CLAUDIUS_PROVIDERS": "anthropic_api",
        }

    async def _close(self) -> None:
        await self._model.__aexit__(None, None, None)
        await self._slack.__aexit__(None, None, None)

    async def _say(self, number: int) -> None:
        place = number % len(self._rooms)
        text = f"{script.message(number)} #{number}#"
        self._said[number] = self._rooms[place], await self._slack.world.say(self._rooms[place], f"U{place}", text)

    async def _answered(self) -> None:
        """Wait until there are as many posts as messages."""
        await self._slack.world.until_visible(len(self._said), within_s=LIMIT_S)

    async def _talk(self, numbers: Iterable[int]) -> None:
        left = list(numbers)
        while left:
            now, left = left[:AT_ONCE], left[AT_ONCE:]
            for number in now:
                await self._say(number)
            await self._answered()

    async def _timed(self, numbers: Iterable[int], delay_s: float) -> list[float]:
        self._model.delay_s = delay_s
        journal, model, found = self._slack.service.journal, self._model, []
        for number in numbers:
            calls, deliveries = len(journal.calls), len(journal.deliveries)
            await self._say(number)
            await self._answered()
            _, ts = self._said[number]
            left_at = next(one.at for one in journal.deliveries[deliveries:] if one.ts == ts and one.event == "message")
            posted_at = next(one.at for one in journal.calls[calls:] if one.method == "chat.postMessage")
            found.append(1000 * (model.came[number] - left_at + posted_at - model.ended[number]))
        model.delay_s = 0.0
        return found

    async def _burst(self, numbers: list[int], delay_s: float) -> dict[str, float]:
        self._model.delay_s = delay_s
        journal = self._slack.service.journal
        calls, heard = len(journal.calls), len(journal.deliveries)
        for number in numbers:
            await self._say(number)
        await self._answered()
        self._model.delay_s = 0.0
        began = min(one.at for one in journal.deliveries[heard:])
        posts = sorted(one.at - began for one in journal.calls[calls:] if one.method == "chat.postMessage")
        asked = {self._said[number][1] for number in numbers}  # our own posts are events, too, and come to the last
        events = [one for one in journal.deliveries[heard:] if one.ts in asked and one.event == "message"]
        acks = [(one.acked_at or float("inf")) - one.at for one in events]
        return {"first_s": posts[0], "half_s": posts[len(posts) // 2], "all_s": posts[-1], "ack_s": max(acks)}

    async def _hung(self, numbers: list[int]) -> list[float]:
        self._model.let.clear()
        for number in numbers:
            await self._say(number)
        await self._slack.world.until_quiet(within_s=LIMIT_S)
        asked = {self._said[number][1] for number in numbers}
        heard = self._slack.service.journal.deliveries
        events = [one for one in heard if one.ts in asked and one.event == "message"]
        self._model.let.set()
        await self._answered()
        return [1000 * ((one.acked_at or float("inf")) - one.at) for one in events]

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


if __name__ == "__main__":
    town = Town()
    serve({name: getattr(town, name) for name in ("open", "talk", "timed", "hung", "burst", "end")})
