"""The parts that prompts of large and of small models share: samples, the present, the soul state, the form. Pure."""

from __future__ import annotations

from string import Template

from claudius.cognition.plan import EngineSettings, Plan, allowed_verbs, soul_name
from claudius.cognition.timing import zone_of
from claudius.prompt import ago
from claudius.provider import FormStep
from claudius.psyche.context import MOOD
from claudius.recollection import STATE_DEFAULTS, Recollection
from claudius.soul import SoulText

PRESENT = "The Present"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
"""English, as the rest of the prompt is, whatever the machine's locale."""


def exchanges(soul: SoulText) -> str:
    """Return the sample exchanges; empty if they are another soul's. Pure."""
    file = soul.files.get("exchanges.md")
    whose = str(file.head.get("soul", "")).casefold() if file else ""
    return file.text if file and whose in ("", soul_name(soul.text("soul.md"))) else ""


def present(recollection: Recollection, soul: SoulText, zone: str) -> str:
    """Name the instant of the turn in a zone, and how long ago the speaker last spoke here. Pure.

    Empty without a zone, or if the soul's texts are older than these words.
    """
    words, now = soul.files["tail.md"].head, recollection.now.astimezone(zone_of(zone))
    if not zone or "now" not in words:
        return ""
    day = f"{now.day} {MONTHS[now.month - 1]} {now.year}"
    values = {"weekday": WEEKDAYS[now.weekday()], "date": day, "time": f"{now:%H:%M}", "zone": zone}
    said = Template(words["now"]).substitute(values)
    if recollection.speaker is None or recollection.speaker.spoke_at is None:
        return said
    since = ago((recollection.now - recollection.speaker.spoke_at).total_seconds())
    return f"{said} {Template(words['since']).substitute(ago=since)}"


def soul_state(plan: Plan, recollection: Recollection) -> dict[str, str]:
    """Return the soul state that a prompt shows, with the mood from the bands. Pure."""
    state = {value.key: value.value for value in recollection.state if value.value}
    if plan.felt.emotional_state:
        word = plan.felt.emotional_state  # the mood from the bands; a default mood is left out
        state = ({MOOD: word} if word != STATE_DEFAULTS[MOOD] else {}) | {k: v for k, v in state.items() if k != MOOD}
    return state


def form_of(plan: Plan, soul: SoulText, settings: EngineSettings) -> tuple[FormStep, ...]:
    """Return the sections that a server is to enforce: those of this plan and no others. Pure."""
    if settings.form == "words":
        return ()
    return tuple(
        [
            FormStep(
                name=name,
                value=soul.steps[name].value,
                verbs=allowed_verbs(name, plan, soul)[0],
                check=plan.conditional.get(name, ""),
            )
            for name in plan.asked
            if name in soul.steps
        ]
    )
