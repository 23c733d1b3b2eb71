-- What was said is memory, not feeling: every message that says something is kept, whatever it did to the numbers.

CREATE TABLE moment (                    -- one row a message of a person, or a line of the soul said to one
    id          INTEGER PRIMARY KEY,     -- order of hearing
    turn        TEXT NOT NULL,           -- the turn that heard or said it
    position    TEXT NOT NULL,           -- of a message: the network's own order, by which an edit finds it; else empty
    at_s        INTEGER NOT NULL,        -- when, seconds
    person      TEXT NOT NULL,           -- whose words, or whom the soul answered
    name        TEXT NOT NULL,           -- the display name then; empty for the soul's own words
    conversation TEXT NOT NULL,          -- the place
    audience    TEXT NOT NULL,           -- who could see it
    text        TEXT NOT NULL,           -- what was said, its first 2,000 characters
    stems       TEXT NOT NULL,           -- the stems of the name, the text and the descriptions of its pictures
    importance  INTEGER NOT NULL,        -- in hundredths; decides what is let go first, never what is kept
    is_own      INTEGER NOT NULL         -- 1 = the soul's own words
) STRICT;
CREATE INDEX moment_conversation ON moment (conversation);

CREATE VIRTUAL TABLE moment_index USING fts5 ( -- which moment holds which stem
    stems, content = 'moment', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0', detail = 'none', columnsize = 0
);
CREATE VIRTUAL TABLE moment_stem USING fts5vocab (moment_index, 'row'); -- a view of that index: how many hold a stem
CREATE VIRTUAL TABLE moment_place USING fts5vocab (moment_index, 'instance'); -- a view of that index: which hold a stem
CREATE TRIGGER moment_kept AFTER INSERT ON moment BEGIN
    INSERT INTO moment_index (rowid, stems) VALUES (new.id, new.stems);
END;
CREATE TRIGGER moment_gone AFTER DELETE ON moment BEGIN
    INSERT INTO moment_index (moment_index, rowid, stems) VALUES ('delete', old.id, old.stems);
END;
CREATE TRIGGER moment_blanked AFTER UPDATE OF text ON moment WHEN new.stems <> '' BEGIN -- an erasure took words out of it
    INSERT INTO moment_index (moment_index, rowid, stems) VALUES ('delete', old.id, old.stems);
    UPDATE moment SET stems = '' WHERE id = new.id;
    INSERT INTO moment_index (rowid, stems) VALUES (new.id, '');
END;

-- `stemmed` is ours: the stems of a text and a name, as the daemon derives them when it keeps a moment.
INSERT INTO moment (id, turn, position, at_s, person, name, conversation, audience, text, stems, importance, is_own)
SELECT id, turn, '', CAST(at_s AS INTEGER), person, CASE is_own WHEN 1 THEN '' ELSE name END, conversation,
    coalesce(json_extract(sources, '$[0]'), 'self'), text, stemmed(text, CASE is_own WHEN 1 THEN '' ELSE name END),
    CAST(round(100 * importance) AS INTEGER), is_own
FROM psyche_episode ORDER BY id;
DROP TABLE psyche_episode_place;
DROP TABLE psyche_episode_stem;
DROP TABLE psyche_episode_index;
DROP TABLE psyche_episode;

ALTER TABLE psyche_fact RENAME TO fact;
DROP INDEX psyche_fact_newest;
CREATE INDEX fact_newest ON fact (person, key) WHERE newest = 1;
