-- What people are known by, and what is open in their lives.

-- name: facts_of
-- All that `:persons`, a JSON array, are known by and did not ask to forget.
SELECT f.id, f.short, f.person, f.audience, f.kind, f.text, f.keys, f.about, f.since, f.until, f.turn, f.stated_s, f.ended_at,
    f.why, f.unchecked
FROM json_each(:persons) p CROSS JOIN fact f WHERE f.person = p.value AND f.hidden_at IS NULL;

-- name: fact_row
SELECT person, short, ended_at AS over_at, hidden_at FROM fact WHERE id = :id;

-- name: fact_keep
INSERT INTO fact (short, person, audience, kind, text, keys, about, since, until, turn, stated_s)
VALUES (:short, :person, :audience, :kind, :text, :keys, :about, :since, :until, :turn, :stated_s);

-- name: fact_confirmed
UPDATE fact SET unchecked = 0, kind = :kind, keys = CASE :keys WHEN '' THEN keys ELSE :keys END, about = :about,
    until = coalesce(:until, until) WHERE id = :id;

-- name: fact_ended
UPDATE fact SET ended_at = :at, ended_by = :turn, why = :why WHERE id = :id;

-- name: fact_hidden
UPDATE fact SET hidden_at = :at WHERE id = :id AND hidden_at IS NULL;

-- name: facts_of_turn
-- What a turn's message told of a person, when it is deleted.
DELETE FROM fact WHERE person = :person AND turn = :turn;

-- name: matters_of_turn
DELETE FROM matter WHERE person = :person AND turn = :turn;

-- name: matters_of
SELECT m.id, m.short, m.person, m.audience, m.text, m.due, m.opened_at
FROM json_each(:persons) p CROSS JOIN matter m WHERE m.person = p.value AND m.closed_at IS NULL AND m.hidden_at IS NULL;

-- name: matter_row
SELECT person, short, closed_at AS over_at, hidden_at FROM matter WHERE id = :id;

-- name: matter_keep
INSERT INTO matter (short, person, audience, text, due, turn, opened_at)
VALUES (:short, :person, :audience, :text, :due, :turn, :opened_at);

-- name: matter_closed
UPDATE matter SET closed_at = :at WHERE id = :id;

-- name: matter_hidden
UPDATE matter SET hidden_at = :at WHERE id = :id AND hidden_at IS NULL;
