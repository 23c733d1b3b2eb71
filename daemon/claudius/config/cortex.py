"""The settings of the second mind."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claudius.config.section import NotNegative, Positive, Seconds, Section

TRIGGER = r"^\s*(timer|interaction_count(\s*[:=]\s*[1-9]\d{0,5})?|promise_timeout|farming|new_peer|manual)\s*$"
"""What may start a cycle; a name that is none would switch one off unseen."""


class Consult(Section, frozen=True):
    """Thinking twice before speaking where much is at stake."""

    enabled: Annotated[bool, Meta(description="consult the cortex before answering where much is at stake")] = False
    timeout_seconds: Annotated[Seconds, Meta(description="seconds until the cautious default is taken")] = 20.0
    channels: Annotated[
        tuple[str, ...], Meta(description="network:workspace:channel prefixes where it consults; empty = all")
    ] = ()


class Cortex(Section, frozen=True):
    """The second mind, which reflects."""

    enabled: Annotated[
        bool | Literal["auto"], Meta(description="true, false, or auto = on with a real model, else off")
    ] = "auto"
    schedule_minutes: Annotated[float, Meta(gt=0, le=525_600, description="minutes between reflections")] = 30.0
    reflection_interval: Annotated[
        float, Meta(ge=0, le=525_600, description="another name of schedule_minutes; 0 = not set")
    ] = 0.0
    interaction_threshold: Annotated[Positive, Meta(description="messages since the last cycle that start one")] = 5
    triggers: Annotated[
        tuple[Annotated[str, Meta(pattern=TRIGGER)], ...],
        Meta(
            description="what starts a cycle: timer, interaction_count (or interaction_count: N), promise_timeout, "
            "farming, new_peer"
        ),
    ] = ("timer", "interaction_count", "promise_timeout", "farming")
    max_trust_delta: Annotated[int, Meta(ge=1, le=10, description="how far trust may move in one cycle")] = 3
    max_beliefs: Annotated[Positive, Meta(description="beliefs held at once")] = 20
    belief_ttl_minutes: Annotated[float, Meta(gt=0, description="minutes until a belief runs out")] = 120.0
    reflection_timeout_seconds: Annotated[Seconds, Meta(description="seconds until a cycle is given up")] = 60.0
    context_window: Annotated[Positive, Meta(description="interactions of a peer that a cycle sees")] = 10
    max_peers: Annotated[Positive, Meta(description="peers that a cycle sees")] = 8
    max_context_tokens: Annotated[int, Meta(ge=500, description="tokens (characters / 4) that a cycle may ask")] = 2500
    history_size: Annotated[Positive, Meta(description="cycles that history keeps")] = 50
    provider: Annotated[str, Meta(description="the cortex's own provider; empty = the main one")] = ""
    model: Annotated[str, Meta(description="the cortex's own model; empty = the provider's")] = ""
    depth: Annotated[
        Literal["deep", "triage"], Meta(description="deep = each cycle asks the model; triage = only if it is worth it")
    ] = "deep"
    triage_model: Annotated[str, Meta(description="a small model that says whether a cycle is worth it")] = ""
    directives: Annotated[bool, Meta(description="the cortex may ask the soul to write to someone")] = True
    max_directives: Annotated[NotNegative, Meta(description="directives of one cycle")] = 2
    soul_alignment: Annotated[bool, Meta(description="keep the cortex's verdict on the soul's own conduct")] = True
    adaptive: Annotated[bool, Meta(description="triggers tune themselves by how often they prove useful")] = False
    consult: Consult = Consult()
