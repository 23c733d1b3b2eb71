-- Company: where the soul takes part and how, who was let in by a code, what a person wants of it, whom it came to know.

CREATE TABLE participation (             -- one row a channel where somebody said how the soul is to take part
    place       TEXT PRIMARY KEY,        -- network:workspace:channel
    mode        TEXT NOT NULL CHECK (mode IN ('on', 'off', 'listen')), -- may speak, stays out, hears and stays silent
    set_by      TEXT NOT NULL,           -- the person id of the one who said so
    set_at      TEXT NOT NULL            -- when
) STRICT, WITHOUT ROWID;

CREATE TABLE pairing (                   -- one row a person whom the owner let in by a code
    person      TEXT PRIMARY KEY,        -- who
    name        TEXT NOT NULL,           -- the display name that the code was asked under
    paired_at   TEXT NOT NULL            -- when the owner approved it
) STRICT, WITHOUT ROWID;

CREATE TABLE wish (                      -- one row a person who said whether the soul may speak first
    person      TEXT PRIMARY KEY,        -- who
    proactive   INTEGER NOT NULL,        -- 1 = it may write to them of its own accord
    wished_at   TEXT NOT NULL            -- when
) STRICT, WITHOUT ROWID;
