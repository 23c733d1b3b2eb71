"""The settings of the psyche."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claudius.config.section import Positive, Section


class Psyche(Section, frozen=True):
    """The numbers below language: when the soul thinks, and how that is coloured."""

    enabled: Annotated[bool, Meta(description="0 = every owed message is thought about, and nothing is felt")] = True
    acknowledge: Annotated[
        Literal["line", "emoji"], Meta(description="how an addressed thanks is answered where the network can react")
    ] = "line"
    weights: Annotated[
        tuple[float, float, float, float, float],
        Meta(description="meaning: salience, pressed need, hot subject, stakes; less spent energy"),
    ] = (0.50, 0.15, 0.15, 0.15, 0.10)
    threshold: Annotated[float, Meta(gt=0, le=1, description="meaning from which the soul thinks")] = 0.32
    window_thread_s: Annotated[float, Meta(ge=0, description="seconds between uncalled thoughts in a thread")] = 60.0
    window_ambient_s: Annotated[float, Meta(ge=0, description="seconds between thoughts about what is overheard")] = (
        300.0
    )
    window_proactive_s: Annotated[float, Meta(ge=0, description="seconds between thoughts of the soul's own")] = (
        21_600.0
    )
    episode_threshold: Annotated[float, Meta(ge=0, le=1, description="importance from which a moment is kept")] = 0.35
    top_k: Annotated[Positive, Meta(description="moments that are ranked for a message that matters")] = 5
    max_arcs: Annotated[Positive, Meta(description="subjects that are on the mind at once")] = 12

    proactive: Annotated[bool, Meta(description="the soul may write first, to those who agreed to it")] = False

    def __post_init__(self) -> None:
        """Refuse weights under which an owed message could fail to mean enough. Raises: ValueError."""
        salience, *_, spent = self.weights
        if min(self.weights) < 0 or salience * 0.98 - spent < self.threshold + 0.05:
            raise ValueError(
                "psyche.weights and psyche.threshold: the first weight times .98, less the last, "
                "must be at least the threshold plus .05, else an owed message could go unanswered"
            )
