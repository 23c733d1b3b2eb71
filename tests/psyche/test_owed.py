"""The first promise and the psyche: what a person is owed is answered, whatever the numbers and the gate say."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from claudius.cognition.conclude.conclusion import conclude_unthought
from claudius.cognition.plan import EngineSettings
from claudius.cognition.processes import Process
from claudius.cognition.steps import STEPS
from claudius.perception import Kind, Perception, private
from claudius.psyche import GateSettings, attend
from claudius.psyche.personality import Kernel
from claudius.psyche_types import Edge, Numbers, Psyche
from claudius.recollection import Entry, EntryType, PastTurn, Person, ProcessState, Recollection, UserModel

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ANA = "slack:T1:U1"
TEXTS = st.one_of(
    st.sampled_from(["ok", "thanks!", "👍", "", "lol", "You are useless", "what broke?", "thanks thanks thanks"]),
    st.text(max_size=80),
)
LINES = ("Noted.", "Good.")


def heard(text: str, n: int, kind: Kind, place: str, extra: dict[str, object], *, is_bot: bool = False) -> Perception:
    """Return a message that is owed a reply."""
    return Perception(
        key=f"k{n}",
        conversation=f"slack:T1:{place}:1",
        audience=private(ANA) if place == "D1" else "shared:slack:T1:C1",
        person=ANA,
        name="Ana",
        text=text,
        at=NOW,
        position=f"{n:020d}",
        kind=kind,
        is_bot=is_bot,
        extra=extra,
    )


def knowing(perceptions: tuple[Perception, ...], psyche: Psyche, bots: int) -> Recollection:
    """Return the recollection of a turn that answers these; `bots` messages of bots came before."""
    entries = tuple(
        Entry(entry_type=EntryType.USER_MESSAGE, content="beep", at=NOW, person="bot", metadata={"bot": True})
        for _ in range(bots)
    )
    model = UserModel(person=ANA, audience=perceptions[0].audience, version=0)
    return Recollection(
        turn="turn000000000001",
        nonce="0" * 32,
        now=NOW,
        conversation=perceptions[0].conversation,
        audience=perceptions[0].audience,
        perceptions=perceptions,
        speaker=Person(person=ANA, name="Ana", models=(model,), is_bot=perceptions[-1].is_bot),
        process=ProcessState(process="main_process"),
        turns=1,
        version=1,
        past=(PastTurn(turn="t0", nonce="1" * 32, number=1, entries=entries),) if bots else (),
        psyche=psyche,
    )


unit = st.floats(0, 1)
extras = st.fixed_dictionaries(
    {},
    optional={
        "can_speak": st.booleans(),
        "can_react": st.booleans(),
        "participation": st.sampled_from(["group", "consume", "addressed"]),
        "address": st.sampled_from(["ambient", "thread", "named", "reply"]),
        "event": st.sampled_from(["message", "reaction", "join", "news"]),
    },
)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    kind=st.sampled_from([Kind.MESSAGE, Kind.MENTION, Kind.COMMAND]),
    place=st.sampled_from(["D1", "C1"]),
    extra=extras,
    numbers=st.builds(
        Numbers, at_s=st.just(NOW.timestamp()), energy=unit, drives=st.tuples(unit, unit, unit, unit, unit)
    ),
    tension=unit,
    bots=st.integers(0, 8),
    lines=st.sampled_from([LINES, ()]),
)
@example(
    texts=["are you there?"],
    kind=Kind.MENTION,
    place="C1",
    extra={"can_speak": False},
    numbers=Numbers(at_s=0.0, energy=0.0),
    tension=0.0,
    bots=8,
    lines=LINES,
)
def test_what_a_person_is_owed_is_thought_about_or_acknowledged(
    texts: list[str],
    kind: Kind,
    place: str,
    extra: dict[str, object],
    numbers: Numbers,
    tension: float,
    bots: int,
    lines: tuple[str, ...],
) -> None:
    """Promise 1: in any state, a person's owed message is thought about or acknowledged; a nod says one thing."""
    perceptions = tuple(heard(text, n, kind, place, extra) for n, text in enumerate(texts))
    psyche = Psyche(numbers=numbers, edges=(Edge(person=ANA, at_s=NOW.timestamp(), tension=tension),))
    recollection = knowing(perceptions, psyche, bots)
    gate_settings = GateSettings(kernel=Kernel(), soul_name="claudius", can_acknowledge=bool(lines))

    found = attend(recollection, perceptions[-1], gate_settings)

    assert found.speaks
    assert found.outcome in {"think", "react"}
    if found.outcome == "react":
        process = Process(name="main_process", steps=STEPS, run=None)
        intent = conclude_unthought(recollection, process, EngineSettings(), found, lines)
        assert len(intent.utterances) == 1
        assert intent.utterances[0].body


def test_a_bot_that_only_bots_have_talked_with_is_not_answered_for_ever() -> None:
    """Section 5: after six messages of bots without a human the soul ignores them, owed or not."""
    one = heard("status report follows", 1, Kind.MENTION, "C1", {}, is_bot=True)
    gate_settings = GateSettings(kernel=Kernel(), soul_name="claudius")

    found = [attend(knowing((one,), Psyche(), bots), one, gate_settings).outcome for bots in (0, 5)]

    assert found == ["think", "ignore"]
