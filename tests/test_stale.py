"""No async function acts on what it looked up before it waited: "read, await, write" on shared state is found.

Two tasks that look up one key, both find nothing, both wait and both write: the second replaces what the first made,
and no one ends that. What was read before an `await` is stale after it. It is not, if a lock was held throughout, if it
is read again after the `await`, or if a future was written before it, so that the second task finds that.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence

import pytest

from tree import modules

ONE_TASK = "one task at a time runs it"
ALLOWED = {
    "adapters/discord/adapter.py: DiscordAdapter._enter": f"{ONE_TASK}: it listens, and enters again when it was lost",
    "adapters/slack/outgoing.py: SlackPoster.speak": "a latch: whoever finds it open posts once more in the older form",
    "console/walls.py: Walls._own_user": f"{ONE_TASK} a connection: its requests come one after the other",
    "cortex/life.py: Cortex._live": f"{ONE_TASK}: it is the second mind's own",
    "memory/archive/worker.py: Archive._take_over": f"{ONE_TASK}: the archive holds its lock around each round",
    "memory/archive/worker.py: Archive._commit_all": f"{ONE_TASK}: the archive holds its lock around each round",
    "memory/postgres/store.py: PostgresInbox.accept": "it only saves asking the store again, which decides",
    "providers/home/__init__.py: LlamaServer.start": "it holds its lock",
    "providers/home/__init__.py: LlamaServer.stop": "after it nothing starts",
    "runtime/access.py: Membership._seeing": "it only saves asking the network again",
    "tools/mcp.py: McpHands._opened": "whoever calls it holds the lock",
    "runtime/delivery.py: Stream.__call__": f"{ONE_TASK}: the turn that it streams",
    "runtime/thread_backfill.py: ThreadBackfill.read": f"{ONE_TASK}: the conversation's lane",
    "testing/adapter_contract/small.py: TerminalStage._at": f"{ONE_TASK}: the test that stands on this stage",
}
"""Functions that may, each with its reason."""

FRESH, STALE, HELD = "fresh", "stale", "held"
READS = {"get", "keys", "values", "items"}
WRITES = {"pop", "setdefault", "update", "add", "remove", "discard", "append"}
LOCKS = {"Lock", "Condition", "Semaphore", "BoundedSemaphore"}

Seen = dict[tuple[str, str], str]
"""What became of each lookup so far, by the map's and the key's expression."""


def test_nothing_is_written_after_a_wait_that_was_looked_up_before_it() -> None:
    """Each shared map and attribute is written under a lock, or looked up again, or holds a future: one for each key."""
    found: dict[str, str] = {}
    for path, tree in modules():
        for line, function, what in stale_writes(tree):
            found[f"{path}: {function}"] = f"{path}:{line}: {what} was looked up before an await in {function}"

    assert [line for name, line in found.items() if name not in ALLOWED] == []
    assert [name for name in ALLOWED if name not in found] == []


SEAT = """
class Live:
    def __init__(self):
        self._taking = asyncio.Lock()
        self._by_name = defaultdict(asyncio.Lock)

    async def seat(self, name):
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "known = self._seats.get(name)\nif known:\n    return known\nself._seats[name] = await take(name)",
        "if name not in self._seats:\n    seat = await take(name)\n    self._seats[name] = seat",
        "if name in self._seats:\n    return\nasync with connect() as one:\n    self._seats[name] = one",
        "if not self._is_woken and not await running():\n    await wake()\n    self._is_woken = True",
        "if self._inner is None:\n    self._inner = await runner()",
        "seat = self._seats[name]\nawait seat.leave()\ndel self._seats[name]",
        "while self._seats.get(name):\n    await asyncio.sleep(1)\n    self._seats.pop(name)",
        "try:\n    if name not in self._seats:\n        await take(name)\nfinally:\n    self._seats[name] = 1",
        "known = self._seats.get(name)\nasync with self._taking:\n    self._seats[name] = known or take(name)",
        "if name not in SEATS:\n    SEATS[name] = await take(name)",
    ],
)
def test_a_write_that_rests_on_a_stale_lookup_is_found(body: str) -> None:
    """The rule above sees the ways in which this was done, or could be."""
    assert list(stale_writes(_live(body)))


