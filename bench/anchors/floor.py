"""The anchor `floor`: what a turn costs at least: three full commits, JSON, one exchange with a model that streams."""

from __future__ import annotations

import http.client
import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from script import message, prose, ready
from sides import cpu_s, serve

COMMITS, ROW = 3, "x" * 200
SYSTEM_CHARS = 8000
HEADERS = {"content-type": "application/json", "x-api-key": "bench", "anthropic-version": "2023-06-01"}


class Floor:
    """One open database file and one connection to a model."""

    def __init__(self) -> None:
        """Open the file in the working directory."""
        ready()
        self._system = prose(SYSTEM_CHARS, 1)
        self._db = sqlite3.connect("floor.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, content TEXT NOT NULL)")
        self._http: http.client.HTTPConnection | None = None

    def turns(self, url: str, path: str, count: int) -> float:
        """Take so many. Returns the CPU of each in milliseconds."""
        self._http = self._http or http.client.HTTPConnection(urlsplit(url).netloc)
        began = cpu_s()
        for number in range(count):
            for _ in range(COMMITS):
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("INSERT INTO row (content) VALUES (?)", (ROW,))
                self._db.execute("COMMIT")
            said = "".join(self._asked(path, f"{message(number)} #{number}#\n## This Turn"))
            assert said, number
        return 1000 * (cpu_s() - began) / count

    def _asked(self, path: str, text: str) -> Iterator[str]:
        assert self._http is not None
        messages = [{"role": "user", "content": text}]
        body: dict[str, object] = {"model": "claude-loopback", "max_tokens": 100, "stream": True, "messages": messages}
        if path == "/v1/messages":
            body["system"] = self._system
        else:
            body["messages"] = [{"role": "system", "content": self._system}, *messages]
        self._http.request("POST", path, json.dumps(body), HEADERS)
        with self._http.getresponse() as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    found = json.loads(line[6:])
                    yield found.get("delta", {}).get("text", "") or str(found.get("choices") or "")


if __name__ == "__main__":
    serve({"turns": Floor().turns})
