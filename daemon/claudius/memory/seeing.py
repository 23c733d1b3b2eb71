"""Apply the audience rule to the database's contents, for one read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from claudius.memory.database import Database, Row, dump, parse_strings
from claudius.perception import (
    SELF,
    Perception,
    hearing_audience,
    is_terminal,
    joint,
    may_show,
    members_of,
    private,
    sees_everything,
)
from claudius.recollection import Recollection

NOWHERE = "self:::"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Seeing:
    """Who hears the answer to one perception, and so what may be shown. Lives as long as one read snapshot."""

    def __init__(
        self, db: Database, perception: Perception, *, own_only: bool = False, known: Recollection | None = None
    ) -> None:
        """Find the perception's audience.

        `own_only`: show only what was learned from the speaker alone, or from no one.
        `known`: what was found earlier in the same turn, and is not asked again.
        """
        self._db, self._own_only = db, own_only
        self._members: dict[str, frozenset[str] | None] = {}
        self._audiences = known.shown_from if known else ""
        self._verdicts: dict[str, bool] = {}
        self._canonical: dict[str, str] = {}
        self._ids: dict[str, list[str]] = {}
        here, person = known and known.speaker, perception.person
        self.speaker = here.person if here else person and self.canonical(person)
        self.audience = known.audience if known else self._hearing(perception)
        owner_sees = self.audience == SELF or sees_everything(self.audience, is_owner=perception.is_owner)
        self.sees_all = owner_sees and not own_only

    @classmethod
    def towards(cls, db: Database, audience: str) -> Seeing:
        """Return the view of an audience in which nobody is speaking now."""
        nobody = Perception(
            key="", conversation=NOWHERE, audience=audience, person="", name="", text="", at=EPOCH, position=""
        )
        return cls(db, nobody)

    def stand_in(self, audience: str) -> None:
        """Assume that the speaker can see an audience, whatever is known of it, because they are asking from there."""
        self._members[audience] = (self._known(audience, is_whole=False) or frozenset()) | {self.speaker}
        self._verdicts.pop(audience, None)

    def canonical(self, person: str) -> str:
        """Return the canonical id of a person."""
        if person not in self._canonical:
            ids = ids_of(self._db, person)
            self._canonical |= dict.fromkeys((person, *ids), ids[0])
            self._ids[ids[0]] = ids
        return self._canonical[person]

    def ids(self, canonical: str) -> list[str]:
        """Return every id of a person, the canonical one first."""
        self.canonical(canonical)
        return self._ids.get(canonical, [canonical])

    def may(self, sources: Iterable[str]) -> bool:
        """Return whether what was learned in all of `sources` may be shown here now."""
        if self._own_only:
            return all(source == SELF or self._is_own(source) for source in sources)
        return self.sees_all or all(map(self._may, sources))

    def _may(self, source: str) -> bool:
        if source in (SELF, self.audience) or dump(source) in self._audiences:
            return True
        if source not in self._verdicts:
            self._learn(self.audience)
            self._learn(source)
            self._verdicts[source] = may_show((source,), self.audience, self._members)
        return self._verdicts[source]

    def audiences(self) -> str:
        """Return, as JSON, each audience whose learning may be shown here by the rule, once: what all present see."""
        if not self._audiences:
            self._learn(self.audience)
            present = members_of(self.audience, self._members) or frozenset()
            ids = self.ids(min(present)) if present else ()
            seen = self._seen_by(present, ids) if present and not self._own_only else "[]"
            if len(ids) > 1:  # two of them may be on one list
                seen = dump([*dict.fromkeys(parse_strings(seen))])
            mine = dict.fromkeys((SELF, self.audience, *map(private, ids)))
            own = dump([one for one in mine if dump(one) not in seen and self.may((one,))])
            self._audiences = f"{own[:-1]},{seen[1:]}" if seen != "[]" else own
        return self._audiences

    def _seen_by(self, present: frozenset[str], ids: Sequence[str]) -> str:
        """Return the shared audiences that all those present can see; `ids` are one of them."""
        if self.audience.startswith(private("")):  # one person, so it is enough to be on a list, however short
            return str(self._db.value("audiences_of_one", ids=dump(list(ids))))
        return str(self._db.value("audiences_of_all", ids=dump(list(ids)), present=dump(sorted(present))))

    def _hearing(self, perception: Perception) -> str:
        conversation, carried = perception.conversation, perception.audience
        if not is_terminal(conversation) or not carried.startswith(private("")):
            return carried
        together = joint(conversation)
        speakers = (self._known(together, is_whole=True) or frozenset()) | ({self.speaker} if self.speaker else set())
        self._members[together] = speakers
        return hearing_audience(conversation, carried, speakers)

    def _is_own(self, audience: str) -> bool:
        return audience.startswith(private("")) and self.canonical(audience.removeprefix(private(""))) == self.speaker

    def _learn(self, audience: str) -> None:
        if audience in self._members or audience == SELF:
            return
        is_target, person = audience == self.audience, audience.removeprefix(private(""))
        if person != audience and not is_target:
            # who it is matters only if it is the one person who is shown it: then all their ids are known already
            present = members_of(self.audience, self._members) or frozenset()
            mine = [one for one in present if len(present) == 1 and (one == person or person in self.ids(one))]
            self._members[audience] = frozenset(mine or [person])
        elif person != audience:
            self._members[audience] = frozenset({self.canonical(person)})
        else:
            # For a source it is enough to know that the one person who is shown it can see it, because the query was
            # about that person.
            known = self._known(audience, is_whole=is_target or not self.audience.startswith(private("")))
            if known is not None and self.speaker and is_target:
                known |= {self.speaker}  # who speaks here can see here, whatever the list says
            self._members[audience] = known

    def _known(self, audience: str, *, is_whole: bool) -> frozenset[str] | None:
        rows = self._db.all("audience_members", audience=audience)
        if not rows or (is_whole and rows[0]["known_at"] is None):
            return None
        return frozenset([row["person"] for row in rows if row["person"]])


def alone(person: str, now: datetime) -> Perception:
    """Return a perception of a person in an audience that nobody else sees."""
    return Perception(
        key="", conversation=":::", audience=private(person), person=person, name="", text="", at=now, position=""
    )


def ids_of(db: Database, person: str) -> list[str]:
    """Return every id of a person, by whichever of them, the canonical one first."""
    return ids_in(db.all("linked", person=person), person)


def ids_in(linked: Sequence[Row], person: str) -> list[str]:
    """Return these ids of a person, the canonical one first. Pure."""
    return [linked[0]["canonical"], *[row["person"] for row in linked]] if linked else [person]


def canonical(db: Database, person: str) -> str:
    """Return the canonical id of a person."""
    return str(db.value("canonical", person=person) or person)
