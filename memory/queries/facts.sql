-- What people are known by, and what is open in their lives.

-- name: facts_of
-- All that `:persons`, a JSON array, are known by and did not ask to forget.
SELECT f.id, f.short, f.person, f.audience, f.kind, f.text, f.keys, f.about, f.since, f.until, f.turn, f.stated_s, f.ended_at,
    f.why, f.unchecked
FROM json_each(:persons) p CROSS JOIN fact f WHERE f.person = p.value AND f.hidden_at IS NULL;

-- name: known_here
-- A document of the facts of each of `:persons`, with rows as `facts_of` has them, and what is open in the life of one.
SELECT 'facts' AS what, 0 AS id, 0 AS short, '' AS person, '' AS audience, (SELECT json_group_array(json_object(
        'id', f.id, 'short', f.short, 'person', f.person, 'audience', f.audience, 'kind', f.kind, 'text', f.text,
        'keys', f.keys, 'about', f.about, 'since', f.since, 'until', f.until, 'turn', f.turn, 'stated_s', f.stated_s,
        'ended_at', f.ended_at, 'why', f.why, 'unchecked', f.unchecked))
    FROM fact f WHERE f.person = p.value AND f.hidden_at IS NULL) AS text, NULL AS due, NULL AS opened_at
FROM json_each(:persons) p WHERE EXISTS (SELECT 1 FROM fact f WHERE f.person = p.value AND f.hidden_at IS NULL)
UNION ALL
SELECT 'matter', id, short, person, audience, text, due, opened_at
FROM matter WHERE person = :addressee AND closed_at IS NULL AND hidden_at IS NULL;

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
UPDATE fact SET hidden_at = :at, hidden_by = :turn WHERE id = :id AND hidden_at IS NULL;

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
UPDATE matter SET hidden_at = :at, hidden_by = :turn WHERE id = :id AND hidden_at IS NULL;

-- name: fact_of_name
SELECT id, text FROM fact
WHERE person IN (SELECT value FROM json_each(:ids)) AND audience = :audience AND short = :short AND hidden_at IS NOT NULL;

-- name: matter_of_name
SELECT id, text FROM matter
WHERE person IN (SELECT value FROM json_each(:ids)) AND audience = :audience AND short = :short AND hidden_at IS NOT NULL;

-- name: fact_back
UPDATE fact SET hidden_at = NULL WHERE id = :id;

-- name: matter_back
UPDATE matter SET hidden_at = NULL WHERE id = :id;

-- name: hidden_first
SELECT min(hidden_at) AS at FROM (SELECT hidden_at FROM fact WHERE hidden_at IS NOT NULL
    UNION ALL SELECT hidden_at FROM matter WHERE hidden_at IS NOT NULL) AS hidden;

-- name: hidden_before
SELECT 'fact' AS kind, id FROM fact WHERE hidden_at IS NOT NULL AND hidden_at <= :before
UNION ALL SELECT 'matter', id FROM matter WHERE hidden_at IS NOT NULL AND hidden_at <= :before;

-- name: fact_to_forget
SELECT person, turn, hidden_by, text, about, keys FROM fact WHERE id = :id;

-- name: matter_to_forget
SELECT person, turn, hidden_by, text, '' AS about, '' AS keys FROM matter WHERE id = :id;

-- name: moment_to_forget
SELECT id, person, turn, '' AS hidden_by, text, '' AS about, '' AS keys FROM moment WHERE id = :id AND is_own = 0;

-- name: moments_telling
-- scans: one message is forgotten
SELECT id, person, text FROM moment WHERE turn = :turn AND is_own = 0 AND person IN (SELECT value FROM json_each(:ids));

-- name: moments_told
-- scans: one person asks what is kept of them
SELECT id, audience, at_s, text FROM moment WHERE is_own = 0 AND person IN (SELECT value FROM json_each(:ids)) ORDER BY id DESC LIMIT :most;

-- name: moment_unkeyed
UPDATE moment SET pictures = trim(replace(pictures, :keys, '')) WHERE id = :id AND :keys <> '';

-- name: told_in_turn
SELECT 1 FROM fact WHERE turn = :turn AND person = :person AND ended_at IS NULL AND hidden_at IS NULL
UNION ALL SELECT 1 FROM matter WHERE turn = :turn AND person = :person AND closed_at IS NULL AND hidden_at IS NULL LIMIT 1;

-- name: acts_of_turn
SELECT n, content FROM entry
WHERE conversation = :conversation AND number = :number AND entry_type = 'mentalQuery' AND metadata LIKE '%"acts"%';

-- name: acts_blanked
UPDATE entry SET content = :content, stems = '' WHERE conversation = :conversation AND number = :number AND n = :n;

-- name: matters_raised
SELECT id FROM matter WHERE person = :person AND raised_at IS NOT NULL;

-- name: matter_raised
UPDATE matter SET raised_at = :at WHERE id = :id;
