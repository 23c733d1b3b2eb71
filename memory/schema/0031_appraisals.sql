-- How the soul took what people said, in closed words.

CREATE TABLE appraisal (                 -- one row a message that landed as something; `nothing` leaves none
    id          INTEGER PRIMARY KEY,     -- order of hearing
    person      TEXT NOT NULL,           -- whose words or deeds they were
    kind        TEXT NOT NULL,           -- a kind of psyche/appraisals.toml
    strength    TEXT NOT NULL,           -- slight, clear or strong
    at_s        REAL NOT NULL,           -- when, seconds
    turn        TEXT NOT NULL,           -- in which turn
    audience    TEXT NOT NULL            -- who may be shown it
) STRICT;
CREATE INDEX appraisal_person ON appraisal (person, id);
CREATE INDEX appraisal_turn ON appraisal (turn);
CREATE INDEX appraisal_at ON appraisal (at_s);

-- The trace is folded from here on: what earlier releases folded by other tables stands in a checkpoint.
INSERT INTO checkpoint (id, trace, numbers)
SELECT 1, (SELECT coalesce(max(id), 0) FROM psyche_trace), numbers FROM psyche_state WHERE id = 1
ON CONFLICT (id) DO UPDATE SET trace = excluded.trace, numbers = excluded.numbers;
DELETE FROM checkpoint_edge WHERE EXISTS (SELECT 1 FROM psyche_state);
INSERT INTO checkpoint_edge (person, edge)
SELECT person, json_remove(edge, '$.name', '$.stances') FROM psyche_edge WHERE json_valid(edge);
DROP TABLE psyche_intention;
