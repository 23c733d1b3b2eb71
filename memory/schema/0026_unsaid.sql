-- What an edit or a deletion has still to undo, and how often git had to be written anew.

CREATE TABLE unsaid (                    -- one row a change of a message that was answered, until what came from its old words is gone
    n           INTEGER PRIMARY KEY AUTOINCREMENT, -- order of the changes
    person      TEXT NOT NULL,           -- whose message it is
    change      TEXT NOT NULL            -- JSON: where the message stands, its words before and after
) STRICT;

ALTER TABLE checkpoint ADD COLUMN history INTEGER NOT NULL DEFAULT 0; -- how often something went that git may hold
