-- What was erased from the tables stays in the server's files until these are rewritten, in a quiet hour.
-- oldest: 25

ALTER TABLE release ADD COLUMN overwriting text COLLATE "C" NOT NULL DEFAULT ''; -- names the last erasure that was not overwritten yet; empty = none
