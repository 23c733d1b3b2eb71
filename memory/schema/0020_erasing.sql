-- What an erasure has still to do; a crash in the middle of it leaves the rest here.

CREATE TABLE erasing (                   -- turns of a person who is being erased just now; empty at all other times
    turn        TEXT PRIMARY KEY,        -- the turn
    conversation TEXT NOT NULL,          -- where it was
    number      INTEGER NOT NULL,        -- its place there
    record      INTEGER NOT NULL         -- its row in turn_record
) STRICT, WITHOUT ROWID;
