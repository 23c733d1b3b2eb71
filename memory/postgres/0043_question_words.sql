-- What asks is no term in Korean, Japanese, Chinese and Thai, and a short line in three languages is stemmed as theirs.
-- oldest: 42

INSERT INTO moment_new (moment) SELECT id FROM moment ON CONFLICT DO NOTHING; -- indexed with the next one that comes
