-- The ledger: whom the soul deals with, what passed between them, and what it came to think of them.

CREATE TABLE peer (                      -- one row a person or bot that was dealt with; its counters are kept on write
    peer_id     TEXT PRIMARY KEY,        -- stable platform id, the canonical one of linked ids
    name        TEXT NOT NULL,           -- the display name last seen; never an identity
    is_bot      INTEGER NOT NULL,        -- 1 = a bot
    first_at    TEXT NOT NULL,           -- first interaction, either way
    last_at     TEXT NOT NULL,           -- latest interaction, either way
    first_in_at TEXT,                    -- first message of theirs; null = none yet
    last_in_at  TEXT,                    -- latest message of theirs
    messages    INTEGER NOT NULL,        -- messages of theirs, ever
    bursts      INTEGER NOT NULL,        -- runs of messages with less than 120 s between two
    active_days INTEGER NOT NULL,        -- UTC days on which they wrote
    last_day    TEXT,                    -- the latest of those days
    assessments INTEGER NOT NULL,        -- how often they were assessed
    directed_at TEXT                     -- when the second mind last gave a directive about them
) STRICT, WITHOUT ROWID;
CREATE INDEX peer_last ON peer (last_at);

CREATE TABLE interaction (               -- one row a message of a peer, or of ours to them
    id          INTEGER PRIMARY KEY,     -- order of keeping
    peer_id     TEXT NOT NULL,           -- with whom
    at          TEXT NOT NULL,           -- when
    direction   TEXT NOT NULL CHECK (direction IN ('in', 'out')), -- theirs, or ours
    channel_type TEXT NOT NULL,          -- dm, channel, thread, terminal
    conversation TEXT NOT NULL,          -- where: network:workspace:channel:thread
    audience    TEXT NOT NULL,           -- who could see it: the label that limits where it may be read
    turn        TEXT NOT NULL,           -- the turn it belongs to
    scope       INTEGER NOT NULL,        -- how much was asked: words, requests, risk, attachments
    preview     TEXT NOT NULL,           -- one line of what was said, 120 characters at most; never a private thought
    reaction    INTEGER NOT NULL DEFAULT 0, -- what became of our post: -1, 0, 1
    cycle       INTEGER,                 -- the reflection that took it up; null = it waits for one
    UNIQUE (turn, peer_id, direction)
) STRICT;
CREATE INDEX interaction_peer ON interaction (peer_id, audience, id);
CREATE INDEX interaction_inbound ON interaction (peer_id, id) WHERE direction = 'in';
CREATE INDEX interaction_waiting ON interaction (audience, peer_id, id) WHERE cycle IS NULL;

CREATE TABLE assessment (                -- one row a judgement; never updated
    id          INTEGER PRIMARY KEY,     -- order of judging
    peer_id     TEXT NOT NULL REFERENCES peer (peer_id), -- of whom
    info_score  INTEGER NOT NULL,        -- how much was known then, 0 to 10; counted, never judged
    trust       INTEGER NOT NULL CHECK (trust BETWEEN -10 AND 10), -- the verdict
    rationale   TEXT NOT NULL CHECK (rationale <> ''), -- why
    created_at  TEXT NOT NULL,           -- when
    author      TEXT NOT NULL CHECK (author IN ('cortex', 'inline')), -- the second mind, or a step of a turn
    sources     TEXT NOT NULL            -- JSON: the audiences of everything that was read for it
) STRICT;
CREATE INDEX assessment_peer ON assessment (peer_id, id);

CREATE TABLE promise (                   -- something said to be done by a time
    id          INTEGER PRIMARY KEY,     -- order of promising
    peer_id     TEXT NOT NULL,           -- whose, or to whom
    side        TEXT NOT NULL CHECK (side IN ('theirs', 'mine')), -- who promised
    what        TEXT NOT NULL,           -- one line of how it was said
    stems       TEXT NOT NULL,           -- JSON: what it is about, as word stems; a message that shares one keeps it
    made_at     TEXT NOT NULL,           -- when it was said
    due_at      TEXT NOT NULL,           -- by when
    grace_s     REAL NOT NULL,           -- seconds after that until it counts as broken
    state       TEXT NOT NULL            -- where it stands
                CHECK (state IN ('open', 'kept', 'overdue', 'dropped')),
    turn        TEXT NOT NULL,           -- the turn in which it was said
    conversation TEXT NOT NULL,          -- where
    audience    TEXT NOT NULL,           -- who could see it
    UNIQUE (turn, side, what)
) STRICT;
CREATE INDEX promise_open ON promise (peer_id, side, due_at) WHERE state IN ('open', 'overdue');
CREATE INDEX promise_due ON promise (due_at) WHERE state = 'open' AND side = 'theirs';
