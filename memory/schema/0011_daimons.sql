-- Who whispers to the soul, what was whispered, and what became of it.

CREATE TABLE whisper (                   -- one row a line of counsel
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- order of coming
    daimon      TEXT NOT NULL,           -- who whispered
    text        TEXT NOT NULL,           -- the line, sanitised
    influence   TEXT NOT NULL,           -- subtle, strong, or empty; changes nothing
    transport   TEXT NOT NULL            -- how it came
                CHECK (transport IN ('http', 'model', 'offer', 'manual')),
    sources     TEXT NOT NULL,           -- JSON: the audiences of what was sent out for it
    conversation TEXT NOT NULL,          -- the one whose context was sent; for `why` only
    at          TEXT NOT NULL,           -- when it came
    expires_at  TEXT NOT NULL,           -- when it fades, unused
    state       TEXT NOT NULL DEFAULT 'active' -- where it stands in its life
                CHECK (state IN ('active', 'used', 'replaced', 'expired', 'erased')),
    used_turn   TEXT                     -- the turn whose prompt held it
) STRICT;
CREATE UNIQUE INDEX whisper_active ON whisper (daimon, sources) WHERE state = 'active';
CREATE INDEX whisper_of_daimon ON whisper (daimon, at);
CREATE INDEX whisper_turn ON whisper (used_turn) WHERE used_turn IS NOT NULL;

CREATE TABLE daimon (                    -- how asking each daimon has gone
    daimon      TEXT PRIMARY KEY,        -- its name
    asked_at    TEXT,                    -- when it was last asked; null = never
    failures    INTEGER NOT NULL DEFAULT 0, -- askings over HTTP that failed in a row
    rests_until TEXT,                    -- not asked over HTTP before this instant
    reason      TEXT NOT NULL DEFAULT '', -- why it rests
    mode        TEXT                     -- by the owner's hand, over the settings; null = as they say
                CHECK (mode IN ('whisper', 'speak', 'both', 'off'))
) STRICT, WITHOUT ROWID;

CREATE TABLE daimon_mode (               -- one conversation's own mode of a daimon, by the owner's word in it
    conversation TEXT NOT NULL,          -- where
    daimon      TEXT NOT NULL,           -- whose
    mode        TEXT NOT NULL CHECK (mode IN ('whisper', 'speak', 'both', 'off')), -- in force there until changed
    PRIMARY KEY (conversation, daimon)
) STRICT, WITHOUT ROWID;
