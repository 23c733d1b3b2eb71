"""An in-memory source of the texts that a kept turn refers to: tests rebuild a prompt without a database."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from claudius.recollection import Fact, Matter, PastTurn


@dataclass(frozen=True)
class Texts:
    """Texts by their keys; a missing key counts as erased."""

    blobs: Mapping[str, bytes] = field(default_factory=dict)
    turns: Mapping[int, PastTurn] = field(default_factory=dict)
    portraits: Mapping[tuple[str, str, int], str] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)

    def blob(self, sha256: str) -> bytes | None:
        """Return stored content."""
        return self.blobs.get(sha256)

    def past_turn(self, conversation: str, number: int) -> PastTurn | None:  # noqa: ARG002 - the protocol's
        """Return an earlier turn."""
        return self.turns.get(number)

    def portrait(self, person: str, audience: str, version: int) -> str | None:
        """Return one version of a portrait."""
        return self.portraits.get((person, audience, version))

    def known(self, fact: Fact) -> Fact:
        """Return it as it is: none of these turns knew any."""
        return fact

    def open_matter(self, matter: Matter) -> Matter:
        """Return it as it is, likewise."""
        return matter

    def recalled(self, row: str) -> str | None:
        """Return the text of a recalled line."""
        return self.rows.get(row)
