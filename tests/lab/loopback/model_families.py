"""How the servers that people run at home differ: what they tell of themselves, enforce, refuse and cut.

Source: docs.ollama.com/api; github.com/ggml-org/llama.cpp, tools/server/README.md; docs.vllm.ai; lmstudio.ai/docs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from claudius.testing.model_calls import Call, Reply
from lab.loopback.prompt_cache import tokens

PROBE = "Say the word blue."
"""The message with which the daemon finds out whether a form is enforced."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of server, and how this one is set up."""

    name: str = "other"
    context: int = 4096
    enforces: bool = True
    """Whether it makes replies follow a grammar or a schema; if not, it refuses them (`other`) or ignores them."""
    tokenizer_s_chars: int = 3
    """How many characters a token of its tokenizer has."""
    capabilities: tuple[str, ...] = ("completion",)
    """What Ollama says that the model can do."""

    def told(  # noqa: PLR0911 - a table
        self, method: str, path: str, body: Mapping[str, Any], models: Sequence[str]
    ) -> dict[str, Any] | None:
        """Answer what is asked about the server itself; None: it has no such path."""
        asked = (self.name, method, path)
        match asked:
            case ("llama.cpp", "GET", "/props"):
                return {"default_generation_settings": {"n_ctx": self.context}, "total_slots": 1}
            case ("llama.cpp", "POST", "/tokenize"):
                return {"tokens": list(range(len(str(body["content"])) // self.tokenizer_s_chars))}
            case ("vllm", "POST", "/tokenize"):
                return {"count": len(str(body["prompt"])) // self.tokenizer_s_chars, "max_model_len": self.context}
            case ("ollama", "GET", "/api/version"):
                return {"version": "0.12.3"}
            case ("ollama", "POST", "/api/show"):
                return {
                    "model_info": {"qwen2.context_length": self.context},
                    "parameters": "stop  x",
                    "capabilities": list(self.capabilities),
                }
            case ("lmstudio", "GET", "/api/v0/models"):
                return {"data": [{"id": one, "loaded_context_length": self.context} for one in models]}
        return None

    def listed(self) -> dict[str, Any]:
        """Return what its list of models adds to each."""
        return {"max_model_len": self.context} if self.name == "vllm" else {}

    def held(self, body: Mapping[str, Any]) -> Reply | None:
        """Answer the probe; None if this is no probe, or the form is refused."""
        if not is_probe(body):
            return None
        if not self.enforces:
            return Reply(text="Blue.")
        return Reply(text="<held>true</held>" if "grammar" in body else '{"held": "true"}')

    def refuses(self, body: Mapping[str, Any]) -> bool:
        """Return whether it refuses a request for its form."""
        return self.name == "other" and bool({"grammar", "response_format", "format"} & body.keys())


def is_probe(body: Mapping[str, Any]) -> bool:
    """Return whether a request only asks whether a form is enforced."""
    return [one.get("content") for one in body.get("messages") or ()] == [PROBE]


def is_asked(call: Call) -> bool:
    """Return whether a call asks a model something."""
    if call.path == "/v1/messages":
        return True
    return call.path in ("/v1/chat/completions", "/api/chat") and not is_probe(call.body)


def ollama_whole(reply: Reply, model: str, prompt: int) -> dict[str, Any]:
    """Return the whole answer of `/api/chat`."""
    text = "".join(reply.pieces())
    reason = "length" if reply.stop_reason == "max_tokens" else "stop"
    counted = {"prompt_eval_count": prompt, "eval_count": tokens(text)} if reply.usage else {}
    return {
        "model": model,
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": reason,
        **counted,
    }


def ollama_events(reply: Reply, model: str, prompt: int) -> Iterator[bytes]:
    """Stream the answer of `/api/chat`: one JSON object a line."""
    if reply.thinking:
        thinks = {"role": "assistant", "content": "", "thinking": reply.thinking}
        yield json.dumps({"model": model, "message": thinks, "done": False}).encode() + b"\n"
    for piece in reply.pieces():
        line = {"model": model, "message": {"role": "assistant", "content": piece}, "done": False}
        yield json.dumps(line).encode() + b"\n"
    end = ollama_whole(reply, model, prompt)
    yield json.dumps({**end, "message": {"role": "assistant", "content": ""}}).encode() + b"\n"
