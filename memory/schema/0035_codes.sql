-- Codes and questions that outlive the process that asked.

CREATE TABLE code (                       -- one row a code that somebody has an hour to show, or a question to answer
    kind     TEXT NOT NULL,               -- pairing, link, question, guess, forget, choice
    person   TEXT NOT NULL,               -- who was given it
    name     TEXT NOT NULL,               -- their display name
    network  TEXT NOT NULL,               -- slack, discord, terminal
    asked_at TEXT NOT NULL,               -- since when
    about    TEXT NOT NULL,               -- the other person of a question; empty = none
    payload  TEXT NOT NULL,               -- what the command that asked for it needs later, as JSON
    code     TEXT NOT NULL,               -- the code
    wrong    INTEGER NOT NULL,            -- wrong codes tried since
    PRIMARY KEY (kind, person)
) STRICT, WITHOUT ROWID;
