"""Learn what a model server at home is and can do: its family, its context, its tokenizer, the form that it enforces.

Everything is asked once for each address and model, and remembered in `state/local_models.json` of the home, together
with what calls teach: the characters of a token, the speed at which it reads, and whether the model keeps the form.

Source: docs.ollama.com/api; github.com/ggml-org/llama.cpp, tools/server/README.md; docs.vllm.ai, the OpenAI-compatible
server; lmstudio.ai/docs/app/api/endpoints/rest.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from claudius.decoding import decoder
from claudius.foreign import unquoted
from claudius.provider import Form, FormStep, ModelLimits, Profile, Request, Usage
from claudius.providers.enforced import grammar, schema

if TYPE_CHECKING:
    import httpx

Family = Literal["llama.cpp", "ollama", "vllm", "lmstudio", "other"]
Enforces = Literal["grammar", "format", "response_format", ""]
_ENFORCES: Mapping[str, Enforces] = {"llama.cpp": "grammar", "ollama": "format"}
_FORMS: Mapping[str, Form] = {"grammar": "grammar", "format": "json", "response_format": "json"}

LOCAL_MODELS = "local_models.json"
"""The file, below the home's state, that keeps what is known."""
LARGE_B = 30.0
"""Billions of parameters from which a model takes the full prompt."""
_LARGE = re.compile(r"llama-?3\.3|command-?r|mixtral|mistral-large|deepseek-(?:v3|r1(?!-distill|:))|kimi|glm-4\.[5-9]")
"""Large models whose names have no size."""
_SIZE = re.compile(r"(?<![\d.a-z])(?:(\d{1,2})x)?(\d{1,4}(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
FIRST_CHARS_PER_TOKEN = 3.0
"""Of our prompts, before a call has taught it. Measured: 2.7 for a history of JSON lines, 4.2 for prose."""
LEARNED = 0.3
"""The weight of the newest call in what is learned."""
ASK_S, PROBE_S = 5.0, 60.0
"""How long each question may take in all, however it is answered. The probe may have to wait for the model to load."""
MUTE_S = 60.0
"""For how long a server that did not answer a question in time is not asked again."""
FIRST_BYTE_S = 300.0
"""The least time for a first byte on this machine."""
SLOWEST = 10.0
"""Tokens a second at which a prompt is thought to be read before any call was measured."""
SLACK = 4.0
"""How many times slower than last time a server may read."""
TRIED = 10
"""After so many replies without the form asked for, the model counts as one that never keeps it."""
SPOKEN_LEAST = 24
"""Tokens of a reply from which its rate is taken."""
REPLY_LEAST = 192
"""Tokens that must be left for the reply."""
_HELD = (FormStep(name="held", value="bool"),)
_PROBE = "Say the word blue."

log = logging.getLogger(__name__)


class Facts(Struct, kw_only=True):
    """What is known of one model at one address."""

    family: Family = "other"
    enforces: Enforces = ""
    context_tokens: int = 0
    """0 = the server does not say."""
    is_learned: bool = False
    """The server was asked."""
    chars_per_token: float = FIRST_CHARS_PER_TOKEN
    slots: int = 1
    """How many calls it answers at once; 0 = as many as there are. One that does not say counts as having one."""
    tokens_per_s: float = 0.0
    """The rate at which it last read a prompt; 0 = unknown."""
    spoken_per_s: float = 0.0
    """The rate, in tokens, at which it lately spoke; 0 = unknown."""
    reasons: bool = False
    """It was seen to think before its words."""
    asked: int = 0
    """Replies that were asked for sections in tags."""
    kept: int = 0
    """Those of them that had the sections."""
    echoes: int = 0
    """How often it repeated what it was to answer, while it was given the whole prompt."""

    @property
    def is_formless(self) -> bool:
        """Whether the model never kept the form, over enough replies."""
        return self.asked >= TRIED and not self.kept


ECHOES = 3
"""After so many echoes a model is spoken to plainly."""
NO_FACTS = Facts(slots=0)
"""Of a server out in the world, of which nothing is asked."""


def is_at_home(host: str) -> bool:
    """Return whether a host is this machine, or one of a private network. Pure."""
    if host == "localhost" or host.endswith((".localhost", ".local", ".lan", ".home.arpa")):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def is_large(model: str) -> bool:
    """Return whether a model's name is that of a large one. Pure."""
    sizes = [float(size) * int(experts or 1) for experts, size in _SIZE.findall(model)]
    return max(sizes) >= LARGE_B if sizes else bool(_LARGE.search(model.casefold()))


def profile_of(setting: str, host: str, model: str, echoes: int = 0) -> Profile:
    """Return the profile of a model: as set, or plain if it is at home and not large, or echoes. Pure."""
    if setting != "auto":
        return "full" if setting == "full" else "plain"
    return "plain" if echoes >= ECHOES or (is_at_home(host) and not is_large(model)) else "full"


def chars_of(request: Request) -> int:
    """Count the characters of a request. Pure."""
    return len(request.system) + len(request.tail) + sum(len(message.content) for message in request.history)


class Memory:
    """What is known of every local model, in one file of the home."""

    def __init__(self, path: Path | None) -> None:
        """Read the file; one that cannot be read counts as empty. None: nothing is written."""
        self._path = path
        self.known = read(path) if path else {}

    def of(self, place: str) -> Facts:
        """Return what is known of a model at an address."""
        return self.known.setdefault(place, Facts())

    def save(self) -> None:
        """Write the file. If that fails, what was learned lasts as long as the process."""
        if self._path is None:
            return
        whole = self._path.with_suffix(".new")
        try:
            whole.write_bytes(msgspec.json.encode(self.known))
            whole.chmod(0o600)
            whole.replace(self._path)
        except OSError as error:
            log.warning("what was learned of a local model is not kept", extra={"error": unquoted(error)})


def read(path: Path) -> dict[str, Facts]:
    """Read what is known of local models; nothing if there is no such file or it is broken."""
    try:
        return decoder(dict[str, Facts]).decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError):
        return {}


