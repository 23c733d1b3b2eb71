"""Conformance 1 to 9: working memory is a value. The numbers are those of docs/processes.md."""

from dataclasses import FrozenInstanceError

import pytest

from claudius.cognition.plan import EngineSettings, plan
from claudius.cognition.processes import process
from claudius.cognition.prompt.function_prompts import PromptSource
from claudius.cognition.working_memory import MemoryEntry, WorkingMemory
from claudius.home import Home
from lab.sample import model, past, person, recollection, soul


def line(name: str, region: str = "default") -> MemoryEntry:
    """Return an entry that says its own name."""
    return MemoryEntry(id=name, role="user", content=name, region=region)


def names(memory: WorkingMemory) -> list[str]:
    """Return the entries' names, in order."""
    return [entry.id for entry in memory]


def test_c01_joined_memories_keep_order_and_unique_ids() -> None:
    """1: two memories joined with `+` keep their order and unique ids, and the originals are unchanged."""
    first, second = WorkingMemory("C", (line("a"), line("b"))), WorkingMemory("C", (line("c"), line("a")))
    other = WorkingMemory("C", (MemoryEntry(id="a", role="user", content="another a"),))

    joined = first + second + other

    assert [entry.content for entry in joined] == ["a", "b", "c", "another a"]
    assert len({entry.id for entry in joined}) == 4
    assert names(first) == ["a", "b"]
    assert names(second) == ["c", "a"]


@pytest.mark.parametrize(
    ("before", "region", "name", "after"),
    [
        ((line("said"),), "core", "soul", ["soul", "said"]),  # 2
        ((line("said"), line("soul", "core")), "summary", "before", ["soul", "before", "said"]),  # 3
        ((line("before", "summary"),), "core", "soul", ["soul", "before"]),  # 6
    ],
)
def test_c02_c03_c06_regions_stand_in_their_order(
    before: tuple[MemoryEntry, ...], region: str, name: str, after: list[str]
) -> None:
    """2, 3, 6: the order is core, summary, default, whoever came first, also in a memory without regions."""
    assert names(WorkingMemory("C", before).with_region(region, line(name))) == after


def test_c04_a_region_is_replaced_where_it_stands() -> None:
    """4: `with_region` on an existing region replaces it in place and appends nothing."""
    memory = WorkingMemory("C", (line("one", "first"), line("two", "second"), line("said")))

    again = memory.with_region("first", line("new"), line("newer"))

    assert names(again) == ["new", "newer", "two", "said"]


def test_c05_an_entry_lands_inside_its_region() -> None:
    """5: an appended entry that names a region stands at the end of that region."""
    memory = WorkingMemory("C", (line("soul", "core"), line("said")))

    assert names(memory + line("skill", "core")) == ["soul", "skill", "said"]


def test_c07_an_order_is_kept_by_every_later_value() -> None:
    """7 ✗: an order that was set once holds after every further operation, with `default` named or last."""
    memory = WorkingMemory("C", (line("said"), line("x", "playbook"), line("soul", "core")))

    ordered = memory.with_order("playbook", "core")
    later = (ordered + line("more")).with_region("trail", line("step")).without("none")

    assert names(ordered) == ["x", "soul", "said"]
    assert names(later) == ["x", "soul", "step", "said", "more"]
    assert names(later.with_order("default", "core")) == ["said", "more", "soul", "x", "step"]


def test_c08_regions_are_chosen_by_name_one_by_one() -> None:
    """8: `without`, `only` and `"default"` choose exactly those; a list in place of names is a TypeError."""
    memory = WorkingMemory("C", (line("soul", "core"), line("before", "summary"), line("said")))

    assert names(memory.without("summary")) == ["soul", "said"]
    assert names(memory.only("core", "default")) == ["soul", "said"]
    assert names(memory.only("default")) == ["said"]
    for choose in (memory.without, memory.only, memory.with_order):
        with pytest.raises(TypeError, match="not as a list"):
            choose(["core"])  # type: ignore[arg-type]  # what a caller may not do


def test_c09_no_memory_holds_half_a_reply() -> None:
    """9 ✗: an entry has its words when it is created, and nothing in it or in a memory can be changed afterwards."""
    entry = MemoryEntry(id="a", role="assistant", content="whole", metadata={"a": 1})
    memory = WorkingMemory("C", (entry,))

    with pytest.raises(FrozenInstanceError):
        entry.content = "half"  # type: ignore[misc]  # what nobody may do
    with pytest.raises(TypeError):
        entry.metadata["a"] = 2  # type: ignore[index]  # likewise
    with pytest.raises(FrozenInstanceError):
        memory.entries = ()  # type: ignore[misc]  # likewise
    assert (memory[0], memory[-1], names(memory[0:1]), len(memory)) == (entry, entry, ["a"], 1)


def test_the_recalled_memory_is_equal_after_any_restart(home: Home) -> None:
    """Only rows persist: the same recollection builds an equal memory, regions and order included."""
    known, text, settings = (
        recollection(past=(past(1), past(2)), speaker=person(model(1))),
        soul(home),
        EngineSettings(),
    )
    planned = plan(process("main_process"), known, settings)

    first, second = (PromptSource.of(known, planned, text, settings).base for _ in range(2))

    assert first == second
    assert [entry.region for entry in first][:2] == ["core", "person"]
    assert first.order == ("core", "summary")
