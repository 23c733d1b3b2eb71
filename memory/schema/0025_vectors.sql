-- What the optional extra `recall` knows of the meaning of moments. Empty without it.

CREATE TABLE moment_vector (             -- one row a message of a person that an embedder has read
    number      INTEGER PRIMARY KEY AUTOINCREMENT, -- order of making; never used again, so that a copy in memory can be compared with it
    moment      INTEGER NOT NULL UNIQUE, -- the moment
    audience    TEXT NOT NULL,           -- who could see it: a search reads only what may be shown
    embedder    TEXT NOT NULL,           -- what made the vector; empty = the words changed since, and it is made again
    vector      BLOB NOT NULL            -- its direction, a signed byte a dimension; empty likewise
) STRICT;
CREATE INDEX moment_vector_audience ON moment_vector (audience, embedder);
CREATE INDEX moment_vector_changed ON moment_vector (moment) WHERE embedder = '';
CREATE TRIGGER moment_vector_gone AFTER DELETE ON moment BEGIN
    DELETE FROM moment_vector WHERE moment = old.id;
END;
CREATE TRIGGER moment_vector_changes AFTER UPDATE OF text, pictures ON moment BEGIN
    UPDATE moment_vector SET embedder = '', vector = x'' WHERE moment = old.id;
END;
