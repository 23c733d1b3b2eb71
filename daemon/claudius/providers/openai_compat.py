"""Ask any server with the chat-completions API: find it, build the request, stream the reply, classify failures.

Source: platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.json import encode
from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.config.schema import ModelSettings
from claudius.errors import BadRequest, Cut, ProviderError, TimedOut, TooLong, Unavailable, Unreachable
from claudius.foreign import status_words
from claudius.home import Home
from claudius.provider import Event, ModelLimits, Profile, Request
from claudius.providers.local_server import (
    ASK_S,
    ECHOES,
    LOCAL_MODELS,
    NO_FACTS,
    REPLY_LEAST,
    Facts,
    LocalServer,
    Memory,
    enforcing,
    is_at_home,
    known_of,
    limits,
    profile_of,
    read,
)
from claudius.providers.replies import (
    CALLS,
    Clients,
    by_status,
    drain,
    message_of,
    one_line,
    plain_name,
    retry_after_s,
    unreached,
)
from claudius.providers.streamed_completion import NAME, StreamedCompletion, body_of, stream_data

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx

OLLAMA = "http://127.0.0.1:11434/v1"
"""Where a local Ollama answers. Source: docs.ollama.com/openai."""
FREQUENCY_PENALTY = 0.3
"""Of a small model's words: without it, a real one said a sentence twice in a row in 45 of 80 everyday replies."""
OPENAI_HOST = "api.openai.com"
"""Its newer models refuse `max_tokens`; other servers know only that. Source:
platform.openai.com/docs/api-reference/chat."""
API = "/v1"
"""Where nearly every server has its chat completions."""
CONNECT_S = 10.0
_JSON = {"Content-Type": "application/json"}

_LOCAL = ("127.0.0.1", "localhost", "::1")
"""Hosts of this machine, which may take their time."""

log = logging.getLogger(__name__)