def known_of(known: Mapping[str, Facts], base_url: str, model: str) -> Facts:
    """Return what is known of a model at an address; without a name, of the one met there last. Pure."""
    if model:
        return known.get(f"{base_url} {model}", NO_FACTS)
    return next((known[place] for place in reversed([*known]) if place.startswith(f"{base_url} ")), NO_FACTS)


class LocalServer:
    """One model at one address: what it is asked once, and what its calls teach."""

    def __init__(self, client: httpx.AsyncClient, memory: Memory, base_url: str, *, context_tokens: int) -> None:
        """Ask through `client`. `context_tokens` counts where the server does not say; Ollama is asked for it."""
        self._client, self._memory, self._base_url = client, memory, base_url
        self.root = base_url.rstrip("/").removesuffix("/v1")
        self._context_tokens = context_tokens
        self._learning, self._ask_at = asyncio.Lock(), 0.0

    def facts(self, model: str) -> Facts:
        """Return what is known of a model here."""
        return self._memory.of(f"{self._base_url} {model}")

    def notice(self, model: str) -> str:
        """Return what the owner should know of a model here; empty = nothing."""
        return FORMLESS % TRIED if known_of(self._memory.known, self._base_url, model).is_formless else ""

    async def learned(self, model: str) -> Facts:
        """Return what is known of a model, asking the server first if that was never done."""
        async with self._learning:
            facts = self.facts(model)
            if not facts.is_learned and time.monotonic() >= self._ask_at:
                try:
                    await self._learn(model, facts)
                except TimeoutError:
                    self._ask_at = time.monotonic() + MUTE_S
        return facts

    async def _learn(self, model: str, facts: Facts) -> None:
        found = await self._family(model, facts)
        if found is None:
            return  # nobody answers now: ask again at the next turn
        facts.family, facts.context_tokens = found
        enforces = _ENFORCES.get(facts.family, "response_format")
        held = await self._probe(model, enforces)
        if held is None:
            return
        facts.enforces, facts.is_learned = enforces if held else "", True
        if not facts.context_tokens:
            facts.context_tokens = self._context_tokens
            if facts.family != "ollama":
                log.warning(
                    "the model's server does not say how much it can take: %d tokens are assumed; "
                    "openai.context_tokens changes that",
                    self._context_tokens,
                )
        self._memory.save()

    async def _family(self, model: str, facts: Facts) -> tuple[Family, int] | None:
        """Return the family and its context; None if the server cannot be reached. Notes its slots."""
        import httpx  # noqa: PLC0415 - imported only when such a server is used

        try:
            props = await self._json("GET", "/props")
            if "default_generation_settings" in props:
                facts.slots = _number(props, "total_slots") or 1
                return "llama.cpp", _number(props["default_generation_settings"], "n_ctx")
            if "version" in await self._json("GET", "/api/version"):
                return "ollama", self._num_ctx(await self._json("POST", "/api/show", {"model": model}))
            for one in _listed(await self._json("GET", "/api/v0/models"), model):
                return "lmstudio", _number(one, "loaded_context_length") or _number(one, "max_context_length")
            for one in _listed(await self._json("GET", "/v1/models"), model):
                if "max_model_len" in one:
                    facts.slots = 0  # it batches whatever comes
                    return "vllm", _number(one, "max_model_len")
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
        return "other", 0

    def _num_ctx(self, shown: Mapping[str, Any]) -> int:
        """Return the context to ask Ollama for: the owner's, or the model file's, at most what the model can do."""
        info = shown.get("model_info")
        longest = next((int(v) for k, v in (info or {}).items() if k.endswith(".context_length") and v), 0)
        own = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
        wanted = max(int(own[1]) if own else 0, self._context_tokens)
        return min(wanted, longest) if longest else wanted

    async def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask one path; a refusal, or an answer that is no object, counts as an empty one. Raises: TimeoutError."""
        async with asyncio.timeout(ASK_S):  # httpx's own limit is one of each read
            answer = await self._client.request(method, self.root + path, json=body, timeout=None)
        try:
            found = answer.json() if answer.status_code == 200 else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    async def _probe(self, model: str, enforces: Enforces) -> bool | None:
        """Ask for a form that nobody would choose. Returns whether it came; None if no answer came.

        Raises: TimeoutError.
        """
        import httpx  # noqa: PLC0415 - as above

        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": _PROBE}], "stream": False}
        path = "/api/chat" if enforces == "format" else "/v1/chat/completions"
        body |= {"options": {"num_predict": 40}, "think": False} if enforces == "format" else {"max_tokens": 40}
        try:
            async with asyncio.timeout(PROBE_S):
                answer = await self._client.post(self.root + path, json=body | enforcing(enforces, _HELD), timeout=None)
            if answer.status_code != 200:
                return None if answer.status_code >= 500 else False
            document = answer.json()
            message = document["message"] if enforces == "format" else document["choices"][0]["message"]
            text = str(message["content"]).strip()
            return text.startswith("<held>") if enforces == "grammar" else "held" in json.loads(text)
        except httpx.HTTPError:
            return None
        except (ValueError, LookupError, TypeError):
            return False

    async def count(self, request: Request, facts: Facts, model: str) -> int:
        """Count the tokens of a request: by the server's own tokenizer, else by what calls taught, rounded up."""
        import httpx  # noqa: PLC0415 - as above

        if facts.family in ("llama.cpp", "vllm"):
            text = "\n".join([request.system, *(one.content for one in request.history), request.tail])
            body = {"content": text} if facts.family == "llama.cpp" else {"model": model, "prompt": text}
            try:
                found = await self._json("POST", "/tokenize", body)
            except (httpx.HTTPError, TimeoutError):
                found = {}
            exact = len(found["tokens"]) if isinstance(found.get("tokens"), list) else _number(found, "count")
            if exact:
                facts.chars_per_token = _moved(facts.chars_per_token, chars_of(request) / exact)
                return exact + 8 * (len(request.history) + 2)  # each message has a frame of its own
        return int(chars_of(request) / facts.chars_per_token * 1.1) + 8 * (len(request.history) + 2)

    def note(self, facts: Facts, request: Request, usage: Usage, times_s: tuple[float, float], text: str) -> None:
        """Learn from one finished call, written down when it matters. `times_s`: to its first byte, and in all."""
        first_s, total_s = times_s
        before, rates = _flags(facts), _rates(facts)
        read = usage.input_tokens + usage.cache_read_tokens
        if not usage.estimated and read > 50:
            facts.chars_per_token = _moved(facts.chars_per_token, chars_of(request) / read)
        fresh = usage.input_tokens if not usage.estimated else int(chars_of(request) / facts.chars_per_token)
        if first_s > 0 and fresh > 50:
            facts.tokens_per_s = fresh / first_s
        if not usage.estimated and usage.output_tokens >= SPOKEN_LEAST and total_s > first_s > 0:
            rate = (usage.output_tokens - 1) / (total_s - first_s)
            before_s = facts.spoken_per_s or rate
            facts.spoken_per_s = before_s + LEARNED * (rate - before_s)
        is_thought = text.lstrip().startswith("<think") or (
            usage.output_tokens > SPOKEN_LEAST and len(text) < usage.output_tokens
        )
        facts.reasons = facts.reasons or is_thought
        if request.form and request.purpose != "repair":
            facts.asked = min(TRIED, facts.asked + 1)
            facts.kept = min(TRIED, facts.kept + all(f"</{one.name}>" in text for one in request.form if not one.check))
        if facts.is_formless and not before[0]:
            log.warning(FORMLESS, TRIED)
        moved = [abs(now - then) > 0.2 * then for now, then in zip(_rates(facts), rates, strict=True)]
        if before != _flags(facts) or any(moved):
            self._memory.save()

    def reading_s(self, facts: Facts, request: Request) -> float:
        """Return about how long it reads a prompt, at the rate of its last call, or at a slow one before the first."""
        return chars_of(request) / facts.chars_per_token / (facts.tokens_per_s or SLOWEST)

    def patience_s(self, facts: Facts, request: Request) -> float:
        """Return how long the first byte of a reply may take."""
        rate = facts.tokens_per_s / SLACK or SLOWEST
        return max(FIRST_BYTE_S, chars_of(request) / facts.chars_per_token / rate)


