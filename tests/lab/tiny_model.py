"""Write a model file of some kilobytes that llama.cpp loads, and that answers whatever it is asked with `SAYS`.

Its vocabulary is the bytes. An embedding is one-hot, the attention is zero, and the output row of each byte of `SAYS`
wants the byte before it, so that the newline at the end of every chat template is followed by `SAYS`, and that by the end.
Source: github.com/ggml-org/ggml, docs/gguf.md.
"""

import array
import struct
from pathlib import Path

SAYS = "Oak."
"""No byte stands in it twice."""
_WIDTH, _FFN, _ALIGNED = 288, 32, 32
_UNKNOWN, _BEGIN, _END, _FIRST_BYTE = 0, 1, 2, 3
_WORDS = 259
_U32, _I32, _F32, _STR, _ARRAY = 4, 5, 6, 8, 9


def write_tiny_model(path: Path) -> Path:
    """Write the model to `path`, and return that."""
    tensors = _tensors()
    infos, data = b"", b""
    for name, shape, values in tensors:
        raw = array.array("f", values).tobytes()
        infos += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += raw + b"\0" * (-len(raw) % _ALIGNED)
    facts = _facts()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)) + b"".join(facts) + infos
    path.write_bytes(head + b"\0" * (-len(head) % _ALIGNED) + data)
    return path


def _text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def _facts() -> list[bytes]:
    numbers = {
        "llama.context_length": 65536,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _FFN,
        "llama.attention.head_count": 9,
        "llama.rope.dimension_count": 32,
        "tokenizer.ggml.bos_token_id": _BEGIN,
        "tokenizer.ggml.eos_token_id": _END,
        "tokenizer.ggml.unknown_token_id": _UNKNOWN,
    }
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [2, 3, 3, *[6] * 256]
    return [
        _text("general.architecture") + struct.pack("<I", _STR) + _text("llama"),
        *(_text(key) + struct.pack("<II", _U32, number) for key, number in numbers.items()),
        _text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", _F32, 1e-6),
        _text("tokenizer.ggml.model") + struct.pack("<I", _STR) + _text("llama"),
        _text("tokenizer.ggml.tokens") + struct.pack("<IIQ", _ARRAY, _STR, _WORDS) + b"".join(map(_text, words)),
        _text("tokenizer.ggml.scores") + struct.pack(f"<IIQ{_WORDS}f", _ARRAY, _F32, _WORDS, *[0.0] * _WORDS),
        _text("tokenizer.ggml.token_type") + struct.pack(f"<IIQ{_WORDS}i", _ARRAY, _I32, _WORDS, *kinds),
    ]


def _tensors() -> list[tuple[str, tuple[int, ...], list[float]]]:
    known = [0.0] * (_WIDTH * _WORDS)
    wanted = [0.0] * (_WIDTH * _WORDS)
    for word in range(_WORDS):
        known[word * _WIDTH + word] = 1.0
    says = [_FIRST_BYTE + byte for byte in b"\n" + SAYS.encode()]
    for before, after in zip(says, [*says[1:], _END], strict=True):
        wanted[after * _WIDTH + before] = 8.0
    square, ones = [0.0] * (_WIDTH * _WIDTH), [1.0] * _WIDTH
    return [
        ("token_embd.weight", (_WIDTH, _WORDS), known),
        ("output_norm.weight", (_WIDTH,), ones),
        ("output.weight", (_WIDTH, _WORDS), wanted),
        ("blk.0.attn_norm.weight", (_WIDTH,), ones),
        ("blk.0.ffn_norm.weight", (_WIDTH,), ones),
        *((f"blk.0.attn_{part}.weight", (_WIDTH, _WIDTH), square) for part in ("q", "k", "v", "output")),
        *((f"blk.0.ffn_{part}.weight", (_WIDTH, _FFN), [0.0] * (_WIDTH * _FFN)) for part in ("gate", "up")),
        ("blk.0.ffn_down.weight", (_FFN, _WIDTH), [0.0] * (_WIDTH * _FFN)),
    ]
