-- What people do with a message after they sent it: they change it, take it down, have its answer stopped, judge an answer.

ALTER TABLE inbox ADD COLUMN edited TEXT;                     -- position of the newest change of it that is in force
ALTER TABLE inbox ADD COLUMN again INTEGER NOT NULL DEFAULT 0; -- how often its turn was cancelled for a change of it
ALTER TABLE inbox ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0; -- 1 = its speaker, or an owner, wants no answer any more

ALTER TABLE revision ADD COLUMN doubted_at TEXT;              -- when a message that it was learned from was changed or taken down
ALTER TABLE summary ADD COLUMN doubted_at TEXT;               -- when a message that it tells of was changed or taken down
CREATE INDEX revision_turn ON revision (turn);
CREATE INDEX outbox_receipt ON outbox (receipt) WHERE receipt IS NOT NULL;

CREATE TABLE reaction (                  -- what people make of what was said: one row a person, a turn and an emoji
    turn        TEXT NOT NULL,           -- the turn that it judges
    person      TEXT NOT NULL,           -- who
    emoji       TEXT NOT NULL,           -- the sign, or its name on the network
    at          TEXT NOT NULL,           -- when it was put there, or taken away
    position    TEXT NOT NULL,           -- the network's order of those
    is_on       INTEGER NOT NULL,        -- 0 = it was taken away again
    PRIMARY KEY (turn, person, emoji)
) STRICT, WITHOUT ROWID;
