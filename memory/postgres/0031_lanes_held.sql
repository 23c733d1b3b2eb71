-- The lanes that somebody holds are found without a look at every conversation there ever was.
-- oldest: 25

CREATE INDEX lane_held ON lane (token) WHERE worker IS NOT NULL;
