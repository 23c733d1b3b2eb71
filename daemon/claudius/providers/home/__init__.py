"""Think with a model file of the home: llama.cpp in a child process, asked as any chat-completions server is.

The child listens on a Unix socket in `run/`, which other users cannot reach, and holds `run/model.lock` while it lives,
so that the processes of one home share one. It dies with the process that started it, however that ends; whoever calls
next starts another.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.config.schema import HomeModelSettings, ModelSettings
from claudius.errors import Crashed, ProviderError, TimedOut, Unavailable
from claudius.home import FILE_MODE, Home
from claudius.provider import Done, Event, ModelLimits, Request, Wrapped
from claudius.providers.home.models import INSTALL, can_think, in_use
from claudius.providers.home.serving import SOCKET
from claudius.providers.local_server import LOCAL_MODELS, Facts, LocalServer, Memory, known_of, limits, profile_of, read
from claudius.providers.openai_compat import CONNECT_S, OpenAICompat
from claudius.runtime.control import socket_address

if TYPE_CHECKING:
    import httpx

NAME = "home"
BASE_URL = "http://home.localhost/v1"
"""What the model is known by in `state/local_models.json`; nothing is looked up or sent by it."""
STARTS_S = 300.0
"""How long a model may take to be loaded, from a slow disk as well."""
LOOK_EVERY_S = 0.1
LOCK = "model.lock"


class LlamaServer:
    """The server of one model: started where none runs in this home, else used as it is."""

    def __init__(self, home: Home, model: Path, settings: HomeModelSettings, client: httpx.AsyncClient) -> None:
        self._home, self._model, self._settings, self._client = home, model, settings, client
        self._child: asyncio.subprocess.Process | None = None
        self._starting, self._is_up = asyncio.Lock(), False

    async def start(self) -> None:
        """Return when the model is loaded. Raises: Crashed, TimedOut."""
        async with self._starting:
            if self._is_up and self._child and self._child.returncode is None:
                return
            if self._is_up:  # it died while nobody asked
                self._child = None
            self._is_up, until = False, time.monotonic() + STARTS_S
            while not await self.is_ready():
                if self._child and self._child.returncode is not None:
                    code, self._child = self._child.returncode, None
                    raise Crashed(f"llama.cpp could not load {self._model.name} (exit {code})", provider=NAME)
                if time.monotonic() > until:
                    raise TimedOut(f"{self._model.name} is not loaded after {STARTS_S:.0f} s", provider=NAME)
                if self._child is None:
                    self._child = await self._started()
                await asyncio.sleep(LOOK_EVERY_S)
            self._is_up = True

    async def is_ready(self) -> bool:
        """Return whether this very model answers on the socket."""
        import httpx  # noqa: PLC0415 - imported only when such a model is used

        try:
            told = await self._client.get("models", timeout=CONNECT_S)
            return told.status_code == 200 and told.json()["data"][0]["id"] == self._model.stem
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            return False

    async def _started(self) -> asyncio.subprocess.Process | None:
        """Start a child that holds the lock; None while another process of this home has one."""
        lock = os.open(self._home.run / LOCK, os.O_RDWR | os.O_CREAT, FILE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "claudius.providers.home.serving"),
                *(str(self._model), str(self._settings.context_tokens), str(self._settings.threads)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self._home.run,
                pass_fds=(lock,),
                start_new_session=True,
            )
        except BlockingIOError:
            return None
        finally:
            os.close(lock)

    async def stop(self) -> None:
        """End the child, if it is ours."""
        if self._child and self._child.returncode is None:
            self._child.kill()
            await self._child.wait()
        self._child = None
        await self._client.aclose()


class ModelAtHome(Wrapped):
    """A chat-completions server whose process comes and goes with its calls."""

    name = NAME
    inner: OpenAICompat

    def __init__(self, inner: OpenAICompat, server: LlamaServer, held: ExitStack) -> None:
        """Ask `inner`, once `server` is up. `held` is what both need while they are used."""
        super().__init__(inner)
        self._server, self._held = server, held

    async def limits(self) -> ModelLimits:
        """Return what the model can take; it is loaded for that, where it is not."""
        with suppress(ProviderError):  # the turn's own call says what is wrong
            await self._server.start()
        return await self.inner.limits()

    async def prepare(self) -> None:
        """Load the model, so that the first message does not wait for it."""
        await self._server.start()
        await self.inner.prepare()

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: ProviderError."""
        try:
            await self._server.start()
            async with aclosing(cast(AsyncGenerator[Event, None], self.inner.complete(request))) as events:
                async for event in events:
                    yield replace(event, provider=NAME) if isinstance(event, Done) else event
        except ProviderError as error:
            error.provider = NAME
            raise

    async def aclose(self) -> None:
        """Close the connections, and end the child."""
        await self.inner.aclose()
        await self._server.stop()
        self._held.close()


def known_at_home(loaded: Loaded, home: Home, model: str = "") -> tuple[ModelLimits, Facts]:
    """Return what is known of a model of the home without loading it; by default of the one in use."""
    used = in_use(loaded, home)
    name = model or (used.stem if used else "")
    facts = known_of(read(home.state / LOCAL_MODELS), BASE_URL, name)
    return limits(facts, profile_of(loaded.config.openai.profile, "localhost", name, facts.echoes)), facts


def build(loaded: Loaded, home: Home) -> ModelAtHome:
    """Build the provider of the model in use. Raises: Unavailable if there is none, or llama.cpp is missing."""
    model = in_use(loaded, home)
    if model is None:
        named = loaded.config.home.model
        fix = "`claudius model list` shows what can be had"
        if named:
            raise Unavailable(f"there is no model {named!r} in this home", provider=NAME, fix=fix)
        raise Unavailable("there is no model in this home", provider=NAME, fix=fix)
    if not can_think():
        raise Unavailable("llama.cpp is not installed", provider=NAME, fix=INSTALL)
    settings, held = loaded.config, ExitStack()
    address = held.enter_context(socket_address(home.run / SOCKET))
    make = partial(_client, address)
    client = make()
    inner = OpenAICompat(
        client,
        model.stem,
        base_url=BASE_URL,
        make=make,
        profile=settings.openai.profile,
        server=LocalServer(
            client, Memory(home.state / LOCAL_MODELS), BASE_URL, context_tokens=settings.home.context_tokens
        ),
        is_patient=settings.model.first_byte_s == ModelSettings().first_byte_s,
    )
    return ModelAtHome(inner, LlamaServer(home, model, settings.home, make()), held)


def _client(address: str) -> Any:
    import httpx  # noqa: PLC0415 - as above

    return httpx.AsyncClient(
        base_url=BASE_URL + "/",
        transport=httpx.AsyncHTTPTransport(uds=address),
        timeout=httpx.Timeout(None, connect=CONNECT_S),  # only the chain's deadlines
        trust_env=False,  # a proxy has no part in it
    )
