"""Turn the thoughts of a turn into an intent: entries, state, psyche, transitions and utterances."""
