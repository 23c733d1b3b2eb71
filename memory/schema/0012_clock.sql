-- When each of the soul's own jobs is due next, and how it went.

CREATE TABLE job (                       -- one row a job of the clock
    job         TEXT PRIMARY KEY,        -- its name
    next_due    TEXT NOT NULL,           -- when it rings next
    started_at  TEXT,                    -- when its work began last
    ended_at    TEXT,                    -- when that ended
    outcome     TEXT NOT NULL DEFAULT '', -- what came of it, in a few words
    failures    INTEGER NOT NULL DEFAULT 0 -- how often in a row it failed
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_proactive ON outbox (at) WHERE kind = 'proactive'; -- what the soul said first: its caps are counted here
