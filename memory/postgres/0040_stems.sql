-- Words are found in whatever spelling: marks and full width are folded, pictures and pairs of Korean letters are words.
-- oldest: 39

INSERT INTO moment_new (moment) SELECT id FROM moment ON CONFLICT DO NOTHING; -- indexed with the next one that comes
