"""The search for erased words: in any script and any encoding of ours; an incomplete search returns None."""

import gzip
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from claudius.memory import search
from claudius.memory.database import pack
from claudius.memory.packing import phrases
from claudius.memory.sqlite import SqliteStore

WITHIN_S = 60.0
WORDS = {
    "english": "my locker number is seven four one nine",
    "russian": "номер моего шкафа семь четыре один",
    "chinese": "我的储物柜号码是七四一九",
    "arabic": "رقم خزانتي هو سبعة أربعة واحد تسعة",
    "hindi": "मेरे लॉकर का नंबर सात चार एक नौ",
    "emoji": "🐝🦋🐞🦗🕷🦂🐢🐍",
}


def asked(root: Path, **more: Any) -> dict[str, Any]:
    """Return a request that searches for nothing, below a directory."""
    nothing = {"ids": [], "folders": [], "excerpts": [], "places": [str(root)], "git": None, "left_out": []}
    return {**nothing, "database": str(root / "none.db"), **more}


def found(root: Path, **more: Any) -> list[str]:
    """Return the names of the files that contain the words."""
    answer = search.run(asked(root, **more), within_s=WITHIN_S)
    assert answer is not None
    return [Path(one).name for one in answer["found"]]


def test_the_phrases_that_documents_are_compressed_with_never_change() -> None:
    """A document can be read only with the phrases that it was packed with."""
    assert hashlib.sha256(phrases()).hexdigest() == "fd4eb827be925ac781524ac26188b551066997750aa3c1efb2a0068858df1528"


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_words_of_any_script_are_found_in_every_form_of_ours(tmp_path: Path, words: str) -> None:
    """Words are found plain, as JSON escapes in both cases, in nested JSON, zipped, and across blocks of a file."""
    escaped = json.dumps(words)
    upper = "".join(f"\\u{ord(one):04X}" if "\x80" < one < "\U00010000" else one for one in words)
    (tmp_path / "plain").write_text(f"so {words}.", "utf-8")
    (tmp_path / "escaped").write_text(escaped)
    (tmp_path / "upper").write_text(upper, "utf-8")
    (tmp_path / "twice").write_text(json.dumps(escaped))
    (tmp_path / "zipped.gz").write_bytes(gzip.compress(words.encode()))
    (tmp_path / "large").write_bytes(b"x" * (search.BLOCK - 9) + words.encode() + b"y" * search.BLOCK)
    (tmp_path / "other").write_text(words[:-4] + "else", "utf-8")

    assert found(tmp_path, excerpts=[words]) == ["escaped", "large", "plain", "twice", "upper", "zipped.gz"]


def test_an_id_is_found_as_a_whole_word(tmp_path: Path) -> None:
    """An id matches as a whole word only; a file whose name contains a folder's part is found too."""
    (tmp_path / "it").write_text('{"person": "slack:T1:U1"}')
    (tmp_path / "longer").write_text("slack:T1:U12 slack:T1:U1-b")
    (tmp_path / "ana-abcdefghijkl").write_text("")

    assert found(tmp_path, ids=["slack:T1:U1"], folders=["abcdefghijkl"]) == ["ana-abcdefghijkl", "it"]


def test_what_git_has_packed_is_found(tmp_path: Path) -> None:
    """A git object that no commit refers to is found as well."""
    git = {"PATH": os.environ["PATH"], "GIT_DIR": str(tmp_path / ".git"), "HOME": str(tmp_path)}
    subprocess.run(["git", "init", "-q"], env=git, check=True)
    subprocess.run(["git", "hash-object", "-w", "--stdin"], env=git, input=WORDS["russian"].encode(), check=True)

    assert found(tmp_path, excerpts=[WORDS["russian"]]) == []
    assert found(tmp_path, excerpts=[WORDS["russian"]], git={"env": git}) == ["git"]


async def test_what_the_database_has_packed_is_found_by_its_row(tmp_path: Path) -> None:
    """A row is named by table, key and column, even if its words are compressed; the live file is searched too."""
    path = tmp_path / "state" / "claudius.db"
    path.parent.mkdir()
    store = SqliteStore(path)
    await store.open()
    kept = pack({"thoughts": [{"step": "a", "content": WORDS["chinese"]}]})
    row = ("complete", "said", "[]", "[]", "{}", "{}", "[]", "", b"", kept)
    names = "rung, verb, flags, steps, attention, changes, thoughts, prompt_sha256, snapshot, kept"
    connection = store.core.writer._database.connection
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO turn_record ({names}) VALUES ({marks})", row)  # noqa: S608 - its own columns

    answer = search.run(asked(tmp_path, excerpts=[WORDS["chinese"]], database=str(path)), within_s=WITHIN_S)
    await store.close(clean=False)

    assert answer is not None
    assert answer["rows"] == [{"table": "turn_record", "key": {"rowid": 1}, "columns": ["kept"]}]


def test_a_search_that_does_not_end_well_found_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is killed, too slow, or given a bad request returns None, never an empty finding."""
    (tmp_path / "it").write_text(WORDS["english"])
    wanted = asked(tmp_path, excerpts=[WORDS["english"]])

    assert search.run(wanted, within_s=0.0) is None
    assert search.run({}, within_s=WITHIN_S) is None
    monkeypatch.setattr("sys.executable", str(tmp_path / "killed"))
    (tmp_path / "killed").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "killed").chmod(0o700)
    assert search.run(wanted, within_s=WITHIN_S) is None


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A truncated zipped log was not searched completely, so it is named."""
    (tmp_path / "claudius.log.1.gz").write_bytes(gzip.compress(b"x" * 9999)[:-9])

    answer = search.run(asked(tmp_path, excerpts=[WORDS["english"]]), within_s=WITHIN_S)

    assert answer is not None
    assert "claudius.log.1.gz" in answer["unread"][0]
