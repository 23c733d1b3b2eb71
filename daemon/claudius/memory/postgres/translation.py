"""Translate a query that is written for SQLite into the words of PostgreSQL and of psycopg. Pure.

Most queries are one text for both databases: functions that only SQLite has are functions of our own in the schema
(`/memory/postgres/`), and what a function cannot say is replaced here, word for word. A query that needs other words
has its own text in `/memory/postgres/queries.sql`.
"""

from __future__ import annotations

import re
from functools import cache

_COMMENT = re.compile(r"--[^\n]*")
_WORDS = (
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\bCROSS JOIN (\w+ (?:AS )?\w+) ON\b"), r"JOIN \1 ON"),
    (re.compile(r"\bIS NOT (?!NULL\b|DISTINCT\b)"), "IS DISTINCT FROM "),
    (re.compile(r"\bIS (?!NOT\b|NULL\b|DISTINCT\b)"), "IS NOT DISTINCT FROM "),
    (re.compile(r"\bCAST\(('[^']*') AS BLOB\)"), r"convert_to(\1, 'UTF8')"),
    (re.compile(r"\bx''"), r"'\\x'::bytea"),
    (re.compile(r"\bLIMIT (:\w+)"), r"LIMIT nullif(\1, -1)"),  # in SQLite a negative number is no limit
)
_CHARACTER = re.compile(r"\bchar\((\w+)\)")
_GLOB = re.compile(r"\bGLOB '([^']*)'")
_GLOB_PART = re.compile(r"\*|\?|\[[^]]+\]|[^*?[]+")
_VALUES = re.compile(r"\bVALUES (\((?:\s*:\w+,?)+\))")
"""Values that are parameters, and nothing else."""
_NAMED = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\"|::)|:([a-z_]\w*)")
TRANSACTIONS = {
    "BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",  # a snapshot
    "BEGIN IMMEDIATE": "BEGIN; SELECT pg_advisory_xact_lock(1131176053, current_schema()::regnamespace::oid::int), "
    "extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS waited_s, soul_is_here()",
}
"""A transaction that writes is alone, and where the soul is: so versions, counts and the order of ids mean what they
mean with one writer, and no two batches wait for each other."""


def translated(sql: str) -> str:
    """Return a statement for psycopg, with named parameters as `%(name)s`. Pure."""
    if sql in TRANSACTIONS:
        return TRANSACTIONS[sql]
    text = _COMMENT.sub("", sql).strip()
    for words, instead in _WORDS:
        text = words.sub(instead, text)
    text = _CHARACTER.sub(lambda found: f"chr({int(found[1], 0)})", text)
    text = _GLOB.sub(lambda found: f"~ '{_expression(found[1])}'", text)
    return _NAMED.sub(lambda found: found[1] or f"%({found[2]})s", text.replace("%", "%%"))


@cache
def for_rows(sql: str, rows: int) -> str:
    """Return an INSERT of one row as one of several, whose values are numbered; empty if it cannot be that. Pure."""
    found = _VALUES.search(sql)
    if found is None:
        return ""
    values = ", ".join([_NAMED.sub(rf":\2_{n}", found[1]) for n in range(rows)])
    return f"{sql[: found.start(1)]}{values}{sql[found.end(1) :]}"


def _expression(glob: str) -> str:
    """Return the regular expression that matches what a GLOB pattern matches."""
    parts = {"*": ".*", "?": "."}
    inside = (parts.get(one) or (one if one[0] == "[" else re.escape(one)) for one in _GLOB_PART.findall(glob))
    return f"^{''.join(inside)}$"
