-- Which threads the soul was called into, and who speaks there: a message in one may be owed a reply without a mention.

CREATE TABLE thread (                    -- one row a thread that the soul was called into
    conversation TEXT PRIMARY KEY,       -- its key: network:workspace:channel:thread
    since       TEXT NOT NULL,           -- position of the mention that called it
    last_at     TEXT NOT NULL,           -- when it was last spoken in
    is_quiet    INTEGER NOT NULL DEFAULT 0 -- 1 = the soul was asked to be quiet there
) STRICT, WITHOUT ROWID;

CREATE TABLE thread_speaker (            -- the humans who have spoken in it since
    conversation TEXT NOT NULL REFERENCES thread (conversation) ON DELETE CASCADE, -- the thread
    person      TEXT NOT NULL,           -- who
    PRIMARY KEY (conversation, person)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversation_last_at ON conversation (last_at);