class OpenAICompat:
    """One server."""

    name = NAME

    def __init__(
        self,
        client: httpx.AsyncClient,
        model: str,
        *,
        base_url: str,
        make: Callable[[], httpx.AsyncClient] | None = None,
        profile: str = "full",
        server: LocalServer | None = None,
        memory: Memory | None = None,
        is_patient: bool = False,
    ) -> None:
        """Ask through `client`, which has base URL and key. An empty `model` means the first that the server lists.

        `make` builds another such client, for more calls at once than one should have.
        `server`: what is known of a server at home; None for one out in the world, of which nothing is asked.
        `memory`: what is known of every model.
        `is_patient`: a server at home gets the time that it needs to read a prompt.
        """
        self.model = model
        self._profile, self._server, self._is_patient = profile, server, is_patient
        self._memory = memory or Memory(None)
        self._client, self._base_url = client, base_url
        self._clients = Clients(make or (lambda: client), lambda one: one.aclose(), first=client)
        self._elsewhere = ""
        self._finding = asyncio.Lock()
        self._is_found = client.base_url.path.rstrip("/").endswith(API)
        self._limit = "max_completion_tokens" if client.base_url.host == OPENAI_HOST else "max_tokens"

    @property
    def notice(self) -> str:
        """What the owner should correct, though the server answers; empty = nothing."""
        return self._elsewhere or (self._server.notice(self.model) if self._server else "")

    async def limits(self) -> ModelLimits:
        """Return what the model can take. A server at home is asked the first time."""
        import httpx  # noqa: PLC0415 - imported only when such a server is used

        if self._server is None:
            return limits(NO_FACTS, self._profile_of(self.model))
        try:
            await self._find()
            model = self.model or await self._first_model()
        except (httpx.HTTPError, httpx.InvalidURL, ProviderError):
            model = self.model  # the turn's own call says what is wrong
        facts = await self._server.learned(model) if model else self._server.facts(model)
        return limits(facts, self._profile_of(model))

    def _profile_of(self, model: str) -> Profile:
        echoes = known_of(self._memory.known, self._base_url, model).echoes
        return profile_of(self._profile, self._client.base_url.host, model, echoes)

    def echoed(self, model: str) -> None:
        """Note that a model repeated what it was to answer, and keep it."""
        facts = self._memory.of(f"{self._base_url} {model}")
        facts.echoes = min(ECHOES, facts.echoes + 1)
        self._memory.save()

    async def prepare(self) -> None:
        """Ask a server at home what it can take."""
        await self.limits()

    def patience_s(self, request: Request) -> float:
        """Return the least time that the first byte of this reply is given; 0 = no more than is set."""
        if self._server is None or not self._is_patient:
            return 0.0
        return self._server.patience_s(self._server.facts(request.model or self.model), request)

    def reading_s(self, request: Request) -> float:
        """Return about how long a server at home reads this prompt; 0 out in the world."""
        if self._server is None:
            return 0.0
        return self._server.reading_s(self._server.facts(request.model or self.model), request)

    async def complete(self, request: Request) -> AsyncIterator[Event]:  # noqa: C901 - one stream, from ask to end
        """Stream the reply. Raises: ProviderError."""
        import httpx  # noqa: PLC0415 - imported only when such a server is used

        began = False
        started, first_s = time.monotonic(), 0.0
        try:
            await self._find()
            model = request.model or self.model or await self._first_model()
            facts = await self._server.learned(model) if self._server else NO_FACTS
            request = await self._fitted(request, facts, model)
            said = StreamedCompletion(request, model, facts)
            path, body = self._asked(request, facts, model)
            async with self._clients.one() as one, one.stream("POST", path, content=body, headers=_JSON) as response:
                if response.status_code != 200:
                    raise await self._refused(await _status_error(response), response.status_code)
                began = True
                events = stream_data(response)
                async for data in events:
                    if delta := said.hear(data):
                        first_s = first_s or time.monotonic() - started
                        yield delta
                    if said.ended or said.reply.is_full:
                        break
                if said.ended:
                    await drain(events, httpx.HTTPError, httpx.StreamError, ProviderError)
        except httpx.ConnectTimeout as error:
            raise Unreachable(f"{self._base_url} does not answer", provider=NAME) from error
        except httpx.TimeoutException as error:
            raise TimedOut("the model's server fell silent", provider=NAME) from error
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            if began:
                raise Cut("the model's stream broke off", provider=NAME) from error
            raise Unreachable(f"{self._base_url} {unreached(error, self._base_url)}", provider=NAME) from error
        if rest := said.rest():
            yield rest
        done = said.done(self._base_url)
        if self._server:
            self._server.note(facts, request, done.usage, (first_s, time.monotonic() - started), done.text)
        yield done

    def _asked(self, request: Request, facts: Facts, model: str) -> tuple[str, bytes]:
        """Return where a request goes, and its body."""
        enforced = enforcing(facts.enforces, request.form)
        drawn = {} if request.temperature is None else {"temperature": request.temperature}
        if self._server and request.purpose in ("turn", "repair") and self._profile_of(model) == "plain":
            drawn["frequency_penalty"] = FREQUENCY_PENALTY
        if facts.family == "ollama" and self._server:
            return f"{self._server.root}/api/chat", encode(_native(request, model, facts, drawn) | enforced)
        at = f"{self._base_url.rstrip('/')}/chat/completions"
        return at, encode(_body(request, model, self._limit, drawn) | enforced)

    async def _fitted(self, request: Request, facts: Facts, model: str) -> Request:
        """Give the reply the room that the prompt leaves. Raises: TooLong if that is too little to answer in.

        A server at home cuts a prompt that is too long without a word, and what it cuts is who the soul is.
        """
        if self._server is None or not facts.context_tokens:
            return request
        left = facts.context_tokens - await self._server.count(request, facts, model)
        if left < min(REPLY_LEAST, request.max_tokens):
            raise TooLong(f"the prompt is too long for the model's {facts.context_tokens} tokens", provider=NAME)
        return replace(request, max_tokens=min(request.max_tokens, left))

    async def _find(self) -> None:
        """Look once whether the API is at `/v1` of the address, where the address itself does not hold it."""
        async with self._finding:  # two at once would both add `/v1`
            if self._is_found:
                return
            here = await self._models()
            below = await self._models(f"{API.lstrip('/')}/models") if here.status_code == 404 else here
            self._is_found = True
            if below is not here and below.status_code != 404:
                before, self._base_url = self._base_url, self._base_url.rstrip("/") + API
                self._client.base_url = self._base_url
                self._elsewhere = f"{before} has no chat completions, {self._base_url} has: set openai.base_url to that"
                log.warning(self._elsewhere)

    async def _refused(self, error: ProviderError, status: int) -> ProviderError:
        """Name what the server has in place of what was asked of it: a model, or the path."""
        import httpx  # noqa: PLC0415 - as above

        if status != 404:
            return error
        try:
            listed = await self._models()
            names = [plain_name(one["id"], "") for one in listed.json()["data"]] if listed.status_code == 200 else []
        except (httpx.HTTPError, ProviderError, ValueError, LookupError, TypeError):
            names = []
        if any(names):
            error.fix = one_line(f"set openai.model to one that this server has: {', '.join(filter(None, names))}")
            return error
        fix = "correct openai.base_url: it is the address before /chat/completions, and most end in /v1"
        absent = f"there is no {self._base_url}/chat/completions ({status_words(status)})"
        return BadRequest(absent, provider=NAME, fix=fix, said=error.said)

    async def _models(self, path: str = "models") -> httpx.Response:
        """Ask which models there are. Raises: TimedOut, however slowly the server answers."""
        try:
            async with asyncio.timeout(ASK_S):
                return await self._client.get(path)
        except TimeoutError as error:
            raise TimedOut("the model's server does not say which models it has", provider=NAME) from error

    async def _first_model(self) -> str:
        response = await self._models()
        if response.status_code != 200:
            raise await self._refused(await _status_error(response), response.status_code)
        try:
            self.model = str(response.json()["data"][0]["id"])
        except (ValueError, LookupError, TypeError) as error:
            raise BadRequest(f"{self._base_url} lists no model: set openai.model", provider=NAME) from error
        return self.model

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()
        await self._client.aclose()


