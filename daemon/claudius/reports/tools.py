"""Tools as their owner sees them: what their servers offer, what was agreed to, what differs; calls and decisions."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from claudius.cognition.prompt.present import tool_line
from claudius.config.load import Loaded, Secret, blot, load, read_env_file, write_table
from claudius.config.schema import ToolServerSettings
from claudius.errors import ToolFailed, UsageProblem
from claudius.home import Home
from claudius.memory.calls import Pin
from claudius.reports.network_checks import Check
from claudius.reports.opened import edit, noted, records
from claudius.reports.session import ask, wake_and_ask
from claudius.tool import JSON, Tool, ToolClass
from claudius.tools.mcp import Listed, McpHands, spec
from claudius.tools.pins import SERVER, Definition, differences

FIRST_S = 120.0
"""How long a server's first start may take: `uvx` and `npx` fetch it."""
MOST_OFFERED = 24
"""How many tools the system text names at most."""


class ServerLook(Struct, frozen=True, kw_only=True):
    """What a server said when it was started once."""

    server: str
    error: str = ""
    """Why it cannot be used; empty = it can."""
    listed: Listed = Listed(())
    differs: Mapping[str, str] = {}
    """What differs from the pins, by tool."""
    ms: int = 0

    @property
    def row(self) -> dict[str, Any]:
        """The row of `claudius tools check`."""
        detail = self.error or ", ".join(f"{tool} {how}" for tool, how in self.differs.items())
        tools, bad = [one.name for one in self.listed.tools], list(self.listed.bad)
        return {"server": self.server, "ok": not detail, "detail": detail, "tools": tools, "bad": bad, "ms": self.ms}


def look(home: Home, loaded: Loaded, names: Sequence[str], more: JSON = {}) -> list[ServerLook]:  # noqa: B006 - only read
    """Start each of these servers once, beside any running process, and compare what it offers with its pins."""
    with records(home) as kept:
        pins = kept.pins()
    secrets = [secret.reveal() for secret in loaded.secrets.values()]

    async def one(hands: McpHands, name: str) -> ServerLook:
        began = asyncio.get_running_loop().time()
        try:
            listed = await hands.list(name, {**spec(name, loaded), **more})
        except ToolFailed as error:
            return ServerLook(
                server=name, error=blot(": ".join(filter(None, (error.detail, error.said.words()))), secrets)
            )
        ms = round((asyncio.get_running_loop().time() - began) * 1000)
        agreed = [pin for pin in pins if pin.server == name]
        return ServerLook(server=name, listed=listed, differs=differences(agreed, listed.tools, parts=True), ms=ms)

    async def all_of_them() -> list[ServerLook]:
        directory = home.run / f"hands-{os.getpid()}"
        hands = McpHands(directory)
        try:
            return await asyncio.gather(*(one(hands, name) for name in names))
        finally:
            await hands.close()
            shutil.rmtree(directory, ignore_errors=True)

    return asyncio.run(all_of_them())


def named(loaded: Loaded, name: str | None) -> list[str]:
    """Return the servers that a command is about: this one, or all. Raises: UsageProblem."""
    servers = loaded.config.tools.servers
    if name and name not in servers:
        raise UsageProblem(f"there is no server {name!r}: `claudius tools` names them")
    return [name] if name else sorted(servers)


def check(home: Home, name: str | None) -> list[dict[str, Any]]:
    """Start servers and compare them with their pins; a running process tries those again that were down."""
    loaded = load(home, os.environ)
    rows = [one.row for one in look(home, loaded, named(loaded, name))]
    asyncio.run(ask(home, "tools", again="yes"))
    return rows


def doctor(home: Home, *, live: bool = False) -> Iterator[Check]:
    """Check what servers of tools need; `live`: start each, and compare what it offers with what was agreed to."""
    loaded = load(home, os.environ)
    servers = loaded.config.tools.servers
    if not servers or not loaded.config.tools.enabled:
        return
    if not find_spec("mcp"):
        fix = "install the extra: pip install 'claudius-daemon[tools]'"
        yield Check("tools", ok=False, detail="servers of tools need the package 'mcp'", fix=fix)
        return
    with records(home) as kept:
        pinned = {(pin.server, pin.tool) for pin in kept.pins()}
    for name, server in servers.items():
        if missing := [tool for tool in server.tools if (name, tool) not in pinned]:
            detail, fix = f"{name}: {', '.join(missing)} not agreed to", f"`claudius tools add {name} --again`"
            yield Check("tools", ok=False, detail=detail, fix=fix)
        sends = [tool for tool, cls in server.tools.items() if cls == "send"]
        if sends and not {*server.where} <= {"owner", "private"}:
            detail = f"{name}: {', '.join(sends)} may be asked for in a channel, and reaches others"
            yield Check("tools", ok=True, detail=detail)
        if not loaded.config.owners and not {*server.where} <= {"owner"}:
            fix = "name yourself: `claudius config set owners network:workspace:user`"
            yield Check("tools", ok=False, detail=f"{name}: nobody on a network may allow anything", fix=fix)
    for one in look(home, loaded, sorted(servers)) if live else ():
        detail = one.row["detail"] or f"as agreed, {len(one.listed.tools)} tools"
        left_out = f"; left out: {'; '.join(one.listed.bad)}" if one.listed.bad else ""
        again = f"`claudius tools add {one.server} --again …` agrees to it anew"
        fix = again if one.differs else f"see its command in {home.config}"
        yield Check(f"tools.{one.server}", ok=bool(one.row["ok"]), detail=f"{detail}{left_out}", fix=fix)


