"""One path of a turn: what is said does not depend on the kind of process or on the number of calls."""

import ast

import pytest

from claudius.cognition.processes import Interruption, Process
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from minds import minds, say
from tree import PACKAGE

WORDS = "The bread wants another hour; knock on it then, and when it sounds hollow take it out of the oven."
STEPS = ("internal_monologue", "external_dialogue", "user_model_check")


def process(interruption: Interruption) -> Process:
    """Return an owner's declarative process."""
    return Process(name="main_process", steps=STEPS, interruption=interruption)


def torn(request: Request) -> str:
    """Answer with an unclosed thought that swallows the words, and say the words when asked to repair."""
    if request.purpose == "repair":
        return f"<external_dialogue>{WORDS}</external_dialogue>"
    return f"<internal_monologue>Well. <external_dialogue>{WORDS}</external_dialogue>"


@pytest.mark.parametrize("interruption", list(Interruption))
async def test_a_repair_may_say_the_words_that_a_torn_thought_swallowed(home: Home, interruption: Interruption) -> None:
    """The words inside an unclosed thought are not private: the repair says them, in every kind of process."""
    made = process(interruption)

    async with minds(home, Scripted(default=torn), greeting=made, main_process=made) as soul:
        said = await say(soul, "Is the bread done?")

    assert said == [WORDS]


@pytest.mark.parametrize("interruption", list(Interruption))
async def test_a_repair_may_not_say_a_private_thought(home: Home, interruption: Interruption) -> None:
    """A repair that repeats a private thought is not said, in any kind of process."""
    made = process(interruption)

    def repeating(request: Request) -> str:
        """Think the words in private, and say them when asked to repair."""
        if request.purpose == "repair":
            return f"<external_dialogue>{WORDS}</external_dialogue>"
        return f"<internal_monologue>{WORDS}</internal_monologue>"

    async with minds(home, Scripted(default=repeating), greeting=made, main_process=made) as soul:
        said = await say(soul, "Is the bread done?")

    assert WORDS not in said


def awaits(call: str) -> list[str]:
    """Return the places in `cognition/` and `runtime/` whose code calls this name."""
    found: list[str] = []
    for room in ("cognition", "runtime"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            made = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            found += [str(path.relative_to(PACKAGE)) for one in made if ast.unparse(one.func).endswith(call)]
    return found


def test_one_place_commits_a_turn() -> None:
    """Everything that a turn changes is committed in one place."""
    assert awaits("store.turns.commit") == ["cognition/commit.py"]


def test_one_function_asks_a_model() -> None:
    """One place asks a turn's model. Timeouts and retries wrap a provider, and a daimon is another mind."""
    askers = {place for place in awaits(".complete") if place.startswith("cognition/")}

    assert askers == {"cognition/asking.py"}


def test_t37_one_place_starts_a_tool() -> None:
    """T37: only `runtime/hands.py` runs one; cognition has it done through `mind.hands`."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="tool"), attr="run")):
                    found.add(path.relative_to(PACKAGE).as_posix())

    assert found == {"runtime/hands.py"}
