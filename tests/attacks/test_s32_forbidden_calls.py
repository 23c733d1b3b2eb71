"""S32, the part that reads the source tree: text is never run as code, and bytes are never unpickled."""

import ast

from tree import calls, dotted, python_files

RUNS_TEXT = ("eval", "exec", "compile", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")
RUNS_A_SHELL = ("asyncio.create_subprocess_shell", "create_subprocess_shell", "loop.subprocess_shell")
LOADS_OBJECTS = ("pickle", "cPickle", "dill", "shelve", "marshal", "jsonpickle", "yaml")
OF_OUR_OWN = (("tests/test_monitoring.py", "yaml"),)
"""A test that reads, by `safe_load`, a file of this repository."""


def test_s32_no_text_is_run_as_code() -> None:
    """`eval`, `exec` and `os.system` are absent from the package, the tests and the benches."""
    found = [
        f"{path}:{call.lineno} {name}"
        for path, tree in python_files()
        for call, name in calls(tree)
        if name in RUNS_TEXT
    ]

    assert found == []


def test_s32_no_subprocess_goes_through_a_shell() -> None:
    """No call passes `shell=True` (or anything but a literal False), and no shell function of asyncio is called."""
    found = [
        f"{path}:{call.lineno}"
        for path, tree in python_files()
        for call, name in calls(tree)
        if name in RUNS_A_SHELL or any(_asks_for_a_shell(keyword) for keyword in call.keywords)
    ]

    assert found == []


def _asks_for_a_shell(keyword: ast.keyword) -> bool:
    if keyword.arg != "shell":
        return False
    return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)


def test_s32_no_library_that_loads_objects_is_imported() -> None:
    """Data comes in as JSON, TOML, text or rows. `pickle`, its relatives and YAML are not imported anywhere."""
    found = [
        f"{path}:{node.lineno} {library}"
        for path, tree in python_files()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for library in LOADS_OBJECTS
        if _imports(node, library) and (path, library) not in OF_OUR_OWN
    ]

    assert found == []


def _imports(node: ast.AST, library: str) -> bool:
    match node:
        case ast.Import(names=names):
            return any(alias.name.partition(".")[0] == library for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            return module.partition(".")[0] == library
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
            return dotted(func) in ("__import__", "importlib.import_module", "import_module") and name == library
        case _:
            return False
