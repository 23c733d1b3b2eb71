"""`claudius tools`: what the soul may do with its hands, whom it asks, what it did, and who lends it more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, safe, table
from claudius.config.schema import ToolServerSettings
from claudius.errors import EXIT_FAILED, ToolFailed, UsageProblem
from claudius.home import Home
from claudius.memory.records import Records
from claudius.prompt import nested_line
from claudius.reports import tools as reports
from claudius.reports.opened import read
from claudius.tool import ToolClass
from claudius.tools.mcp import Listed
from claudius.tools.pins import Definition, closed, visible

SCOPES = ("once", "talk", "channel", "always")


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_context
def tools(context: click.Context, *, as_json: bool) -> None:
    """What the soul may do: its tools, their servers, consents and calls."""
    if context.invoked_subcommand is None:
        context.invoke(list_, as_json=as_json)


@tools.command()
@json_option
def pending(*, as_json: bool) -> None:
    """List what waits for consent, oldest first."""
    found = read(Home.of(os.environ), Records.calls_waiting)
    print_result(found, list(_lines(found)) or ["nothing waits"], as_json=as_json)


@tools.command()
@click.argument("call", metavar="ID")
@click.option(
    "--for", "scope", type=click.Choice(SCOPES), default="once", show_default=True, help="How far it reaches."
)
def allow(call: str, scope: str) -> None:
    """Allow what waits; the soul does it, and says what came of it."""
    click.echo(safe(reports.decide(Home.of(os.environ), call, "allow" if scope == "once" else scope)))


@tools.command()
@click.argument("call", metavar="ID")
def deny(call: str) -> None:
    """Forbid what waits."""
    click.echo(safe(reports.decide(Home.of(os.environ), call, "deny")))


@tools.command()
@click.option("-n", "most", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@json_option
def calls(most: int, *, as_json: bool) -> None:
    """List what it did with tools, newest first."""
    found = read(Home.of(os.environ), lambda kept: kept.calls(most))
    print_result(found, list(_lines(found)) or ["it has used no tool yet"], as_json=as_json)


@tools.command()
@click.argument("call", metavar="ID")
@json_option
def show(call: str, *, as_json: bool) -> None:
    """Show one use of a tool: its arguments, who allowed it, what came of it."""
    document = reports.call(Home.of(os.environ), call)
    lines = [f"{name}: {safe(_plain(value))}" for name, value in document.items() if value not in (None, "", ())]
    print_result(document, lines, as_json=as_json)


@tools.command()
@json_option
def grants(*, as_json: bool) -> None:
    """List the consents that are remembered."""
    found = read(Home.of(os.environ), lambda kept: kept.grants(datetime.now(UTC)))
    lines = [
        f"{one['id']}  {one['tool']}  {one['scope']}  {one['conversation'] or 'everywhere'}"
        f"  until {one['expires_at'][:16]}  by {one['granted_by']}"
        for one in found
    ]
    print_result(found, [safe(line) for line in lines] or ["nothing is remembered"], as_json=as_json)


@tools.command()
@click.argument("grant", type=click.IntRange(1, 2**63 - 1), metavar="ID")
def revoke(grant: int) -> None:
    """End a remembered consent: it asks again."""
    reports.revoke(Home.of(os.environ), grant)
    click.echo(f"revoked: {grant}")


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        by = f" by {row['allowed_by']}" if row["allowed_by"] else ""
        why = f"  ({row['reason']})" if row["reason"] else ""
        yield safe(
            f"{row['id']}  {row['asked_at'][:16]}  {row['tool']}  {row['state']}{by}  {_plain(row['args'])}{why}"
        )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else nested_line(value)


@tools.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List every tool: what it may do, where it is offered, and whether it can be used now."""
    rows = reports.offered(Home.of(os.environ))
    shown = [
        [one["tool"], one["class"], one["from"], ", ".join(one["where"]) or "everywhere", one["off"] or one["purpose"]]
        for one in rows
    ]
    print_result(rows, map(safe, table(("tool", "class", "from", "where", ""), shown)), as_json=as_json)


