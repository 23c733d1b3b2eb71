"""Cases of pins: what the owner agreed to of each server, put in place whole."""

from claudius.memory.calls import Pin
from claudius.tool import ToolClass
from contracts.store.ground import NOW, OZ, Ground, awake, case


def _pin(server: str, tool: str, sha256: str) -> Pin:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return Pin(
        server=server,
        tool=tool,
        sha256=sha256,
        description="Read.\nIt reads “ä”.",
        schema=schema,
        cls=ToolClass.READ,
        pinned_by=OZ,
        pinned_at=NOW,
    )


@case("PN1", "a server's pins are replaced whole, and no other's; they outlive the process")
async def _(ground: Ground) -> None:
    kept = [_pin("a", "x", "1"), _pin("b", "x", "2")]
    async with awake(ground) as store:
        await store.pins.replace("a", [_pin("a", "x", "0"), _pin("a", "y", "0")])
        await store.pins.replace("b", [kept[1]])
        await store.pins.replace("a", [kept[0]])
        assert store.pins.all() == kept
    async with awake(ground, "boot-2") as store:
        assert store.pins.all() == kept
        await store.pins.replace("a", [])
        assert store.pins.all() == kept[1:]
