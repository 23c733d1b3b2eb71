"""Moment cases: what was said, and what people said of themselves, is found again where it may be shown."""

from msgspec.structs import replace

from claudius.memory.ranking import asked_for
from claudius.memory.store import Store
from claudius.perception import Perception
from claudius.recollection import Moment
from contracts.store.ground import ANA, BEN, NOW, OPS, Ground, awake, case, heard, recalled, thought


def moment(perception: Perception, text: str) -> Moment:
    """Return a message as it is kept."""
    return Moment(
        turn=perception.key,
        at_s=int(NOW.timestamp()),
        person=perception.person,
        name="Ana",
        conversation=perception.conversation,
        audience=perception.audience,
        text=text,
    )


async def keep(store: Store, n: int, *texts: str, **said: str) -> None:
    """Run a turn that keeps moments."""
    found = await recalled(store, heard(n=n, **said))
    moments = tuple([replace(moment(heard(n=n, **said), text), turn=found.turn) for text in texts])
    await store.turns.commit(replace(thought(found), moments=moments))


@case("M206", "moments are found again by their words, where they may be shown, and by nothing else")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        await store.people.know_members("shared:slack:T1:ops", (ANA, BEN), NOW)
        await keep(store, 1, "the violin teacher lives in Bremen")
        await keep(store, 2, "the garden is full of roses")
        asked = asked_for("where does the violin teacher live?")
        here = await store.moments.remember(heard(n=5), asked)
        there = await store.moments.remember(heard(n=5, at=OPS), asked)
        nothing = await store.moments.remember(heard(n=5), asked_for("database migrations"))
    texts = [one.text for one in here.moments.values()]
    assert texts == ["the violin teacher lives in Bremen", "the garden is full of roses"]  # the second stands beside it
    assert list(here.beside) == [1]
    assert here.total == 2
    assert dict(here.frequencies) == {"violin": 1, "teacher": 1, "live": 1}
    assert there.moments == nothing.moments == {}


@case("P11", "a search finds what was said in any script, and nothing that may not be shown to whoever asks")
async def p11(ground: Ground) -> None:
    """Say something in two private conversations; search in one, in several languages, by other forms of its words."""
    said = {"牙医": "我的牙医姓赵", "歯医者": "歯医者は水曜です", "생일": "내 여동생 생일은 오월이야", "gutters": "our gutter leaks",
            "die Birkenrinden": "Die Birkenrinde löst sich", "сестре": "Моя сестра живёт в Казани"}  # fmt: skip
    async with awake(ground) as store:
        await keep(store, 10, *said.values())
        others = {words: [one.text for one in store.moments.search(heard("?", n=20), words, 5)] for words in said}
        await keep(store, 1, "the bridge rusts in Porto", "a boat")
        await keep(store, 2, "the bridge of Ben", person=BEN, at="slack:T1:D-ben:")
        found = store.moments.search(heard("?", n=3), "rusting bridges", 5)
    assert [one.text for one in found] == ["the bridge rusts in Porto"]
    assert others == {words: [line] for words, line in said.items()}