def _native(request: Request, model: str, facts: Facts, drawn: Mapping[str, float]) -> dict[str, Any]:
    """Return the body for Ollama's own interface; its chat completions ignore `num_ctx` and cut the prompt. Pure.

    It is told not to think, which a model that cannot think accepts as well. Source: docs.ollama.com/api/chat.
    """
    options = {"num_ctx": facts.context_tokens, "num_predict": request.max_tokens, **drawn}
    said = list(messages(replace(request, images=())))
    if request.images:
        said[-1]["images"] = [base64.b64encode(image.data).decode() for image in request.images]
    return {"model": model, "messages": said, "stream": True, "options": options, "think": False}


def _body(request: Request, model: str, limit: str, drawn: Mapping[str, float]) -> dict[str, Any]:
    return {
        "model": model,
        "messages": list(messages(request)),
        limit: request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        **drawn,
    }


def messages(request: Request) -> Iterator[dict[str, Any]]:
    """Yield the prompt as messages. Those of one role stay separate, so that earlier bytes never change. Pure."""
    if request.system.strip():
        yield {"role": "system", "content": request.system}
    for message in request.history:
        if message.content.strip():
            yield {"role": message.role, "content": message.content}
    urls = [f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}" for one in request.images]
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    yield {"role": "user", "content": [*shown, {"type": "text", "text": request.tail}] if shown else request.tail}


