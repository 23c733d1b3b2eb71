-- The index forgets the words of replies that were blanked before it was told of them first.

INSERT INTO moment_index (moment_index) VALUES ('delete-all');
INSERT INTO moment_index (rowid, stems) SELECT id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said;
