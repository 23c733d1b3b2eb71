-- A person's own language: how days and hours are written for them.

ALTER TABLE person ADD COLUMN locale TEXT NOT NULL DEFAULT ''; -- locale that the network tells, such as de-DE; empty = none
