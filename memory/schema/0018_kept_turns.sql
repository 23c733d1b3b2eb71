-- A turn's record holds one compressed document. What an older version kept stays in the columns beside it.

ALTER TABLE turn_record ADD COLUMN kept BLOB; -- the turn's lines, thoughts, changes, replies and snapshot, packed; null = kept by an older version, or let go
ALTER TABLE turn_record ADD COLUMN expired_at TEXT; -- when the record was let go; null = it is kept

-- A record of an older version does not hold its turn's lines: later snapshots take them whole.
UPDATE turn SET edits = edits + 1;
