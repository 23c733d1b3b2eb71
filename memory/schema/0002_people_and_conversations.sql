-- Who there is, who can see what, and what was said in each conversation.

CREATE TABLE person (                    -- one row a human or bot
    person      TEXT PRIMARY KEY,        -- stable platform id: network:workspace:user
    name        TEXT NOT NULL,           -- the display name last seen; never an identity
    is_bot      INTEGER NOT NULL,        -- 1 = a peer of the ledger, without a user model
    first_at    TEXT NOT NULL,           -- first heard
    last_at     TEXT NOT NULL            -- last heard under another name or for the first time
) STRICT, WITHOUT ROWID;
CREATE INDEX person_name ON person (name);

CREATE TABLE person_link (               -- ids that are one person
    person      TEXT PRIMARY KEY,        -- the other id
    canonical   TEXT NOT NULL            -- the id that stands for all of them
) STRICT, WITHOUT ROWID;
CREATE INDEX person_link_canonical ON person_link (canonical);

CREATE TABLE audience (                  -- a shared audience whose members are known
    audience    TEXT PRIMARY KEY,        -- its label: shared:network:workspace:channel
    revision    INTEGER NOT NULL,        -- grows with each change of its members
    known_at    TEXT                     -- when its members were last learned
) STRICT, WITHOUT ROWID;

CREATE TABLE audience_member (           -- who can see a shared audience now
    audience    TEXT NOT NULL REFERENCES audience (audience) ON DELETE CASCADE, -- its label
    person      TEXT NOT NULL,           -- one who can see it
    PRIMARY KEY (audience, person)
) STRICT, WITHOUT ROWID;
CREATE INDEX audience_member_person ON audience_member (person, audience);

CREATE TABLE conversation (              -- one row a place where the soul talks
    conversation TEXT PRIMARY KEY,       -- network:workspace:channel:thread
    audience    TEXT NOT NULL,           -- who could see its last turn
    version     INTEGER NOT NULL,        -- optimistic lock: a turn is refused if it moved
    turns       INTEGER NOT NULL,        -- committed turns, ever
    entries     INTEGER NOT NULL,        -- entries kept now
    process     TEXT NOT NULL,           -- the mental process that is at home here
    previous_process TEXT,               -- the last different one
    params      TEXT NOT NULL,           -- JSON: the process's parameters
    process_memory TEXT NOT NULL,        -- JSON: what the process keeps between turns
    invocation_count INTEGER NOT NULL,   -- turns that the process has run here since it was entered
    entered_at  TEXT,                    -- when it was entered
    history_from INTEGER NOT NULL,       -- number of the first turn that the prompt still renders
    first_at    TEXT NOT NULL,           -- first turn
    last_at     TEXT NOT NULL            -- latest turn
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation_person (       -- who has spoken where
    conversation TEXT NOT NULL REFERENCES conversation (conversation) ON DELETE CASCADE, -- the place
    person      TEXT NOT NULL,           -- the speaker
    turns       INTEGER NOT NULL,        -- their committed turns there, ever
    PRIMARY KEY (conversation, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary (                   -- what a conversation's working memory held before it was folded away
    conversation TEXT PRIMARY KEY REFERENCES conversation (conversation) ON DELETE CASCADE, -- the place
    text        TEXT NOT NULL,           -- the summary
    sources     TEXT NOT NULL,           -- JSON: the audiences of everything that was folded in
    upto        INTEGER NOT NULL,        -- number of the last turn that is folded in
    nonce       TEXT NOT NULL,           -- the nonce it is fenced with
    at          TEXT NOT NULL            -- when it was written
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (                      -- one row a committed turn; narrow, because every recall reads some
    conversation TEXT NOT NULL REFERENCES conversation (conversation) ON DELETE CASCADE, -- where
    number      INTEGER NOT NULL,        -- its place in the conversation, from 1, without gaps
    turn        TEXT NOT NULL UNIQUE,    -- its id: base32(sha256(inbox key)), 16 characters
    at          TEXT NOT NULL,           -- when it was thought
    audience    TEXT NOT NULL,           -- who could see it: the label of all that was learned in it
    person      TEXT NOT NULL,           -- whom it answered
    nonce       TEXT NOT NULL,           -- the nonce that its data was fenced with
    process     TEXT NOT NULL,           -- the mental process that ran
    shown       TEXT NOT NULL,           -- JSON: the user models that stood in its prompt, by version
    record      INTEGER NOT NULL,        -- its row in turn_record
    edits       INTEGER NOT NULL DEFAULT 0, -- grows with each change of its entries or of what it showed
    PRIMARY KEY (conversation, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_at ON turn (at);

CREATE TABLE turn_record (               -- why a turn came out as it did: for `why` and `replay`
    id          INTEGER PRIMARY KEY,     -- as turn.record names it
    rung        TEXT NOT NULL,           -- how the words were won: complete, plain, repair, cut, fixed, silent, apology
    verb        TEXT NOT NULL,           -- said, explained, quipped …
    flags       TEXT NOT NULL,           -- JSON: what the parser and the gate noticed
    steps       TEXT NOT NULL,           -- JSON: the cognitive steps that were asked
    attention   TEXT NOT NULL,           -- JSON: what the psyche made of it
    changes     TEXT NOT NULL,           -- JSON: what changed and what was refused
    thoughts    TEXT NOT NULL,           -- JSON: the sections of the reply
    prompt_sha256 TEXT NOT NULL,         -- hash of the first prompt
    snapshot    BLOB NOT NULL            -- what `replay` rebuilds the prompt from
) STRICT;

CREATE TABLE entry (                     -- one row a line of working memory
    conversation TEXT NOT NULL,          -- where
    number      INTEGER NOT NULL,        -- of which turn
    n           INTEGER NOT NULL,        -- order in the turn, from 0
    entry_type  TEXT NOT NULL,           -- userMessage, internalMonologue, externalDialog, mentalQuery …
    content     TEXT NOT NULL,           -- the words
    at          TEXT NOT NULL,           -- when
    verb        TEXT,                    -- how: said, pondered …; null for what others said
    person      TEXT,                    -- whose words; null = the soul's own
    name        TEXT,                    -- the display name that they came under
    metadata    TEXT,                    -- JSON of small facts that gates read; null = none
    position    TEXT NOT NULL,           -- of a message: the network's own order
    audience    TEXT NOT NULL,           -- the audience label of its turn
    unsaid      INTEGER NOT NULL DEFAULT 0, -- 1 = words that could never be delivered: nobody heard them
    PRIMARY KEY (conversation, number, n),
    FOREIGN KEY (conversation, number) REFERENCES turn (conversation, number) ON DELETE CASCADE
) STRICT;

CREATE TABLE blob (                      -- content that several turns' snapshots refer to
    sha256      TEXT PRIMARY KEY,        -- its hash
    content     BLOB NOT NULL            -- the bytes
) STRICT;
