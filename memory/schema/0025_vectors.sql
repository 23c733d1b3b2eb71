-- What the optional extra `recall` knows of the meaning of moments. Empty without it.

CREATE TABLE moment_vector (             -- one row a message of a person that an embedder has read
    audience    TEXT NOT NULL,           -- who could see it: a search reads only what may be shown
    moment      INTEGER NOT NULL,        -- the moment
    embedder    TEXT NOT NULL,           -- what made the vector; empty = the words changed since, and it is made again
    vector      BLOB NOT NULL,           -- its direction, a signed byte a dimension; empty likewise
    PRIMARY KEY (audience, moment)
) STRICT, WITHOUT ROWID;
CREATE INDEX moment_vector_changed ON moment_vector (moment) WHERE embedder = '';
CREATE TRIGGER moment_vector_gone AFTER DELETE ON moment BEGIN
    DELETE FROM moment_vector WHERE audience = old.audience AND moment = old.id;
END;
CREATE TRIGGER moment_vector_changes AFTER UPDATE OF text, pictures ON moment BEGIN
    UPDATE moment_vector SET embedder = '', vector = x'' WHERE audience = old.audience AND moment = old.id;
END;
