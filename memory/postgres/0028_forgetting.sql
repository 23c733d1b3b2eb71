-- Who erases a person, so that others finish what a process began and left; which home a process has.
-- oldest: 25

ALTER TABLE letting_go ADD COLUMN worker text COLLATE "C"; -- who erases them; empty = it failed, null = a release that does not say
ALTER TABLE letting_go ADD COLUMN aliases text COLLATE "C" NOT NULL DEFAULT '{}'; -- what stands for each id in the audit log, as JSON
ALTER TABLE worker ADD COLUMN home text COLLATE "C" NOT NULL DEFAULT ''; -- the path of its home; empty = it has none, or its release does not say
