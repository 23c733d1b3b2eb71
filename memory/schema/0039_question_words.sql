-- What asks is no term in Korean, Japanese, Chinese and Thai, and a short line in three languages is stemmed as theirs.

INSERT INTO moment_index (moment_index) VALUES ('delete-all');
INSERT INTO moment_index (rowid, stems) SELECT id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said;
