"""Who may talk, as what, and where (settings, modes of channels, codes of strangers and of owners); who can see what.

Messages are judged in memory as they arrive, before any row is written or model called.

Source: the security design, sections 4 and 5: unknown members mean that only what was learned there may be shown there.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.processes import Participation
from claudius.config.schema import Config
from claudius.config.tables import AccessSettings
from claudius.errors import ClaudiusError
from claudius.foreign import unquoted
from claudius.home import Home, write_private
from claudius.memory.audit import AuditEntry
from claudius.memory.codes import ALPHABET, CODE_CHARS, LIFE, WRONG_TRIES, OpenCode
from claudius.memory.inbox import unanswered
from claudius.memory.people import Mode, SeenPlaces
from claudius.memory.store import Store
from claudius.perception import (
    TERMINAL,
    Following,
    Kind,
    MessageExtra,
    Origin,
    Perception,
    Place,
    Standing,
    is_terminal,
    private,
    sees_everything,
)
from claudius.runtime.adapter import Adapter
from claudius.runtime.commands.words import NO_CHANNEL
from claudius.runtime.control import ControlConnection, Handler
from claudius.tool import Onlookers

MUTED_UNTIL = "%Y-%m-%dT%H:%M:%SZ"
"""How `access.muted` writes until when."""
EVERYWHERE = "*"
DIRECT = "@me"
"""The workspace of Discord's direct messages."""


def admit(perception: Perception, config: Config) -> Perception | None:
    """Return the perception as it is accepted, or None if its speaker or place is not heard. Pure."""
    if perception.origin is Origin.INTERNAL:
        return perception
    # Networks do not say who deleted a message, and a deletion brings nothing in.
    if perception.kind is not Kind.DELETE and not _may_talk(perception, config):
        return None
    if perception.extra.roles:
        perception = replace(perception, extra=replace(perception.extra, roles=()))
    if perception.kind not in (Kind.MESSAGE, Kind.MENTION, Kind.COMMAND):
        return replace(perception, owes=False)
    if perception.audience.startswith("private:") or perception.kind is not Kind.MESSAGE:
        return perception
    return _overheard(perception, config)


def _may_talk(perception: Perception, config: Config) -> bool:
    if perception.standing is not Standing.MEMBER:
        return False
    place, allowed = Place.of(perception.conversation), config.discord.guilds
    if place.network == "discord" and not (place.workspace == DIRECT and perception.extra.is_paired):
        # an allowed guild, or a member of one in a direct message; an empty list admits nobody
        guilds = perception.extra.guilds if place.workspace == DIRECT else (place.workspace,)
        if not guilds or not (EVERYWHERE in allowed or set(guilds) & set(allowed)):
            return False
    if not _has_access(perception, config.access):
        return False
    return not perception.is_bot or EVERYWHERE in config.bots.allow or perception.person in config.bots.allow


def _has_access(perception: Perception, access: AccessSettings) -> bool:
    """Return whether the owner's own rules let a perception in, by the ids that the network signed. Pure."""
    place, person = Place.of(perception.conversation), perception.person
    if place.network == "discord":
        return is_let_in(perception.extra.roles, access.discord_roles, access.discord_roles_denied)
    if place.network != "slack":
        return True
    is_channel = not place.channel.startswith(NO_CHANNEL)
    ids, where = (person, person.rpartition(":")[2]), (place.channel, place.of_channel)
    return is_let_in(ids, access.slack_people, access.slack_people_denied) and (
        not is_channel or is_let_in(where, access.slack_channels, access.slack_channels_denied)
    )


def is_let_in(ids: Iterable[str], allowed: Iterable[str] | None, denied: Iterable[str]) -> bool:
    """Return whether one of these ids is allowed, and none is denied. Pure."""
    known = {*ids, EVERYWHERE}
    return known.isdisjoint(denied) and (allowed is None or not known.isdisjoint(allowed))


def _overheard(perception: Perception, config: Config) -> Perception:
    """Decide what becomes of channel talk that addresses nobody, or somebody else."""
    place = Place.of(perception.conversation)
    channels = _channels(place.network, config)
    is_kept = EVERYWHERE in channels or place.channel in channels or config.runtime.follow == "listen"
    return replace(
        perception,
        owes=config.runtime.follow == "thread" and bool(place.thread) and not perception.to_other,
        following=Following.KEPT if is_kept else Following.DROPPED,
    )


def _channels(network: str, config: Config) -> Sequence[str]:
    """Return the channels that the settings name for a network: ids, or `ID=MODE`."""
    return {"slack": config.slack.channels, "discord": config.discord.channels}.get(network, ())


