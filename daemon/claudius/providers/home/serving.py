"""Serve one model with llama.cpp on `model.sock` of the working directory, until whoever started this process dies.

`LlamaServer` starts `python -m claudius.providers.home.serving FILE CONTEXT_TOKENS THREADS` in the `run/` of a home.

Source: github.com/ggml-org/llama.cpp, tools/server/README.md, where a host that ends in `.sock` is a Unix socket.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

SOCKET = "model.sock"
CACHE_MIB = 512
"""Prompts that wait while another one is thought about, as a turn's while the second mind reflects."""


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # the other end closes when the parent ends, however it ends
    os._exit(0)


def serve(path: str, context_tokens: int, threads: int) -> Any:
    """Load a model and listen; the server lives as long as what is returned. `threads`: 0 = every physical core."""
    xllamacpp = importlib.import_module("xllamacpp")
    Path(SOCKET).unlink(missing_ok=True)
    wanted = xllamacpp.CommonParams()
    if threads:
        wanted.cpuparams.n_threads = threads
    wanted.model.path = path
    wanted.model_alias = {Path(path).stem}
    wanted.hostnames = [SOCKET]
    wanted.n_ctx, wanted.n_parallel = context_tokens, 1
    wanted.cache_ram_mib = CACHE_MIB
    wanted.enable_reasoning = 0
    wanted.ui = False
    wanted.verbosity = 1  # errors alone: a prompt is never logged
    return xllamacpp.Server(wanted)


if __name__ == "__main__":
    os.umask(0o077)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    server = serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    threading.Event().wait()
