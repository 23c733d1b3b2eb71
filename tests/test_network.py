"""The rows of `cases/network.json`, each through a real daemon: proxies, certificates, addresses, sleep, environment."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from case_rows import Row, rows
from driven import Machine, reply, until
from lab.loopback.discord import state as discord
from lab.loopback.listening import listen
from lab.loopback.model import MODEL, ModelServer
from lab.loopback.model_rows import RowServer, threaded
from networked import MODELS, SAID, Network, asks_model, network, whisper

pytestmark = pytest.mark.timeout(240)
PASSWORD = "ada:zq-pass"
BOTH = ("slack", "discord")
PROXIED = {"HTTP_PROXY": "http://127.0.0.1:{proxy}", "HTTPS_PROXY": "http://127.0.0.1:{proxy}"}


async def once(made: Network) -> str:
    """Say one thing in the terminal, and return the answer."""
    return (await made.run("chat", "--once", "Are you there?", "--timeout", "40")).stdout.strip()


async def shown(made: Network) -> dict[str, str]:
    """Return everything that an owner or a monitor may read."""
    port = next(one for one in (made.machine.env.get("CLAUDIUS_HTTP_LISTEN", ""),) if one)
    async with aiohttp.ClientSession() as client, client.get(f"http://{port}/health") as health:
        found = {"/health": await health.text()}
    for name, command in {"status": "status --json", "doctor": "doctor --live --json", "audit": "audit --json"}.items():
        found[name] = (await made.run(*command.split())).shown
    return found | {"log": made.machine.log.read_text()}


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that is free now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
        found.bind((host, 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("row", rows("network", "proxy"))
async def test_behind_a_proxy(row: Row, tmp_path: Path) -> None:  # noqa: C901 - one branch a key of a row
    """Every network and every model is reached by the way that the environment names, and by no other."""
    row.knows_only("connected", "through_proxy", "answers", "proxy_saw_not", "never_in", "status_has", "tried_again", "status_names", "then", "or")  # fmt: skip
    asked, right = row.input, row.right
    env = asked.get("env") or asked["env_file"]
    is_here = "127.0.0.1" in asked.get("model", "")
    names = right.get("connected") or ([] if "providers" in asked else BOTH)
    async with network(
        tmp_path, env, is_direct=is_here, has_tls=asked.get("tls", False), in_file="env_file" in asked
    ) as made:
        made.machine.env["CLAUDIUS_HTTP_LISTEN"] = f"127.0.0.1:{free_port()}"
        if made.authority:
            made.machine.env["SSL_CERT_FILE"] = str(made.authority.file)
        made.proxy.password = PASSWORD if any(PASSWORD in one for one in env.values()) else ""
        made.proxy.refuses = asked.get("proxy_answers", 0)
        for provider in asked.get("providers", ()):
            asks_model(made, provider, await made.serve(MODELS, made.model.port))
        if address := asked.get("model"):
            asks_model(made, "openai_compat", address.replace("{port}", str(made.model.port)))
        await made.start()

        if right.get("tried_again"):
            await made.until(_told(made, right["status_has"]), "the refusal in the status")
            refused = len(made.proxy.seen)
            await made.until(_so(lambda: len(made.proxy.seen) >= refused + 4), "further tries")
            made.proxy.refuses = 0
        await made.connected(*names)
        if "proxy_down_s" in asked:
            await _gone(made)
        if "answers" in right and names:
            for name in names:
                await made.say(name, "Are you there?")
                await made.answers(name, right["answers"])
        if "answers" in right and ("model" in asked or "providers" in asked):
            assert await once(made) == SAID
        if "proxy_saw_not" in right:
            await once(made)
            await made.run("doctor", "--live")
            assert not [one for one in made.proxy.seen for host in right["proxy_saw_not"] if host in one]
        for what in right.get("through_proxy", ()):
            found = {"REST": "/api/v10", "CONNECT or GET of the gateway": "/gateway/"}[what]
            assert [one for one in made.proxy.seen if found in one]
        if "never_in" in right:
            made.proxy.password = "ada:another"
            made.proxy.down()
            await made.proxy.up()
            await made.until(_told(made, ["407"]), "the refusal in the status")
            seen = await shown(made)
            for word, places in right["never_in"].items():
                assert not [place for place in places if word in seen[place]]


def _told(made: Network, words: list[str]) -> Any:
    async def is_told() -> bool:
        """Return whether the status of each network has these words."""
        errors = [str(one["detail"]) for one in (await made.status()).get("adapters", ()) if one["name"] in BOTH]
        return len(errors) == 2 and all(word in error.casefold() for word in words for error in errors)

    return is_told


async def _gone(made: Network) -> None:
    """Take the proxy away, say something, look what the status names, and bring the proxy back.

    Both places are known by then: a bot cannot ask Discord for its direct messages, so what a first one said while a
    session was lost for good is found by nobody.
    """
    for name in BOTH:
        await made.say(name, "Are you there?")
        await made.answers(name, 1)
    made.proxy.down()
    for name in BOTH:
        await made.say(name, "While nobody hears.")
    await made.until(_told(made, [f"the proxy 127.0.0.1:{made.proxy.port}"]), "the proxy in the status")
    await made.proxy.up()
    for name in BOTH:
        await made.answers(name, 2)


async def test_every_other_way_out_asks_the_proxy(tmp_path: Path) -> None:
    """Attachments of both networks, alerts, the archive's remote, and what the commands ask go the same way."""
    asked: list[str] = []

    async def take(request: web.Request) -> web.Response:
        """Take what comes."""
        asked.append(f"{request.method} {request.path}")
        return web.Response(status=404 if "soul.git" in request.path else 200)

    app, runners = web.Application(), list[web.AppRunner]()
    app.router.add_route("*", "/{path:.*}", take)
    port = await listen(app, "127.0.0.1", 0, runners)
    async with network(
        tmp_path, {"HTTPS_PROXY": PROXIED["HTTPS_PROXY"], "SSL_CERT_FILE": "{ca}"}, has_tls=True
    ) as made:
        made.machine.env |= {
            "CLAUDIUS_ALERTS_WEBHOOK": f"{await made.serve('hook.example', port)}/alert",
            "CLAUDIUS_ARCHIVE_REMOTE": f"{await made.serve('git.example', port)}/soul.git",
            "CLAUDIUS_CLOCK_QUIET": "00:00-00:00",
            "TEST_WATCHFUL": "1",
        }
        asks_model(made, "anthropic", await made.serve(MODELS, made.model.port))
        await made.start()
        await made.connected(*BOTH)
        await made.slack.world.upload("D1", "U1", "notes.txt", b"AXE-UNDER-STAIRS", text="read it")
        await made.discord.world.upload(discord.DM, discord.ANA, "notes.txt", b"SAW-IN-SHED", text="read it")
        for name in BOTH:
            await made.answers(name, 1)
        await made.until(_so(lambda: "POST /alert" in asked), "an alert")
        await made.until(_so(lambda: "GET /soul.git/info/refs" in asked), "the remote")
        live = await made.run("doctor", "--live", "--json")
        invited = await made.run("discord", "invite")
    for runner in runners:
        await runner.cleanup()

    prompts = b"".join(call.raw for call in made.model.asked).decode()
    assert "AXE-UNDER-STAIRS" in prompts
    assert "SAW-IN-SHED" in prompts
    checks = {check["name"]: check["ok"] for check in live.json["checks"]}
    assert checks["slack bot token"], live.shown
    assert checks["discord token"], live.shown
    assert checks["model"], live.shown
    assert invited.code == 0, invited.shown