def is_owner(perception: Perception, config: Config) -> bool:
    """Return whether the speaker has the owner's rights, by the id that the network signed. Pure."""
    return perception.is_owner or perception.person in config.owners


def is_moderator(perception: Perception, config: Config) -> bool:
    """Return whether the speaker may mute people, by their id or by a role that their network signed. Pure."""
    extra, server = perception.extra, Place.of(perception.conversation).workspace
    servers = extra.guilds if server == DIRECT else (server,)
    roles = [f"discord:{one}:role:{role}" for one in servers for role in extra.roles]
    return not {perception.person, *roles}.isdisjoint(config.access.moderators)


def is_terminal_user(person: str) -> bool:
    """Return whether an id is that of this machine's user at the terminal, who owns the home. Pure."""
    return person.startswith(f"{TERMINAL}:") and not person.startswith(f"{TERMINAL}:local:as-")


MODES: Mapping[str, Mode] = {"on": "on", "off": "off", "listen": "listen"}


class ChannelModes:
    """How the soul takes part in each channel, as of any process's last word."""

    def __init__(self, store: Store, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._store, self._config, self._clock = store, config, clock

    def mode(self, place: str) -> Mode | None:
        """Return the mode of a channel: the one set there by command, or else by an entry `ID=on|off|listen`."""
        return self.access("", place)[1]

    def access(self, person: str, place: str) -> tuple[bool, Mode | None]:
        """Return whether a person was let in by a code, and the mode of a channel. A terminal has neither."""
        if place.startswith(f"{TERMINAL}:"):
            return False, None
        is_paired, found = self._store.people.access(person, place)
        return is_paired, found or self._by_settings(place)

    def _by_settings(self, place: str) -> Mode | None:
        network, _, channel = place.split(":", 2)
        for entry in _channels(network, self._config()):
            named, _, mode = entry.partition("=")
            if named == channel and mode in MODES:
                return MODES[mode]
        return None

    def said_by(self, place: str) -> tuple[str, datetime] | None:
        """Return who last set the mode of a channel, and when."""
        return self._store.people.participation(place)

    async def participate(self, place: str, mode: Mode, person: str) -> None:
        """Set the mode of a channel."""
        await self._store.people.participate(place, mode, person, self._clock())

    async def removed(self, place: str) -> None:
        """Forget the mode of a channel that the soul was removed from; a new invitation starts anew."""
        await self._store.people.participate_no_more(place)


def taking_part(perception: Perception, mode: Mode | None) -> Perception:
    """Return the perception as this mode of participation accepts it. Pure.

    In a channel, `off` is as if nobody had ever brought the soul in: when called, it answers. In a direct conversation
    it mutes the soul.
    """
    is_talk = perception.kind in (Kind.MESSAGE, Kind.MENTION, Kind.EDIT) and perception.origin is Origin.EXTERNAL
    if not is_talk or mode is None:
        return perception
    is_direct = perception.audience.startswith("private:")
    if mode == "listen" or (mode == "off" and is_direct):
        return unanswered(perception)
    if mode == "off" or is_direct or perception.kind is Kind.EDIT:
        return perception
    following, extra = Following.KEPT if perception.following else None, perception.extra
    if isinstance(extra, MessageExtra):
        extra = replace(extra, participation=Participation.GROUP.value)
    return replace(perception, following=following, extra=extra)


MOST_OPEN = 3
PAIRS = ("discord",)
"""Networks where a stranger may write to us directly."""
KIND = "pairing"


class Pairing:
    """The codes of strangers, and the owner's word on them; any process of the soul takes it."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        tell: Callable[[Perception, str], None],
        owner: Callable[[], str],
    ) -> None:
        """Keep it in `store`; `tell` sends a line to one person, in the background; `owner` is who approves."""
        self._store, self._clock, self._tell, self._owner = store, clock, tell, owner

    async def offer(self, perception: Perception) -> None:
        """Offer a code to a stranger who writes directly, once an hour; nothing they said is stored."""
        network = Place.of(perception.conversation).network
        is_stranger = perception.standing is Standing.OUTSIDER and not perception.is_bot
        if network not in PAIRS or not is_stranger or not perception.audience.startswith("private:"):
            return
        asked = OpenCode(
            kind=KIND, person=perception.person, name=perception.name, network=network, asked_at=self._clock()
        )
        made = await self._store.codes.open(asked, MOST_OPEN)
        if made:
            line = f"I do not know you yet. Give this code to whoever runs me; it is good for an hour: {made.code}"
            self._tell(perception, line)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The owner's operations on the control socket."""
        return {"pairing_list": self._list, "pairing_approve": self._approve, "pairing_revoke": self._revoke}

    async def _list(self, connection: ControlConnection, _: Mapping[str, Any]) -> None:
        rows = [
            {
                "code": one.code,
                "network": one.network,
                "person": one.person,
                "name": one.name,
                "asked_at": _stamp(one.asked_at),
                "expires_at": _stamp(one.expires_at),
            }
            for one in self._store.codes.valid(KIND, self._clock())
        ]
        await connection.send({"event": "pairing", "open": rows, "paired": sorted(self._store.people.paired())})

    async def _approve(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        now = self._clock()
        found = await self._store.codes.redeem(KIND, str(asked.get("code")), now)
        if found is None:
            await connection.send({"event": "error", "message": "no open request has that code"})
            return
        try:
            await self._store.audit.note(AuditEntry(who=self._owner(), act="approve", target=found.person), now)
            await self._store.people.pair(found.person, found.name, now)
        except ClaudiusError as error:
            await connection.send({"event": "error", "message": error.message})
            return
        await connection.send({"event": "paired", "person": found.person, "name": found.name})

    async def _revoke(self, connection: ControlConnection, asked: Mapping[str, Any]) -> None:
        person = str(asked.get("person"))
        now = self._clock()
        if person in self._store.people.paired():
            await self._store.audit.note(AuditEntry(who=self._owner(), act="revoke", target=person), now)
        was = await self._store.people.unpair(person)
        await self._store.codes.drop(KIND, person)
        message = {"event": "revoked", "person": person}
        await connection.send(message if was else {"event": "error", "message": f"{person} was not let in by a code"})


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


class OwnerCode:
    """The one open code of a home."""

    def __init__(self, home: Home) -> None:
        """Keep it in the home's state; nothing is read yet."""
        self._path: Path = home.state / "owner_code.json"

    def make(self, now: datetime) -> str:
        """Return a new code, good for an hour; an older one is void. Raises: OSError."""
        code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
        self._keep({"sha256": _hash(code), "until": (now + LIFE).isoformat(), "wrong": 0})
        return code

    def redeem(self, code: str, now: datetime) -> bool:
        """Return whether this is the code. It is void afterwards, and also after a few wrong tries."""
        try:
            kept = json.loads(self._path.read_text("utf-8"))
            is_open = now < datetime.fromisoformat(kept["until"])
            is_it = hmac.compare_digest(str(kept["sha256"]), _hash(code.strip().upper())) and is_open
            wrong = int(kept["wrong"]) + 1
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if is_it or wrong >= WRONG_TRIES or not is_open:
            self.void()
        else:
            self._keep(kept | {"wrong": wrong})
        return is_it

    def void(self) -> None:
        """Void the open code, if there is one."""
        self._path.unlink(missing_ok=True)

    def _keep(self, kept: dict[str, str | int]) -> None:
        write_private(self._path, json.dumps(kept))


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


log = logging.getLogger(__name__)

FRESH_S = 600.0
"""For how long an answer of the network is valid."""
STALE_S = 86_400.0
"""For how long the last answer is valid while the network cannot be asked."""
PATIENCE_S = 2.0
"""How long a turn waits for the network's answer."""


class _Known(Struct, frozen=True):
    at_s: float
    is_known: bool


class Membership:
    """What is known of shared audiences, kept current in the store."""

    def __init__(self, store: Store, adapters: Mapping[str, Adapter], clock: Callable[[], datetime]) -> None:
        """Ask `adapters` (by network), record in `store`, with `clock`'s time."""
        self._store, self._adapters, self._clock = store, adapters, clock
        self._asked: dict[str, _Known] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changed: set[str] = set()
        """The audiences in which someone joined or left since the network was last asked."""
        self._owners_seen: dict[tuple[str, tuple[str, ...]], tuple[float, tuple[str, ...]]] = {}

    def forget(self, audience: str) -> None:
        """Discard the answer, because someone joined or left; the next turn asks again."""
        self._discard(audience)
        self._store.leases.changed(audience)

    def _discard(self, audience: str) -> None:
        self._asked.pop(audience, None)
        self._changed.add(audience)

    async def look(self, perception: Perception) -> None:
        """Update who sees what, as far as the answer to a perception depends on it. Raises: StoreError."""
        for changed in self._store.leases.news():  # heard by any process
            self._discard(changed)
        audience = perception.audience
        if sees_everything(audience, is_owner=perception.is_owner):
            return
        if audience.startswith(private("")):
            await self.look_as(audience.removeprefix(private("")))
        elif audience.startswith("shared:") and not is_terminal(perception.conversation):
            await self._list(audience)
            asked = self._asked.get(audience)
            if perception.person and asked and asked.is_known:
                # the lists that contain a person who is present: nothing from other places is shown among them
                for sight in self._store.people.sight(perception.person):
                    if sight.person.partition(":")[0] != TERMINAL:
                        await asyncio.gather(*map(self._list, sight.listed))

    async def look_as(self, person: str) -> None:
        """Update what one person sees, under each of their ids. Raises: StoreError."""
        for sight in self._store.people.sight(person):
            network = sight.person.partition(":")[0]
            if network == TERMINAL:
                continue
            adapter = self._adapters.get(network)
            seen: frozenset[str] = frozenset()
            if adapter is None or adapter.lists_members:
                await asyncio.gather(*map(self._list, (*sight.listed, *sight.unlisted)))
            elif sight.unlisted:
                seen = await _seen(adapter, sight)
            if seen != sight.seen:
                await self._store.people.know_sight(sight.person, sorted(seen))

    async def onlookers(self, audience: str, speaker: str, owners: Sequence[str], *, anew: bool) -> Onlookers:
        """Return who can see a place, as consent asks for it; `anew`: its network is asked now. Raises: StoreError.

        Where the network does not answer, nobody is known to see it but who speaks there.
        """
        present, is_listed = [speaker] if speaker else [], True
        kind, _, place = audience.partition(":")
        network = place.partition(":")[0]
        adapter = self._adapters.get(network) if kind == "shared" and network != TERMINAL else None
        if adapter and not adapter.lists_members:
            present += await self._seeing(adapter, audience, owners, anew=anew)
        elif adapter and anew:
            is_listed = await self._asked_anew(audience)
        owned = [*owners, *filter(is_terminal_user, present)]
        return self._store.people.onlookers(audience, present, owned, is_listed=is_listed)

    async def _seeing(self, adapter: Adapter, audience: str, owners: Sequence[str], *, anew: bool) -> Sequence[str]:
        """Return which owners can see a place of a network that lists no members."""
        theirs = tuple([one for one in owners if one.partition(":")[0] == audience.split(":")[1]])
        at_s, seen = self._owners_seen.get((audience, theirs), (float("-inf"), ()))
        if anew or monotonic() - at_s >= FRESH_S:
            asked = [SeenPlaces(person=one, listed=(), unlisted=(audience,), seen=frozenset()) for one in theirs]
            seen = tuple([one.person for one in asked if await _seen(adapter, one)])
            self._owners_seen[audience, theirs] = (monotonic(), seen)
        return seen

    async def _asked_anew(self, audience: str) -> bool:
        """Ask the network who sees a place, whatever was known a moment ago. Returns whether it answered."""
        async with self._asking[audience]:
            try:
                persons = await self._members(audience)
            except (ClaudiusError, TimeoutError, OSError) as error:
                log.info("members not known", extra={"audience": audience, "error": unquoted(error)})
                return False
            await self._keep(audience, persons)
        return True

    async def _list(self, audience: str) -> None:
        async with self._asking[audience]:  # whoever comes meanwhile finds the answer
            before = self._asked.get(audience)
            if before is None or monotonic() - before.at_s >= FRESH_S:
                self._changed.discard(audience)
                await self._ask(audience, before)

    async def _ask(self, audience: str, before: _Known | None) -> None:
        persons: Sequence[str] | None = None
        try:
            persons = await self._members(audience)
        except (ClaudiusError, TimeoutError, OSError) as error:
            log.info("members not known", extra={"audience": audience, "error": unquoted(error)})
            if before and before.is_known and monotonic() - before.at_s < STALE_S:
                return
        await self._keep(audience, persons, is_news=persons is not None or before is None or before.is_known)

    async def _members(self, audience: str) -> Sequence[str] | None:
        adapter = self._adapters.get(audience.split(":")[1])
        async with asyncio.timeout(PATIENCE_S):
            return await adapter.members(audience) if adapter else None

    async def _keep(self, audience: str, persons: Sequence[str] | None, *, is_news: bool = True) -> None:
        if is_news:
            await self._store.people.know_members(audience, persons, self._clock())
        # An answer that was on its way when someone joined or left is not kept: whoever looks next asks again.
        at_s = float("-inf") if audience in self._changed else monotonic()
        self._asked[audience] = _Known(at_s, is_known=persons is not None)


async def _seen(adapter: Adapter, sight: SeenPlaces) -> frozenset[str]:
    """Return which unlisted places one id can see; none if the network does not tell."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return frozenset(await adapter.sees(sight.person, sight.unlisted))
    except (ClaudiusError, TimeoutError, OSError) as error:
        log.info("not known who sees what", extra={"person": sight.person, "error": unquoted(error)})
        return frozenset()
