-- What was heard and what is to be said: every promise that outlives a crash.
-- Instants are UTC text, `2026-01-01T00:00:00.000000Z`, so that they sort as they are. JSON is text.

CREATE TABLE boot (                      -- one row a process start
    n           INTEGER PRIMARY KEY,     -- order of the starts
    boot        TEXT NOT NULL UNIQUE,    -- random id of that process start
    started_at  TEXT NOT NULL,           -- when it opened this file
    clean       INTEGER NOT NULL         -- 1 = it stopped in good order
) STRICT;

CREATE TABLE inbox (                     -- one row a perception that was accepted
    seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- order of acceptance
    key         TEXT NOT NULL UNIQUE,    -- dedupe key; a second delivery of it changes nothing
    conversation TEXT NOT NULL,          -- where it was heard: network:workspace:channel:thread
    position    TEXT NOT NULL,           -- the platform's own order in the conversation, compared as text
    kind        TEXT NOT NULL,           -- message, mention, reaction, tick …
    owes        INTEGER NOT NULL,        -- 1 = exactly one visible reply or apology is owed
    person      TEXT NOT NULL,           -- who was heard; empty for what the soul's own clock says
    payload     TEXT NOT NULL,           -- the whole perception as JSON; its text leaves when it is settled
    heard_at    TEXT NOT NULL,           -- when it was accepted
    state       TEXT NOT NULL DEFAULT 'pending' -- where it stands in its life
                CHECK (state IN ('pending', 'taken', 'thought', 'committed', 'settled', 'dead')),
    boot        TEXT,                    -- the process start that took it last
    boots       INTEGER NOT NULL DEFAULT 0, -- how many process starts have taken it
    attempts    INTEGER NOT NULL DEFAULT 0, -- how often it was taken
    taken_at    TEXT,                    -- when it was taken last
    not_before  TEXT,                    -- not to be taken before this instant
    inputs      TEXT NOT NULL DEFAULT '{}', -- JSON: instant and nonce of the unfinished run, used again by the next
    reason      TEXT,                    -- why it was postponed, withdrawn or given up
    turn        TEXT NOT NULL,           -- the turn that answers it
    settled_at  TEXT                     -- when nothing was left to do
) STRICT;
CREATE INDEX inbox_unfinished ON inbox (conversation, position, seq) WHERE state IN ('pending', 'taken', 'thought');
CREATE INDEX inbox_open ON inbox (state, conversation, seq) WHERE state IN ('pending', 'taken', 'thought', 'committed', 'dead');
CREATE INDEX inbox_turn ON inbox (turn);
CREATE INDEX inbox_settled ON inbox (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE step (                      -- one row a finished model call
    turn        TEXT NOT NULL,           -- the turn that asked
    n           INTEGER NOT NULL,        -- which call of the turn, from 0
    at          TEXT NOT NULL,           -- when its turn began
    conversation TEXT NOT NULL,          -- where
    person      TEXT NOT NULL,           -- for whom
    purpose     TEXT NOT NULL,           -- turn, repair, or the job's name
    request_sha256 TEXT NOT NULL,        -- hash of what was asked
    response    TEXT NOT NULL,           -- the reply, whole
    stop_reason TEXT NOT NULL,           -- end, max_tokens, refusal
    provider    TEXT NOT NULL,           -- who answered
    model       TEXT NOT NULL,           -- with which model
    input_tokens INTEGER NOT NULL,       -- tokens read, without those of the cache
    cache_read_tokens INTEGER NOT NULL,  -- tokens read from the provider's cache
    cache_write_tokens INTEGER NOT NULL, -- tokens written to it
    output_tokens INTEGER NOT NULL,      -- tokens of the reply
    cost_usd    REAL,                    -- dollars; null = no price is known
    estimated   INTEGER NOT NULL,        -- 1 = counted as characters / 4, the provider said nothing
    ms          INTEGER NOT NULL,        -- wall time of the call in milliseconds
    PRIMARY KEY (turn, n)
) STRICT;
CREATE INDEX step_at ON step (at, cost_usd);

CREATE TABLE outbox (                    -- one row a part of what is said aloud
    seq         INTEGER PRIMARY KEY,     -- order of saying
    key         TEXT NOT NULL UNIQUE,    -- idempotency key: uuid5 of turn and part
    turn        TEXT NOT NULL,           -- the turn that says it
    part        INTEGER NOT NULL,        -- which part, from 0
    parts       INTEGER NOT NULL,        -- how many there are
    conversation TEXT NOT NULL,          -- where it is said; never changes
    kind        TEXT NOT NULL,           -- reply, apology, reaction, proactive, daimon
    body        TEXT NOT NULL,           -- the words; empty while a stream is open
    verb        TEXT NOT NULL,           -- said, explained, quipped …
    apology     TEXT,                    -- the kind of apology, else null
    answers     TEXT NOT NULL,           -- JSON: the keys of the perceptions that it answers
    state       TEXT NOT NULL            -- where it stands in its life
                CHECK (state IN ('pending', 'taken', 'unknown_after_send', 'sent', 'dead')),
    boot        TEXT,                    -- the process start that took it last
    attempts    INTEGER NOT NULL,        -- how often it was tried
    not_before  TEXT,                    -- not to be tried before this instant
    receipt     TEXT,                    -- the platform's id of what became visible
    stream_ref  TEXT,                    -- the platform's id of a message that is still growing
    reason      TEXT,                    -- why it waits or was given up
    at          TEXT NOT NULL,           -- when it was decided
    sent_at     TEXT                     -- when it was known to be visible
) STRICT;
CREATE UNIQUE INDEX outbox_turn ON outbox (turn, part);
CREATE INDEX outbox_open ON outbox (conversation, seq) WHERE state IN ('pending', 'taken', 'unknown_after_send');
CREATE INDEX outbox_dead ON outbox (state) WHERE state = 'dead';

CREATE TABLE heard (                     -- how far each channel was heard without a gap
    adapter     TEXT NOT NULL,           -- the network
    channel     TEXT NOT NULL,           -- workspace:channel
    position    TEXT NOT NULL,           -- high-water mark in the platform's own order
    swept_at    TEXT,                    -- when its history was last swept
    PRIMARY KEY (adapter, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE due (                       -- what the clock will say
    id          INTEGER PRIMARY KEY,     -- as `claudius schedule` names it
    kind        TEXT NOT NULL,           -- the job, or `schedule`
    scheduled_for TEXT NOT NULL,         -- the instant
    zone        TEXT,                    -- IANA zone of a local time, else null
    conversation TEXT,                   -- where it will be heard
    key         TEXT,                    -- the maker's own name for it
    process     TEXT,                    -- the mental process that it borrows
    params      TEXT NOT NULL,           -- JSON: that process's parameters
    fired_turn  TEXT,                    -- the turn that it became
    UNIQUE (kind, scheduled_for),
    UNIQUE (conversation, key)
) STRICT;
CREATE INDEX due_next ON due (scheduled_for) WHERE fired_turn IS NULL;
