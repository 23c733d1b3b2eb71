"""F12: several daemons of one soul: two hear Slack, each role has one holder, and whoever is left takes over."""

import asyncio
from collections import Counter
from pathlib import Path

from company import Company, company

HOLDERS = "SELECT role, worker FROM role WHERE lease_until > clock_timestamp() AND role !~ '^clock/'"
ROLES = {"archive", "clock", "cortex", "listen/slack"}
WITHIN_S = 60.0


async def until_held(soul: Company, listeners: int) -> list[tuple[str, str]]:
    """Wait until every role is held, and by so many listeners; return each with its holder."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            held = [(role.removesuffix("/0").removesuffix("/1"), worker) for role, worker in soul.read(HOLDERS)]
            if {role for role, _ in held} == ROLES and len(held) == len(ROLES) - 1 + listeners:
                return held
            await asyncio.sleep(0.1)


async def test_scale_f12_listeners_come_and_go_and_the_gap_is_swept(postgres_url: str, tmp_path: Path) -> None:
    """Two daemons share the events; one is killed, then both: each message is answered once, and every role is taken."""
    async with company(tmp_path, postgres_url, daemons=2) as soul:
        people = soul.slack.world
        dm = await people.open_dm("U1")
        said: list[str] = []

        async def talk(count: int) -> None:
            """Have a person say something a few times."""
            for _ in range(count):
                said.append(f"line {len(said)}")
                await people.say(dm, "U1", said[-1])

        both = await until_held(soul, 2)
        await people.until_connected(2, within_s=WITHIN_S)
        await talk(4)
        await people.until_visible(len(said), within_s=WITHIN_S)
        await soul.kill(0)  # it began first, and has the clock
        await talk(2)
        await people.until_visible(len(said), within_s=WITHIN_S)
        one = await until_held(soul, 1)
        await soul.kill(1)
        await talk(3)
        await soul.start(0)
        await people.until_visible(len(said), within_s=WITHIN_S)
        await soul.drained(WITHIN_S)
        shown = [message.text.removeprefix("re ").partition("\n\n")[0] for message in await people.visible()]

    hearing = {worker for role, worker in both if role == "listen/slack"}
    assert len(hearing) == 2
    assert {worker for _, worker in one} == hearing - {worker for role, worker in both if role == "clock"}
    assert Counter(shown) == Counter(said)
