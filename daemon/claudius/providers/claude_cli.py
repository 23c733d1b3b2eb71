"""Ask Claude through our own `claude -p`: one process per turn, JSON lines both ways, sessions resumed if possible."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress

from claudius.children import Child, Children
from claudius.config.load import Loaded
from claudius.errors import Crashed, ProviderError, SessionGone
from claudius.home import Home
from claudius.provider import Done, Event, Request
from claudius.providers.claude.command import ClaudeCommand, ClaudeDirectories, child_env, find, flags
from claudius.providers.claude.sessions import GONE, ClaudeReply, SessionPool, user_message
from claudius.providers.replies import refused

NAME = "claude_cli"
SESSIONS = 256
"""How many conversations keep a transcript on disk for resuming. Older ones begin a new session."""


class ClaudeCli:
    """The command, under one configuration."""

    name = NAME

    def __init__(self, command: ClaudeCommand, loaded: Loaded, places: ClaudeDirectories) -> None:
        self.model = loaded.config.claude.model
        self._command, self._loaded, self._places = command, loaded, places
        self._sessions: SessionPool[str] = SessionPool(SESSIONS)
        self._children = Children()

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. A session that cannot be resumed is replaced by a new one.

        Raises: ProviderError.
        """
        session, ended = self._sessions.take(request)
        self._end(ended)
        if session:
            try:
                async with aclosing(self._turn(request, session, is_new=False)) as events:
                    async for event in events:
                        yield event
            except SessionGone:
                pass
            else:
                return
        async with aclosing(self._turn(request, str(uuid.uuid4()), is_new=True)) as events:
            async for event in events:
                yield event

    async def _turn(self, request: Request, session: str, *, is_new: bool) -> AsyncGenerator[Event, None]:
        hearing = ClaudeReply(NAME, request.model or self.model)
        is_kept = False
        child = await self._start(request, session, is_new=is_new)
        try:
            with suppress(Crashed):  # it may end before it has read all; its output says why
                await child.write(json.dumps(user_message(request, knows_history=not is_new)) + "\n")
            child.end_input()
            async with aclosing(self._heard(child, hearing)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        is_kept = hearing.is_clean and self._is_lasting(request)
                    yield event
        finally:
            if not is_kept:
                child.kill()
            code = await self._children.end(child)
            self._end(self._sessions.keep(request, session) if is_kept and code == 0 else [session])

    async def _heard(self, child: Child, hearing: ClaudeReply) -> AsyncGenerator[Event, None]:
        try:
            async with aclosing(child.lines()) as lines:
                async for line in lines:
                    if event := hearing.hear(line):
                        yield event
                    if isinstance(event, Done):
                        return
        except ProviderError as error:
            error.provider = NAME
            raise
        await child.end()
        if GONE in child.complaint:
            raise SessionGone(provider=NAME)
        raise refused(Crashed, "Claude Code ended without a reply", said=child.complaint, provider=NAME)

    async def _start(self, request: Request, session: str, *, is_new: bool) -> Child:
        if not self._is_lasting(request) and is_new:
            how: tuple[str, ...] = ("--no-session-persistence",)
        else:
            self._places.note(session)
            how = ("--session-id" if is_new else "--resume", session)
        model = request.model or self.model
        argv = flags(model=model, system_file=self._places.system_file(request.system), session=how)
        env = child_env(self._loaded, os.environ, max_tokens=request.max_tokens)
        return await self._children.start([self._command.path, "-p", *argv], env=env, cwd=self._places.cwd)

    @staticmethod
    def _is_lasting(request: Request) -> bool:
        return bool(request.conversation) and request.keep_session

    def _end(self, sessions: list[str]) -> None:
        for session in sessions:
            self._places.forget(session)

    async def forget(self, conversation: str) -> None:
        """Delete a conversation's transcript, because what was said there is to be erased."""
        self._end(self._sessions.pop(conversation))

    async def aclose(self) -> None:
        """Kill running processes and delete every transcript."""
        self._children.close()
        self._end(self._sessions.empty())


def build(loaded: Loaded, home: Home) -> ClaudeCli:
    """Find the command and build the provider. Raises: Unavailable if there is none, or it is too old."""
    command = find(loaded.config.claude.cli_path)
    places = ClaudeDirectories(home, NAME, os.environ)
    return ClaudeCli(command, loaded, places)
