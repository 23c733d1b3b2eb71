-- A word is looked for in every segment of the index, of 4,000 moments in five and not nine; a name among names alone.
INSERT INTO moment_index (moment_index, rank) VALUES ('crisismerge', 2);
CREATE INDEX fact_name ON fact (person) WHERE kind = 'name' AND about = '' AND ended_at IS NULL AND hidden_at IS NULL;
