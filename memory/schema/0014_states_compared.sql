-- What is unfinished, said by comparisons: for a list of three or more, SQLite builds a table in each row that is
-- written, twice an index. Queries say it in the same words, else these indexes are not theirs.

DROP INDEX inbox_unfinished;
DROP INDEX inbox_open;
DROP INDEX outbox_open;
CREATE INDEX inbox_unfinished ON inbox (conversation, position, seq) WHERE (state = 'pending' OR state = 'taken' OR state = 'thought');
CREATE INDEX inbox_open ON inbox (state, conversation, seq) WHERE state <> 'settled';
CREATE INDEX outbox_open ON outbox (conversation, seq) WHERE (state = 'pending' OR state = 'taken' OR state = 'unknown_after_send');
