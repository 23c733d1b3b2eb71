"""What a turn shows of others' texts has a bound, however many texts its messages show."""

from msgspec.structs import replace

from claudius.cognition.history import LEAST_QUOTED, heard_records
from claudius.perception import MessageExtra
from claudius.shown import How, Quoted
from lab.sample import perception, recollection


def test_of_too_many_texts_the_newest_are_shown() -> None:
    """Each keeps its least room, so only as many are shown as there is room for, in order."""
    messages = tuple(
        replace(
            perception("So?", n=n),
            extra=MessageExtra(shown=tuple(Quoted(how=How.ABOVE, text=f"{n} {k} {'x' * 900}") for k in range(4))),
        )
        for n in (1, 2, 3)
    )

    found = heard_records(recollection(perceptions=messages), chars=5 * LEAST_QUOTED)
    shown = [str(one["text"]) for one in found if one["kind"] == "shown"]

    assert [text[:3] for text in shown] == ["2 3", "3 0", "3 1", "3 2", "3 3"]
    assert sum(map(len, shown)) <= 5 * LEAST_QUOTED
