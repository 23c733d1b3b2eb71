-- How the soul took what people said, in closed words.

CREATE TABLE appraisal (                 -- one row a message that landed as something; `nothing` leaves none
    id          INTEGER PRIMARY KEY,     -- order of hearing
    person      TEXT NOT NULL,           -- whose words or deeds they were
    kind        TEXT NOT NULL,           -- a kind of psyche/appraisals.toml
    strength    TEXT NOT NULL,           -- slight, clear or strong
    at          TEXT NOT NULL,           -- when
    turn        TEXT NOT NULL,           -- in which turn
    audience    TEXT NOT NULL            -- who may be shown it
) STRICT;
CREATE INDEX appraisal_person ON appraisal (person, id);
CREATE INDEX appraisal_turn ON appraisal (turn);
CREATE INDEX appraisal_at ON appraisal (at);