def _so(is_so: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def is_it() -> bool:
        """Look."""
        return is_so()

    return is_it


@pytest.mark.parametrize("row", rows("network", "trust"))
async def test_an_authority_of_ones_own(row: Row, tmp_path: Path) -> None:
    """What `SSL_CERT_FILE` names is trusted everywhere; without it the status says what is wrong."""
    row.knows_only("connected", "answers", "status_has")
    async with network(tmp_path, row.input["env"], is_direct=True, has_tls=row.input["tls"]) as made:
        asks_model(made, "anthropic", await made.serve("localhost", made.model.port))
        await made.start()
        for name in row.right.get("connected", ()):
            await made.connected(name)
            await made.say(name, "Are you there?")
            await made.answers(name, row.right["answers"])
        if words := row.right.get("status_has"):
            await made.until(_told(made, words), "the reason in the status")


@pytest.mark.parametrize("row", rows("network", "address"))
async def test_addresses(row: Row, tmp_path: Path) -> None:
    """Both kinds of loopback are served and asked, and count as this machine; an address may be written either way."""
    row.knows_only("status", "answers", "profile", "or")
    asked, right = row.input, row.right
    if listened := asked.get("http.listen"):
        place = listened.replace("{port}", str(free_port("::1")))
        machine = Machine(tmp_path, {"CLAUDIUS_HTTP_LISTEN": place, "CLAUDIUS_HTTP_TOKEN": "t" * 40})
        with machine.daemon():
            async with aiohttp.ClientSession() as client, client.get(f"http://{place}/health") as answer:
                assert answer.status == right["status"]
        return
    urls = asked["openai.base_url"]
    host = "::1" if "[::1]" in urls else "127.0.0.1"
    for number, url in enumerate([urls] if isinstance(urls, str) else urls):
        async with ModelServer(default=reply(SAID), host=host) as model:
            base = url.replace("{port}", str(model.port))
            env = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": base}
            env["CLAUDIUS_OPENAI_MODEL"] = MODEL
            if "openai.profile" in asked:
                env["CLAUDIUS_OPENAI_PROFILE"] = asked["openai.profile"]
            machine = Machine(tmp_path / str(number), env)
            if "answers" in right:
                said = await asyncio.to_thread(machine.ok, "chat", "--once", "Are you there?")
                assert said.stdout.strip() == SAID
            if "profile" in right:
                await asyncio.to_thread(machine.ok, "daemon", "start")
                try:
                    status = await asyncio.to_thread(machine.ok, "status", "--json")
                    assert status.json["provider"]["profile"] == right["profile"]
                finally:
                    await asyncio.to_thread(machine.ok, "daemon", "stop")


@pytest.mark.parametrize("row", rows("network", "wake"))
async def test_a_machine_that_slept(row: Row, tmp_path: Path) -> None:
    """Sockets that died meanwhile are made anew, and what was said meanwhile is answered once."""
    row.knows_only("answers")
    async with network(tmp_path, {}, is_direct=True) as made:
        await made.start()
        await made.connected(*BOTH)
        assert made.process
        made.process.send_signal(signal.SIGSTOP)
        await made.slack.world.drop_sockets()
        await made.discord.world.drop_sockets()
        for number in range(row.input["messages"]):
            for name in BOTH:
                await made.say(name, f"While it sleeps {number}.")
        made.process.send_signal(signal.SIGCONT)
        for name in BOTH:
            await made.answers(name, row.right["answers"])


@pytest.mark.parametrize("row", rows("network", "environment"))
def test_the_environment_of_a_daemon(row: Row, tmp_path: Path) -> None:
    """Git's own variables and settings lead nowhere: every commit is one of the home, and nothing of theirs is run."""
    row.knows_only("commits_in", "other_unchanged", "hook_ran")
    other, hooks, ran = tmp_path / "other", tmp_path / "hooks", tmp_path / "ran"
    hooks.mkdir()
    for hook in ("pre-commit", "post-commit", "reference-transaction"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / hook).chmod(0o755)
    subprocess.run(["git", "init", "--quiet", str(other)], check=True)
    before = _tree(other)
    machine = Machine(tmp_path / "machine")
    (machine.user / ".gitconfig").write_text(
        "".join(
            f"[{key.partition('.')[0]}]\n{key.partition('.')[2]} = {str(value).replace('{hooks}', str(hooks)).lower()}\n"
            for key, value in row.input["gitconfig"].items()
        )
    )
    env = {name: value.replace("{other}", str(other)) for name, value in row.input["env"].items()}
    repository = machine.home / "memory" / ".git"
    for topic in ("the axe", "the saw"):
        machine.ok("state", "set", "currentTopic", topic, env=env)
        with machine.daemon(env) as pid:
            until(pid, lambda topic=topic: topic in _last(repository))
        lock = repository / "index.lock"
        lock.touch()
        os.utime(lock, (1, 1))
    git = ["git", "-C", str(machine.home / "memory")]
    commits = subprocess.run([*git, "rev-list", "--all", "--count"], capture_output=True, text=True, check=True)

    assert {"home": int(commits.stdout) > 1}[row.right["commits_in"]]
    assert (_tree(other) == before) is row.right["other_unchanged"]
    assert ran.exists() is row.right["hook_ran"]


def _last(repository: Path) -> str:
    """Return what the last commit of a repository changed; empty without one."""
    ran = subprocess.run(["git", "--git-dir", str(repository), "show"], capture_output=True, text=True, check=False)
    return ran.stdout


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("row", rows("network", "start"))
def test_the_first_word_after_a_start(row: Row, tmp_path: Path) -> None:
    """The first message costs what the second does, and the first whisper is answered."""
    row.knows_only("cpu_first_over_second_at_most", "whisper_status")
    server = RowServer(replies=["They need assurance, not answers."], default=reply(SAID))
    with threaded(server):
        hosted = {"CLAUDIUS_PROVIDERS": "anthropic_api", "ANTHROPIC_API_KEY": "sk-ant-loopback"}
        machine = Machine(tmp_path, hosted | {"ANTHROPIC_BASE_URL": server.url})
        with machine.daemon() as pid:
            status, _ = whisper(machine)
            machine.until_logged("the provider is ready")
            spent = [_cpu(pid)]
            for text in ("Are you there?", "And now?"):
                assert machine.ok("chat", "--once", text).stdout.strip() == SAID
                spent.append(_cpu(pid))

    assert status == row.right["whisper_status"]
    assert spent[1] - spent[0] <= row.right["cpu_first_over_second_at_most"] * max(spent[2] - spent[1], LEAST_TICKS)


LEAST_TICKS = 5
"""A turn's ticks of CPU, where the clock of the kernel is too coarse to tell."""


def _cpu(pid: int) -> int:
    """Return the ticks of CPU that a process has used."""
    return sum(int(one) for one in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
