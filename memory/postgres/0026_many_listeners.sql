-- What one process kept to itself, as rows that every process of one soul shares.
-- oldest: 25

CREATE TABLE role (                        -- one row for what one process at a time does: listening, the clock, the archive …
    role text COLLATE "C" PRIMARY KEY,     -- listen/slack/0, listen/discord/0, clock, cortex, archive
    token bigint NOT NULL DEFAULT 0,       -- grows with each taking
    worker text COLLATE "C",               -- who has it; null = nobody
    lease_until timestamptz NOT NULL DEFAULT '-infinity', -- until when, by the server's clock
    state text COLLATE "C" NOT NULL DEFAULT '{}' -- what its next holder needs to go on, as JSON: a gateway's session
);

-- After a failover to a standby that had not received everything, what was said may be unknown to the store.
ALTER TABLE release
    ADD timeline bigint NOT NULL DEFAULT 0,              -- the server's timeline when it was last looked at; 0 = never
    ADD switched_at timestamptz NOT NULL DEFAULT '-infinity'; -- when it was first seen to be another one
