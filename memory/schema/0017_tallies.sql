-- What was counted of a peer in one place is told only where it may be shown. The peer's own row counts everything, and
-- is the owner's alone: of what no interaction is kept nobody can say where it was counted.

CREATE TABLE peer_tally (                -- one row a peer and audience that they were dealt with in; kept on write
    peer_id     TEXT NOT NULL,           -- of whom
    audience    TEXT NOT NULL,           -- who could see it: the label that limits where these counts may be read
    name        TEXT NOT NULL,           -- the display name last seen there; empty = not known
    is_bot      INTEGER NOT NULL,        -- 1 = a bot
    first_at    TEXT NOT NULL,           -- first interaction there, either way
    last_at     TEXT NOT NULL,           -- latest interaction there, either way
    first_in_at TEXT,                    -- first message of theirs there; null = none yet
    last_in_at  TEXT,                    -- latest message of theirs there
    messages    INTEGER NOT NULL,        -- messages of theirs there, ever
    bursts      INTEGER NOT NULL,        -- runs of messages with less than 120 s between two
    active_days INTEGER NOT NULL,        -- UTC days on which they wrote there
    last_day    TEXT,                    -- the latest of those days
    PRIMARY KEY (peer_id, audience)
) STRICT, WITHOUT ROWID;

INSERT INTO peer_tally
SELECT i.peer_id, i.audience,
    coalesce((
        SELECT e.name FROM interaction n JOIN turn t ON t.turn = n.turn
        JOIN entry e ON e.conversation = t.conversation AND e.number = t.number
        WHERE n.peer_id = i.peer_id AND n.audience = i.audience AND n.direction = 'in' AND e.person = i.peer_id
            AND e.name IS NOT NULL
        ORDER BY n.id DESC LIMIT 1), ''),
    p.is_bot, min(i.at), max(i.at),
    min(i.at) FILTER (WHERE i.direction = 'in'), max(i.at) FILTER (WHERE i.direction = 'in'),
    count(*) FILTER (WHERE i.direction = 'in'),
    count(*) FILTER (WHERE i.direction = 'in'
        AND (i.before IS NULL OR (julianday(i.at) - julianday(i.before)) * 86400.0 >= 119.999)),
    count(DISTINCT substr(i.at, 1, 10)) FILTER (WHERE i.direction = 'in'),
    max(substr(i.at, 1, 10)) FILTER (WHERE i.direction = 'in')
FROM (
    SELECT peer_id, audience, direction, at,
        lag(at) OVER (PARTITION BY peer_id, audience, direction ORDER BY at) AS before
    FROM interaction
) i JOIN peer p ON p.peer_id = i.peer_id
GROUP BY i.peer_id, i.audience;

-- The newest of each set of sources are found by it: however often a peer was judged in private, what was thought of
-- them in the open stays where it is.
CREATE INDEX assessment_source ON assessment (peer_id, sources, id);
