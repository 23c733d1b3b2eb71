"""Each type that is decoded is worked out by one thread at a time: msgspec crashes where two meet in it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import claudius

MEET = """
import sys, threading, msgspec
from claudius.config.schema import Config
from claudius.decoding import ready
sys.setswitchinterval(1e-6)
begin = threading.Barrier(6)
def read():
    begin.wait()
    for _ in range(20):
        msgspec.convert({"psyche": {"enabled": True}, "cortex": {"enabled": True}, "daimons": {}}, ready(Config))
threads = [threading.Thread(target=read) for _ in range(6)]
for one in threads: one.start()
for one in threads: one.join()
"""


@pytest.mark.parametrize("n", range(5))
def test_threads_that_meet_in_a_new_type_do_not_crash(n: int) -> None:
    """Six threads convert the same type for the first time, at the finest switching; unguarded, most such runs crash."""
    assert subprocess.run([sys.executable, "-I", "-c", MEET], check=False).returncode == 0, n


def test_every_type_that_is_decoded_is_worked_out_first() -> None:
    """No code of the package hands msgspec a type of its own but through `claudius.decoding`."""
    forms = (
        r"json\.Decoder\(|decode\([^\n]*type=|msgspec\.convert\((?![^\n]*(?:ready\(|setting\.type|, kind\)|, _CHUNK\)))"
    )
    package = Path(claudius.__file__).parent
    found = [
        f"{path.relative_to(package)}: {match[0]}"
        for path in package.rglob("*.py")
        if path.name != "decoding.py" and "testing" not in path.parts
        for match in re.finditer(forms, path.read_text("utf-8"))
    ]

    assert found == []