@pytest.mark.parametrize(
    "body",
    [
        "async with self._taking:\n    if name not in self._seats:\n        self._seats[name] = await take(name)",
        "async with self._by_name[name]:\n    if name not in self._seats:\n        self._seats[name] = await take(name)",
        "if name not in self._seats:\n    self._seats[name] = create_task(take(name))\nreturn await self._seats[name]",
        "seat = await take(name)\nif name not in self._seats:\n    self._seats[name] = seat",
        "if name in self._seats:\n    await self._seats[name].ask()\nelse:\n    self._seats[name] = 1",
        "seat = self._seats[name]\nawait seat.leave()\nif self._seats.get(name) is seat:\n    del self._seats[name]",
        "before, self._inner = self._inner, None\nif before:\n    await before.close()",
        "seats = {}\nif name not in seats:\n    seats[name] = await take(name)",
        "await take(name)\nself._count += 1",
    ],
)
def test_a_write_that_rests_on_a_lock_or_a_fresh_lookup_is_not(body: str) -> None:
    """The rule above leaves alone what no other task can come between."""
    assert list(stale_writes(_live(body))) == []


def _live(body: str) -> ast.Module:
    return ast.parse(SEAT.format(body="\n".join(f"        {line}" for line in body.splitlines())))


def stale_writes(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the function and the expression of each write that rests on a stale lookup."""
    locks = set(_locks(tree))
    for name, function in _statements(tree, ""):
        if isinstance(function, ast.AsyncFunctionDef):
            reading = _Reading(_own_names(function), locks)
            reading.block(function.body, {})
            yield from ((line, name, what) for line, what in sorted(reading.found))


def _locks(tree: ast.Module) -> Iterator[str]:
    """Yield the expressions that are assigned a lock anywhere in a module; of a map of locks, with its bracket."""
    for _, node in _statements(tree, ""):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            made = {ast.unparse(each).rpartition(".")[2] for each in (node.value.func, *node.value.args)}
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if made & LOCKS:
                yield from (ast.unparse(target) + "[" * ("defaultdict" in made) for target in targets)


def _statements(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each statement below a node, with the class and function that it is in, itself included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".strip(".")
            yield inner, child
            yield from _statements(child, inner)


def _own_names(function: ast.AsyncFunctionDef) -> set[str]:
    """Return the names that a function binds: what it is given, or makes, is its own as far as this can tell."""
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)} - {"self", "cls"}
    bound = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    shared = [each.names for each in ast.walk(function) if isinstance(each, ast.Global | ast.Nonlocal)]
    return (given | bound).difference(*shared)


class _Reading:
    """One function, read in the order in which it runs, and each loop twice."""

    def __init__(self, own: set[str], locks: set[str]) -> None:
        self.found: set[tuple[int, str]] = set()
        self._own, self._locks, self._held = own, locks, 0

    def block(self, body: Sequence[ast.stmt], seen: Seen) -> Seen | None:
        """Read statements; return what is known after them, or None if none comes to their end."""
        now: Seen | None = dict(seen)
        for statement in body:
            if now is not None:
                now = self._statement(statement, now)
        return now

    def _statement(self, node: ast.stmt, seen: Seen) -> Seen | None:
        match node:
            case ast.If():
                self._test(node.test, seen)
                return _either(self.block(node.body, seen), self.block(node.orelse, seen))
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(node, seen)
            case ast.Try():
                return self._try(node, seen)
            case ast.With() | ast.AsyncWith():
                return self._with(node, seen)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Delete():
                self._assign(node, seen)
            case _ if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._expressions(ast.iter_child_nodes(node), seen)
        return None if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break) else seen

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, seen: Seen) -> Seen:
        for _ in range(2):
            if isinstance(node, ast.While):
                self._test(node.test, seen)
            else:
                self._expressions([node.iter], seen)
            if isinstance(node, ast.AsyncFor):
                self._wait(seen)
            seen = _either(seen, self.block(node.body, seen)) or seen
        return self.block(node.orelse, seen) or seen

    def _try(self, node: ast.Try, seen: Seen) -> Seen | None:
        inside = self.block(node.body, seen)
        broken = _either(seen, inside) or seen
        after = self.block(node.orelse, inside) if inside is not None else None
        for handler in node.handlers:
            after = _either(after, self.block(handler.body, broken))
        last = self.block(node.finalbody, broken if after is None else after)
        return None if after is None else last

    def _with(self, node: ast.With | ast.AsyncWith, seen: Seen) -> Seen | None:
        named = [ast.unparse(item.context_expr) for item in node.items]
        self._expressions((item.context_expr for item in node.items), seen)
        if isinstance(node, ast.With):
            return self.block(node.body, seen)
        self._wait(seen)
        is_lock = any(name in self._locks or name.partition("[")[0] + "[" in self._locks for name in named)
        self._held += is_lock
        after = self.block(node.body, seen)
        self._held -= is_lock
        if after is None or self._held:
            return after
        return {key: FRESH if state == HELD else state for key, state in after.items()}

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete, seen: Seen) -> None:
        value = None if isinstance(node, ast.Delete) else node.value
        self._expressions([value] if value else [], seen)
        if isinstance(node, ast.AugAssign):
            return  # it reads and writes at once
        swapped = {ast.unparse(each) for each in ast.walk(value) if isinstance(each, ast.Attribute)} if value else set()
        if not any(isinstance(each, ast.Await) for each in (ast.walk(value) if value else ())):
            for name in swapped:
                seen.pop((name, ""), None)
        for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
            self._assigned(target, seen)

    def _assigned(self, target: ast.expr, seen: Seen) -> None:
        match target:
            case ast.Subscript(where, key) if self._is_shared(where):
                self._write(where, key, seen, target.lineno)
            case ast.Attribute() if self._is_shared(target):
                self._write(target, None, seen, target.lineno)
            case ast.Tuple(parts) | ast.List(parts):
                for part in parts:
                    self._assigned(part, seen)

    def _test(self, node: ast.expr, seen: Seen) -> None:
        """Read a condition: an attribute that it asks is looked up as well."""
        asked = node.values if isinstance(node, ast.BoolOp) else [node]
        for each in asked:
            self._expressions([each], seen)
            bare = each.operand if isinstance(each, ast.UnaryOp) else each
            place = bare.left if isinstance(bare, ast.Compare) else bare
            if isinstance(place, ast.Attribute) and self._is_shared(place):
                self._read(place, None, seen)

    def _expressions(self, nodes: Iterable[ast.AST], seen: Seen) -> None:
        for node in nodes:
            if not isinstance(node, ast.Lambda):
                self._expressions(ast.iter_child_nodes(node), seen)
                self._expression(node, seen)

    def _expression(self, node: ast.AST, seen: Seen) -> None:
        match node:
            case ast.Await():
                self._wait(seen)
            case ast.Compare(left, [operator], [where]) if type(operator).__name__.endswith("In"):
                if self._is_shared(where):
                    self._read(where, left, seen)
            case ast.Subscript(where, key, ast.Load()) if self._is_shared(where):
                self._read(where, key, seen)
            case ast.Call(ast.Attribute(where, name), [key, *_]) if self._is_shared(where):
                if name in READS:
                    self._read(where, key, seen)
                elif name in WRITES:
                    self._write(where, key, seen, node.lineno)

    def _is_shared(self, node: ast.expr) -> bool:
        """Return whether another task may hold the same object: it is reached from `self`, or from outside."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self._own

    def _read(self, where: ast.expr, key: ast.expr | None, seen: Seen) -> None:
        seen[_name(where, key)] = HELD if self._held else FRESH

    def _write(self, where: ast.expr, key: ast.expr | None, seen: Seen, line: int) -> None:
        name = _name(where, key)
        if seen.pop(name, None) == STALE:
            self.found.add((line, f"{name[0]}[{name[1]}]" if key else name[0]))

    def _wait(self, seen: Seen) -> None:
        seen.update({key: STALE for key, state in seen.items() if state == FRESH})


def _name(where: ast.expr, key: ast.expr | None) -> tuple[str, str]:
    return ast.unparse(where), ast.unparse(key) if key else ""


def _either(one: Seen | None, other: Seen | None) -> Seen | None:
    """Join what is known after two ways: what is stale after either is stale."""
    if one is None or other is None:
        return other if one is None else one
    return {**one, **other} | {key: STALE for key, state in (one | other).items() if STALE in (one.get(key), state)}
