-- Old traces are deleted: nothing is folded from them any more. No role keeps a state for its next holder.
-- oldest: 42

DROP TABLE checkpoint_edge;
ALTER TABLE checkpoint DROP COLUMN trace, DROP COLUMN numbers;
ALTER TABLE role DROP COLUMN state;