@tools.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default="", help="Where the server listens, in place of a command.")
@click.option("--env", multiple=True, metavar="VAR", help="A variable of .env that this server alone gets.")
@click.option("--allow", multiple=True, metavar="TOOL=CLASS", help="Offer this tool; the others are not asked about.")
@click.option(
    "--where", multiple=True, default=("owner",), show_default=True, help="owner, private, or a channel's id."
)
@click.option("--timeout-s", type=float, default=0.0, help="The longest call, in seconds.")
@click.option("--key-arg", default="", help="The argument that takes an idempotency key.")
@click.option("--mine", multiple=True, metavar="TOOL", help="A tool whose results are your own words.")
@click.option("--again", is_flag=True, help="Agree anew to the definitions of a server that is known.")
@json_option
def add(name: str, allow: tuple[str, ...], *, again: bool, as_json: bool, **given: Any) -> None:
    """Add a server of tools: start it once, look at each tool, and say what it may do.

    \b
    claudius tools add time -- uvx mcp-server-time
    claudius tools add notes --mine read_text_file -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    """  # noqa: D301 - click's mark of a paragraph that is not wrapped
    home = Home.of(os.environ)
    server = ToolServerSettings(**given)
    loaded = reports.begin(home, name, server, again=again)
    [seen] = reports.look(home, loaded, [name], {"patience_s": reports.FIRST_S})
    if seen.error:
        raise ToolFailed(name, seen.error)
    for one in seen.listed.bad:
        click.echo(f"left out: {safe(one)}", err=True)
    for tool, how in seen.differs.items() if again else ():
        click.echo(safe(f"{tool} {how}"), err=True)
    classes = _given(allow, seen.listed) if allow or not sys.stdin.isatty() else _asked(seen.listed.tools)
    if missing := sorted({*server.mine} - {one.name for one in seen.listed.tools}):
        raise UsageProblem(f"{name} has no tool {missing[0]!r}")
    rows = reports.agree(home, name, server, seen.listed.tools, classes)
    lines = [f"{one['tool']}: {one['class'] or 'not offered'}" for one in rows]
    lines.append("in force at the next turn; `claudius tools` lists every tool")
    print_result(rows, map(safe, lines), as_json=as_json)


def _given(allow: Sequence[str], listed: Listed) -> dict[str, ToolClass]:
    known = {one.name: one for one in listed.tools}
    if not allow:
        tools = ", ".join(f"{one.name}={one.proposed}" for one in listed.tools)
        raise UsageProblem(f"say what each tool may do, with --allow TOOL=CLASS; its server proposes {safe(tools)}")
    found = {}
    for one in allow:
        tool, _, cls = one.partition("=")
        if tool not in known:
            raise UsageProblem(f"the server has no tool {tool!r}: it has {safe(', '.join(known)) or 'none'}")
        if cls not in list(ToolClass):
            raise UsageProblem(f"{one!r} names no class: {', '.join(ToolClass)}")
        found[tool] = ToolClass(cls)
    return found


def _asked(tools: Sequence[Definition]) -> dict[str, ToolClass]:
    click.echo(
        "look asks nobody; read once a talk, and after results that are not --mine; write, send each time; no: off"
    )
    found, classes = {}, click.Choice([*map(str, ToolClass), "no"])
    for one in tools:
        arguments = ", ".join(closed(one.schema)["properties"])
        described = "\n".join(map(visible, one.description.strip().splitlines()))
        click.echo(safe(f"\n{one.name}({arguments}): {described}"))
        word = click.prompt("What may it do?", type=classes, default=one.proposed.value)
        if word != "no":
            found[one.name] = ToolClass(word)
    return found


@tools.command()
@click.argument("name")
def remove(name: str) -> None:
    """Forget a server, and what was agreed to of its tools."""
    reports.remove(Home.of(os.environ), name)
    click.echo(f"{name} is forgotten")


@tools.command()
@click.argument("name", required=False)
@json_option
def check(name: str | None, *, as_json: bool) -> int:
    """Start a server, or all of them, and compare what it offers with what was agreed to."""
    rows = reports.check(Home.of(os.environ), name)
    lines = []
    for one in rows:
        found = one["detail"] or f"as agreed, {len(one['tools'])} tools"
        lines.append(f"{one['server']}: {found}  ({one['ms']} ms)")
        lines += [f"  left out: {bad}" for bad in one["bad"]]
    print_result(rows, map(safe, lines or ["there is no server: `claudius tools add`"]), as_json=as_json)
    return 0 if all(one["ok"] for one in rows) else EXIT_FAILED