def offered(home: Home) -> list[dict[str, Any]]:
    """Return every tool: `{"tool", "class", "from", "where", "pinned", "up", "off", "purpose"}`, by name."""
    loaded = load(home, os.environ)
    said = asyncio.run(ask(home, "tools")) or {}
    off: Mapping[str, str] = said.get("off", {})
    rows = []
    for one in all_tools(home, loaded):
        why = off.get(one.name, "")
        row = {"tool": one.name, "class": one.cls.value, "from": one.source, "where": list(one.where)}
        rows.append(row | {"pinned": bool(one.pin), "up": not why, "off": why, "purpose": one.purpose})
    return rows


def all_tools(home: Home, loaded: Loaded, name: str = "", new: Sequence[Pin] = ()) -> Sequence[Tool]:
    """Return every tool as the settings and the pins make them, of server `name` by its `new` pins; none is run.

    Raises: BadConfiguration.
    """
    from claudius.compose import TOOLS
    from claudius.tools.offered import OfferedTools, built_in

    with records(home) as kept:
        pins = [*[pin for pin in kept.pins() if pin.server != name], *new]
    others = OfferedTools(home, lambda: loaded, lambda: pins, lambda: datetime.now(UTC), TOOLS)
    return sorted(built_in(TOOLS.values(), None, lambda: loaded.config, others)(), key=lambda one: one.name)


def begin(home: Home, name: str, server: ToolServerSettings, *, again: bool) -> Loaded:
    """Return the settings as they would be with a new server, for `look`. Raises: UsageProblem."""
    loaded = load(home, os.environ)
    if not SERVER.match(name):
        raise UsageProblem(f"{name!r} cannot name a server: take a-z, 0-9, - and _, at most 31, a letter first")
    if name in {one.name for one in all_tools(home, loaded)}:
        raise UsageProblem(f"{name!r} is a tool's name: choose another")
    if name in loaded.config.tools.servers and not again:
        raise UsageProblem(f"there is a server {name!r}: with --again its definitions are agreed to anew")
    if bool(server.command) == bool(server.url):
        raise UsageProblem("give its command after --, or --url")
    if server.url and len(server.env) > 1:
        raise UsageProblem("with --url, --env names the one variable that holds its bearer token")
    given = read_env_file(home.env_file)
    secrets = {one: loaded.secrets.get(one) or Secret(given.get(one, "")) for one in (*loaded.secrets, *server.env)}
    return Loaded(_with(loaded, name, server).config, loaded.sources, secrets)


def _with(loaded: Loaded, name: str, server: ToolServerSettings) -> Loaded:
    tools = replace(loaded.config.tools, servers={**loaded.config.tools.servers, name: server})
    return Loaded(replace(loaded.config, tools=tools), loaded.sources, loaded.secrets)


def agree(
    home: Home, name: str, server: ToolServerSettings, found: Sequence[Definition], classes: Mapping[str, ToolClass]
) -> list[dict[str, Any]]:
    """Pin what a server offers, and write it into config.toml with the classes of those that are to be offered.

    Raises: UsageProblem, before anything is written.
    """
    from claudius.adapters.terminal import own_person

    loaded, now, who = load(home, os.environ), datetime.now(UTC), own_person()
    pins = [
        Pin(
            server=name, tool=one.name, sha256=one.sha256, description=one.description, schema=one.schema,
            cls=classes.get(one.name, one.proposed), pinned_by=who, pinned_at=now,
        )
        for one in found
    ]  # fmt: skip
    server = replace(server, tools={tool: cls.value for tool, cls in classes.items()})
    every = all_tools(home, _with(loaded, name, server), name, pins)
    if len(every) > MOST_OFFERED:
        raise UsageProblem(f"{len(classes)} more tools are too many: {len(every)} in all, of at most {MOST_OFFERED}")
    tokens, most = sum(map(len, map(tool_line, every))) // 4, loaded.config.tools.prompt_tokens
    if tokens > most:
        raise UsageProblem(f"the list of all tools would take {tokens} tokens of each prompt: {most} are the most")
    noted(home, "tool_add", name)
    edit(home, lambda store: store.pins.replace(name, pins))
    write_table(home, f"tools.servers.{name}", to_builtins(server))
    asyncio.run(ask(home, "tools", again="yes"))
    return [{"tool": f"{name}.{pin.tool}", "class": pin.cls.value if pin.tool in classes else None} for pin in pins]


def remove(home: Home, name: str) -> None:
    """Forget a server and its pins. Raises: UsageProblem."""
    named(load(home, os.environ), name)
    noted(home, "tool_remove", name)
    write_table(home, f"tools.servers.{name}", None)
    edit(home, lambda store: store.pins.replace(name, []))


CALL_S = 120.0
"""How long a command lets what it has allowed go on, where no daemon runs that would do it."""


def call(home: Home, name: str) -> Mapping[str, Any]:
    """Return one call with its result. Raises: UsageProblem if there is none."""
    with records(home) as kept:
        found = kept.call(name)
    if found is None:
        raise UsageProblem(f"there is no call {name}: `claudius tools calls` lists the last ones")
    return found


def decide(home: Home, name: str, verb: str) -> str:
    """Decide a call by the owner's word, through the soul that runs or in this process. Raises: ClaudiusError."""
    return str(asyncio.run(wake_and_ask(home, "tool", grace_s=CALL_S, id=name, verb=verb))["said"])


def revoke(home: Home, grant: int) -> None:
    """End a remembered consent. Raises: UsageProblem if none of this number is in force."""
    noted(home, "tool_revoke", str(grant))
    if not edit(home, lambda store: store.calls.revoke(grant, datetime.now(UTC))):
        raise UsageProblem(f"there is no consent {grant} in force: `claudius tools grants` lists them")
