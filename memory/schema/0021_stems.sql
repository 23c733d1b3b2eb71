-- What a message is about is worked out once, when it is heard, and lies beside its words as long as they do.

ALTER TABLE entry ADD COLUMN stems TEXT NOT NULL DEFAULT ''; -- of a message: its content stems, between spaces; empty = they are read off its words
