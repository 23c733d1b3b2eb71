-- Plans that people and the soul can name, change and repeat; numbers that are never used again; a zone of one's own.

ALTER TABLE due ADD COLUMN short INTEGER NOT NULL DEFAULT 0;      -- the N of `pN`, by which people call it; 0 = it has none
ALTER TABLE due ADD COLUMN made_as TEXT NOT NULL DEFAULT '';      -- `remind`: asked for; `promise`: the soul's own word; else empty
ALTER TABLE due ADD COLUMN first_at TEXT;                         -- of a repetition: its first instant, whose wall clock it keeps
ALTER TABLE due ADD COLUMN repeat TEXT NOT NULL DEFAULT '';     -- `daily`, `weekdays`, `weekly`, `monthly`, `yearly` or days; empty = once
ALTER TABLE due ADD COLUMN until TEXT;                            -- the last day of a repetition, inclusive; null = no end
ALTER TABLE due ADD COLUMN made_by TEXT NOT NULL DEFAULT '';      -- the turn that made it; empty = none did
ALTER TABLE due ADD COLUMN state TEXT NOT NULL DEFAULT 'waiting'  -- what became of it
    CHECK (state IN ('waiting', 'said', 'missed', 'cancelled', 'lapsed'));
ALTER TABLE due ADD COLUMN why TEXT NOT NULL DEFAULT '';          -- why it was never said
CREATE INDEX due_of_person ON due (person, audience, scheduled_for) WHERE fired_turn IS NULL;
ALTER TABLE person ADD COLUMN set_zone TEXT NOT NULL DEFAULT '';  -- IANA zone that they told; empty = their network's holds

CREATE TABLE numbered (                  -- the last number given to what people call by a letter and a number
    person      TEXT NOT NULL,           -- whose it is
    audience    TEXT NOT NULL,           -- where it is called so; empty = everywhere
    letter      TEXT NOT NULL,           -- `p` a plan, `f` a fact, `m` a matter
    last        INTEGER NOT NULL,        -- the number given last; none is ever given again
    PRIMARY KEY (person, audience, letter)
) STRICT, WITHOUT ROWID;

UPDATE due SET state = CASE WHEN lapsed_at IS NOT NULL THEN 'lapsed' WHEN fired_turn IS NULL THEN 'waiting' ELSE 'said' END;
-- What was asked for or promised keeps its own words; what introduces them is added when it is due.
UPDATE due SET made_as = CASE WHEN json_extract(params, '$.event') = 'promise_due' THEN 'promise' ELSE 'remind' END,
    text = json_extract(params, '$.what')
WHERE fired_turn IS NULL AND asked_by <> '' AND json_valid(params) AND coalesce(json_extract(params, '$.what'), '') <> ''
    AND (json_extract(params, '$.event') = 'promise_due' OR "key" LIKE 'reminder:%');
UPDATE due SET short = (
    SELECT n.short FROM (SELECT d.id, row_number() OVER (
        PARTITION BY coalesce(l.canonical, d.person), d.audience ORDER BY d.scheduled_for, d.id) AS short
        FROM due d LEFT JOIN person_link l ON l.person = d.person
        WHERE d.fired_turn IS NULL AND d.made_as <> '' AND d.person <> '') n WHERE n.id = due.id)
WHERE fired_turn IS NULL AND made_as <> '' AND person <> '';
INSERT INTO numbered (person, audience, letter, last)
SELECT coalesce(l.canonical, d.person), d.audience, 'p', max(d.short) FROM due d LEFT JOIN person_link l ON l.person = d.person
WHERE d.short > 0 GROUP BY coalesce(l.canonical, d.person), d.audience;
