-- What the soul does with tools: each call with its state, remembered consents, and the definitions that the owner agreed to.

CREATE TABLE tool_call (
    id           TEXT PRIMARY KEY,                 -- TURN/N, N from 0 in the order of the turn's calls
    turn         TEXT NOT NULL,                    -- the turn that asked for it
    conversation TEXT NOT NULL,                    -- where it was asked for
    audience     TEXT NOT NULL,                    -- who may see arguments and result
    person       TEXT NOT NULL,                    -- who asked; empty = nobody
    is_owner     INTEGER NOT NULL DEFAULT 0,       -- 1 = at their own terminal, the home's owner
    tool         TEXT NOT NULL,                    -- the tool's name
    class        TEXT NOT NULL CHECK (class IN ('look', 'read', 'write', 'send')), -- what it may do, by the owner's word
    third        INTEGER NOT NULL DEFAULT 0,       -- 1 = its result is third-party text
    pin          TEXT NOT NULL DEFAULT '',         -- the definition's sha256 then; empty = ours
    args         TEXT NOT NULL,                    -- JSON: the arguments
    args_sha256  TEXT NOT NULL,                    -- of these arguments
    state        TEXT NOT NULL                     -- where it stands
        CHECK (state IN ('waiting', 'approved', 'started', 'refused', 'lapsed', 'withdrawn', 'done', 'failed', 'unknown')), -- one of these
    reason       TEXT NOT NULL DEFAULT '',         -- why it asks, was refused or failed, in one line of ours
    approvers    TEXT NOT NULL DEFAULT '[]',       -- JSON: who may decide it
    allowed_by   TEXT NOT NULL DEFAULT '',         -- who allowed it, or the rule that did
    grant_id     INTEGER NOT NULL DEFAULT 0,       -- the consent under which it ran; 0 = none
    boot         TEXT NOT NULL DEFAULT '',         -- the process that started it
    token        INTEGER NOT NULL DEFAULT 0,       -- the lane's fencing token under which it was started
    attempts     INTEGER NOT NULL DEFAULT 0,       -- how often it was started
    asked_at     TEXT NOT NULL,                    -- when the turn asked for it
    until        TEXT,                             -- when the question lapses; null = it does not wait
    started_at   TEXT,                             -- before the first byte left; null = it has not started
    ended_at     TEXT,                             -- null = it has not ended
    result       TEXT NOT NULL DEFAULT '',         -- as the model is shown it: cut, secrets masked
    told_turn    TEXT NOT NULL DEFAULT ''          -- the later turn that told its end
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_call_open ON tool_call (conversation, state) WHERE state IN ('waiting', 'approved', 'started');
CREATE INDEX tool_call_of_person ON tool_call (person, asked_at);
CREATE INDEX tool_call_of_turn ON tool_call (turn);

CREATE TABLE tool_grant (
    id           INTEGER PRIMARY KEY,              -- its number
    tool         TEXT NOT NULL,                    -- the tool's name
    pin          TEXT NOT NULL DEFAULT '',         -- the definition that it is for
    scope        TEXT NOT NULL CHECK (scope IN ('talk', 'channel', 'always')), -- this talk, this channel, or everywhere
    person       TEXT NOT NULL DEFAULT '',         -- whose talk it is for; empty = everybody there
    conversation TEXT NOT NULL DEFAULT '',         -- empty = everywhere
    granted_by   TEXT NOT NULL,                    -- the person who allowed it
    granted_at   TEXT NOT NULL,                    -- when
    expires_at   TEXT NOT NULL,                    -- when it ends by itself
    revoked_at   TEXT                              -- null = in force until it expires
) STRICT;
CREATE INDEX tool_grant_of_tool ON tool_grant (tool, expires_at);

CREATE TABLE tool_pin (
    server       TEXT NOT NULL,                    -- the server's name in config.toml
    tool         TEXT NOT NULL,                    -- its name at the server
    sha256       TEXT NOT NULL,                    -- of canonical name, description and schema
    description  TEXT NOT NULL,                    -- the server's own, as the owner saw it
    schema       TEXT NOT NULL,                    -- JSON schema of its arguments
    class        TEXT NOT NULL CHECK (class IN ('look', 'read', 'write', 'send')), -- what it may do, by the owner's word
    pinned_by    TEXT NOT NULL,                    -- who agreed to it
    pinned_at    TEXT NOT NULL,                    -- when
    PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;

ALTER TABLE outbox ADD COLUMN card TEXT NOT NULL DEFAULT ''; -- JSON: the question for consent that the part shows; empty = none
CREATE INDEX outbox_cards ON outbox (turn) WHERE card <> '';
