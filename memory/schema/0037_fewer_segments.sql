-- A search looks for each of its words in every segment of the index: four of a size are made one, not sixteen.

INSERT INTO moment_index (moment_index, rank) VALUES ('crisismerge', 4);
