-- What the soul has learned of people, and of itself. Every version is kept; git gets them from here.

CREATE TABLE revision (                  -- one row a change that git is to hold as one commit
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- order of the changes
    document    TEXT NOT NULL CHECK (document IN ('user_model', 'soul_state')), -- what changed
    at          TEXT NOT NULL,           -- when
    author      TEXT NOT NULL,           -- turn, owner, revert
    note        TEXT NOT NULL,           -- why: the change note, the message of the commit
    turn        TEXT,                    -- the turn that made it; null = the owner's hand
    git_commit  TEXT                     -- the commit that holds it; null = not yet in git
) STRICT;
CREATE INDEX revision_unarchived ON revision (id) WHERE git_commit IS NULL;

CREATE TABLE user_model (                -- every version of every portrait
    person      TEXT NOT NULL,           -- whose
    audience    TEXT NOT NULL,           -- learned from whom: the label that limits where it may be shown
    version     INTEGER NOT NULL,        -- from 1
    markdown    TEXT NOT NULL,           -- the portrait
    suspect     INTEGER NOT NULL,        -- 1 = it holds instruction-like text
    newest      INTEGER NOT NULL,        -- 1 = the version in force
    revision    INTEGER NOT NULL REFERENCES revision (id), -- when, why and by whom
    PRIMARY KEY (person, audience, version)
) STRICT;
CREATE UNIQUE INDEX user_model_newest ON user_model (person, audience) WHERE newest = 1;
CREATE INDEX user_model_revision ON user_model (revision);

CREATE TABLE soul_state (                -- every value of the soul's own keys
    id          INTEGER PRIMARY KEY,     -- order of the changes
    key         TEXT NOT NULL,           -- emotionalState, currentTopic …
    audience    TEXT NOT NULL,           -- learned from whom; `self` = from no one
    value       TEXT NOT NULL,           -- empty = the key's default
    updated_at  TEXT NOT NULL,           -- when
    newest      INTEGER NOT NULL,        -- 1 = the value in force for this key and audience
    revision    INTEGER NOT NULL REFERENCES revision (id) -- when, why and by whom
) STRICT;
CREATE UNIQUE INDEX soul_state_newest ON soul_state (audience, key) WHERE newest = 1;
CREATE INDEX soul_state_latest ON soul_state (key, id) WHERE newest = 1;
CREATE INDEX soul_state_revision ON soul_state (revision);

CREATE TABLE archive_file (              -- where git holds which document
    path        TEXT PRIMARY KEY,        -- below the memory directory
    person      TEXT NOT NULL,           -- whose portrait; empty = the soul state
    audience    TEXT NOT NULL,           -- of which audience
    sha256      TEXT NOT NULL,           -- of the bytes that we wrote last
    UNIQUE (person, audience)
) STRICT, WITHOUT ROWID;