FORMLESS = (
    "this model kept the form in none of %d replies: from now on it is asked for its words alone. "
    "Set openai.profile, use a server that enforces a grammar, or another model"
)


def enforcing(enforces: Enforces, steps: tuple[FormStep, ...]) -> dict[str, Any]:
    """Return the part of a request's body that makes a server enforce these sections. Pure."""
    if not steps or not enforces:
        return {}
    if enforces == "grammar":
        return {"grammar": grammar(steps)}
    if enforces == "format":
        return {"format": schema(steps)}
    named = {"name": "reply", "schema": schema(steps), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def limits(facts: Facts, profile: Profile) -> ModelLimits:
    """Return what a turn has to know of a model. Pure."""
    form = _FORMS.get(facts.enforces, "tags")
    if facts.is_formless or (form == "tags" and profile == "plain"):
        form = "words"
    return ModelLimits(
        profile=profile,
        form=form,
        context_tokens=facts.context_tokens,
        chars_per_token=facts.chars_per_token,
        slots=facts.slots,
        reasons=facts.reasons,
    )


def _flags(facts: Facts) -> tuple[bool, ...]:
    return facts.is_formless, facts.kept > 0, facts.reasons


def _rates(facts: Facts) -> tuple[float, ...]:
    return facts.chars_per_token, facts.tokens_per_s, facts.spoken_per_s


def _moved(known: float, found: float) -> float:
    return min(8.0, max(0.5, known + LEARNED * (found - known)))


def _number(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key) if isinstance(found, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0


def _listed(found: Mapping[str, Any], model: str) -> list[dict[str, Any]]:
    data = found.get("data")
    return [one for one in data or () if isinstance(one, dict) and one.get("id") == model]
