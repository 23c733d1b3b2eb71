"""Commands about one's own memory: see it, correct it, export it, and have it erased."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.prompt.snapshot import Snapshot
from claudius.cognition.steps.user_model import merge_update
from claudius.cognition.timing import known_zone
from claudius.decoding import decoder
from claudius.memory.codes import OpenCode
from claudius.memory.facts import greeted, place_of
from claudius.memory.facts import told as told_of
from claudius.memory.forgotten import OfTheirs
from claudius.memory.seen import ERASED
from claudius.perception import SELF, Perception, Place, given_in, private, shared
from claudius.receipts import repeated, said_at
from claudius.runtime.access import is_owner
from claudius.runtime.auditing import note, origin_of
from claudius.runtime.commands.words import about, is_direct
from claudius.runtime.forgetting import THEMSELF, Forgetting
from claudius.runtime.receipts import link_to, told

CHOICE = "choice"
"""What somebody was shown, numbered, to choose from what is to be forgotten."""
LINE_CHARS, WORDS_CHARS = 80, 60
SURE = "forget"
"""The question whether somebody is sure to be erased; any process takes the answer."""
CONFIRM_WITHIN = timedelta(minutes=10)
CORRECTIONS = "Corrections"
CORRECTION_CHARS = 500
INTERRUPTED = "I began to forget you and was interrupted. It ends by itself, at the latest when I start again."
RECEIPT_FOLLOWS = "The receipt follows."
NO_PLAN = "There is no {} here that waits for you; `plans` lists what does."


class About:
    """Commands about one person's own memory, for that person alone."""

    def __init__(self, mind: Mind, forgetting: Forgetting) -> None:
        self._mind, self._forgetting, self._codes = mind, forgetting, mind.store.codes

    async def whoami(self, perception: Perception, _: str) -> str:
        """Show what is known of the person who asks, as far as they may see it."""
        known = await self._mind.store.people.known_of(perception.person, self._mind.clock(), _here(perception))
        zone = known_zone(known.zone, self._mind.config().clock.timezone)
        return "\n".join([greeted(known), *told_of(known, zone)])

    home = whoami

    async def why(self, perception: Perception, _: str) -> str:
        """Tell what the last answer to the person who asks drew on."""
        within = about(perception)
        found = self._mind.store.turns.last_answer(perception.person, within, self._mind.clock())
        if found is None:
            return "I have not answered you here yet."
        lines = [f"My last answer to you here (turn {found.turn}) drew on:"]
        lines += [f"• what I wrote of you: {place_of(one.audience)}, version {one.version}" for one in found.shown]
        lines += _drawn(found.snapshot, (SELF, private(perception.person)))
        links = [link for position in found.heard if (link := link_to(found.conversation, position))]
        lines += [f"• what was said there: {' '.join(links)}"] if links else ["• what you had just said"]
        return "\n".join(lines)

    async def plans(self, perception: Perception, _: str) -> str:
        """List what waits for the person who asks where they ask, and wherever the same people read."""
        zone_name = self._mind.store.people.zone(perception.person)
        zone = known_zone(zone_name, self._mind.config().clock.timezone)
        lines = []
        for one in self._mind.store.plans.waiting(_spoken(perception)):
            again = f" {repeated(one.repeat)}" if one.repeat else ""
            lines.append(f"{one.short}: {said_at(one.at, zone)}{again} · {one.text}")
        return "\n".join(lines) if lines else "Nothing waits here for you."

    async def cancel(self, perception: Perception, name: str) -> str:
        """Take back what waits here for the person who asks."""
        is_all = name.lower() == "all"
        waiting = self._mind.store.plans.waiting(_spoken(perception))
        named = [one for one in waiting if (one.is_asked if is_all else one.short == name.lower())]
        gone = [one.text for one in named if await self._mind.store.plans.cancel(one.id)]
        if not gone:
            return "Nothing waits here that you asked for." if is_all else NO_PLAN.format(name)
        return f"Taken back: {'; '.join(gone)}"

    async def correct(self, perception: Perception, text: str) -> str:
        """Store what a person says of themself, in their words."""
        text = " ".join(text.split())[:CORRECTION_CHARS]
        now, person = self._mind.clock(), perception.person
        known = await self._mind.store.people.known_of(person, now)
        own = next((one for one in known.models if one.audience == private(known.person)), None)
        current = own.markdown if own else f"# {known.name or person}\n"
        section = current.partition(f"## {CORRECTIONS}\n")[2].partition("\n## ")[0]
        said = [line for line in section.splitlines() if line.startswith("- ")]
        if f"- {text}" in said:
            return f"I have that already: {text}"
        merged = merge_update(current, [(CORRECTIONS, "\n".join([*said, f"- {text}"]))], person=person)
        if merged.markdown is None:
            return f"I cannot write that down ({merged.refused})."
        audience = own.audience if own else private(person)
        await self._mind.store.documents.correct(person, audience, merged.markdown, suspect=merged.suspect, now=now)
        return f"Noted, in your own words: {text}"

    async def forget(self, perception: Perception, rest: str) -> str:
        """Erase the person who asks, after they have confirmed it; or what they choose of what is kept."""
        now, person = self._mind.clock(), perception.person
        words = rest.lower().split()
        if words[:1] != ["me"]:
            return await (self._delete(perception, words) if words[0].isdigit() else self._list(perception, rest))
        if self._forgetting.is_unfinished(person):
            return f"{INTERRUPTED} {RECEIPT_FOLLOWS}" if self._forgetting.is_to_be_told(person) else INTERRUPTED
        until = await self._forgetting.waits_until(person, now)
        if until is not None:
            again = f"{until:%Y-%m-%d %H:%M} UTC"
            return f"I erased what I kept of you less than a day ago. I can do it again from {again} on."
        if words != ["me", "yes"] or not await self._was_asked(person, now):
            await self._codes.drop(SURE, person)
            network = Place.of(perception.conversation).network
            asked = OpenCode(kind=SURE, person=person, name=perception.name, network=network, asked_at=now)
            await self._codes.open(asked, sys.maxsize)
            field = " (/claudius forget me yes:True)" if network == "discord" else ""
            return (
                "This erases all that I keep of you, everywhere, my backups too, and cannot be undone. "
                f"If you mean it, say within ten minutes (a yes alone does nothing): !forget me yes{field}"
            )
        return told(await self._forgetting.forget(person, now, THEMSELF, origin_of(perception), asked=perception))

    async def _list(self, perception: Perception, words: str) -> str:
        """Number what is kept of the person with these words, and keep the list for ten minutes."""
        now, person = self._mind.clock(), perception.person
        found = self._mind.store.facts.of_theirs(person, words, now, _here(perception))
        if not found:
            return f"I keep nothing of yours with “{words[:WORDS_CHARS]}”; only they can take back what is others'."
        await self._codes.drop(CHOICE, person)
        payload = msgspec.json.encode([replace(one, text="") for one in found]).decode()  # not their words
        network = Place.of(perception.conversation).network
        listed = OpenCode(
            kind=CHOICE, person=person, name=perception.name, network=network, asked_at=now, payload=payload
        )
        await self._codes.open(listed, sys.maxsize)
        lines = [f"{n}. {_line(one)}" for n, one in enumerate(found, 1)]
        return "\n".join([*lines, "Say within ten minutes which are to go for good, for example: !forget 1 2"])

    async def _delete(self, perception: Perception, numbers: Sequence[str]) -> str:
        """Destroy what the person chose from their list."""
        now, person = self._mind.clock(), perception.person
        listed = [one for one in self._codes.valid(CHOICE, now) if one.person == person]
        if not listed or now - listed[-1].asked_at > CONFIRM_WITHIN:
            return "Tell me first what it is about, for example: !forget walnuts"
        found = _LISTED.decode(listed[-1].payload)
        chosen = [found[int(one) - 1] for one in dict.fromkeys(numbers) if 0 < int(one) <= len(found)]
        gone = await self._mind.store.facts.delete(chosen)
        await self._codes.drop(CHOICE, person)
        return f"Gone for good: {gone} of {len(found)}." if gone else "That was gone already."

    async def keep(self, perception: Perception, name: str) -> str:
        """Bring back what was to be forgotten."""
        text = await self._mind.store.facts.keep(perception.person, perception.audience, name)
        return f"I keep it: {text}" if text is not None else f"There is no {name.lower()} that I am about to forget."

    async def _was_asked(self, person: str, now: datetime) -> bool:
        """Return whether some process asked this person lately if they are sure, and end that question."""
        asked = [one for one in self._codes.valid(SURE, now) if one.person == person]
        is_lately = any(now - one.asked_at <= CONFIRM_WITHIN for one in asked)
        return await self._codes.drop(SURE, person) and is_lately

    async def export(self, perception: Perception, _: str) -> str:
        """Return all that is stored of the person who asks, as far as they may see it."""
        known = await self._mind.store.people.known_of(perception.person, self._mind.clock(), _here(perception))
        said = self._mind.store.people.said_by(perception.person)
        models = [{"audience": one.audience, "version": one.version, "markdown": one.markdown} for one in known.models]
        document = {"person": perception.person, "name": known.name, "models": models, **said}
        return "```\n" + json.dumps(document, ensure_ascii=False, indent=1).replace("```", "'''") + "\n```"

    async def proactive(self, perception: Perception, wish: str) -> str:
        """Store whether a person wants to be written to first."""
        is_wanted = wish.lower() == "on"
        await self._mind.store.people.wish(perception.person, proactive=is_wanted, now=self._mind.clock())
        where = given_in(perception)
        if not is_direct(where, perception) and is_owner(perception, self._mind.config()):
            await note(self._mind, perception, "proactive", wish.lower())
            await self._mind.store.people.wish(Place.of(where).of_channel, proactive=is_wanted, now=self._mind.clock())
            return "I may write first to you, and here." if is_wanted else "I write first neither to you nor here."
        return "I may write to you first." if is_wanted else "I write to you only when you write to me."


