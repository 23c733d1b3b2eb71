-- A person's own language: how days and hours are written for them.
-- oldest: 25

ALTER TABLE person ADD COLUMN locale text COLLATE "C" NOT NULL DEFAULT ''; -- locale that the network tells, such as de-DE; empty = none
