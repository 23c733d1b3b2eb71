-- What was said is memory, not feeling: every message that says something is kept, whatever it did to the numbers.

CREATE TABLE moment (                    -- one row a message of a person, or a line of the soul said to one
    id          INTEGER PRIMARY KEY,     -- order of hearing
    turn        TEXT NOT NULL,           -- the turn that heard or said it
    position    TEXT NOT NULL,           -- the network's own order, by which an edit finds it; empty for the only message of its turn
    at_s        INTEGER NOT NULL,        -- when, seconds
    person      TEXT NOT NULL,           -- whose words, or whom the soul answered
    name        TEXT NOT NULL,           -- the display name then; empty for the soul's own words
    conversation TEXT NOT NULL,          -- the place
    audience    TEXT NOT NULL,           -- who could see it
    text        TEXT NOT NULL,           -- what was said, its first 2,000 characters; empty for what the soul posted: that stands in the outbox
    pictures    TEXT NOT NULL,           -- the descriptions of its pictures, which are searched too
    importance  INTEGER NOT NULL,        -- in hundredths; decides what is let go first, never what is kept
    is_own      INTEGER NOT NULL         -- 1 = the soul's own words
) STRICT;
CREATE INDEX moment_conversation ON moment (conversation);
CREATE TABLE moment_audience (           -- one row an audience with moments; triggers keep it
    number      INTEGER PRIMARY KEY,     -- follows each stem in the index, so that a search reads only what may be shown
    audience    TEXT NOT NULL UNIQUE,    -- who could see it
    kept        INTEGER NOT NULL         -- its number of moments
) STRICT;
CREATE VIEW moment_said AS               -- every moment with its words, wherever they stand
    SELECT id, turn, position, at_s, person, name, conversation, audience, pictures, importance, is_own, CASE is_own
        WHEN 0 THEN text
        ELSE coalesce((SELECT group_concat(body, char(10)) FROM outbox WHERE outbox.turn = moment.turn), '')
    END AS text, (SELECT number FROM moment_audience WHERE moment_audience.audience = moment.audience) AS audience_number FROM moment;

-- `stemmed` is ours: the stems of a text and a name, each with a colon and the number of the audience. What is deleted
-- must give the stems that were indexed, so a change of them needs a migration that builds the index anew.
CREATE VIRTUAL TABLE moment_index USING fts5 ( -- which moment holds which stem
    stems, content = '', tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'", detail = 'none', columnsize = 0
);
CREATE VIRTUAL TABLE moment_stem USING fts5vocab (moment_index, 'row'); -- a view of that index: how many hold a stem
CREATE VIRTUAL TABLE moment_place USING fts5vocab (moment_index, 'instance'); -- a view of that index: which hold a stem
CREATE TRIGGER moment_comes BEFORE INSERT ON moment BEGIN
    INSERT INTO moment_audience (audience, kept) VALUES (new.audience, 1) ON CONFLICT (audience) DO UPDATE SET kept = kept + 1;
END;
CREATE TRIGGER moment_kept AFTER INSERT ON moment BEGIN
    INSERT INTO moment_index (rowid, stems) SELECT id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said WHERE id = new.id;
END;
CREATE TRIGGER moment_gone BEFORE DELETE ON moment BEGIN
    INSERT INTO moment_index (moment_index, rowid, stems)
    SELECT 'delete', id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said WHERE id = old.id;
END;
CREATE TRIGGER moment_went AFTER DELETE ON moment BEGIN
    UPDATE moment_audience SET kept = kept - 1 WHERE audience = old.audience;
    DELETE FROM moment_audience WHERE audience = old.audience AND kept = 0;
END;
CREATE TRIGGER moment_changes BEFORE UPDATE OF text, pictures, name ON moment BEGIN -- an erasure takes words out of it
    INSERT INTO moment_index (moment_index, rowid, stems)
    SELECT 'delete', id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said WHERE id = old.id;
END;
CREATE TRIGGER moment_changed AFTER UPDATE OF text, pictures, name ON moment BEGIN
    INSERT INTO moment_index (rowid, stems) SELECT id, stemmed(text || ' ' || pictures, name, audience_number) FROM moment_said WHERE id = new.id;
END;
CREATE TRIGGER outbox_gone BEFORE DELETE ON outbox BEGIN -- the soul's own words are no memory without their words
    DELETE FROM moment WHERE conversation = old.conversation AND turn = old.turn AND is_own = 1;
END;

INSERT INTO moment (id, turn, position, at_s, person, name, conversation, audience, text, pictures, importance, is_own)
SELECT id, turn, '', CAST(at_s AS INTEGER), person, CASE is_own WHEN 1 THEN '' ELSE name END, conversation,
    coalesce(json_extract(sources, '$[0]'), 'self'), CASE is_own WHEN 1 THEN '' ELSE text END, '',
    CAST(round(100 * importance) AS INTEGER), is_own
FROM psyche_episode WHERE is_own = 0 OR turn IN (SELECT turn FROM outbox) ORDER BY id;
DROP TABLE psyche_episode_place;
DROP TABLE psyche_episode_stem;
DROP TABLE psyche_episode_index;
DROP TABLE psyche_episode;

ALTER TABLE psyche_fact RENAME TO fact;
DROP INDEX psyche_fact_newest;
CREATE INDEX fact_newest ON fact (person, key) WHERE newest = 1;
