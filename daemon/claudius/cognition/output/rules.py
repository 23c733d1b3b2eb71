"""Collect what a turn's reply must not say, what is said instead and who hears it, for the ladder and the gate.

Built once per turn, and again when the turn has thought something that its next call is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from claudius.cognition.output.overlap import Echo
from claudius.cognition.output.rewrites import Company
from claudius.cognition.plan.plan import EngineSettings, Plan, allowed_verbs
from claudius.cognition.reply.tags import NAMES, Names
from claudius.perception import Origin
from claudius.prompt import next_nonce
from claudius.recollection import EntryType, PastTurn, Recollection, once
from claudius.soul import SoulText

SPEECH = "external_dialogue"
SAID = "said"
ELLIPSIS = " …"
_PRIVATE = (EntryType.INTERNAL_MONOLOGUE, EntryType.DAIMONIC_INTUITION)
_ALOUD = (EntryType.USER_MESSAGE, EntryType.EXTERNAL_DIALOG, EntryType.DAIMON_SPEECH)


class OutputRules(Struct, frozen=True, kw_only=True):
    """What may be said in one turn. The ladder reads the first half of the fields, the gate all of them."""

    fallback: str = ""
    """The fixed line, in character."""
    verbs: Sequence[str] = (SAID,)
    default_verb: str = SAID
    owed: bool = True
    """Whether a reply is owed: if nothing can be said, the fixed line is."""
    repairs: int = 1
    """Repair calls left."""
    names: Names = NAMES
    private: Echo = field(default_factory=Echo)
    """The private entries and whispers in this prompt."""
    nonces: tuple[str, ...] = ()
    """Every nonce in this prompt."""
    feels: bool = False
    """Whether the soul has a psyche: a sentence that puts a number on its feelings is then not said."""
    instructions: Echo = field(default_factory=Echo)
    """The step instructions."""
    secrets: tuple[str, ...] = ()
    """Secret values held by the daemon."""
    forbidden: Echo = field(default_factory=Echo)
    """Recalled texts whose sources may not be shown here; empty if the audience rule held."""
    guarded: Echo = field(default_factory=Echo)
    """Texts that may be discussed but not carried away in a link: user models, soul state, beliefs."""
    company: Company = field(default_factory=Company)

    @property
    def hidden(self) -> str:
        """All private texts joined; no link may carry a piece of them."""
        return "\0".join((self.private.text, self.forbidden.text, self.guarded.text, *self.secrets))


def output_rules(
    plan: Plan,
    recollection: Recollection,
    soul: SoulText,
    settings: EngineSettings,
    secrets: tuple[str, ...] = (),
    thought: Iterable[str] = (),
) -> OutputRules:
    """Return the rules of a turn. Pure.

    `thought`: the private thoughts of this turn that its next call is shown, to protect that call's reply.
    """
    verbs, default = allowed_verbs(SPEECH, plan, soul)
    models = recollection.speaker.models if recollection.speaker else ()
    answered = recollection.perceptions[-1].person if recollection.perceptions else ""
    return OutputRules(
        fallback=soul.steps[SPEECH].fallback,
        verbs=verbs,
        default_verb=default,
        owed=plan.owes,
        repairs=settings.repairs,
        nonces=(recollection.nonce, next_nonce(recollection.nonce), *(turn.nonce for turn in recollection.past)),
        private=_private_texts(recollection, thought),
        feels=settings.psyche,
        instructions=_instructions(soul),
        secrets=secrets,
        guarded=Echo((*(model.markdown for model in models), *(value.value for value in recollection.state))),
        company=Company(answered=answered, members=_present(recollection)),
    )


def _private_texts(recollection: Recollection, thought: Iterable[str]) -> Echo:
    """Return every private text in this turn's prompt, except what everyone has heard of it."""
    past = recollection.past
    return Echo(
        (
            *(text for turn in past for text in once(turn, _private)),
            *(one.text for one in recollection.intuitions),
            *thought,
        ),
        aloud=(
            *(text for turn in past for text in once(turn, _aloud)),
            *(one.text for one in recollection.perceptions if one.origin is Origin.EXTERNAL),
        ),
    )


def _private(past: PastTurn) -> tuple[str, ...]:
    return tuple(entry.content for entry in past.entries if entry.entry_type in _PRIVATE)


def _aloud(past: PastTurn) -> tuple[str, ...]:
    return tuple(entry.content for entry in past.entries if entry.entry_type in _ALOUD)


def _instructions(soul: SoulText) -> Echo:
    """Return the instructions of every turn; cached as long as the soul is unchanged."""
    known = soul.derived.get("instructions")
    if not isinstance(known, Echo):
        known = Echo(step.instruction for step in soul.steps.values() if not step.on_demand)
        soul.derived["instructions"] = known
    return known


def _present(recollection: Recollection) -> dict[str, str]:
    present = {one.person: one.name for one in recollection.perceptions if one.person}
    return present | {other.person: other.name for other in recollection.others}
