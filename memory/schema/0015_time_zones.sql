-- A person's own time: when it is night for them, and what hour they mean.

ALTER TABLE person ADD COLUMN zone TEXT NOT NULL DEFAULT ''; -- IANA name of the time zone that the network tells; empty = none
