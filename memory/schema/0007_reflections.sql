-- The second mind: what it believes, what it has learned, and when it looked.

CREATE TABLE belief (                    -- one row a line of counsel
    key         TEXT NOT NULL,           -- its name, lower-case-kebab
    audience    TEXT NOT NULL,           -- in whose cycles it was formed; one key may stand once in each
    peer_id     TEXT,                    -- whom it is about; null = nobody in particular
    value       TEXT NOT NULL,           -- the line
    rationale   TEXT NOT NULL,           -- why
    source_cycle INTEGER NOT NULL,       -- the cycle that formed or last affirmed it
    created_at  TEXT NOT NULL,           -- when it was formed or last affirmed: its clock
    ttl_minutes REAL NOT NULL,           -- how long it lives without being affirmed
    state       TEXT NOT NULL            -- pinned and disputed are the owner's words; they have no clock
                CHECK (state IN ('active', 'pinned', 'disputed')),
    sources     TEXT NOT NULL,           -- JSON: the audiences of everything that was read for it
    evidence    TEXT NOT NULL,           -- JSON: the interactions that its cycles read
    PRIMARY KEY (key, audience)
) STRICT, WITHOUT ROWID;

CREATE TABLE lesson (                    -- one row a belief that kept being affirmed, or may yet be
    key         TEXT NOT NULL,           -- the belief's name
    audience    TEXT NOT NULL,           -- the belief's audience
    peer_id     TEXT,                    -- whom it is about
    value       TEXT NOT NULL,           -- the line, as last affirmed
    first_at    TEXT NOT NULL,           -- when it was first formed
    last_at     TEXT NOT NULL,           -- when it was last affirmed
    affirmed    INTEGER NOT NULL,        -- how often; from three on, over a day or more, it is a lesson
    sources     TEXT NOT NULL,           -- JSON: the audiences of everything that was read for it
    PRIMARY KEY (key, audience)
) STRICT, WITHOUT ROWID;

CREATE TABLE reflection (                -- one row a cycle; the newest are kept
    cycle       INTEGER PRIMARY KEY,     -- its number, ever growing
    at          TEXT NOT NULL,           -- when it began
    trigger     TEXT NOT NULL,           -- what started it
    audience    TEXT NOT NULL,           -- whose interactions it looked at
    outcome     TEXT NOT NULL,           -- done, timeout, parse_error, provider_error, skipped, triaged
    duration_s  REAL NOT NULL,           -- how long it took
    summary     TEXT NOT NULL,           -- what it came to, in the second mind's words
    sources     TEXT NOT NULL,           -- JSON: the audiences of everything that was read
    assessed    TEXT NOT NULL,           -- JSON: the peers that were assessed
    added       TEXT NOT NULL,           -- JSON: keys of new beliefs
    reaffirmed  TEXT NOT NULL,           -- JSON: keys of beliefs that were affirmed or revised
    expired     TEXT NOT NULL,           -- JSON: keys of beliefs that had run out
    directives  TEXT NOT NULL,           -- JSON: inbox keys of the directives it gave
    evidence    TEXT NOT NULL,           -- JSON: the interactions that it read
    alignment   TEXT NOT NULL,           -- its verdict on the soul's own conduct: aligned, drift, or empty
    input_tokens INTEGER NOT NULL,       -- tokens that it asked
    output_tokens INTEGER NOT NULL,      -- tokens of the answer
    cost_usd    REAL                     -- dollars; null = no price is known
) STRICT;

CREATE TABLE tuning (                    -- how a trigger has tuned itself
    trigger     TEXT PRIMARY KEY,        -- timer, interaction_count
    base        REAL NOT NULL,           -- the setting that it started from; another one begins anew
    value       REAL NOT NULL,           -- what is in force
    useful      TEXT NOT NULL,           -- JSON: of its last 20 cycles, which proved useful
    cycles      INTEGER NOT NULL         -- how many cycles it has started
) STRICT, WITHOUT ROWID;
