"""Cases of codes: few, for an hour, taken once, and void after five wrong tries."""

from datetime import datetime

from claudius.memory.codes import LIFE, WRONG_TRIES, OpenCode
from contracts.store.ground import NOW, Ground, awake, case


def _asked(person: str, *, kind: str = "pairing", network: str = "discord", at: datetime = NOW) -> OpenCode:
    return OpenCode(kind=kind, person=person, name=person, network=network, asked_at=at, about="ben", payload="{}")


@case("M216", "a person has one code of a kind, and a network only so many")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        opened = [await store.codes.open(_asked(one), 2) for one in ("ana", "ana", "ben", "dee")]
        opened += [await store.codes.open(_asked("dee", kind="link"), 2)]
        opened += [await store.codes.open(_asked("dee", network="slack"), 2)]
        valid = store.codes.valid("pairing", NOW)
    assert [one is not None for one in opened] == [True, False, True, False, True, True]
    assert {one.person for one in valid} == {"ana", "ben", "dee"}
    assert {(one.name, one.about, one.payload, one.asked_at) for one in valid} >= {("ana", "ben", "{}", NOW)}


@case("M217", "a code is good for an hour, in any spelling of its letters, once")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        first, second = await store.codes.open(_asked("ana"), 9), await store.codes.open(_asked("ben"), 9)
        assert first
        assert second
        assert await store.codes.redeem("link", first.code, NOW) is None
        assert await store.codes.redeem("pairing", first.code, NOW + LIFE) is None
        assert await store.codes.open(_asked("ana", at=NOW + LIFE), 9)
    async with awake(ground, "boot-2") as store:
        made = await store.codes.open(_asked("dee"), 9)
        assert made
        taken = await store.codes.redeem("pairing", f" {made.code.lower()} ", NOW)
        assert taken
        assert taken.person == "dee"
        assert await store.codes.redeem("pairing", made.code, NOW) is None
        assert await store.codes.open(_asked("dee"), 9)
        assert [await store.codes.drop("pairing", "dee") for _ in range(2)] == [True, False]


@case("M218", "after five wrong codes every open one is void; a right one before that begins the count anew")
async def _(ground: Ground) -> None:
    async with awake(ground) as store:
        made = [await store.codes.open(_asked(one), 9) for one in ("ana", "ben", "dee")]
        codes = [one.code for one in made if one]
        for _ in range(WRONG_TRIES - 1):
            assert await store.codes.redeem("pairing", "AAAAAAAA", NOW) is None
        assert await store.codes.redeem("pairing", codes[0], NOW)
        for _ in range(WRONG_TRIES - 1):
            await store.codes.redeem("pairing", "AAAAAAAA", NOW)
        assert await store.codes.redeem("pairing", codes[1], NOW)
        for _ in range(WRONG_TRIES):
            await store.codes.redeem("pairing", "AAAAAAAA", NOW)
        assert await store.codes.redeem("pairing", codes[2], NOW) is None
