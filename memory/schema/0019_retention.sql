-- What is kept for a time: `memory.records_days`. What the numbers stood at before the oldest trace stays for good.

ALTER TABLE psyche_trace ADD COLUMN moved BLOB; -- inputs, after, edges and arcs, packed; null = kept by an older version, in the columns

CREATE TABLE checkpoint (                -- one row: up to where records and traces were let go
    id          INTEGER PRIMARY KEY CHECK (id = 1), -- there is one
    records_at  TEXT NOT NULL DEFAULT '',-- the instant of the newest turn whose record was let go; empty = none was
    trace       INTEGER NOT NULL DEFAULT 0, -- the newest trace that was let go; 0 = none was
    numbers     TEXT                     -- JSON: the soul's numbers after that trace; null = none was
) STRICT;

CREATE TABLE checkpoint_edge (           -- one row a person: what they were to the soul after that trace
    person      TEXT PRIMARY KEY,        -- whom it is towards
    edge        TEXT NOT NULL            -- JSON: warmth, trust, tension and the rest, without the name
) STRICT, WITHOUT ROWID;
