"""S37, the part that reads the source tree: no message, log line or report is made of what a foreign exception says."""

import ast
from collections.abc import Iterator

import pytest

from claudius import errors
from claudius.errors import ProviderError
from tree import calls, dotted, modules

OF_THE_OWNERS = {
    "cli/": "what the owner's own machine answers, on the terminal where they typed the command",
    "claude_code/": "likewise",
    "config/": "the owner's own configuration",
    "soul/": "the owner's own soul files",
    "reports/soul.py": "likewise",
    "cognition/processes/__init__.py": "the head of a process, a soul file",
    "cognition/reflection.py": "the head of a subprocess, likewise",
    "providers/rehearsal/lines.py": "the head of rehearsal.md, likewise",
    "providers/scripted.py": "the file of a test",
    "shape.py": "the signature of the owner's own part",
    "eval/": "files that the owner names to `claudius eval`",
    "testing/": "the tests of authors of parts",
}
"""Where an exception speaks of the owner's own files, each with its reason."""
READ_ONLY = {
    "foreign.py": "it is what takes the words out",
    "failure.py": "a `Foreign` is made of it, for the record of the turn",
    "memory/postgres/session.py": "it picks our own words for it",
    "adapters/slack/web_api.py": "a status, and a code that is looked up in a list",
    "providers/anthropic_api.py": "a status, headers, and what becomes a `Foreign`",
    "providers/agent_sdk.py": "it becomes a `Foreign`",
    "tools/mcp_worker.py": "a code that is compared",
    "providers/home/downloading.py": "a status",
    "console/walls.py": "the phrase is aiohttp's, of the console's own server",
    "decoding.py": "it takes the values out",
    "cognition/asks.py": "a value error is raised three lines further down, in our own words",
    "memory/ledger.py": "a value error is raised by `record`, in our own words",
    "adapters/terminal.py": "a value error is raised by `seat`, in our own words",
    "runtime/attachments.py": "it stands in the prompt of the turn that brought the file, and nowhere else",
}
"""Where the words are read and not told, each with its reason."""
WORDS = {"args", "message", "reason", "text", "doc", "object", "response", "stderr", "stdout", "complaint", "body"}
"""Attributes of exceptions, answers and processes which hold what somebody wrote."""
PASSED_ON = {"NO_MODEL.message"}
"""Messages that an error of a model takes over from another."""
FACTS = {
    *("self._base_url", "one_line(base_url)", "status_words(status)", "type(error).__name__", "error.strerror"),
    *("facts.context_tokens", "argv[0]", "path", "self._root", "found", "needed", "which"),
    *("unreached(error, self._base_url)", "code", "STARTS_S", "named", "self._model.name"),
}
"""What an error of a model says besides words of the source."""
LOGS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def quoted(tree: ast.Module) -> Iterator[int]:
    """Yield the lines on which a foreign exception is turned into text."""
    own = _own(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name and not _is_own(node.type, own):
            yield from _texts(node, node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                kinds = ast.unparse(argument.annotation) if argument.annotation else ""
                if kinds in ("Exception", "BaseException") or (kinds.endswith("Error") and kinds not in own):
                    yield from _texts(node, argument.arg)


def printed(tree: ast.Module) -> Iterator[int]:
    """Yield the lines on which what an answer or a child process wrote stands in an error's message or in the log."""
    for node in ast.walk(tree):
        is_log = isinstance(node, ast.Call) and dotted(node.func).startswith("log.")
        if isinstance(node, ast.Raise) or is_log:
            for inner in ast.walk(node):
                if isinstance(inner, ast.FormattedValue | ast.keyword) and getattr(inner, "arg", "") != "said":
                    yield from (
                        one.lineno
                        for one in ast.walk(inner.value)
                        if isinstance(one, ast.Attribute)
                        and one.attr in ("stderr", "stdout", "complaint", "text", "body")
                    )


def _own(tree: ast.Module) -> set[str]:
    """Return the names of the classes that are ours."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("claudius"):
            own |= {one.asname or one.name for one in node.names if not one.name.isupper()}
    return own


def _is_own(kinds: ast.expr | None, own: set[str]) -> bool:
    each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return all(kind is not None and dotted(kind) in own for kind in each)


def _texts(node: ast.AST, name: str) -> Iterator[int]:
    is_it = lambda one: isinstance(one, ast.Name) and one.id == name  # noqa: E731 - two words
    compared = {id(one) for test in ast.walk(node) if isinstance(test, ast.Compare) for one in ast.walk(test)}
    said = {
        id(one) for key in ast.walk(node) if isinstance(key, ast.keyword) and key.arg == "said" for one in ast.walk(key)
    }
    for one in ast.walk(node):
        if id(one) in compared | said:
            continue
        match one:
            case ast.Call(func=ast.Name(id="str" | "repr" | "format"), args=[first, *_]) if is_it(first):
                yield one.lineno
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Name(id="log"))) if attr in LOGS:
                yield from (argument.lineno for argument in one.args if is_it(argument))
            case ast.FormattedValue(value=value) if is_it(value):
                yield one.lineno
            case ast.Attribute(attr=attr, value=value) if attr in WORDS and is_it(value):
                yield one.lineno


def test_s37_no_text_is_made_of_a_foreign_exception() -> None:
    """`unquoted`, `plain_message` and `traced` name an exception; `str`, `repr`, an f-string or its attributes do not."""
    allowed = (*OF_THE_OWNERS, *READ_ONLY)
    found = [(path, line) for path, tree in modules() for line in quoted(tree)]

    assert [f"{path}:{line}" for path, line in found if not path.startswith(allowed)] == []
    assert [one for one in READ_ONLY if not any(path.startswith(one) for path, _ in found)] == []


def test_s37_no_text_is_made_of_what_a_process_or_an_answer_wrote() -> None:
    """What git, Claude Code or a server wrote is no part of a message or of a log line."""
    found = [
        f"{path}:{line}"
        for path, tree in modules()
        for line in printed(tree)
        if not path.startswith(tuple(OF_THE_OWNERS))
    ]

    assert found == []


def test_s37_a_providers_error_is_in_our_own_words() -> None:
    """Code that makes an error of a model gives it words of the source, and of others' only what is listed here."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ProviderError)}
    made = [(tree, call.args[0]) for _, tree in modules() for call, name in calls(tree) if name in kinds and call.args]
    said = [text for tree, given in made for text in _assigned(tree, given)]
    texts = [one for text in said if isinstance(text, ast.JoinedStr) for one in text.values]

    assert {ast.unparse(text) for text in said if not isinstance(text, ast.Constant | ast.JoinedStr)} == PASSED_ON
    assert {ast.unparse(one.value) for one in texts if isinstance(one, ast.FormattedValue)} == FACTS


def _assigned(tree: ast.Module, text: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, or what is assigned to it where it is a name."""
    if not isinstance(text, ast.Name):
        yield text
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(text, ast.Name) and dotted(node.targets[0]) == text.id:
            yield node.value


def test_s37_the_words_are_taken_out_for_the_turns_record_alone() -> None:
    """`Foreign.words` is called where a failure or a call becomes the turn's record, and where the owner asks for it."""
    found = {path for path, tree in modules() for _, name in calls(tree) if name.endswith("said.words")}

    assert found == {"failure.py", "runtime/hands.py", "reports/tools.py"}


@pytest.mark.parametrize(
    "body",
    [
        "raise StoreError(str(error)) from error",
        "raise StoreError(f'no: {error}') from error",
        "raise StoreError(f'no: {error!r}') from error",
        "log.info('no', extra={'error': repr(error)})",
        "log.info('no: %s', error)",
        "return error.args[0]",
        "return error.response.text",
    ],
)
@pytest.mark.parametrize(
    "kind", ["ValueError", "FAILURES", "(StoreError, OSError)", "aiohttp.ClientError", "Exception"]
)
def test_s37_a_quoted_exception_is_found(kind: str, body: str) -> None:
    """Each form of a quotation is found, whatever foreign class it is caught as; of our own class, none is."""
    source = "from claudius.errors import StoreError\nfrom claudius.x import FAILURES\ndef f():\n    try:\n        g()\n    except {} as error:\n        {}\n"

    assert list(quoted(ast.parse(source.format(kind, body))))
    assert not list(quoted(ast.parse(source.format("StoreError", body))))