def _spoken(perception: Perception) -> Perception:
    """Return a command as if it had been said where it was given, and so to whoever reads there."""
    where = given_in(perception)
    audience = private(perception.person) if is_direct(where, perception) else shared(where)
    return replace(perception, conversation=where, audience=audience)


def _line(one: OfTheirs) -> str:
    text = " ".join(one.text.split())
    text = text if len(text) <= LINE_CHARS else f"{text[:LINE_CHARS].rstrip()} …"
    return f"{one.at:%Y-%m-%d}: “{text}”" if one.at else text


_LISTED = decoder(tuple[OfTheirs, ...])


def _here(perception: Perception) -> str:
    return shared(given_in(perception))


def _drawn(snapshot: bytes, seen: Sequence[str]) -> list[str]:
    """Return what else was in the prompt, without its words, as far as the person who asks may know of it. Pure."""
    if not snapshot or snapshot == ERASED:
        return []
    kept = decoder(Snapshot).decode(snapshot)
    lines = [f"• {len(kept.past)} earlier exchanges of that conversation"] if kept.past else []
    if kept.recollection.summary:
        lines.append("• a summary of what came before")
    state = [one.key for one in kept.recollection.state if one.audience in (*seen, kept.recollection.audience)]
    return [*lines, *([f"• my own state: {', '.join(state)}"] if state else [])]
