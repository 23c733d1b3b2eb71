-- The numbers below language: mood, drives, energy, what people are to the soul, what it lived and what it means to do.
-- Seconds are since 1970, UTC, so that time is a difference. Numbers and band words are the soul's own; what holds
-- people's words carries the audiences it was learned in.

CREATE TABLE psyche_state (              -- one row: the soul's own numbers
    id          INTEGER PRIMARY KEY CHECK (id = 1), -- there is one soul
    version     INTEGER NOT NULL,        -- grows with every change
    numbers     TEXT NOT NULL,           -- JSON: energy, valence, arousal, five drives, their bands, the instant
    drift       TEXT NOT NULL DEFAULT '{}', -- JSON: how far traits have slowly moved from the compiled ones, since when
    kernel      TEXT NOT NULL            -- the traits it was worked out with, as in psyche_kernel
) STRICT;

CREATE TABLE psyche_edge (               -- one row a person: what they are to the soul
    person      TEXT PRIMARY KEY,        -- the id that stands for all their ids
    edge        TEXT NOT NULL,           -- JSON: warmth, trust, tension, comfort, familiarity, volatility, the instant
    last_at     TEXT NOT NULL            -- when it moved last
) STRICT, WITHOUT ROWID;

CREATE TABLE psyche_arc (                -- one row a subject that keeps coming back; twelve at most
    arc         TEXT PRIMARY KEY,        -- the turn that it was born in
    body        TEXT NOT NULL            -- JSON: label, stems, intensity, bias, sources, whose words
) STRICT, WITHOUT ROWID;

CREATE TABLE psyche_intention (          -- one row a thing that the soul means to do; twelve at most
    intention   TEXT PRIMARY KEY,        -- the turn it was made in, and which of that turn
    body        TEXT NOT NULL            -- JSON: type, target, horizon, words, priority, sources
) STRICT, WITHOUT ROWID;

CREATE TABLE psyche_fact (               -- one row a thing that a person said of themself
    id          INTEGER PRIMARY KEY,     -- order of saying
    person      TEXT NOT NULL,           -- who said it
    key         TEXT NOT NULL,           -- name, lives in, loves …
    value       TEXT NOT NULL,           -- in their words
    sources     TEXT NOT NULL,           -- JSON: the audiences it was said in
    turn        TEXT NOT NULL,           -- where
    stated_s    REAL NOT NULL,           -- when, seconds
    is_single   INTEGER NOT NULL,        -- 1 = a newer value takes its place
    newest      INTEGER NOT NULL         -- 1 = in force
) STRICT;
CREATE INDEX psyche_fact_newest ON psyche_fact (person, key) WHERE newest = 1;

CREATE TABLE psyche_episode (            -- one row a moment worth keeping
    id          INTEGER PRIMARY KEY,     -- order of living
    turn        TEXT NOT NULL,           -- where
    at_s        REAL NOT NULL,           -- when, seconds
    person      TEXT NOT NULL,           -- whose words, or whom the soul answered
    name        TEXT NOT NULL,           -- the display name then
    conversation TEXT NOT NULL,          -- the place
    text        TEXT NOT NULL,           -- what was said, its first 240 characters
    previous    TEXT NOT NULL,           -- what was said before it
    stems       TEXT NOT NULL,           -- its content stems, between spaces
    previous_stems TEXT NOT NULL,        -- those of what was said before it
    importance  REAL NOT NULL,           -- in [0, 1]; grows a little when it is recalled
    sources     TEXT NOT NULL,           -- JSON: the audiences it was learned in
    is_own      INTEGER NOT NULL         -- 1 = the soul's own words
) STRICT;
CREATE INDEX psyche_episode_turn ON psyche_episode (turn);
CREATE INDEX psyche_episode_person ON psyche_episode (person);

CREATE VIRTUAL TABLE psyche_episode_index USING fts5 ( -- which episode holds which stem
    stems, content = 'psyche_episode', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0', detail = 'none'
);
CREATE VIRTUAL TABLE psyche_episode_stem USING fts5vocab (psyche_episode_index, 'row'); -- how many hold it
CREATE TRIGGER psyche_episode_kept AFTER INSERT ON psyche_episode BEGIN
    INSERT INTO psyche_episode_index (rowid, stems) VALUES (new.id, new.stems);
END;
CREATE TRIGGER psyche_episode_gone AFTER DELETE ON psyche_episode BEGIN
    INSERT INTO psyche_episode_index (psyche_episode_index, rowid, stems) VALUES ('delete', old.id, old.stems);
END;

CREATE TABLE psyche_trace (              -- one row a perception that moved the numbers; holds no words
    id          INTEGER PRIMARY KEY,     -- order of folding
    turn        TEXT NOT NULL UNIQUE,    -- which turn
    at          TEXT NOT NULL,           -- when
    person      TEXT NOT NULL,           -- who was heard; empty = nobody
    kernel      TEXT NOT NULL,           -- the traits it was folded with, as in psyche_kernel
    inputs      TEXT NOT NULL,           -- JSON: axes, features, meaning, mappings
    after       TEXT NOT NULL,           -- JSON: the soul's numbers after it; before it = after the row before
    edges       TEXT NOT NULL,           -- JSON: the edges that moved, as they stand after it
    arcs        TEXT                     -- JSON: every subject after it, by its id; null = as they were
) STRICT;
CREATE INDEX psyche_trace_at ON psyche_trace (at);
CREATE INDEX psyche_trace_person ON psyche_trace (person);

CREATE TABLE psyche_kernel (             -- one row a set of traits that was ever in force
    kernel      TEXT PRIMARY KEY,        -- its hash
    traits      TEXT NOT NULL,           -- JSON: eleven numbers
    first_at    TEXT NOT NULL            -- when it came into force
) STRICT, WITHOUT ROWID;
