-- Words are found in whatever spelling: marks and full width are folded, pictures and pairs of Korean letters are words.

INSERT INTO moment_index (moment_index) VALUES ('delete-all');
INSERT INTO moment_index (rowid, stems) SELECT id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said;