async def _status_error(response: httpx.Response) -> ProviderError:
    """Classify by status first, because the bodies differ from server to server."""
    body = await body_of(response)
    try:
        code, message = message_of(json.loads(body))
    except ValueError:
        code, message = message_of(body.decode("utf-8", "replace"))
    after_s = retry_after_s(response.headers, time.time())
    return by_status(response.status_code, message, provider=NAME, code=code, after_s=after_s)


def has_ollama(timeout_s: float, url: str = OLLAMA) -> bool:
    """Return whether a local Ollama with a model answers within `timeout_s` seconds."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or 80), timeout_s).close()
    except OSError:
        return False
    import httpx  # noqa: PLC0415 - slow to import, so only if something listens there

    until, found = time.monotonic() + timeout_s, b""
    try:
        with httpx.stream("GET", url.removesuffix("/v1") + "/api/tags", timeout=timeout_s, trust_env=False) as answer:
            for piece in answer.iter_bytes():
                found += piece
                if time.monotonic() > until:  # httpx's own limit is one of each read
                    return False
        return answer.status_code == 200 and bool(json.loads(found)["models"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return False


def address(loaded: Loaded) -> str:
    """Return the address that the settings name, or else that of a local Ollama. Pure."""
    return (loaded.config.openai.base_url or OLLAMA).rstrip("/").removesuffix("/chat/completions")


def known_limits(loaded: Loaded, home: Home, model: str = "") -> tuple[ModelLimits, Facts]:
    """Return what is known of the model without asking its server. `model`: the one asked, where that is known."""
    settings, base_url = loaded.config.openai, address(loaded)
    facts = known_of(read(home.state / LOCAL_MODELS), base_url, model or settings.model)
    host = urlsplit(base_url).hostname or ""
    profile = profile_of(settings.profile, host, model or settings.model, facts.echoes)
    return limits(facts, profile), facts


def build(loaded: Loaded, home: Home) -> OpenAICompat:
    """Build the provider. The key is `CLAUDIUS_OPENAI_API_KEY`, or for Groq's own host also `GROQ_API_KEY`."""
    import httpx  # noqa: PLC0415 - imported only when such a server is used

    settings, base_url = loaded.config.openai, address(loaded)
    try:
        host = httpx.URL(base_url).host
    except httpx.InvalidURL as error:
        raise Unavailable(f"openai.base_url is not a web address: {one_line(base_url)}", provider=NAME) from error
    key = loaded.secret("CLAUDIUS_OPENAI_API_KEY")
    if not key and host.endswith(".groq.com"):
        key = loaded.secret("GROQ_API_KEY")
    is_patient = loaded.config.model.first_byte_s == ModelSettings().first_byte_s  # a time that the owner set holds
    trusted = httpx.create_ssl_context()  # it takes 25 ms, and the clients share it
    make = partial(_client, base_url, key, loaded.config.model, trusted, is_local=host in _LOCAL, is_patient=is_patient)
    client = make()
    server, memory = None, Memory(home.state / LOCAL_MODELS)
    if is_at_home(host) and settings.profile != "full":
        server = LocalServer(client, memory, base_url, context_tokens=settings.context_tokens)
    return OpenAICompat(
        client,
        settings.model,
        base_url=base_url,
        make=make,
        profile=settings.profile,
        server=server,
        memory=memory,
        is_patient=is_patient,
    )


def _client(
    base_url: str, key: str, model: ModelSettings, trusted: SSLContext, *, is_local: bool, is_patient: bool
) -> httpx.AsyncClient:
    import httpx  # noqa: PLC0415 - as above

    # at home only the chain's deadlines
    silence_s = None if is_local and is_patient else 2 * max(model.first_byte_s, model.idle_s)
    return httpx.AsyncClient(
        base_url=base_url.rstrip("/") + "/",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(silence_s, connect=CONNECT_S),
        verify=trusted,
        limits=httpx.Limits(max_keepalive_connections=CALLS),
        follow_redirects=False,
    )
