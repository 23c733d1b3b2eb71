-- What mental processes keep: plans with their words, messages that a turn left to the next, what subprocesses remember.

ALTER TABLE inbox ADD COLUMN held INTEGER NOT NULL DEFAULT 0; -- how often its turn gave way to a newer perception

ALTER TABLE conversation ADD COLUMN participation TEXT;       -- how it is heard, where its process says so; else null
ALTER TABLE conversation ADD COLUMN closed_at TEXT;           -- when the soul ended it; null = nobody did, or it was addressed since

ALTER TABLE due ADD COLUMN text TEXT NOT NULL DEFAULT '';     -- what the soul will notice then
ALTER TABLE due ADD COLUMN audience TEXT NOT NULL DEFAULT ''; -- who could see what it was planned from
ALTER TABLE due ADD COLUMN person TEXT NOT NULL DEFAULT '';   -- who hears what is said then
ALTER TABLE due ADD COLUMN asked_by TEXT NOT NULL DEFAULT ''; -- who asked for it; empty = the soul's own plan
ALTER TABLE due ADD COLUMN lapsed_at TEXT;                    -- when it was found to be too late; null = it was not
CREATE INDEX due_of_conversation ON due (conversation, scheduled_for) WHERE fired_turn IS NULL;

CREATE TABLE kept (                      -- what a subprocess keeps of a conversation, whatever process runs there
    conversation TEXT NOT NULL REFERENCES conversation (conversation) ON DELETE CASCADE, -- where
    name        TEXT NOT NULL,           -- the subprocess
    value       TEXT NOT NULL,           -- JSON
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;
