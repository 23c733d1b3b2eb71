-- Facts that begin and end and can be called by a number; what is open in somebody's life.

CREATE TABLE fact_known (                -- one row a thing that somebody is known by
    id          INTEGER PRIMARY KEY,     -- order of being told
    short       INTEGER NOT NULL,        -- the N of `fN`, by which people call it
    person      TEXT NOT NULL,           -- whom it is about, or who told it of somebody who is not here
    audience    TEXT NOT NULL,           -- where it was told
    kind        TEXT NOT NULL,           -- `constraint`, `name`, `kin`, `home`, `work`, `plan`, `taste` or `other`
    text        TEXT NOT NULL,           -- in the third person; of a name the bare name
    keys        TEXT NOT NULL,           -- words by which it may be asked for, a blank between
    about       TEXT NOT NULL,           -- the name of somebody who is not here; empty = it is about the person
    since       TEXT,                    -- the day from which it holds; null = not told
    until       TEXT,                    -- the day from which it holds no more; null = not told
    turn        TEXT NOT NULL,           -- the turn in which it was told
    stated_s    REAL NOT NULL,           -- when, seconds
    ended_at    TEXT,                    -- when it was ended or replaced; null = it holds
    ended_by    TEXT NOT NULL DEFAULT '',-- the turn that ended it
    why         TEXT NOT NULL DEFAULT '',-- why it ended, as it was told
    hidden_at   TEXT,                    -- when the person asked to forget it; an hour later it is destroyed; null = they did not
    hidden_by   TEXT NOT NULL DEFAULT '', -- the turn that was asked to forget it
    former      TEXT NOT NULL DEFAULT '',-- as turns before this table showed it; empty = told since
    unchecked   INTEGER NOT NULL DEFAULT 0 -- 1 = found by a pattern, and confirmed by nobody
) STRICT;
INSERT INTO fact_known (id, short, person, audience, kind, text, keys, about, turn, stated_s, ended_at, former, unchecked)
SELECT f.id, row_number() OVER (PARTITION BY coalesce(l.canonical, f.person) ORDER BY f.id), coalesce(l.canonical, f.person),
    CASE WHEN json_valid(f.sources) THEN coalesce(json_extract(f.sources, '$[0]'), 'self') ELSE 'self' END,
    CASE WHEN f."key" IN ('allergic to', 'must not', 'takes') THEN 'constraint' WHEN f."key" = 'name' THEN 'name' ELSE 'other' END,
    CASE WHEN f."key" = 'name' THEN f.value ELSE f."key" || ' ' || f.value END, '', '', f.turn, f.stated_s,
    CASE WHEN f.newest = 0 THEN strftime('%Y-%m-%dT%H:%M:%S.000000Z', f.stated_s, 'unixepoch')
        ELSE (SELECT strftime('%Y-%m-%dT%H:%M:%S.000000Z', max(n.stated_s), 'unixepoch') FROM fact n WHERE n.person = f.person
            AND n."key" = 'no longer' AND n.stated_s > f.stated_s AND instr(lower(n.value), lower(f.value)) > 0) END,
    f."key" || ': ' || f.value, 1
FROM fact f LEFT JOIN person_link l ON l.person = f.person WHERE f."key" <> 'no longer' ORDER BY f.id;
DROP TABLE fact;
ALTER TABLE fact_known RENAME TO fact;
CREATE INDEX fact_person ON fact (person);
CREATE INDEX fact_turn ON fact (turn);
CREATE INDEX fact_hidden ON fact (hidden_at) WHERE hidden_at IS NOT NULL;
INSERT INTO numbered (person, audience, letter, last) SELECT person, '', 'f', max(short) FROM fact GROUP BY person;

CREATE TABLE matter (                    -- one row a piece of somebody's life that is not over
    id          INTEGER PRIMARY KEY,     -- order of being opened
    short       INTEGER NOT NULL,        -- the N of `mN`
    person      TEXT NOT NULL,           -- whose it is
    audience    TEXT NOT NULL,           -- where it was told
    text        TEXT NOT NULL,           -- what it is
    due         TEXT,                    -- the day it is about; null = not told
    turn        TEXT NOT NULL,           -- the turn that opened it
    opened_at   TEXT NOT NULL,           -- when
    closed_at   TEXT,                    -- when it ended; null = it is open
    raised_at   TEXT,                    -- when the soul wrote first because of it; null = it did not
    hidden_at   TEXT,                    -- when the person asked to forget it; null = they did not
    hidden_by   TEXT NOT NULL DEFAULT ''  -- the turn that was asked to forget it
) STRICT;
CREATE INDEX matter_person ON matter (person);
CREATE INDEX matter_hidden ON matter (hidden_at) WHERE hidden_at IS NOT NULL;
