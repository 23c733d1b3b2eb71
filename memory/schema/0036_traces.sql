-- Old traces are deleted: nothing is folded from them any more.

DROP TABLE checkpoint_edge;
ALTER TABLE checkpoint DROP COLUMN trace;
ALTER TABLE checkpoint DROP COLUMN numbers;
