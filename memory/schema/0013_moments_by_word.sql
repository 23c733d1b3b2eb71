-- Which moment holds which word: those that share the weightiest words of a message are found, however old they are.

CREATE VIRTUAL TABLE psyche_episode_place USING fts5vocab (psyche_episode_index, 'instance'); -- a view of that index
