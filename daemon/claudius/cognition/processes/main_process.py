"""main_process: the ordinary mind, all seven steps."""

COGNITIVE_STEPS = (
    "internal_monologue",
    "external_dialogue",
    "user_model_check",
    "user_model_update",
    "model_change_note",
    "soul_state_check",
    "soul_state_update",
)
